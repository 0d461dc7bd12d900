"""Imports inside functions, complex functions and large records of gitsched: how many there may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitsched.decide.garbage_collection import gc_paused
from tests.syntax_trees import walk_statements

ROOT = Path(__file__).parents[2]
MAX_INNER_IMPORTS = 262
"""An import inside a function is for what few runs need and what takes long to import. A feature is imported in one place: a command by
its module in cli/commands, a policy API by `gitsched.apis.registered`. A quarter of these are in code that continues plans."""
MAX_COMPLEX_FUNCTIONS = 75
"""Functions with more than MAX_COMPLEXITY paths. A quarter of them is in code that continues plans."""
MAX_COMPLEXITY = 20
MAX_FIELDS = 30
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.match_case)


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    with gc_paused():
        return {
            path.relative_to(ROOT / "gitsched").as_posix(): ast.parse(path.read_text(encoding="utf-8"))
            for path in sorted((ROOT / "gitsched").rglob("*.py"))
        }


def list_inner_imports(tree: ast.AST, *, is_inside: bool = False) -> Iterator[ast.stmt]:
    """Yield the imports inside of functions; those inside of nested functions count once."""
    is_inside = is_inside or isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef)
    for node in ast.iter_child_nodes(tree):
        if is_inside and isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from list_inner_imports(node, is_inside=is_inside)


def count_paths(node: ast.AST) -> int:
    """Return how many branches, conditions and loops a node adds, without those of its children."""
    if isinstance(node, BRANCHES):
        return 1
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    return 1 + len(node.ifs) if isinstance(node, ast.comprehension) else 0


def compute_complexities(tree: ast.AST) -> list[tuple[str, int]]:
    """Return the functions, inner ones first, each with its cyclomatic complexity, which includes that of the functions inside of it."""
    found = []

    def count(node: ast.AST) -> int:
        paths = count_paths(node) + sum(map(count, ast.iter_child_nodes(node)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append((node.name, paths + 1))
        return paths

    count(tree)
    return found


def count_fields(record: ast.ClassDef) -> int:
    """Return how many fields a class declares, by annotations or by __slots__."""
    slots = (
        len(node.value.elts)
        for node in record.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__" and isinstance(node.value, ast.Tuple)
    )
    return max(sum(isinstance(node, ast.AnnAssign) for node in record.body), *slots, 0)


def test_imports_inside_functions_do_not_become_more(modules: dict[str, ast.Module]) -> None:
    assert sum(len(list(list_inner_imports(tree))) for tree in modules.values()) <= MAX_INNER_IMPORTS


def test_complex_functions_do_not_become_more(modules: dict[str, ast.Module]) -> None:
    found = [
        f"{path} {name}" for path, tree in modules.items() for name, paths in compute_complexities(tree) if paths > MAX_COMPLEXITY
    ]
    assert len(found) <= MAX_COMPLEX_FUNCTIONS
    assert not [name for name in found if name.startswith("reconcile/source/source_tree.py")], "it is a list of steps"


def test_no_record_has_too_many_fields(modules: dict[str, ast.Module]) -> None:
    found = {
        f"{path} {node.name}": count_fields(node)
        for path, tree in modules.items()
        for node in walk_statements(tree)
        if isinstance(node, ast.ClassDef) and count_fields(node) > MAX_FIELDS
    }
    assert found == {}


def test_what_is_counted() -> None:
    code = """
import os
def outer(values):
    import json
    def inner():
        from a import b
    return [v for v in values if v and json] if values else None
class Record:
    one: int
    two: int
class Slotted:
    __slots__ = ("one", "two", "three")
"""
    tree = ast.parse(code)
    assert len(list(list_inner_imports(tree))) == 2
    assert compute_complexities(tree) == [("inner", 1), ("outer", 5)]
    assert [count_fields(node) for node in tree.body if isinstance(node, ast.ClassDef)] == [2, 3]
