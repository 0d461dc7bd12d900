"""A schema whose inputs say what its queries read and emit: cells that refer to others, have tags, and fail."""

from __future__ import annotations

from typing import Any

from gitsched.query import CycleError, Database, Key, Query, QueryFailedError, Relation, Schema, Step, Store, digest_value
from gitsched.query.reader import Reader

Cell = dict[str, Any]


class Pool:
    """A value without canonical bytes."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names


def make_cell(number: object = 1, tags: tuple[str, ...] = (), reads: tuple[str, ...] = (), *, fails: bool = False) -> Cell:
    return {"number": number, "tags": list(tags), "reads": list(reads), "fails": fails}


def parse(db: Reader, key: Key) -> object:
    cell = db.input("cell", key)
    for tag in cell["tags"]:
        db.emit("tagged", (tag, *key))
    return cell["number"]


def keep(db: Reader, key: Key) -> object:
    """What a cell was remembered with, else its number, to be remembered."""
    number, remembered = db.input("cell", key)["number"], db.input("memo", key)
    kept = [number] if remembered is None else remembered
    db.expect("memo", key, digest_value(kept))
    return kept


def find_pool(db: Reader, key: Key) -> Pool:
    return Pool(tuple(name for (name,) in db.rows_of("tagged", key)))


def count_pool(db: Reader, key: Key) -> int:
    return len(db.read("pool", key).names)


def weigh(db: Reader, key: Key) -> object:
    cell = db.input("cell", key)
    if db.input("cell", ("switch",)) is not None:
        own = db.read("size", (cell["tags"][0] if cell["tags"] else "none",))
    else:
        own = db.read("number", key)
    found = [own, *(db.read("relay", (name,)) for name in cell["reads"])]
    if cell["fails"]:
        raise ValueError(f"cell {key[0]} fails")
    return found if len(found) > 1 else own


def relay(db: Reader, key: Key) -> object:
    return db.read("weight", key)


def gather(db: Reader, key: Key) -> object:
    names = db.rows_of("tagged", key)
    weights = []
    for name in names:
        try:
            weights.append(db.read("weight", name))
        except QueryFailedError as error:
            weights.append(str(error))
    db.emit("ranked", (str(len(names)), *key))
    return {"first": db.rows_of("tagged", key, first=2), "weights": weights, "pool": db.read("pool", key).names[:1]}


def report(db: Reader, key: Key) -> object:
    return [db.rows_of("ranked", (str(count),)) for count in range(1, int(key[0]))]


STEPS = (
    Step("read", (Query("number", parse, each="cell"), Query("kept", keep, each="cell")), (Relation("tagged"),)),
    Step("pools", (Query("pool", find_pool, stored=False),)),
    Step("sizes", (Query("size", count_pool),)),
    Step("weigh", (Query("weight", weigh, each="cell"), Query("relay", relay)), recursive=True),
    Step("gather", (Query("group", gather, each="tagged"),), (Relation("ranked"),)),
    Step("report", (Query("report", "tests.query.cells:report"),)),
)
SCHEMA = Schema(["cell", "memo"], STEPS, page_size=3)


class Cells:
    """The cells of a test, and databases of them."""

    def __init__(self) -> None:
        self.cells: dict[Key, Cell] = {}
        self.memos: dict[Key, object] = {}

    def open(self, store: Store | None = None, schema: Schema = SCHEMA) -> Database:
        return Database(schema, self.load, store)

    def load(self, name: str, key: Key) -> object:
        return (self.cells if name == "cell" else self.memos)[key]

    def copy(self) -> Cells:
        """Return cells that change without an effect on these."""
        other = Cells()
        other.cells, other.memos = dict(self.cells), dict(self.memos)
        return other

    def set(self, db: Database, name: str, cell: Cell | None) -> None:
        """Change a cell, and tell a database."""
        if cell is None:
            self.cells.pop((name,), None)
        else:
            self.cells[name,] = cell
        db.assign("cell", (name,), digest_value(cell) if cell is not None else None)

    def remember(self, db: Database, name: str, memo: object) -> None:
        """Change what a cell is remembered with, and tell a database."""
        if memo is None:
            self.memos.pop((name,), None)
        else:
            self.memos[name,] = memo
        db.assign("memo", (name,), digest_value(memo) if memo is not None else None)

    def assign_all(self, db: Database) -> None:
        """Tell a database all cells."""
        for name, values in (("cell", self.cells), ("memo", self.memos)):
            for key in db.list_inputs(name).keys() - values.keys():
                db.assign(name, key, None)
            for key, value in values.items():
                db.assign(name, key, digest_value(value))


def read_result(db: Database, name: str, key: Key) -> object:
    """Return a result, or what is said of a failed one."""
    try:
        return db.read(name, key)
    except QueryFailedError as error:
        return f"failed: {error}"


def read_everything(db: Database) -> object:
    """Return all results and rows, or that there is a cycle."""
    try:
        db.update()
        results = {
            (name, key): read_result(db, name, key) for name in ("number", "kept", "weight", "group") for key in db.list_keys(name)
        }
        rows = {count: db.rows_of("ranked", (str(count),)) for count in range(1, 9)}
        return results, rows, db.read("report", ("5",))
    except CycleError:
        return "cycle"
