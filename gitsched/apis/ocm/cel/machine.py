"""Expressions as functions: each node becomes one that takes the variables, so that a tree is walked once and run often."""

from __future__ import annotations

from collections import abc
from collections.abc import Callable
from typing import Any

from gitsched.apis.ocm.cel import amounts, formats, lists, moments, network, texts
from gitsched.apis.ocm.cel.checking import TYPES, Scope, find_overloads, infer
from gitsched.apis.ocm.cel.operators import OPERATORS
from gitsched.apis.ocm.cel.parser import parse
from gitsched.apis.ocm.cel.registry import Spend, invoke
from gitsched.apis.ocm.cel.syntax import Bind, Call, Index, Listing, Literal, Loop, Mapping, Name, Node, Select
from gitsched.apis.ocm.cel.values import NONE, Failed, Optional, Spent, TypeValue, find, type_name

OFFERED = (amounts, formats, lists, moments, network, texts)
"""What registers functions; together with the operators, these are all that there are."""


class Frame:
    """The variables of one evaluation, and how many steps it may still take."""

    __slots__ = ("left", "variables")

    def __init__(self, variables: dict[str, Any], steps: int) -> None:
        self.variables, self.left = variables, steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise Spent


Code = Callable[[Frame], Any]


class Program:
    """An expression that is ready to run. Refused where it has no sense."""

    __slots__ = ("_code", "text")

    def __init__(self, text: str, scope: abc.Mapping[str, str]) -> None:
        node = parse(text)
        infer(node, Scope(scope))
        self.text = text
        self._code = _compile(node, frozenset(scope))

    def run(self, variables: dict[str, Any], steps: int) -> tuple[bool, int]:
        """Whether it holds (an error, or something else than true, does not), and the steps it took. Spent beyond `steps`."""
        frame = Frame(variables, steps)
        try:
            value = self._code(frame)
        except (Failed, RecursionError):
            value = False
        return value is True, steps - frame.left


def _compile(node: Node, scope: frozenset[str]) -> Code:
    match node:
        case Literal():
            value = node.value
            return lambda frame: value
        case Name():
            return _compile_name(node, scope)
        case Select():
            return _compile_select(node, scope)
        case Index():
            return _compile_index(node, scope)
        case Listing():
            return _compile_list(node, scope)
        case Mapping():
            return _compile_map(node, scope)
        case Loop():
            return _compile_loop(node, scope)
        case Bind():
            return _compile_bind(node, scope)
    return _compile_call(node, scope)


def _compile_name(node: Name, scope: frozenset[str]) -> Code:
    name = node.name
    if name in scope or name not in TYPES:
        return lambda frame: frame.variables[name]
    kind = TypeValue(name)
    return lambda frame: kind


def _compile_select(node: Select, scope: frozenset[str]) -> Code:
    operand, member, test, wanted = _compile(node.operand, scope), node.member, node.test, node.optional

    def select(frame: Frame) -> Any:
        frame.spend(1)
        value = operand(frame)
        if value.__class__ is dict and not wanted:
            if test:
                return member in value
            if member in value:
                return value[member]
            raise Failed(f"no such key: {member}")
        return _select(value, member, test=test, optional=wanted)

    return select


def _select(value: Any, member: str, *, test: bool, optional: bool) -> Any:
    if isinstance(value, Optional):
        if not value.present:
            return False if test else NONE
        return _select(value.value, member, test=test, optional=True)
    if not isinstance(value, dict):
        raise Failed(f"{type_name(value)} has no members")
    if test:
        return member in value
    if member in value:
        return Optional(True, value[member]) if optional else value[member]
    if optional:
        return NONE
    raise Failed(f"no such key: {member}")


def _compile_index(node: Index, scope: frozenset[str]) -> Code:
    operand, index, wanted = _compile(node.operand, scope), _compile(node.place, scope), node.optional

    def look_up(frame: Frame) -> Any:
        frame.spend(1)
        container, at = operand(frame), index(frame)
        optional = wanted
        if isinstance(container, Optional):
            if not container.present:
                return NONE
            container, optional = container.value, True
        if not optional:
            return find(container, at)
        try:
            return Optional(True, find(container, at))
        except Failed:
            return NONE

    return look_up


def _compile_list(node: Listing, scope: frozenset[str]) -> Code:
    entries = [(_compile(entry, scope), optional) for entry, optional in node.entries]

    def build(frame: Frame) -> list[Any]:
        frame.spend(1 + len(entries))
        values = []
        for code, optional in entries:
            value = code(frame)
            if not optional:
                values.append(value)
            elif not isinstance(value, Optional):
                raise Failed("an optional entry must be an optional")
            elif value.present:
                values.append(value.value)
        return values

    return build


def _compile_map(node: Mapping, scope: frozenset[str]) -> Code:
    entries = [(_compile(key, scope), _compile(value, scope), optional) for key, value, optional in node.entries]

    def build(frame: Frame) -> dict[Any, Any]:
        frame.spend(1 + len(entries))
        values: dict[Any, Any] = {}
        for key_code, value_code, optional in entries:
            key, value = key_code(frame), value_code(frame)
            if not isinstance(key, (str, int)) or key in values:
                raise Failed("a key is there twice, or cannot be one")
            if not optional:
                values[key] = value
            elif isinstance(value, Optional) and value.present:
                values[key] = value.value
        return values

    return build


