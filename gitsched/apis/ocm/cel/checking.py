"""What is wrong with an expression before it meets a cluster: unknown names and functions, and operands that never fit.

Types are known of literals and of what functions give; everything in a document is `dyn`, which fits anything.
"""

from __future__ import annotations

from collections import abc

from gitsched.apis.ocm.cel.kinds import DYN, agree, entry, give, head, join, key, list_of, map_of, passed
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
_ORDER = ("<", "<=", ">", ">=")
_ORDERED = ("string", "bytes", "bool", "timestamp", "duration")


class Scope(dict[str, str]):
    """The types of variables. `loops` has an entry for each macro that was met, here or in any scope around.

    As upstream's checker does, int and double may be compared as soon as there has been one, and not before.
    """

    __slots__ = ("loops",)

    def __init__(self, kinds: abc.Mapping[str, str], loops: list[str] | None = None) -> None:
        super().__init__(kinds)
        self.loops: list[str] = [] if loops is None else loops

    def enter(self, variable: str, kind: str) -> Scope:
        """The scope of a macro's body."""
        self.loops.append(variable)
        return Scope({**self, variable: kind}, self.loops)


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
            return list_of(_infer_entry(value, optional, scope) for value, optional in node.entries)
        case Mapping():
            keys = []
            for name, _, _ in node.entries:
                keys.append(infer(name, scope))
                _expect(keys[-1], ("string", "int", "uint", "bool"), name.at)
            return map_of(keys, [_infer_entry(value, optional, scope) for _, value, optional in node.entries])
        case Loop():
            return _infer_loop(node, scope)
        case Bind():
            _expect(infer(node.operand, scope), ("optional",), node.at)
            infer(node.body, scope.enter(node.variable, DYN))
            return "optional"
    return _infer_call(node, scope)


def find_overloads(call: Call, scope: abc.Container[str]) -> tuple[str, list[Overload], tuple[Node, ...]]:
    """The name of a function, the overloads that are written like this call, and all arguments, the target first."""
    target = call.target
    if isinstance(target, Name) and target.name not in scope and f"{target.name}.{call.name}" in FUNCTIONS:
        name, member, arguments = f"{target.name}.{call.name}", False, call.arguments
    else:
        name, member = call.name, target is not None
        arguments = call.arguments if target is None else (target, *call.arguments)
    return name, resolve(name, member, len(arguments)), arguments


def _infer_entry(node: Node, optional: bool, scope: Scope) -> str:
    """An entry of a list or map; one that may be left out is what the optional holds."""
    kind = infer(node, scope)
    if not optional:
        return kind
    _expect(kind, ("optional",), node.at)
    return entry(kind)


def _infer_name(node: Name, scope: Scope) -> str:
    if node.name in scope:
        return scope[node.name]
    if node.name in TYPES:
        return "type"
    raise Refused(f"{node.name!r} at character {node.at + 1} is not known; the cluster is managedCluster")


def _infer_select(node: Select, scope: Scope) -> str:
    kind = infer(node.operand, scope)
    _expect(kind, ("map", "cluster", "optional"), node.at)
    return "bool" if node.test else "optional" if node.optional or head(kind) == "optional" else entry(kind)


def _infer_index(node: Index, scope: Scope) -> str:
    kind = infer(node.operand, scope)
    _expect(kind, ("map", "cluster", "list", "optional"), node.at)
    index = infer(node.place, scope)
    if head(kind) == "optional":
        return "optional"
    if not agree(index, key(kind)):
        raise Refused(f"{kind} at character {node.at + 1} has no entry for a key that is {index}")
    return "optional" if node.optional else entry(kind)


def _infer_loop(node: Loop, scope: Scope) -> str:
    kind = infer(node.operand, scope)
    _expect(kind, ("list", "map", "cluster"), node.at)
    inner = scope.enter(node.variable, passed(kind))
    body = infer(node.body, inner)
    if node.only is not None:
        _expect(infer(node.only, inner), ("bool",), node.at)
    if node.macro == "map":
        return list_of([body])
    _expect(body, ("bool",), node.at)
    return list_of([passed(kind)]) if node.macro == "filter" else "bool"


