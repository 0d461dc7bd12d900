"""Type checker of CEL expressions: reject unknown identifiers and functions, and operands without a matching overload.

Types are known of literals and of what functions give; everything in a document is `dyn`, which fits anything.
"""

from __future__ import annotations

from collections import abc

from gitsched.apis.ocm.cel.overloads import FUNCTIONS, Overload, list_overloads, type_of
from gitsched.apis.ocm.cel.regex import InvalidPattern, compile_pattern
from gitsched.apis.ocm.cel.syntax import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    Identifier,
    Index,
    InvalidExpression,
    Literal,
    Node,
    OptionalMap,
    Select,
    reject_expression,
)
from gitsched.apis.ocm.cel.types import (
    DYN,
    base_type,
    element_type,
    is_assignable,
    iteration_type,
    join_types,
    key_type,
    list_type,
    map_type,
    result_type,
)

TYPE_IDENTIFIERS = (
    *("bool", "bytes", "double", "int", "list", "map", "null_type", "optional_type", "string", "type", "uint"),
    *("google.protobuf.Duration", "google.protobuf.Timestamp", "net.CIDR", "net.IP"),
)
_NUMBERS = ("int", "uint", "double")
_ARITHMETIC: dict[str, tuple[str, ...]] = {
    "+": (*_NUMBERS, "string", "bytes", "list"),
    "-": _NUMBERS,
    "*": _NUMBERS,
    "/": _NUMBERS,
    "%": ("int", "uint"),
}
_TIME_ARITHMETIC = {
    ("+", "timestamp", "duration"): "timestamp",
    ("+", "duration", "timestamp"): "timestamp",
    ("+", "duration", "duration"): "duration",
    ("-", "timestamp", "timestamp"): "duration",
    ("-", "timestamp", "duration"): "timestamp",
    ("-", "duration", "duration"): "duration",
}
_COMPARISONS = ("<", "<=", ">", ">=")
_COMPARABLE_TYPES = ("string", "bytes", "bool", "timestamp", "duration")


class TypeEnvironment(dict[str, str]):
    """The types of variables. `loops` has an entry for each macro that was met, here or in any scope around.

    As upstream's checker does, int and double may be compared as soon as there has been one, and not before.
    """

    __slots__ = ("macro_variables",)

    def __init__(self, kinds: abc.Mapping[str, str], loops: list[str] | None = None) -> None:
        super().__init__(kinds)
        self.macro_variables: list[str] = [] if loops is None else loops

    def with_variable(self, variable: str, kind: str) -> TypeEnvironment:
        """The scope of a macro's body."""
        self.macro_variables.append(variable)
        return TypeEnvironment({**self, variable: kind}, self.macro_variables)


def infer_type(node: Node, scope: TypeEnvironment) -> str:
    """The type of an expression, `dyn` where only a document can tell. Refused where it can never have a value."""
    match node:
        case Literal():
            return type_of(node.value)
        case Identifier():
            return _infer_identifier(node, scope)
        case Select():
            return _infer_select(node, scope)
        case Index():
            return _infer_index(node, scope)
        case CreateList():
            return list_type(_infer_element(value, optional, scope) for value, optional in node.elements)
        case CreateMap():
            keys = []
            for name, _, _ in node.entries:
                keys.append(infer_type(name, scope))
                _expect_type(keys[-1], ("string", "int", "uint", "bool"), name.at)
            return map_type(keys, [_infer_element(value, optional, scope) for _, value, optional in node.entries])
        case Comprehension():
            return _infer_comprehension(node, scope)
        case OptionalMap():
            _expect_type(infer_type(node.operand, scope), ("optional",), node.at)
            infer_type(node.body, scope.with_variable(node.variable, DYN))
            return "optional"
    return _infer_call(node, scope)


def resolve_call(call: Call, scope: abc.Container[str]) -> tuple[str, list[Overload], tuple[Node, ...]]:
    """The name of a function, the overloads that are written like this call, and all arguments, the target first."""
    target = call.target
    if isinstance(target, Identifier) and target.name not in scope and f"{target.name}.{call.name}" in FUNCTIONS:
        name, member, arguments = f"{target.name}.{call.name}", False, call.arguments
    else:
        name, member = call.name, target is not None
        arguments = call.arguments if target is None else (target, *call.arguments)
    return name, list_overloads(name, member, len(arguments)), arguments


def _infer_element(node: Node, optional: bool, scope: TypeEnvironment) -> str:
    """An entry of a list or map; one that may be left out is what the optional holds."""
    kind = infer_type(node, scope)
    if not optional:
        return kind
    _expect_type(kind, ("optional",), node.at)
    return element_type(kind)


def _infer_identifier(node: Identifier, scope: TypeEnvironment) -> str:
    if node.name in scope:
        return scope[node.name]
    if node.name in TYPE_IDENTIFIERS:
        return "type"
    raise InvalidExpression(f"{node.name!r} at character {node.at + 1} is not known; the cluster is managedCluster")


def find_type(node: Select, scope: abc.Container[str]) -> str | None:
    """The type that a name of several parts stands for, such as google.protobuf.Timestamp; None if it is no type."""
    parts = [node.field]
    operand = node.operand
    while isinstance(operand, Select):
        parts.append(operand.field)
        operand = operand.operand
    if not isinstance(operand, Identifier) or operand.name in scope or node.test or node.optional:
        return None
    name = ".".join((operand.name, *reversed(parts)))
    return name if name in TYPE_IDENTIFIERS else None


def _infer_select(node: Select, scope: TypeEnvironment) -> str:
    if find_type(node, scope) is not None:
        return "type"
    kind = infer_type(node.operand, scope)
    _expect_type(kind, ("map", "cluster", "optional"), node.at)
    return "bool" if node.test else "optional" if node.optional or base_type(kind) == "optional" else element_type(kind)


