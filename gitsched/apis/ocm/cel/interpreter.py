"""CEL interpreter: compile an expression to nested functions once and evaluate it with a cost limit."""

from __future__ import annotations

import operator
from collections import abc
from collections.abc import Callable
from typing import Any

from gitsched.apis.ocm.cel import network, quantities, standard_library, strings, timestamps
from gitsched.apis.ocm.cel.checker import TYPE_IDENTIFIERS, TypeEnvironment, find_type, infer_type, resolve_call
from gitsched.apis.ocm.cel.macros import MACROS, require_bool
from gitsched.apis.ocm.cel.overloads import CostTracker, call_function
from gitsched.apis.ocm.cel.parser import parse
from gitsched.apis.ocm.cel.standard_library import OPERATORS
from gitsched.apis.ocm.cel.syntax import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    Identifier,
    Index,
    Literal,
    Node,
    OptionalMap,
    Select,
)
from gitsched.apis.ocm.cel.types import (
    MAX_INT,
    MIN_INT,
    OPTIONAL_NONE,
    CostLimitExceeded,
    EvaluationError,
    OptionalValue,
    TypeValue,
    get_element,
    to_index,
    type_name,
)

LIBRARIES = (network, quantities, standard_library, strings, timestamps)
"""The modules that register functions: together with the operators, all that are supported."""


class Activation:
    """The variables of one evaluation and its remaining cost."""

    __slots__ = ("remaining_cost", "variables")

    def __init__(self, variables: dict[str, Any], cost_limit: int) -> None:
        self.variables, self.remaining_cost = variables, cost_limit

    def charge(self, cost: int) -> None:
        self.remaining_cost -= cost
        if self.remaining_cost < 0:
            raise CostLimitExceeded


Interpretable = Callable[[Activation], Any]


class Program:
    """A compiled expression; InvalidExpression if it is invalid."""

    __slots__ = ("_interpretable", "text")

    def __init__(self, text: str, scope: abc.Mapping[str, str]) -> None:
        node = parse(text)
        infer_type(node, TypeEnvironment(scope))
        self.text = text
        self._interpretable = _compile(node, frozenset(scope))

    def evaluate(self, variables: dict[str, Any], cost_limit: int) -> tuple[bool, int]:
        """Return whether the value is true (false for errors and other values) and the cost; CostLimitExceeded above `cost_limit`."""
        return self.evaluate_with_error(variables, cost_limit)[:2]

    def evaluate_with_error(self, variables: dict[str, Any], cost_limit: int) -> tuple[bool, int, str]:
        """Return the same as `evaluate`, and the error of the evaluation; "" if there is none."""
        activation, error = Activation(variables, cost_limit), ""
        try:
            value = self._interpretable(activation)
        except (EvaluationError, RecursionError) as failure:
            value, error = False, str(failure) or "an error"
        return value is True, cost_limit - activation.remaining_cost, error


def _compile(node: Node, scope: frozenset[str]) -> Interpretable:
    match node:
        case Literal():
            return _compile_constant(node.value)
        case Identifier():
            return _compile_identifier(node, scope)
        case Select():
            named = find_type(node, scope)
            return _compile_select(node, scope) if named is None else _compile_constant(TypeValue(named))
        case Index():
            return _compile_index(node, scope)
        case CreateList():
            return _compile_list(node, scope)
        case CreateMap():
            return _compile_map(node, scope)
        case Comprehension():
            return _compile_comprehension(node, scope)
        case OptionalMap():
            return _compile_optional_map(node, scope)
    return _compile_call(node, scope)


def _compile_identifier(node: Identifier, scope: frozenset[str]) -> Interpretable:
    name = node.name
    if name in scope or name not in TYPE_IDENTIFIERS:
        return lambda activation: activation.variables[name]
    return _compile_constant(TypeValue(name))


def _compile_constant(value: Any) -> Interpretable:
    return lambda activation: value


def _compile_select(node: Select, scope: frozenset[str]) -> Interpretable:
    operand, member, test, wanted = _compile(node.operand, scope), node.field, node.test, node.optional

    def select(activation: Activation) -> Any:
        activation.charge(1)
        value = operand(activation)
        if value.__class__ is dict and not wanted:
            if test:
                return member in value
            if member in value:
                return value[member]
            raise EvaluationError(f"no such key: {member}")
        return _select(value, member, test=test, optional=wanted)

    return select


