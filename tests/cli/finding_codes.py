"""List the finding codes of the source from its syntax tree, so that tests notice an undocumented code."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from gitsched.decide.garbage_collection import gc_paused
from tests.syntax_trees import walk_statements

PACKAGE = Path(__file__).parents[2] / "gitsched"
PACKAGES = ("manifests", "apis", "decide", "simulate", "diff", "git", "build", "reconcile")


@cache
@gc_paused()
def find_codes() -> frozenset[str]:
    """Return the codes of the complete package."""
    trees = [ast.parse(path.read_text()) for name in PACKAGES for path in sorted((PACKAGE / name).rglob("*.py"))]
    models = [PACKAGE / "model" / f"{name}.py" for name in ("finding", "preferred_clusters", "tenants")]
    files = [*models, PACKAGE / "cli" / "commands" / "schedule.py"]
    return frozenset(find_codes_in([*trees, *(ast.parse(path.read_text()) for path in files)]))


def find_codes_in(trees: list[ast.Module]) -> set[str]:
    """Return every string that is passed as a parameter or field `code` or `..._code`, with `*` for each value in an f-string; and the
    first member of the entries of a table from which a `code` is unpacked. Krake's reason codes, in capital letters, are no finding codes.
    """
    constants = {
        target.id: node.value
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    takers = {name: positions for tree in trees for name, positions in _takers(tree)}
    calls = [value for tree in trees for value in _list_passed(tree, takers)]
    tables = [entry for tree in trees if _unpacks_code(tree) for entry in _first_of_tables(tree)]
    codes = {code for value in (*calls, *tables) for code in _texts(value, constants)}
    return {code for code in codes if code and not code.isupper()}


def _list_passed(tree: ast.Module, takers: Mapping[str, list[int]]) -> Iterator[ast.expr]:
    """Yield the codes that calls of a module pass; functions of the module itself hide those of others with the same name."""
    known = {**takers, **dict(_takers(tree))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _passed(node, known)


def _unpacks_code(tree: ast.Module) -> bool:
    """Return whether the module unpacks a code from a table, as in `code, message = row`."""
    targets = [target for node in walk_statements(tree) if isinstance(node, ast.Assign) for target in node.targets]
    firsts = [target.elts[0] for target in targets if isinstance(target, ast.Tuple) and target.elts]
    return any(isinstance(first, ast.Name) and first.id == "code" for first in firsts)


def _first_of_tables(tree: ast.Module) -> Iterator[ast.expr]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            yield from (value.elts[0] for value in node.value.values if isinstance(value, ast.Tuple) and value.elts)


def _takers(tree: ast.Module) -> Iterator[tuple[str, list[int]]]:
    """Yield each function, named tuple and exception that takes codes, and their positions, without self."""
    for node in walk_statements(tree):
        if isinstance(node, ast.ClassDef):
            fields = [
                entry.target.id for entry in node.body if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)
            ]
            if _is_named_tuple(node) and (positions := _find_positions(fields)):
                yield node.name, positions
            for entry in node.body:
                if isinstance(entry, ast.FunctionDef) and entry.name == "__init__" and (positions := _find_parameters(entry)):
                    yield node.name, positions
        if isinstance(node, ast.FunctionDef) and (positions := _find_parameters(node)):
            yield node.name, positions


def _is_named_tuple(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases)


def _find_parameters(function: ast.FunctionDef) -> list[int]:
    return _find_positions([argument.arg for argument in function.args.args if argument.arg != "self"])


def _find_positions(names: list[str]) -> list[int]:
    return [position for position, name in enumerate(names) if _is_code(name)]


def _is_code(name: str | None) -> bool:
    return name == "code" or bool(name and name.endswith("_code"))


def _passed(call: ast.Call, takers: Mapping[str, list[int]]) -> Iterator[ast.expr]:
    name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""
    for position in takers.get(name, []):
        if len(call.args) > position and not any(isinstance(argument, ast.Starred) for argument in call.args[: position + 1]):
            yield call.args[position]
    if name in takers or name == "_replace":
        yield from (keyword.value for keyword in call.keywords if _is_code(keyword.arg))


def _texts(value: ast.expr, constants: dict[str, ast.expr]) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in value.values)
    elif isinstance(value, ast.IfExp):
        yield from _texts(value.body, constants)
        yield from _texts(value.orelse, constants)
    elif isinstance(value, ast.Name) and value.id in constants:
        yield from _texts(constants[value.id], {})
