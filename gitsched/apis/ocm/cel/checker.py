"""Type checker of CEL expressions: reject unknown identifiers and functions, and operands without a matching overload.

Literals and function results have known types; values from a document are `dyn`, which is assignable to any type.
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
    """The types of variables, and the variables of all macros checked so far, in any scope.

    As in upstream's checker, int and double are comparable only after the first macro.
    """

    __slots__ = ("macro_variables",)

    def __init__(self, kinds: abc.Mapping[str, str], macro_variables: list[str] | None = None) -> None:
        super().__init__(kinds)
        self.macro_variables: list[str] = [] if macro_variables is None else macro_variables

    def with_variable(self, variable: str, kind: str) -> TypeEnvironment:
        """Return the scope of the body of a macro."""
        self.macro_variables.append(variable)
        return TypeEnvironment({**self, variable: kind}, self.macro_variables)


def infer_type(node: Node, scope: TypeEnvironment) -> str:
    """Return the type of an expression, `dyn` if it depends on a document; InvalidExpression if it cannot have a value."""
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
                _expect_type(keys[-1], ("string", "int", "uint", "bool"), name.offset)
            return map_type(keys, [_infer_element(value, optional, scope) for _, value, optional in node.entries])
        case Comprehension():
            return _infer_comprehension(node, scope)
        case OptionalMap():
            _expect_type(infer_type(node.operand, scope), ("optional",), node.offset)
            infer_type(node.body, scope.with_variable(node.variable, DYN))
            return "optional"
    return _infer_call(node, scope)


def resolve_call(call: Call, scope: abc.Container[str]) -> tuple[str, list[Overload], tuple[Node, ...]]:
    """Return the name of a function, the overloads for this call style, and the arguments, receiver first."""
    target = call.target
    if isinstance(target, Identifier) and target.name not in scope and f"{target.name}.{call.name}" in FUNCTIONS:
        name, member, arguments = f"{target.name}.{call.name}", False, call.arguments
    else:
        name, member = call.name, target is not None
        arguments = call.arguments if target is None else (target, *call.arguments)
    return name, list_overloads(name, member, len(arguments)), arguments


def _infer_element(node: Node, optional: bool, scope: TypeEnvironment) -> str:
    """Return the type of a list element or map value; of an optional element, the type of its value."""
    kind = infer_type(node, scope)
    if not optional:
        return kind
    _expect_type(kind, ("optional",), node.offset)
    return element_type(kind)


def _infer_identifier(node: Identifier, scope: TypeEnvironment) -> str:
    if node.name in scope:
        return scope[node.name]
    if node.name in TYPE_IDENTIFIERS:
        return "type"
    raise InvalidExpression(f"undeclared reference to {node.name!r} at character {node.offset + 1}; the variable is managedCluster")


def find_type(node: Select, scope: abc.Container[str]) -> str | None:
    """Return the type with a qualified name such as google.protobuf.Timestamp; None if there is none."""
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
    _expect_type(kind, ("map", "cluster", "optional"), node.offset)
    return "bool" if node.test else "optional" if node.optional or base_type(kind) == "optional" else element_type(kind)


def _infer_index(node: Index, scope: TypeEnvironment) -> str:
    kind = infer_type(node.operand, scope)
    _expect_type(kind, ("map", "cluster", "list", "optional"), node.offset)
    index = infer_type(node.key, scope)
    if base_type(kind) == "optional":
        return "optional"
    if not is_assignable(index, key_type(kind)):
        raise InvalidExpression(f"{kind} at character {node.offset + 1} cannot be indexed with {index}")
    return "optional" if node.optional else element_type(kind)


def _infer_comprehension(node: Comprehension, scope: TypeEnvironment) -> str:
    kind = infer_type(node.operand, scope)
    _expect_type(kind, ("list", "map", "cluster"), node.offset)
    inner = scope.with_variable(node.variable, iteration_type(kind))
    body = infer_type(node.body, inner)
    if node.filter is not None:
        _expect_type(infer_type(node.filter, inner), ("bool",), node.offset)
    if node.macro == "map":
        return list_type([body])
    _expect_type(body, ("bool",), node.offset)
    return list_type([iteration_type(kind)]) if node.macro == "filter" else "bool"


def _infer_call(node: Call, scope: TypeEnvironment) -> str:
    if node.target is None and node.name in _OPERATOR_RULES:
        kinds = [infer_type(argument, scope) for argument in node.arguments]
        if scope.macro_variables and node.name in _COMPARISONS and all(kind in _NUMBERS for kind in kinds):
            return "bool"
        return _OPERATOR_RULES[node.name](node, kinds)
    name, overloads, arguments = resolve_call(node, scope)
    if name not in FUNCTIONS:
        raise InvalidExpression(f"the function {name}() at character {node.offset + 1} is not supported", "cel-unsupported")
    kinds = [infer_type(argument, scope) for argument in arguments]
    if name in ("find", "findAll") and len(arguments) > 1:
        _check_pattern(name, arguments[1])
    results = (result_type(kinds, overload.types, overload.result) for overload in overloads)
    fitting = {result for result in results if result is not None}
    if not fitting:
        raise InvalidExpression(f"no matching overload for {name}({', '.join(kinds)}) at character {node.offset + 1}")
    return join_types(sorted(fitting))


def _check_pattern(name: str, pattern: Node) -> None:
    """Check the pattern of find() and findAll(), as upstream does; the pattern of matches() is checked when it runs."""
    if isinstance(pattern, Literal) and isinstance(pattern.value, str):
        try:
            compile_pattern(pattern.value)
        except InvalidPattern as problem:
            raise InvalidExpression(f"the pattern of {name}() at character {pattern.offset + 1} is invalid: {problem}") from None


def _infer_arithmetic(node: Call, kinds: list[str]) -> str:
    left, right = kinds
    time_type = _TIME_ARITHMETIC.get((node.name, left, right))
    if time_type is not None:
        return time_type
    if DYN in kinds:
        known = left if right == DYN else right
        _expect_type(known, (*_ARITHMETIC[node.name], "timestamp", "duration"), node.offset)
        return DYN if known == "duration" or (known, node.name) == ("timestamp", "-") else known
    if not is_assignable(left, right) or base_type(left) not in _ARITHMETIC[node.name]:
        raise _no_matching_overload(node, kinds)
    return left


def _infer_comparison(node: Call, kinds: list[str]) -> str:
    left, right = kinds
    for kind in kinds:
        _expect_type(kind, (*_NUMBERS, *_COMPARABLE_TYPES), node.offset)
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
        _expect_type(kind, ("bool",), node.offset)
    return "bool"


def _infer_conditional(node: Call, kinds: list[str]) -> str:
    _expect_type(kinds[0], ("bool",), node.offset)
    if not is_assignable(kinds[1], kinds[2]):
        raise _no_matching_overload(node, kinds)
    return kinds[1] if kinds[1] == kinds[2] else DYN


def _infer_in(node: Call, kinds: list[str]) -> str:
    _expect_type(kinds[1], ("list", "map", "cluster"), node.offset)
    if not is_assignable(kinds[0], iteration_type(kinds[1])):
        raise _no_matching_overload(node, kinds)
    return "bool"


def _infer_negation(node: Call, kinds: list[str]) -> str:
    _expect_type(kinds[0], ("int", "double"), node.offset)
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


def _expect_type(kind: str, expected: tuple[str, ...], offset: int) -> None:
    if base_type(kind) not in (DYN, *expected):
        raise InvalidExpression(f"expected {' or '.join(expected)} at character {offset + 1}, got {kind}")


def _no_matching_overload(node: Call, kinds: list[str]) -> InvalidExpression:
    name = node.name.removesuffix("_")
    return InvalidExpression(f"no matching overload for {name} with {' and '.join(kinds)} at character {node.offset + 1}")
