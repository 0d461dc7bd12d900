"""The database: inputs are assigned, results are read, and what a change of inputs reaches is computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gitsched.query.canonical import Key
from gitsched.query.errors import Interrupt, Node, StaleForkError, UntrackedReadError
from gitsched.query.evaluation import Evaluation
from gitsched.query.pages import Item
from gitsched.query.tables import Tables

if TYPE_CHECKING:
    from gitsched.query.schema import Schema
    from gitsched.query.store import Store


class Database:
    """Results of queries over inputs.

    `load` returns the value of an assigned input, by name and key. With a store, the state of the last `save` is continued; a state that is
    missing, damaged or of another schema or version is none. Damage may show later, as DamagedStoreError: start with a database without
    this store, or after the store has been emptied.
    """

    def __init__(self, schema: Schema, load: Callable[[str, Key], Any], store: Store | None = None) -> None:
        self._evaluation = Evaluation(Tables(schema, store), load)
        self._saves = [0]
        self._known_saves: int | None = None

    @property
    def is_new(self) -> bool:
        """Whether no state was continued, so that all inputs have to be assigned."""
        return self._tables.head is None

    @property
    def computed(self) -> int:
        """How many results have been computed."""
        return self._evaluation.computed

    def assign(self, name: str, key: Key, digest: bytes | None) -> None:
        """Set an input: the digest of its value, or None to remove it. An equal digest is no change."""
        self.assign_all(name, ((key, digest),))

    def assign_all(self, name: str, digests: Iterable[tuple[Key, bytes | None]]) -> None:
        """Set inputs of one name by their keys, as `assign` sets one."""
        with self._boundary():
            table, evaluation = self._tables.entries[name], self._evaluation
            for key, digest in digests:
                before = table.get(key)
                if digest == (before.data if before is not None else None):
                    continue
                if digest is not None:
                    table.put(key, Item(digest))
                else:
                    table.remove(key)
                evaluation.announce(name, key)
                if before is None or digest is None:
                    evaluation.announce_key(name, key, exists=digest is not None)

    def list_inputs(self, name: str) -> dict[Key, bytes]:
        """Return the digests of all inputs of a name."""
        with self._boundary():
            return {key: item.data for key, item in self._tables.entries[name].list_from(())}

    def update(self) -> None:
        """Bring all results up to date."""
        with self._boundary():
            self._evaluation.settle(len(self._tables.schema.steps) - 1)

    def take_changes(self) -> Mapping[str, set[Key]]:
        """Return the results that have changed since the last call, also those that came or went, of queries that are computed for each of
        some keys."""
        changed, self._evaluation.changed = self._evaluation.changed, {}
        return changed

    def take_failures(self) -> Mapping[Node, str]:
        """Return which queries have raised an exception since the last call, and what."""
        failures, self._evaluation.failures = self._evaluation.failures, {}
        return failures

    def read(self, name: str, key: Key) -> Any:
        """Return a result as a query reads it (see `Reader.read`). Only what it needs is brought up to date in its own step."""
        with self._boundary():
            step = self._tables.schema.step_of[name]
            self._evaluation.settle(step - 1)
            self._evaluation.prepare(step)
            self._evaluation.bring_current((name, key))
            return self._evaluation.read_value(self._tables.schema.queries[name], key)

    def rows_of(self, name: str, group: Key, first: int | None = None) -> tuple[Key, ...]:
        """Return the rows of a group of a relation (see `Reader.rows_of`)."""
        with self._boundary():
            self._evaluation.settle(self._tables.schema.step_of[name])
            return self._evaluation.list_rows(name, group, first)

    def list_keys(self, name: str) -> tuple[Key, ...]:
        """Return the keys for which a query has a result."""
        with self._boundary():
            self._evaluation.settle(self._tables.schema.step_of[name])
            return tuple(key for key, _ in self._tables.results[name].list_from(()))

    def save(self) -> bool:
        """Bring all results up to date, and write what has changed to the store. Return False without a store, or if another process has
        saved its state since this one was read: this database goes on in memory. Forks end."""
        self.update()
        with self._boundary():
            if self._known_saves is not None:
                return False
            self._saves[0] += 1
            return self._tables.save()

    def forget_pages(self) -> None:
        """Drop from memory what the store has."""
        if self._tables.store is not None:
            for table in (*self._tables.results.values(), *self._tables.entries.values()):
                table.forget_pages()

    def fork(self, load: Callable[[str, Key], Any] | None = None) -> Database:
        """Return a database with the same inputs and results, which changes without an effect on this one. It cannot be saved, and ends
        when this one is. `load` returns the values of its inputs; by default it is that of this database."""
        with self._boundary():
            fork = Database.__new__(Database)
            states = [state.copy() for state in self._evaluation.states]
            fork._evaluation = Evaluation(self._tables.fork(), load or self._evaluation.load, states)
            fork._saves, fork._known_saves = self._saves, self._saves[0]
            return fork

    def evict(self, name: str, key: Key) -> None:
        """Drop the value of a result. It is computed again when it is read, and must then be equal."""
        with self._boundary():
            table = self._tables.results[name]
            item = table.get(key)
            if item is not None:
                table.put(key, item.evict())

    def check(self, nodes: Iterable[Node] | None = None) -> None:
        """Compute results again, all or some, of which nothing that they read has changed. Raise UntrackedReadError if one is another."""
        self.update()
        with self._boundary():
            wrong = []
            for name, key in nodes if nodes is not None else list(self._list_nodes()):
                item = self._tables.results[name].get(key)
                if item is not None and not self._evaluation.compare(self._tables.schema.queries[name], key, item):
                    wrong.append((name, key))
            if wrong:
                raise UntrackedReadError(wrong)

    def _list_nodes(self) -> Iterator[Node]:
        for name, query in self._tables.schema.queries.items():
            if query.stored:
                yield from ((name, key) for key, _ in self._tables.results[name].list_from(()))

    @property
    def _tables(self) -> Tables:
        return self._evaluation.tables

    @contextmanager
    def _boundary(self) -> Iterator[None]:
        """Raise the errors that pass through queries unseen."""
        if self._known_saves is not None and self._known_saves != self._saves[0]:
            raise StaleForkError("the database of this fork has been saved since: fork it again")
        try:
            yield
        except Interrupt as interrupt:
            raise interrupt.error from interrupt.__cause__
