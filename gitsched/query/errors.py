"""Errors of a database of queries, and the exceptions that pass through the functions of queries unseen."""

from __future__ import annotations

from collections.abc import Iterable

Node = tuple[str, tuple[str, ...]]
"""The name of an input, query or relation, and a key."""


def format_node(node: Node) -> str:
    """Return how a node is written in messages: name(key, key)."""
    name, key = node
    return f"{name}({', '.join(key)})"


class QueryError(Exception):
    """A database cannot answer."""


class QueryFailedError(QueryError):
    """A query raised an exception, or read one that did. `node` is the query that failed first, `reason` what it raised."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(f"{format_node(node)} failed: {reason}")
        self.node, self.reason = node, reason


class CycleError(QueryError):
    """Queries read each other in a circle. `nodes` are those of the circle, in the order in which they read each other."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        listed = list(nodes)
        start = listed.index(min(listed))
        self.nodes = (*listed[start:], *listed[:start])
        super().__init__("queries read each other in a circle: " + " -> ".join(map(format_node, (*self.nodes, self.nodes[0]))))


class ReadOrderError(QueryError):
    """A query reads or emits what its step does not allow."""


class UntrackedReadError(QueryError):
    """A result changed, and nothing that was recorded as read has. The query reads something else, or is not deterministic."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.nodes = tuple(nodes)
        super().__init__("results changed without a change of what was read: " + ", ".join(map(format_node, self.nodes)))


class DamagedStoreError(QueryError):
    """A row of the store is missing, damaged, or of another state. Start with an empty database and a new state."""


class StaleForkError(QueryError):
    """A fork reads a page that its database has saved since."""


class Interrupt(BaseException):
    """Carries an error through the functions of queries, which cannot catch it, to the caller of the database."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Suspension(BaseException):
    """Too many queries wait for each other: `node` is computed first, and those of `path`, innermost first, start again."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self.node = node
        self.path: list[Node] = []
