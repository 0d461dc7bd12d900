"""What a change computes again, what is read of the store for it, and which errors a query can make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gitsched.query import (
    CycleError,
    DamagedStoreError,
    Database,
    Key,
    MemoryStore,
    Query,
    QueryFailedError,
    ReadOrderError,
    Relation,
    Schema,
    Step,
    UntrackedReadError,
    digest_value,
)
from gitsched.query.reader import Reader
from gitsched.query.store import HEAD
from tests.query.cells import SCHEMA, Cells, make_cell, read_everything


class CountingStore(MemoryStore):
    """Counts which rows are loaded and written."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.written: list[str] = []

    def load(self, name: str, /) -> bytes | None:
        self.loaded.append(name)
        return super().load(name)

    def save(self, rows: Any, expected: bytes | None, /) -> bool:
        self.written += rows
        return super().save(rows, expected)


def make_cells(count: int) -> Cells:
    cells = Cells()
    cells.cells = {(f"c{number:04}",): make_cell(number, (f"t{number % 7}",)) for number in range(count)}
    return cells


def open_saved(cells: Cells, store: MemoryStore) -> Database:
    """Save the state of some cells, and open it."""
    db = cells.open(store)
    cells.assign_all(db)
    assert db.save()
    return cells.open(store)


def count_computed(db: Database, change: Callable[[], object]) -> int:
    before = db.computed
    change()
    db.update()
    return db.computed - before


def test_a_change_computes_only_what_it_reaches() -> None:
    cells = make_cells(300)
    db = open_saved(cells, MemoryStore())
    assert count_computed(db, lambda: None) == 0
    unread = make_cell(5, ("t5",)) | {"note": "nobody reads this"}
    assert count_computed(db, lambda: cells.set(db, "c0005", unread)) == 3  # its number, what it keeps and its weight
    assert dict(db.take_changes()) == {}
    assert count_computed(db, lambda: cells.set(db, "c0005", unread)) == 0
    assert (
        count_computed(db, lambda: cells.set(db, "c0005", make_cell(6, ("t5",)))) == 5
    )  # its group as well, which reads a pool anew
    assert dict(db.take_changes()) == {"kept": {("c0005",)}, "number": {("c0005",)}, "weight": {("c0005",)}, "group": {("t5",)}}


def test_what_a_result_expects_does_not_compute_it_again() -> None:
    cells = make_cells(300)
    db = open_saved(cells, MemoryStore())
    for number in range(300):
        cells.remember(db, f"c{number:04}", [number])
    assert count_computed(db, lambda: None) == 0
    db.check()
    assert count_computed(db, lambda: cells.remember(db, "c0005", [6])) == 1
    assert db.read("kept", ("c0005",)) == [6]
    assert count_computed(db, lambda: cells.set(db, "c0006", make_cell(7, ("t6",)))) > 1
    assert db.read("kept", ("c0006",)) == [6]
    assert count_computed(db, lambda: cells.remember(db, "c0006", None)) == 1
    assert db.read("kept", ("c0006",)) == [7]


def test_what_is_absent_is_read() -> None:
    cells = Cells()
    db = cells.open()
    cells.set(db, "one", make_cell(1, reads=("two",)))
    assert db.read("weight", ("one",)) == [1, None]
    assert db.read("report", ("3",)) == [(), ()]
    cells.set(db, "two", make_cell(2, ("red",)))
    assert db.read("weight", ("one",)) == [1, 2]
    assert db.read("report", ("3",)) == [(("red",),), ()]
    cells.set(db, "two", None)
    assert db.read("weight", ("one",)) == [1, None]
    assert db.read("report", ("3",)) == [(), ()]


