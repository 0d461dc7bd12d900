"""What is wrong with an expression before it meets a cluster: unknown names and functions, and operands that never fit.

Types are known of literals and of what functions give; everything in a document is `dyn`, which fits anything.
"""

from __future__ import annotations

from gitsched.apis.ocm.cel.registry import FUNCTIONS, Overload, resolve, type_of
from gitsched.apis.ocm.cel.syntax import (
    Bind,
    Call,
    Index,
    Listing,
    Literal,
    Loop,
    Mapping,
    Name,
    Node,
    Refused,
    Select,
    reject_expression,
)

DYN = "dyn"
TYPES = ("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint")
_NUMBERS = ("int", "uint", "double")
_ARITHMETIC: dict[str, tuple[str, ...]] = {
    "+": (*_NUMBERS, "string", "bytes", "list"),
    "-": _NUMBERS,
    "*": _NUMBERS,
    "/": _NUMBERS,
    "%": ("int", "uint"),
}
_MOMENTS = {
    ("+", "timestamp", "duration"): "timestamp",
    ("+", "duration", "timestamp"): "timestamp",
    ("+", "duration", "duration"): "duration",
    ("-", "timestamp", "timestamp"): "duration",
    ("-", "timestamp", "duration"): "timestamp",
    ("-", "duration", "duration"): "duration",
}
_ORDERED = ("string", "bytes", "bool", "timestamp", "duration")
Scope = dict[str, str]


def infer(node: Node, scope: Scope) -> str:
    """The type of an expression, `dyn` where only a document can tell. Refused where it can never have a value."""
    match node:
        case Literal():
            return type_of(node.value)
        case Name():
            return _infer_name(node, scope)
        case Select():
            return _infer_select(node, scope)
        case Index():
            return _infer_index(node, scope)
        case Listing():
            for entry, optional in node.entries:
                _expect(infer(entry, scope), ("optional",) if optional else (), entry.at)
            return "list"
        case Mapping():
            for key, value, _ in node.entries:
                _expect(infer(key, scope), ("string", "int", "uint", "bool"), key.at)
                infer(value, scope)
            return "map"
        case Loop():
            return _infer_loop(node, scope)
        case Bind():
            _expect(infer(node.operand, scope), ("optional",), node.at)
            infer(node.body, {**scope, node.variable: DYN})
            return "optional"
    return _infer_call(node, scope)


def find_overloads(call: Call, scope: Scope) -> tuple[str, list[Overload], tuple[Node, ...]]:
    """The name of a function, the overloads that are written like this call, and all arguments, the target first."""
    target = call.target
    if isinstance(target, Name) and target.name not in scope and f"{target.name}.{call.name}" in FUNCTIONS:
        name, member, arguments = f"{target.name}.{call.name}", False, call.arguments
    else:
        name, member = call.name, target is not None
        arguments = call.arguments if target is None else (target, *call.arguments)
    return name, resolve(name, member, len(arguments)), arguments


def _infer_name(node: Name, scope: Scope) -> str:
    if node.name in scope:
        return scope[node.name]
    if node.name in TYPES:
        return "type"
    raise Refused(f"{node.name!r} at character {node.at + 1} is not known; the cluster is managedCluster")


def _infer_select(node: Select, scope: Scope) -> str:
    kind = infer(node.operand, scope)
    _expect(kind, ("map", "cluster", "optional"), node.at)
    return "bool" if node.test else "optional" if node.optional or kind == "optional" else DYN


def _infer_index(node: Index, scope: Scope) -> str:
    kind = infer(node.operand, scope)
    _expect(kind, ("map", "cluster", "list", "optional"), node.at)
    index = infer(node.place, scope)
    if kind == "list":
        _expect(index, _NUMBERS, node.at)
    return "optional" if node.optional or kind == "optional" else DYN