def _infer_call(node: Call, scope: Scope) -> str:
    if node.target is None and node.name in _OPERATORS:
        kinds = [infer(argument, scope) for argument in node.arguments]
        if scope.loops and node.name in _ORDER and all(kind in _NUMBERS for kind in kinds):
            return "bool"
        return _OPERATORS[node.name](node, kinds)
    name, overloads, arguments = find_overloads(node, scope)
    if name not in FUNCTIONS:
        raise reject_expression(f"the function {name}() at character {node.at + 1} is not offered", "cel-unsupported")
    kinds = [infer(argument, scope) for argument in arguments]
    results = (give(kinds, overload.types, overload.result) for overload in overloads)
    fitting = {result for result in results if result is not None}
    if not fitting:
        raise Refused(f"the function {name}() at character {node.at + 1} does not take {', '.join(kinds) or 'nothing'}")
    return join(sorted(fitting))


def _infer_arithmetic(node: Call, kinds: list[str]) -> str:
    left, right = kinds
    moments = _MOMENTS.get((node.name, left, right))
    if moments is not None:
        return moments
    if DYN in kinds:
        known = left if right == DYN else right
        _expect(known, (*_ARITHMETIC[node.name], "timestamp", "duration"), node.at)
        return DYN if known == "duration" or (known, node.name) == ("timestamp", "-") else known
    if not agree(left, right) or head(left) not in _ARITHMETIC[node.name]:
        raise _no_operator(node, kinds)
    return left


def _infer_order(node: Call, kinds: list[str]) -> str:
    left, right = kinds
    for kind in kinds:
        _expect(kind, (*_NUMBERS, *_ORDERED), node.at)
    if not agree(left, right):
        raise _no_operator(node, kinds)
    return "bool"


def _infer_equality(node: Call, kinds: list[str]) -> str:
    left, right = kinds
    if not agree(left, right) and not agree(right, left):
        raise _no_operator(node, kinds)
    return "bool"


def _infer_logic(node: Call, kinds: list[str]) -> str:
    for kind in kinds:
        _expect(kind, ("bool",), node.at)
    return "bool"


def _infer_choice(node: Call, kinds: list[str]) -> str:
    _expect(kinds[0], ("bool",), node.at)
    if not agree(kinds[1], kinds[2]):
        raise _no_operator(node, kinds)
    return kinds[1] if kinds[1] == kinds[2] else DYN


def _infer_in(node: Call, kinds: list[str]) -> str:
    _expect(kinds[1], ("list", "map", "cluster"), node.at)
    if not agree(kinds[0], passed(kinds[1])):
        raise _no_operator(node, kinds)
    return "bool"


def _infer_minus(node: Call, kinds: list[str]) -> str:
    _expect(kinds[0], ("int", "double"), node.at)
    return kinds[0]


_OPERATORS = {
    **dict.fromkeys(_ARITHMETIC, _infer_arithmetic),
    **dict.fromkeys(_ORDER, _infer_order),
    **dict.fromkeys(("==", "!="), _infer_equality),
    **dict.fromkeys(("&&", "||", "!"), _infer_logic),
    "?:": _infer_choice,
    "in": _infer_in,
    "-_": _infer_minus,
}


def _expect(kind: str, wanted: tuple[str, ...], at: int) -> None:
    if head(kind) not in (DYN, *wanted):
        raise Refused(f"{kind} does not fit at character {at + 1}: {' or '.join(wanted)} is wanted")


def _no_operator(node: Call, kinds: list[str]) -> Refused:
    name = node.name.removesuffix("_")
    return Refused(f"{name} at character {node.at + 1} does not take {' and '.join(kinds)}")