@pytest.mark.parametrize(("before", "after"), [(1, 1.0), (1, True), (0.0, -0.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ((1,), [1])])
def test_values_that_a_reader_can_distinguish_are_changes(before: object, after: object) -> None:
    cells = Cells()
    db = cells.open()
    cells.set(db, "one", make_cell(before))
    db.update()
    db.take_changes()
    cells.set(db, "one", make_cell(after))
    db.update()
    assert db.take_changes().keys() == {"kept", "number", "weight"}
    assert repr(db.read("weight", ("one",))) == repr(after)


def test_a_page_is_loaded_only_if_a_read_of_one_of_its_results_changed() -> None:
    cells, store = make_cells(300), CountingStore()
    db = open_saved(cells, store)
    pages = sum(name.startswith("page/") for name in store.rows)
    store.loaded.clear()
    store.written.clear()
    cells.set(db, "c0100", make_cell(100, ("t2",)) | {"note": "new"})
    db.update()
    assert sum(name.startswith("page/") for name in store.loaded) == 5 < pages // 20  # the cell, its results and what is absent
    assert db.save()
    assert sum(name.startswith("page/") for name in store.written) == 4
    store.loaded.clear()
    cells.open(store).update()
    assert store.loaded == [HEAD]


def test_a_new_input_writes_few_pages() -> None:
    cells, store = make_cells(300), CountingStore()
    db = open_saved(cells, store)
    store.written.clear()
    cells.set(db, "c0100a", make_cell(1, reads=("c0003",)))
    assert db.save()
    assert sum(name.startswith("page/") for name in store.written) <= 10  # those of the cell and its results, some divided


def test_a_fork_changes_nothing_else() -> None:
    cells = make_cells(20)
    db = cells.open()
    cells.assign_all(db)
    before, original = read_everything(db), dict(cells.cells)
    fork = db.fork()
    cells.set(fork, "c0003", None)
    cells.set(fork, "new", make_cell(7, ("t1",)))
    cells.set(fork, "switch", make_cell())
    assert read_everything(fork) != before
    assert not fork.save()
    cells.cells = original
    assert read_everything(db) == before


def test_long_chains_need_no_deep_stack() -> None:
    cells, length = Cells(), 3000
    cells.cells = {(f"c{number}",): make_cell(number, reads=(f"c{number + 1}",)) for number in range(length - 1)}
    cells.cells[f"c{length - 1}",] = make_cell(-7)
    queries = (Query("last", _find_last), Query("own", lambda db, key: db.read("last", key), each="cell"))
    db = cells.open(schema=Schema(["cell", "memo"], [Step("chain", queries, recursive=True)]))
    cells.assign_all(db)
    assert db.read("own", ("c0",)) == -7
    cells.set(db, f"c{length - 1}", make_cell(-5))
    assert db.read("own", ("c0",)) == -5
    cells.set(db, f"c{length - 1}", make_cell(-5, reads=("c17",)))
    with pytest.raises(CycleError) as raised:
        db.update()
    assert len(raised.value.nodes) == length - 17


def _find_last(db: Reader, key: Key) -> object:
    cell = db.input("cell", key)
    return db.read("last", (cell["reads"][0],)) if cell["reads"] else cell["number"]


def test_a_cycle_is_an_error_with_its_keys() -> None:
    cells = Cells()
    db = cells.open()
    for name, other in (("b", "c"), ("c", "a"), ("a", "b"), ("d", "a")):
        cells.set(db, name, make_cell(reads=(other,)))
    with pytest.raises(CycleError, match=r"circle: relay\(a\) -> weight\(a\) -> relay\(b\) -> weight\(b\) -> relay\(c\)"):
        db.update()
    cells.set(db, "c", make_cell(3))
    assert db.read("weight", ("d",)) == [1, [1, [1, 3]]]


def test_a_failure_concerns_only_what_reads_it() -> None:
    cells = Cells()
    db = cells.open()
    cells.set(db, "bad", make_cell(fails=True))
    cells.set(db, "reader", make_cell(reads=("bad",)))
    cells.set(db, "other", make_cell(5))
    db.update()
    assert db.read("weight", ("other",)) == 5
    with pytest.raises(QueryFailedError, match=r"^weight\(bad\) failed: ValueError: cell bad fails$"):
        db.read("weight", ("reader",))
    cells.set(db, "bad", make_cell(2))
    assert db.read("weight", ("reader",)) == [1, 2]


def make_database(function: Callable[[Reader, Key], object], *, each: str = "cell") -> Database:
    steps = [
        Step("first", (Query("first", lambda db, key: key[0], each="cell"),), (Relation("row"),)),
        Step("tested", (Query("tested", function, each=each),), (Relation("tested-row"),)),
        Step("last", (Query("last", lambda db, key: key[0]),)),
    ]
    db = Database(Schema(["cell"], steps), lambda name, key: key[0])
    db.assign("cell", ("one",), digest_value(1))
    return db


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda db, key: db.read("last", key), r"tested\(one\) reads last\(one\), which is not computed in an earlier step"),
        (
            lambda db, key: db.read("tested", ("two",)),
            r"tested\(one\) reads tested\(two\), which is not computed in an earlier step",
        ),
        (lambda db, key: db.rows_of("tested-row", key), "not complete before the next step"),
        (lambda db, key: db.rows_of("row", ()), r"reads row\(\), which is no group of a relation"),
        (lambda db, key: db.emit("row", ("a",)), "only queries for each key of the same step"),
        (lambda db, key: db.emit("tested-row", (1,)), "which is no row of tested-row"),
        (lambda db, key: db.read("lost", key), r"reads lost\(one\), which is no query"),
        (lambda db, key: db.expect("cell", key, b""), r"expects cell\(one\), which it has not read"),
        (lambda db, key: db.input("lost", key), r"reads lost\(one\), which is no input"),
        (lambda db, key: (db.input("cell", one) for one in [key]), None),
    ],
)
def test_a_query_reads_what_its_step_allows(function: Callable[[Reader, Key], object], message: str | None) -> None:
    db = make_database(function)
    if message is None:
        with pytest.raises(QueryFailedError, match="generator has no canonical bytes"):
            db.read("tested", ("one",))
    else:
        with pytest.raises(ReadOrderError, match=message):
            db.update()


def test_nothing_is_read_after_a_query_has_returned() -> None:
    readers: list[Reader] = []
    db = make_database(lambda db, key: readers.append(db))
    db.update()
    with pytest.raises(BaseException, match="reads after it has returned"):
        readers[0].input("cell", ("one",))