def _infer_loop(node: Loop, scope: Scope) -> str:
    _expect(infer(node.operand, scope), ("list", "map", "cluster"), node.at)
    inner = {**scope, node.variable: DYN}
    body = infer(node.body, inner)
    if node.only is not None:
        _expect(infer(node.only, inner), ("bool",), node.at)
    if node.macro == "map":
        return "list"
    _expect(body, ("bool",), node.at)
    return "list" if node.macro == "filter" else "bool"


def _infer_call(node: Call, scope: Scope) -> str:
    if node.target is None and node.name in _OPERATORS:
        return _OPERATORS[node.name](node, [infer(argument, scope) for argument in node.arguments])
    name, overloads, arguments = find_overloads(node, scope)
    if name not in FUNCTIONS:
        raise reject_expression(f"the function {name}() at character {node.at + 1} is not offered", "cel-unsupported")
    kinds = [infer(argument, scope) for argument in arguments]
    fitting = [
        o for o in overloads if all(DYN in (kind, wanted) or kind == wanted for kind, wanted in zip(kinds, o.types, strict=True))
    ]
    if not fitting:
        raise Refused(f"the function {name}() at character {node.at + 1} does not take {', '.join(kinds) or 'nothing'}")
    results = {overload.result for overload in fitting}
    return results.pop() if len(results) == 1 else DYN


def _infer_arithmetic(node: Call, kinds: list[str]) -> str:
    left, right = kinds
    moments = _MOMENTS.get((node.name, left, right))
    if moments is not None:
        return moments
    if DYN in kinds:
        known = left if right == DYN else right
        _expect(known, (*_ARITHMETIC[node.name], "timestamp", "duration"), node.at)
        return DYN
    if left != right or left not in _ARITHMETIC[node.name]:
        raise _no_operator(node, kinds)
    return left


def _infer_order(node: Call, kinds: list[str]) -> str:
    left, right = kinds
    for kind in kinds:
        _expect(kind, (*_NUMBERS, *_ORDERED), node.at)
    if DYN not in kinds and left != right and not (left in _NUMBERS and right in _NUMBERS):
        raise _no_operator(node, kinds)
    return "bool"


def _infer_equality(node: Call, kinds: list[str]) -> str:
    left, right = kinds
    if DYN not in kinds and left != right:
        raise _no_operator(node, kinds)
    return "bool"


def _infer_logic(node: Call, kinds: list[str]) -> str:
    for kind in kinds:
        _expect(kind, ("bool",), node.at)
    return "bool"


def _infer_choice(node: Call, kinds: list[str]) -> str:
    _expect(kinds[0], ("bool",), node.at)
    if DYN not in kinds[1:] and kinds[1] != kinds[2]:
        raise _no_operator(node, kinds)
    return kinds[1] if kinds[1] == kinds[2] else DYN


def _infer_in(node: Call, kinds: list[str]) -> str:
    _expect(kinds[1], ("list", "map", "cluster"), node.at)
    return "bool"


def _infer_minus(node: Call, kinds: list[str]) -> str:
    _expect(kinds[0], ("int", "double"), node.at)
    return kinds[0]


_OPERATORS = {
    **dict.fromkeys(_ARITHMETIC, _infer_arithmetic),
    **dict.fromkeys(("<", "<=", ">", ">="), _infer_order),
    **dict.fromkeys(("==", "!="), _infer_equality),
    **dict.fromkeys(("&&", "||", "!"), _infer_logic),
    "?:": _infer_choice,
    "in": _infer_in,
    "-_": _infer_minus,
}


def _expect(kind: str, wanted: tuple[str, ...], at: int) -> None:
    if wanted and kind not in (DYN, *wanted):
        raise Refused(f"{kind} does not fit at character {at + 1}: {' or '.join(wanted)} is wanted")


def _no_operator(node: Call, kinds: list[str]) -> Refused:
    name = node.name.removesuffix("_")
    return Refused(f"{name} at character {node.at + 1} does not take {' and '.join(kinds)}")
