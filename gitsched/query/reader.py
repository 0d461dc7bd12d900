"""What a query gets: reads of inputs, results and relations, which are recorded, and the rows that it emits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from gitsched.query.errors import Interrupt, Node, ReadOrderError, format_node

if TYPE_CHECKING:
    from gitsched.query.canonical import Key
    from gitsched.query.pages import Expected, Row
    from gitsched.query.schema import Query, Schema


_TEXTS = frozenset({str})


class ResultSource(Protocol):
    """What a reader reads: inputs, and results that are up to date."""

    schema: Schema

    def identify(self, name: str, key: Key) -> int: ...

    def load_input(self, name: str, key: Key) -> Any: ...

    def read_value(self, query: Query, key: Key, *, is_settled: bool = False) -> Any: ...

    def list_rows(self, name: str, group: Key, first: int | None) -> tuple[Key, ...]: ...


class Reader:
    """The database as one computation of a query reads it. What is absent is recorded like everything else."""

    __slots__ = ("_node", "_source", "_step", "expected", "peers", "reads", "rows")

    def __init__(self, source: ResultSource, node: Node, step: int) -> None:
        self._source: ResultSource | None = source
        self._node, self._step = node, step
        self.reads: dict[int, None] = {}
        self.peers: dict[Node, None] = {}
        self.rows: set[Row] = set()
        self.expected: tuple[Expected, ...] = ()

    def input(self, name: str, key: Key) -> Any:
        """Return the value of an input; None if there is none of this key."""
        source = self._record(name, key)
        if name not in source.schema.inputs:
            self._refuse(f"reads {format_node((name, key))}, which is no input")
        return source.load_input(name, key)

    def read(self, name: str, key: Key) -> Any:
        """Return the result of another query, which must not be changed; None if it is computed for each of some keys, and this is none of
        them. Raise QueryFailedError if it failed."""
        source = self._record(name, key)
        step = source.schema.step_of.get(name, -1)
        if step < 0 or name in source.schema.relations:
            self._refuse(f"reads {format_node((name, key))}, which is no query")
        if step >= self._step:
            if step > self._step or not source.schema.steps[step].recursive:
                self._refuse(f"reads {format_node((name, key))}, which is not computed in an earlier step")
            self.peers[name, key] = None
        return source.read_value(source.schema.queries[name], key, is_settled=step < self._step)

    def rows_of(self, name: str, group: Key, first: int | None = None) -> tuple[Key, ...]:
        """Return the rows of a relation that begin with the strings of a group, without these, in order; at most the `first` ones."""
        source = self._record(name, group)
        relation = source.schema.relations.get(name)
        if relation is None or len(group) != relation.prefix:
            self._refuse(f"reads {format_node((name, group))}, which is no group of a relation")
        if source.schema.step_of[name] >= self._step:
            self._refuse(f"reads rows of {name}, which are not complete before the next step")
        return source.list_rows(name, group, first)

    def emit(self, name: str, row: Key) -> None:
        """Emit a row of a relation. The same row of several queries is there as long as one of them emits it."""
        source = self._source
        if source is None:
            raise self._make_late_error()
        query = source.schema.queries[self._node[0]]
        if source.schema.step_of.get(name) != self._step or name not in source.schema.relations or not query.each:
            self._refuse(f"emits rows of {name}, which only queries for each key of the same step may")
        if len(row) < source.schema.relations[name].prefix or not _TEXTS.issuperset(map(type, row)):
            self._refuse(f"emits {row!r}, which is no row of {name}")
        self.rows.add((name, row))

    def expect(self, name: str, key: Key, digest: bytes) -> None:
        """Declare that the result stays as it is when an input that has been read gets this digest, because the decision is written there.

        The query must have read everything that it would read with that input. `Database.check` compares.
        """
        source = self._source
        if source is None:
            raise self._make_late_error()
        if name not in source.schema.inputs or source.identify(name, key) not in self.reads:
            self._refuse(f"expects {format_node((name, key))}, which it has not read")
        self.expected = (*self.expected, (name, key, digest))

    def close(self) -> None:
        """End the computation: what is read after that could not be recorded."""
        self._source = None

    def _record(self, name: str, key: Key) -> ResultSource:
        source = self._source
        if source is None:
            raise self._make_late_error()
        self.reads[source.identify(name, key)] = None
        return source

    def _refuse(self, reason: str) -> None:
        raise Interrupt(ReadOrderError(f"{format_node(self._node)} {reason}"))

    def _make_late_error(self) -> Interrupt:
        return Interrupt(ReadOrderError(f"{format_node(self._node)} reads after it has returned"))