def _compile_loop(node: Loop, scope: frozenset[str]) -> Code:
    inner = scope | {node.variable}
    operand, variable, body = _compile(node.operand, scope), node.variable, _compile(node.body, inner)
    only = None if node.only is None else _compile(node.only, inner)
    run = _LOOPS[node.macro]

    def loop(frame: Frame) -> Any:
        values = operand(frame)
        if not isinstance(values, (list, dict)):
            raise Failed(f"{type_name(values)} cannot be gone through")
        variables = frame.variables
        missing = object()
        before = variables.get(variable, missing)

        def each(code: Code, value: Any) -> Any:
            frame.spend(2)
            variables[variable] = value
            return code(frame)

        try:
            return run(list(values), each, body, only)
        finally:
            if before is missing:
                variables.pop(variable, None)
            else:
                variables[variable] = before

    return loop


Each = Callable[[Code, Any], Any]


def _all(values: list[Any], each: Each, body: Code, _: Code | None) -> bool:
    """False as soon as one is false, whatever else fails."""
    return not _any(values, each, body, wanted=False)


def _exists(values: list[Any], each: Each, body: Code, _: Code | None) -> bool:
    return _any(values, each, body, wanted=True)


def _any(values: list[Any], each: Each, body: Code, *, wanted: bool) -> bool:
    failure: Failed | None = None
    for value in values:
        try:
            found = _boolean(each(body, value))
        except Failed as problem:
            failure = problem
            continue
        if found is wanted:
            return True
    if failure is not None:
        raise failure
    return False


def _exists_one(values: list[Any], each: Each, body: Code, _: Code | None) -> bool:
    return sum(_boolean(each(body, value)) for value in values) == 1


def _filter(values: list[Any], each: Each, body: Code, _: Code | None) -> list[Any]:
    return [value for value in values if _boolean(each(body, value))]


def _map(values: list[Any], each: Each, body: Code, only: Code | None) -> list[Any]:
    return [each(body, value) for value in values if only is None or _boolean(each(only, value))]


_LOOPS: dict[str, Callable[[list[Any], Each, Code, Code | None], Any]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
}


def _compile_bind(node: Bind, scope: frozenset[str]) -> Code:
    operand, variable, flat = _compile(node.operand, scope), node.variable, node.macro == "optFlatMap"
    body = _compile(node.body, scope | {variable})

    def bind(frame: Frame) -> Optional:
        frame.spend(1)
        value = operand(frame)
        if not isinstance(value, Optional):
            raise Failed(f"{type_name(value)} is no optional")
        if not value.present:
            return NONE
        inner = Frame({**frame.variables, variable: value.value}, frame.left)
        try:
            result = body(inner)
        finally:
            frame.left = inner.left
        if not flat:
            return Optional(True, result)
        if not isinstance(result, Optional):
            raise Failed("optFlatMap wants an optional")
        return result

    return bind


def _compile_call(node: Call, scope: frozenset[str]) -> Code:
    if node.target is None and node.name in _LAZY:
        return _LAZY[node.name](*(_compile(argument, scope) for argument in node.arguments))
    if node.target is None and node.name in OPERATORS:
        operator, operands = OPERATORS[node.name], [_compile(argument, scope) for argument in node.arguments]

        def operate(frame: Frame) -> Any:
            frame.spend(1)
            return operator(frame.spend, *[operand(frame) for operand in operands])

        return operate
    name, overloads, nodes = find_overloads(node, scope)
    arguments = [_compile(argument, scope) for argument in nodes]

    def call(frame: Frame) -> Any:
        frame.spend(1)
        spend: Spend = frame.spend
        return invoke(name, overloads, [argument(frame) for argument in arguments], spend)

    return call


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise Failed(f"{type_name(value)} is no boolean")


def _and(left: Code, right: Code) -> Code:
    return _either(left, right, decisive=False)


def _or(left: Code, right: Code) -> Code:
    return _either(left, right, decisive=True)


def _either(left: Code, right: Code, *, decisive: bool) -> Code:
    """What decides alone wins, on either side, whatever the other side fails with."""

    def decide(frame: Frame) -> bool:
        frame.spend(1)
        failure: Failed | None = None
        try:
            if _boolean(left(frame)) is decisive:
                return decisive
        except Failed as problem:
            failure = problem
        if _boolean(right(frame)) is decisive:
            return decisive
        if failure is not None:
            raise failure
        return not decisive

    return decide


def _not(operand: Code) -> Code:
    return lambda frame: not _boolean(operand(frame))


def _choose(condition: Code, then: Code, otherwise: Code) -> Code:
    return lambda frame: then(frame) if _boolean(condition(frame)) else otherwise(frame)


_LAZY: dict[str, Callable[..., Code]] = {"&&": _and, "||": _or, "!": _not, "?:": _choose}