def _select(value: Any, member: str, *, test: bool, optional: bool) -> Any:
    if isinstance(value, OptionalValue):
        if not value.present:
            return False if test else OPTIONAL_NONE
        return _select(value.value, member, test=test, optional=True)
    if isinstance(value, list) or (not isinstance(value, dict) and not test and not optional):
        raise EvaluationError(f"{type_name(value)} has no fields")
    if test:
        return isinstance(value, dict) and member in value
    if not isinstance(value, dict):
        return OPTIONAL_NONE
    if member in value:
        return OptionalValue(True, value[member]) if optional else value[member]
    if optional:
        return OPTIONAL_NONE
    raise EvaluationError(f"no such key: {member}")


def _compile_index(node: Index, scope: frozenset[str]) -> Interpretable:
    operand, index, wanted = _compile(node.operand, scope), _compile(node.key, scope), node.optional

    def look_up(activation: Activation) -> Any:
        activation.charge(1)
        container, at = operand(activation), index(activation)
        optional = wanted
        if isinstance(container, OptionalValue):
            if not container.present:
                return OPTIONAL_NONE
            container, optional = container.value, True
        if not optional:
            return get_element(container, at, activation.charge)
        if isinstance(container, list):
            to_index(at)
        try:
            return OptionalValue(True, get_element(container, at, activation.charge))
        except EvaluationError:
            return OPTIONAL_NONE

    return look_up


def _compile_list(node: CreateList, scope: frozenset[str]) -> Interpretable:
    if all(isinstance(entry, Literal) and not optional for entry, optional in node.elements):
        return _compile_literals([entry.value for entry, _ in node.elements if isinstance(entry, Literal)])
    entries = [(_compile(entry, scope), optional) for entry, optional in node.elements]

    def build(activation: Activation) -> list[Any]:
        activation.charge(1 + len(entries))
        values = []
        for code, optional in entries:
            value = code(activation)
            if not optional:
                values.append(value)
            elif not isinstance(value, OptionalValue):
                raise EvaluationError("an optional element must have an optional value")
            elif value.present:
                values.append(value.value)
        return values

    return build


def _compile_literals(values: list[Any]) -> Interpretable:
    """Return the function for a list of literals; it costs as much as a list of other elements."""
    cost = 1 + len(values)

    def build(activation: Activation) -> list[Any]:
        activation.charge(cost)
        return values.copy()

    return build


def _compile_map(node: CreateMap, scope: frozenset[str]) -> Interpretable:
    entries = [(_compile(key, scope), _compile(value, scope), optional) for key, value, optional in node.entries]

    def build(activation: Activation) -> dict[Any, Any]:
        activation.charge(1 + len(entries))
        values: dict[Any, Any] = {}
        types: dict[Any, type] = {}
        for key_code, value_code, optional in entries:
            key, value = key_code(activation), value_code(activation)
            if not isinstance(key, (str, int)):
                raise EvaluationError(f"{type_name(key)} is not a valid map key")
            if types.setdefault(key, type(key)) is not type(key):
                raise EvaluationError("two keys of different types are equal")
            if not optional:
                values[key] = value
            elif isinstance(value, OptionalValue) and value.present:
                values[key] = value.value
        return values

    return build


def _compile_comprehension(node: Comprehension, scope: frozenset[str]) -> Interpretable:
    inner = scope | {node.variable}
    operand, variable, body = _compile(node.operand, scope), node.variable, _compile(node.body, inner)
    element_filter = None if node.filter is None else _compile(node.filter, inner)
    run = MACROS[node.macro]

    def loop(activation: Activation) -> Any:
        values = operand(activation)
        if not isinstance(values, (list, dict)):
            raise EvaluationError(f"{type_name(values)} is not iterable")
        variables = activation.variables
        missing = object()
        outer = variables.get(variable, missing)

        def each(code: Interpretable, value: Any) -> Any:
            activation.remaining_cost -= 2
            if activation.remaining_cost < 0:
                raise CostLimitExceeded
            variables[variable] = value
            return code(activation)

        try:
            return run(list(values), each, body, element_filter)
        finally:
            if outer is missing:
                variables.pop(variable, None)
            else:
                variables[variable] = outer

    return loop


