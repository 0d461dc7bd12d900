"""Which finding codes the source can give: read from the syntax tree, so that no code can be added in silence."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "gitsched"
ROOMS = ("manifests", "apis", "decide", "simulate", "diff", "git", "reconcile")


@cache
def find_codes() -> frozenset[str]:
    """The codes of the whole package."""
    trees = [ast.parse(path.read_text()) for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py"))]
    files = [PACKAGE / "model" / "finding.py", PACKAGE / "cli" / "schedule.py"]
    return frozenset(find_codes_in([*trees, *(ast.parse(path.read_text()) for path in files)]))


def find_codes_in(trees: list[ast.Module]) -> set[str]:
    """Every string that is passed where a parameter or field is called `code`, with `*` for what an f-string fills in; and the first
    member of the entries of a table that a `code` is unpacked from."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    constants = {
        target.id: node.value
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    takers = {name: position for node in nodes for name, position in _takers(node)}
    calls = [value for node in nodes if isinstance(node, ast.Call) for value in _passed(node, takers)]
    tables = [entry for tree in trees if _unpacks_code(tree) for entry in _first_of_tables(tree)]
    return {code for value in (*calls, *tables) for code in _texts(value, constants)}


def _unpacks_code(tree: ast.Module) -> bool:
    """Whether the module takes a code out of a table, as in `code, say = words`."""
    targets = [target for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets]
    firsts = [target.elts[0] for target in targets if isinstance(target, ast.Tuple) and target.elts]
    return any(isinstance(first, ast.Name) and first.id == "code" for first in firsts)


def _first_of_tables(tree: ast.Module) -> Iterator[ast.expr]:
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            yield from (value.elts[0] for value in node.value.values if isinstance(value, ast.Tuple) and value.elts)


def _takers(node: ast.AST) -> Iterator[tuple[str, int]]:
    """A function or named tuple that takes a code, and at which position, without self."""
    if isinstance(node, ast.ClassDef):
        fields = [entry.target.id for entry in node.body if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)]
        if "code" in fields and any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases):
            yield node.name, fields.index("code")
    if isinstance(node, ast.FunctionDef):
        names = [argument.arg for argument in node.args.args if argument.arg != "self"]
        if "code" in names:
            yield node.name, names.index("code")


def _passed(call: ast.Call, takers: dict[str, int]) -> Iterator[ast.expr]:
    name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name in takers:
        position = takers[name]
        if len(call.args) > position and not any(isinstance(argument, ast.Starred) for argument in call.args[: position + 1]):
            yield call.args[position]
    if name in takers or name == "_replace":
        yield from (keyword.value for keyword in call.keywords if keyword.arg == "code")


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
