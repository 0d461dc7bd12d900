"""Modules of gitsched import each other without circles, including imports for type checking and those inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from gitsched.decide.garbage_collection import gc_paused
from tests.syntax_trees import walk_statements

ROOT = Path(__file__).parents[1]
Graph = dict[str, set[str]]


def list_modules(root: Path, package: str) -> dict[str, Path]:
    """Return the modules below root/package: dotted name → file. A package has the name of its directory."""
    modules = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def defined_names(tree: ast.Module) -> set[str]:
    """Return the names that a module itself binds at its top level, in any branch of it; imported names do not count."""
    found: set[str] = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        pending.extend(ast.iter_child_nodes(node))
    return found


def absolute_module(node: ast.ImportFrom, name: str, is_package: bool) -> str:
    """Return the dotted name of the module that a `from` import in module `name` names."""
    if not node.level:
        return node.module or ""
    parts = name.split(".") if is_package else name.split(".")[:-1]
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


class Module(NamedTuple):
    imports: list[ast.Import | ast.ImportFrom]
    defined: set[str]
    passed_on: dict[str, tuple[str, str]]
    """Imported name → module and name that it comes from."""


def read_module(name: str, path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    is_package = path.name == "__init__.py"
    imports = [node for node in walk_statements(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        if isinstance(node, ast.ImportFrom):
            node.module, node.level = absolute_module(node, name, is_package), 0
    named = [(node.module or "", alias) for node in imports if isinstance(node, ast.ImportFrom) for alias in node.names]
    return Module(imports, defined_names(tree), {alias.asname or alias.name: (base, alias.name) for base, alias in named})


def resolve(base: str, name: str, modules: Mapping[str, Module]) -> str:
    """Return the module that `from base import name` needs: a submodule, the module that binds the name, or base itself."""
    seen: set[tuple[str, str]] = set()
    while (base, name) not in seen:
        seen.add((base, name))
        if f"{base}.{name}" in modules:
            return f"{base}.{name}"
        if base not in modules or name in modules[base].defined or name not in modules[base].passed_on:
            break
        base, name = modules[base].passed_on[name]
    return base


def imported_modules(module: Module, modules: Mapping[str, Module]) -> Iterator[str]:
    for node in module.imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            yield from (resolve(node.module or "", alias.name, modules) for alias in node.names)


@gc_paused()
def read_graph(root: Path, package: str) -> Graph:
    """Return the import graph of a package: module → modules of the same package that it imports."""
    modules = {name: read_module(name, path) for name, path in list_modules(root, package).items()}
    return {name: (modules.keys() & set(imported_modules(module, modules))) - {name} for name, module in modules.items()}


def find_circles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one module (Tarjan's algorithm, without recursion), sorted."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    circles: list[list[str]] = []
    for root in sorted(graph):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(sorted(graph[root])))]
        while work:
            node, children = work[-1]
            for child in children:
                if child not in index:
                    index[child] = low[child] = len(index)
                    stack.append(child)
                    on_stack.add(child)
                    work.append((child, iter(sorted(graph[child]))))
                    break
                if child in on_stack:
                    low[node] = min(low[node], index[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    if len(component) > 1:
                        circles.append(sorted(component))
    return sorted(circles)


def test_gitsched_has_no_import_circle() -> None:
    assert find_circles(read_graph(ROOT, "gitsched")) == []


def circles_of(root: Path, files: Mapping[str, str]) -> list[list[str]]:
    for name, text in {"p/__init__.py": "", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return find_circles(read_graph(root, "p"))


CIRCLE = [["p.a", "p.b"]]


@pytest.mark.parametrize(
    "imports",
    [
        "import p.b",
        "from p.b import value",
        "from p import b",
        "from . import b",
        "from .b import value",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.b import value",
        "def use():\n    from p.b import value",
        "class Use:\n    def use(self):\n        import p.b as other",
        "try:\n    import p.b\nexcept ImportError:\n    pass",
    ],
)
def test_the_check_finds_a_circle_by_any_kind_of_import(imports: str, tmp_path: Path) -> None:
    assert circles_of(tmp_path, {"p/a.py": imports, "p/b.py": "import p.a\nvalue = 1"}) == CIRCLE


def test_the_check_finds_a_circle_of_many_modules(tmp_path: Path) -> None:
    files = {"p/a.py": "import p.b", "p/b.py": "import p.c", "p/c.py": "import p.a", "p/d.py": "import p.a"}
    assert circles_of(tmp_path, files) == [["p.a", "p.b", "p.c"]]


def test_the_check_finds_separate_circles_separately(tmp_path: Path) -> None:
    files = {"p/a.py": "import p.b", "p/b.py": "import p.a, p.c", "p/c.py": "import p.d", "p/d.py": "import p.c"}
    assert circles_of(tmp_path, files) == [["p.a", "p.b"], ["p.c", "p.d"]]


def test_the_check_finds_a_module_that_uses_what_its_package_defines(tmp_path: Path) -> None:
    assert circles_of(tmp_path, {"p/__init__.py": "from p.a import one\ntwo = 2", "p/a.py": "from p import two\none = 1"}) == [
        ["p", "p.a"]
    ]


def test_a_submodule_imported_from_its_package_is_no_import_of_the_package(tmp_path: Path) -> None:
    assert circles_of(tmp_path, {"p/__init__.py": "from p.a import one", "p/a.py": "from p import b\none = 1", "p/b.py": ""}) == []


def test_the_check_follows_a_name_that_a_package_passes_on(tmp_path: Path) -> None:
    files = {"p/__init__.py": "from p.b import value", "p/a.py": "from p import value", "p/b.py": "import p.a\nvalue = 1"}
    assert circles_of(tmp_path, files) == CIRCLE


def test_a_shared_import_is_no_circle(tmp_path: Path) -> None:
    files = {"p/a.py": "import p.b, p.c", "p/b.py": "import p.c", "p/c.py": "import os"}
    assert circles_of(tmp_path, files) == []
