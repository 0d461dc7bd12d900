"""Whatever is edited, read, evicted, forked, saved and damaged, in any order: a database has what a new one computes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from gitsched.query import Codec, CycleError, DamagedStoreError, Database, MemoryStore, Schema, StaleForkError
from gitsched.query.errors import Node
from tests.query.cells import STEPS, Cell, Cells, make_cell, read_everything, read_result
from tests.search_depth import count_examples

_NAMES = st.sampled_from([*(f"c{number}" for number in range(12)), "switch"])
_NUMBERS = st.sampled_from([0, 1, 1.0, True, False, 0.0, -0.0, "1", None, [1, 2], [2, 1], {"a": 1, "b": 2}, {"b": 2, "a": 1}])
_CELLS = st.builds(
    make_cell,
    _NUMBERS,
    st.lists(st.sampled_from(["red", "blue", "green"]), max_size=3, unique=True).map(tuple),
    st.lists(_NAMES, max_size=2).map(tuple),
    fails=st.sampled_from([False, False, False, True]),
)


_FORKS = st.integers(0, 3)


class _Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.cells, self.store, self.is_damaged = Cells(), MemoryStore(), False
        self.db = self.cells.open(self.store)
        self.forks: list[tuple[Database, Cells]] = []
        self.known: dict[Node, bytes] | None = {}

    @rule(changes=st.dictionaries(_NAMES, st.none() | _CELLS, max_size=8))
    def edit(self, changes: dict[str, Cell | None]) -> None:
        self._do(lambda: [self.cells.set(self.db, name, cell) for name, cell in changes.items()])

    @rule(name=_NAMES, is_kept=st.booleans(), memo=st.none() | st.lists(_NUMBERS, min_size=1, max_size=1))
    def remember(self, name: str, is_kept: bool, memo: object) -> None:
        """Write what a query decided, as it expects, or something else."""

        def remember() -> None:
            kept = read_result(self.db, "kept", (name,)) if is_kept else None
            self.cells.remember(self.db, name, memo if kept is None else kept)

        self._do(remember)

    @rule(name=_NAMES, query=st.sampled_from(["number", "kept", "weight", "relay"]))
    def read(self, name: str, query: str) -> None:
        """Ask for one result while other changes have not been propagated."""
        self._compare(lambda db: read_result(db, query, (name,)))

    @rule(tag=st.sampled_from(["red", "blue", "green", "none"]), query=st.sampled_from(["size", "group"]))
    def read_group(self, tag: str, query: str) -> None:
        self._compare(lambda db: read_result(db, query, (tag,)))

    @rule()
    def update(self) -> None:
        self._compare(read_everything)

    @rule()
    def take_changes(self) -> None:
        """The changes are those of all results since the last time, also of results that came or went, at least."""

        def take() -> None:
            found, known = _list_results(self.db), self.known
            changed = {(name, key) for name, keys in self.db.take_changes().items() for key in keys}
            self.known = found
            assert known is None or {node for node in found.keys() | known.keys() if found.get(node) != known.get(node)} <= changed

        self._do(take)

    @rule(name=_NAMES, query=st.sampled_from(["number", "kept", "weight", "relay"]))
    def evict(self, name: str, query: str) -> None:
        self._do(lambda: self.db.evict(query, (name,)))

    @rule()
    def forget(self) -> None:
        self.db.forget_pages()

    @rule(changes=st.dictionaries(_NAMES, st.none() | _CELLS, max_size=5), evicted=_NAMES)
    def fork(self, changes: dict[str, Cell | None], evicted: str) -> None:
        """Change a fork; what this database has stays as it is."""
        original = dict(self.cells.cells)

        def compare() -> None:
            fork = self.db.fork()
            for name, cell in changes.items():
                self.cells.set(fork, name, cell)
            fork.evict("weight", (evicted,))
            assert _encode(read_everything(fork)) == _encode(read_everything(_open_new(self.cells)))

        def compare_and_restore() -> None:
            try:
                compare()
            finally:
                self.cells.cells = dict(original)

        self._do(compare_and_restore)

    @rule(number=_FORKS, changes=st.dictionaries(_NAMES, st.none() | _CELLS, max_size=4))
    def keep_fork(self, number: int, changes: dict[str, Cell | None]) -> None:
        """Make a fork, of this database or of a fork, that goes on beside it with inputs of its own."""

        def keep() -> None:
            db, cells = [(self.db, self.cells), *self.forks][number % (len(self.forks) + 1)]
            own = cells.copy()
            fork = db.fork(own.load)
            for name, cell in changes.items():
                own.set(fork, name, cell)
            self.forks = [*self.forks, (fork, own)][-3:]

        self._do(keep)

    @rule(number=_FORKS, changes=st.dictionaries(_NAMES, st.none() | _CELLS, max_size=4))
    def edit_fork(self, number: int, changes: dict[str, Cell | None]) -> None:
        if self.forks:
            fork, cells = self.forks[number % len(self.forks)]
            self._do(lambda: [cells.set(fork, name, cell) for name, cell in changes.items()])

    @rule(number=_FORKS)
    def read_fork(self, number: int) -> None:
        """A fork has what a new database of its inputs has, whatever has become of the other ones."""

        def read() -> None:
            if self.forks:
                fork, cells = self.forks[number % len(self.forks)]
                assert _answer(fork, read_everything) == _answer(_open_new(cells), read_everything)

        self._do(read)

    @rule(reopens=st.booleans())
    def save(self, reopens: bool) -> None:
        def save() -> None:
            fork = self.db.fork()
            assert self.db.save()
            for one in (fork, *(kept for kept, _ in self.forks)):
                with pytest.raises(StaleForkError):
                    one.update()
            self.forks.clear()
            if reopens:
                self._replace(self.cells.open(self.store))
                assert not self.db.is_new

        self._do(save)

    @rule(number=st.integers(0, 99), how=st.sampled_from(["cut", "flip", "drop", "older"]))
    def damage(self, number: int, how: str) -> None:
        """Damage a row of the store, and continue with it until that is noticed."""
        rows = self.store.rows
        if rows:
            name = sorted(rows)[number % len(rows)]
            data = rows.pop(name)
            if how != "drop":
                rows[name] = {"cut": data[:-1], "flip": bytes(one ^ 1 for one in data), "older": b""}[how]
            self.is_damaged = True
            self._reopen()

    @rule(version=st.sampled_from(["1", "2"]))
    def change_version(self, version: str) -> None:
        """The code of the queries is another one: its state is made anew."""
        self._do(lambda: self.db.save())
        self._replace(self.cells.open(self.store, Schema(["cell", "memo"], STEPS, version=version, page_size=4)))
        self._do(lambda: self.cells.assign_all(self.db))
        self._do(lambda: self.db.save())
        self._reopen()

    @rule()
    def check(self) -> None:
        """No result reads anything that is not recorded."""
        self._do(lambda: self.db.check())

    def _do(self, action: Callable[[], object]) -> None:
        """Do something. After damage has been noticed, start with an empty store and do it once more; a cycle is an answer."""
        try:
            action()
        except CycleError:
            pass
        except DamagedStoreError:
            assert self.is_damaged
            self.store.rows.clear()
            self._reopen()
            self._do(action)

    def _reopen(self) -> None:
        """Start with the state of the store, and tell the database all cells, of which some may have changed since."""
        self.is_damaged &= bool(self.store.rows)
        self._replace(self.cells.open(self.store))
        self._do(lambda: self.cells.assign_all(self.db))

    def _replace(self, db: Database) -> None:
        """Continue with another database, which has no forks yet."""
        self.db, self.known = db, None
        self.forks.clear()

    def _compare(self, ask: Callable[[Database], object]) -> None:
        answers: list[bytes] = []

        def query_both() -> None:
            answers[:] = [_answer(db, ask) for db in (self.db, _open_new(self.cells))]

        self._do(query_both)
        assert answers[0] == answers[1]

    def teardown(self) -> None:
        self._compare(read_everything)


def _answer(db: Database, ask: Callable[[Database], object]) -> bytes:
    """Return what differs for 1, 1.0 and True, and for dictionaries in another order."""
    try:
        return _encode(ask(db))
    except CycleError:
        return b"cycle"


_encode = Codec().encode


def _open_new(cells: Cells) -> Database:
    db = cells.open()
    cells.assign_all(db)
    return db


def _list_results(db: Database) -> dict[Node, bytes]:
    """Return the results of all queries that are computed for each of some keys."""
    db.update()
    names = ("number", "kept", "weight", "group")
    return {(name, key): _encode(read_result(db, name, key)) for name in names for key in db.list_keys(name)}


def test_any_history_equals_a_new_database() -> None:
    run_state_machine_as_test(_Histories, settings=settings(max_examples=count_examples(40), stateful_step_count=25))