def _compile_optional_map(node: OptionalMap, scope: frozenset[str]) -> Interpretable:
    operand, variable, flat = _compile(node.operand, scope), node.variable, node.macro == "optFlatMap"
    body = _compile(node.body, scope | {variable})

    def bind(activation: Activation) -> OptionalValue:
        activation.charge(1)
        value = operand(activation)
        if not isinstance(value, OptionalValue):
            raise EvaluationError(f"{type_name(value)} is not an optional")
        if not value.present:
            return OPTIONAL_NONE
        inner = Activation({**activation.variables, variable: value.value}, activation.remaining_cost)
        try:
            result = body(inner)
        finally:
            activation.remaining_cost = inner.remaining_cost
        if not flat:
            return OptionalValue(True, result)
        if not isinstance(result, OptionalValue):
            raise EvaluationError("optFlatMap requires an optional")
        return result

    return bind


def _compile_call(node: Call, scope: frozenset[str]) -> Interpretable:
    if node.target is None and node.name in _LAZY_OPERATORS:
        return _LAZY_OPERATORS[node.name](*(_compile(argument, scope) for argument in node.arguments))
    if node.target is None and node.name in OPERATORS:
        operands = [_compile(argument, scope) for argument in node.arguments]
        return _compile_unary(node.name, *operands) if len(operands) == 1 else _compile_binary(node.name, *operands)
    name, overloads, nodes = resolve_call(node, scope)
    arguments = [_compile(argument, scope) for argument in nodes]

    def call(activation: Activation) -> Any:
        activation.charge(1)
        charge: CostTracker = activation.charge
        return call_function(name, overloads, [argument(activation) for argument in arguments], charge)

    return call


def _compile_unary(name: str, operand: Interpretable) -> Interpretable:
    apply = OPERATORS[name]

    def operate(activation: Activation) -> Any:
        activation.charge(1)
        return apply(activation.charge, operand(activation))

    return operate


_INTEGER_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
"""The operators that take two signed integers as Python does. Expressions with loops mostly calculate."""


def _compile_binary(name: str, left: Interpretable, right: Interpretable) -> Interpretable:
    apply, apply_integers = OPERATORS[name], _INTEGER_OPERATORS.get(name)

    def operate(activation: Activation) -> Any:
        activation.remaining_cost -= 1
        if activation.remaining_cost < 0:
            raise CostLimitExceeded
        one, other = left(activation), right(activation)
        if one.__class__ is int and other.__class__ is int and apply_integers is not None:
            value = apply_integers(one, other)
            if MIN_INT <= value <= MAX_INT:
                return value
        return apply(activation.charge, one, other)

    return operate


def _and(left: Interpretable, right: Interpretable) -> Interpretable:
    return _short_circuit(left, right, decisive=False)


def _or(left: Interpretable, right: Interpretable) -> Interpretable:
    return _short_circuit(left, right, decisive=True)


def _short_circuit(left: Interpretable, right: Interpretable, *, decisive: bool) -> Interpretable:
    """Evaluate && or ||: a `decisive` value on either side is the result, even if the other side fails."""

    def decide(activation: Activation) -> bool:
        activation.charge(1)
        failure: EvaluationError | None = None
        try:
            if require_bool(left(activation)) is decisive:
                return decisive
        except EvaluationError as problem:
            failure = problem
        if require_bool(right(activation)) is decisive:
            return decisive
        if failure is not None:
            raise failure
        return not decisive

    return decide


def _not(operand: Interpretable) -> Interpretable:
    return lambda activation: not require_bool(operand(activation))


def _conditional(condition: Interpretable, then: Interpretable, otherwise: Interpretable) -> Interpretable:
    return lambda activation: then(activation) if require_bool(condition(activation)) else otherwise(activation)


_LAZY_OPERATORS: dict[str, Callable[..., Interpretable]] = {"&&": _and, "||": _or, "!": _not, "?:": _conditional}