def _infer_index(node: Index, scope: TypeEnvironment) -> str:
    kind = infer_type(node.operand, scope)
    _expect_type(kind, ("map", "cluster", "list", "optional"), node.at)
    index = infer_type(node.key, scope)
    if base_type(kind) == "optional":
        return "optional"
    if not is_assignable(index, key_type(kind)):
        raise InvalidExpression(f"{kind} at character {node.at + 1} has no entry for a key that is {index}")
    return "optional" if node.optional else element_type(kind)


def _infer_comprehension(node: Comprehension, scope: TypeEnvironment) -> str:
    kind = infer_type(node.operand, scope)
    _expect_type(kind, ("list", "map", "cluster"), node.at)
    inner = scope.with_variable(node.variable, iteration_type(kind))
    body = infer_type(node.body, inner)
    if node.filter is not None:
        _expect_type(infer_type(node.filter, inner), ("bool",), node.at)
    if node.macro == "map":
        return list_type([body])
    _expect_type(body, ("bool",), node.at)
    return list_type([iteration_type(kind)]) if node.macro == "filter" else "bool"


def _infer_call(node: Call, scope: TypeEnvironment) -> str:
    if node.target is None and node.name in _OPERATOR_RULES:
        kinds = [infer_type(argument, scope) for argument in node.arguments]
        if scope.macro_variables and node.name in _COMPARISONS and all(kind in _NUMBERS for kind in kinds):
            return "bool"
        return _OPERATOR_RULES[node.name](node, kinds)
    name, overloads, arguments = resolve_call(node, scope)
    if name not in FUNCTIONS:
        raise reject_expression(f"the function {name}() at character {node.at + 1} is not offered", "cel-unsupported")
    kinds = [infer_type(argument, scope) for argument in arguments]
    if name in ("find", "findAll") and len(arguments) > 1:
        _check_pattern(name, arguments[1])
    results = (result_type(kinds, overload.types, overload.result) for overload in overloads)
    fitting = {result for result in results if result is not None}
    if not fitting:
        raise InvalidExpression(f"the function {name}() at character {node.at + 1} does not take {', '.join(kinds) or 'nothing'}")
    return join_types(sorted(fitting))


def _check_pattern(name: str, pattern: Node) -> None:
    """Upstream compiles these patterns before it runs the expression; those of matches() it compiles when it runs."""
    if isinstance(pattern, Literal) and isinstance(pattern.value, str):
        try:
            compile_pattern(pattern.value)
        except InvalidPattern as problem:
            raise InvalidExpression(f"the pattern of {name}() at character {pattern.at + 1} is not valid: {problem}") from None


def _infer_arithmetic(node: Call, kinds: list[str]) -> str:
    left, right = kinds
    moments = _TIME_ARITHMETIC.get((node.name, left, right))
    if moments is not None:
        return moments
    if DYN in kinds:
        known = left if right == DYN else right
        _expect_type(known, (*_ARITHMETIC[node.name], "timestamp", "duration"), node.at)
        return DYN if known == "duration" or (known, node.name) == ("timestamp", "-") else known
    if not is_assignable(left, right) or base_type(left) not in _ARITHMETIC[node.name]:
        raise _no_matching_overload(node, kinds)
    return left


def _infer_comparison(node: Call, kinds: list[str]) -> str:
    left, right = kinds
    for kind in kinds:
        _expect_type(kind, (*_NUMBERS, *_COMPARABLE_TYPES), node.at)
    if not is_assignable(left, right):
        raise _no_matching_overload(node, kinds)
    return "bool"


def _infer_equality(node: Call, kinds: list[str]) -> str:
    left, right = kinds
    if not is_assignable(left, right) and not is_assignable(right, left):
        raise _no_matching_overload(node, kinds)
    return "bool"


def _infer_logic(node: Call, kinds: list[str]) -> str:
    for kind in kinds:
        _expect_type(kind, ("bool",), node.at)
    return "bool"


def _infer_conditional(node: Call, kinds: list[str]) -> str:
    _expect_type(kinds[0], ("bool",), node.at)
    if not is_assignable(kinds[1], kinds[2]):
        raise _no_matching_overload(node, kinds)
    return kinds[1] if kinds[1] == kinds[2] else DYN


def _infer_in(node: Call, kinds: list[str]) -> str:
    _expect_type(kinds[1], ("list", "map", "cluster"), node.at)
    if not is_assignable(kinds[0], iteration_type(kinds[1])):
        raise _no_matching_overload(node, kinds)
    return "bool"


def _infer_negation(node: Call, kinds: list[str]) -> str:
    _expect_type(kinds[0], ("int", "double"), node.at)
    return kinds[0]


_OPERATOR_RULES = {
    **dict.fromkeys(_ARITHMETIC, _infer_arithmetic),
    **dict.fromkeys(_COMPARISONS, _infer_comparison),
    **dict.fromkeys(("==", "!="), _infer_equality),
    **dict.fromkeys(("&&", "||", "!"), _infer_logic),
    "?:": _infer_conditional,
    "in": _infer_in,
    "-_": _infer_negation,
}


def _expect_type(kind: str, wanted: tuple[str, ...], at: int) -> None:
    if base_type(kind) not in (DYN, *wanted):
        raise InvalidExpression(f"{kind} does not fit at character {at + 1}: {' or '.join(wanted)} is wanted")


def _no_matching_overload(node: Call, kinds: list[str]) -> InvalidExpression:
    name = node.name.removesuffix("_")
    return InvalidExpression(f"{name} at character {node.at + 1} does not take {' and '.join(kinds)}")
