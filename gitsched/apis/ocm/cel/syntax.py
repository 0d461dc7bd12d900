"""Abstract syntax tree of CEL expressions, and the error for an invalid expression."""

from __future__ import annotations

from typing import Any, NamedTuple


class InvalidExpression(Exception):
    """An expression that cannot be used; `code` is that of the finding, where it has one of its own."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


def reject_expression(message: str, code: str) -> InvalidExpression:
    """An expression that cannot be used for a reason that has a finding of its own."""
    return InvalidExpression(message, code)


class Literal(NamedTuple):
    value: Any
    at: int


class Identifier(NamedTuple):
    name: str
    at: int


class Select(NamedTuple):
    """A member; `test` asks whether it is there (has), `optional` gives an optional (a.?b)."""

    operand: Node
    field: str
    at: int
    test: bool = False
    optional: bool = False


class Index(NamedTuple):
    operand: Node
    key: Node
    at: int
    optional: bool = False


class Call(NamedTuple):
    """A function; `target` is what it is a member of, or None. Operators are functions named as they are written."""

    name: str
    target: Node | None
    arguments: tuple[Node, ...]
    at: int


class CreateList(NamedTuple):
    """Entries, each with whether it is an optional that may be left out."""

    elements: tuple[tuple[Node, bool], ...]
    at: int


class CreateMap(NamedTuple):
    entries: tuple[tuple[Node, Node, bool], ...]
    at: int


class Comprehension(NamedTuple):
    """A macro over a list or the keys of a map: all, exists, exists_one, filter or map; `only` is the filter of a map of three."""

    macro: str
    operand: Node
    variable: str
    body: Node
    at: int
    filter: Node | None = None


class OptionalMap(NamedTuple):
    """optMap and optFlatMap: the body with the variable bound to what an optional holds."""

    macro: str
    operand: Node
    variable: str
    body: Node
    at: int


Node = Literal | Identifier | Select | Index | Call | CreateList | CreateMap | Comprehension | OptionalMap
