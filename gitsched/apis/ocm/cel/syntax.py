"""Abstract syntax tree of CEL expressions, and the error for an invalid expression."""

from __future__ import annotations

from typing import Any

from gitsched.named_tuples import NamedTuple


class InvalidExpression(Exception):
    """An expression that cannot be used; `code` is the code of the finding, "" for the usual one."""

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Literal(NamedTuple):
    """A constant. In all nodes, `offset` is the offset of the first character."""

    value: Any
    offset: int


class Identifier(NamedTuple):
    """The name of a variable or type."""

    name: str
    offset: int


class Select(NamedTuple):
    """A field selection: `a.b`, as `test` `has(a.b)`, as `optional` `a.?b`."""

    operand: Node
    field: str
    offset: int
    test: bool = False
    optional: bool = False


class Index(NamedTuple):
    """An element of a list or map: `a[b]`, as `optional` `a[?b]`."""

    operand: Node
    key: Node
    offset: int
    optional: bool = False


class Call(NamedTuple):
    """A function call, `target` is the receiver of a member function. Operators are functions with the operator as name."""

    name: str
    target: Node | None
    arguments: tuple[Node, ...]
    offset: int


class CreateList(NamedTuple):
    """A list literal: elements, each with whether it is optional (`[?a]`)."""

    elements: tuple[tuple[Node, bool], ...]
    offset: int


class CreateMap(NamedTuple):
    """A map literal: keys and values, each with whether it is optional (`{?a: b}`)."""

    entries: tuple[tuple[Node, Node, bool], ...]
    offset: int


class Comprehension(NamedTuple):
    """A macro over a list or the keys of a map: all, exists, exists_one, filter, or map, which may have a `filter`."""

    macro: str
    operand: Node
    variable: str
    body: Node
    offset: int
    filter: Node | None = None


class OptionalMap(NamedTuple):
    """The macros optMap and optFlatMap: `body` with `variable` bound to the value of an optional."""

    macro: str
    operand: Node
    variable: str
    body: Node
    offset: int


Node = Literal | Identifier | Select | Index | Call | CreateList | CreateMap | Comprehension | OptionalMap