def test_a_read_that_is_not_recorded_is_noticed() -> None:
    """A result that changed without a changed read is an error of `check`, and when a dropped value is computed again."""
    hidden = [1]
    db = make_database(lambda db, key: hidden[0])
    db.update()
    db.check()
    hidden[0] = 2
    with pytest.raises(UntrackedReadError, match=r"without a change of what was read: tested\(one\)"):
        db.check()
    db.evict("tested", ("one",))
    with pytest.raises(UntrackedReadError):
        db.read("tested", ("one",))


def test_a_value_that_a_reader_changes_is_noticed() -> None:
    shared = Query("shared", lambda db, key: [1])
    db = Database(
        Schema(
            ["cell"], [Step("a", (shared,)), Step("b", (Query("b", lambda db, key: db.read("shared", ()).append(2), each="cell"),))]
        ),
        lambda name, key: key[0],
    )
    db.assign("cell", ("one",), digest_value(1))
    db.update()
    with pytest.raises(UntrackedReadError, match=r"shared\(\)"):
        db.check()


def test_an_input_that_cannot_be_read_is_no_result() -> None:
    def load(name: str, key: Key) -> object:
        raise PermissionError(f"cannot read {key[0]}")

    db = Database(SCHEMA, load)
    db.assign("cell", ("one",), digest_value(1))
    with pytest.raises(PermissionError, match="cannot read one"):
        db.update()


def test_a_process_that_saved_first_keeps_its_state() -> None:
    cells, store = make_cells(30), MemoryStore()
    first = open_saved(cells, store)
    second = cells.open(store)
    second.check()
    read_everything(second)  # has read all pages
    cells.set(first, "c0001", make_cell(-1))
    cells.set(second, "c0001", make_cell(-1))
    assert first.save()
    rows = dict(store.rows)
    assert not second.save()
    assert store.rows == rows
    cells.set(second, "c0002", make_cell(-2))
    assert second.read("weight", ("c0002",)) == -2
    assert not second.save()


def test_a_save_that_was_interrupted_is_noticed() -> None:
    """A store that writes one row after another, and stops in between."""

    class Interrupted(MemoryStore):
        def save(self, rows: Any, expected: bytes | None, /) -> bool:
            for name, data in list(rows.items())[:2]:
                self.rows[name] = data
            raise KeyboardInterrupt

    cells, store = make_cells(30), MemoryStore()
    open_saved(cells, store)
    interrupted = Interrupted(store.rows)
    db = cells.open(interrupted)
    cells.set(db, "c0001", make_cell(-1))
    with pytest.raises(KeyboardInterrupt):
        db.save()
    cells.set(db := cells.open(interrupted), "c0001", make_cell(-3))
    with pytest.raises(DamagedStoreError, match=r"the row (page|directory)/\w+ is not the one that was written"):
        db.check()


def test_after_a_failed_save_nothing_is_saved() -> None:
    class Full(MemoryStore):
        def save(self, rows: Any, expected: bytes | None, /) -> bool:
            raise OSError("no space left")

    cells, store = make_cells(30), MemoryStore()
    open_saved(cells, store)
    full = Full(store.rows)
    db = cells.open(full)
    cells.set(db, "c0001", make_cell(-1))
    with pytest.raises(OSError, match="no space left"):
        db.save()
    cells.set(db, "c0002", make_cell(-2))
    assert not db.save()
    assert full.rows == store.rows
    assert db.read("weight", ("c0002",)) == -2


@pytest.mark.parametrize(
    "schema",
    [
        Schema(["cell", "memo"], SCHEMA.steps, version="2"),
        Schema(["cell", "memo", "more"], SCHEMA.steps),
        Schema(["cell", "memo"], SCHEMA.steps[:-1]),
        Schema(["cell", "memo"], [step._replace(recursive=True) for step in SCHEMA.steps]),
    ],
)
def test_a_state_of_another_schema_is_not_used(schema: Schema) -> None:
    cells, store = make_cells(10), MemoryStore()
    open_saved(cells, store)
    db = cells.open(store, schema)
    assert db.is_new
    cells.assign_all(db)
    assert db.save()
    assert cells.open(store).is_new
    assert not cells.open(store, schema).is_new


@pytest.mark.parametrize(
    ("inputs", "steps", "message"),
    [
        (["a", "a"], [], "must differ"),
        (["a"], [Step("s", (Query("q", "m:f", each="b"),))], "no input and no relation of an earlier step"),
        (["a"], [Step("s", (Query("q", "m:f", each="r"),), (Relation("r"),))], "no input and no relation of an earlier step"),
        (["a"], [Step("s", (Query("q", "m:f", each="a", stored=False),))], "must be stored"),
        ([], [Step("s", tuple(Query(f"q{number}", "m:f") for number in range(256)))], "at most 255 queries"),
    ],
)
def test_a_schema_is_checked(inputs: list[str], steps: list[Step], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Schema(inputs, steps)
