"""Trees as they are stored: every name a byte string that somebody else chose, nothing ever checked out or followed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from gitsched.model.errors import Permanent

TREE = 0o040000
FILE = 0o100644
SYMLINK = 0o120000
SUBMODULE = 0o160000

MAX_DEPTH = 128
MAX_ENTRIES = 1_000_000
_MEMO_ROWS = 4_000_000

_ROW = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_TREE_MODES = (b"40000", b"040000")

Row = tuple[bytes, bytes, bytes]
"""Mode in octal digits, name and raw object id of one entry, as the tree object holds them."""


class Entry(NamedTuple):
    """A file, symlink (`mode` 0o120000) or submodule (0o160000) of a tree.

    `path` is text: bytes that are no UTF-8 appear as \\xNN. `odd` says that the path is not to be trusted: undecodable, twice in
    its directory, on the way through `.`, `..` or `.git`, or a directory nested too deep to be read (`mode` 0o040000).
    """

    path: str
    blob: str
    mode: int
    odd: bool = False


def parse_rows(data: bytes) -> list[Row]:
    """The entries of a raw tree object; ValueError when it is malformed."""
    rows: list[Row] = _ROW.findall(data)
    if len(b"".join(chain.from_iterable(rows))) + 2 * len(rows) != len(data):
        raise ValueError("malformed tree object")
    return rows


def is_tree(row: Row) -> bool:
    """Whether the entry is a directory."""
    return row[0] in _TREE_MODES


class Trees:
    """Listings over the trees of one repository, memoised by tree id, so that what did not change is not listed again.

    `read` gives the raw bytes of a tree by its id.
    """

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._rows: _Memo[str, list[Row]] = _Memo(_MEMO_ROWS)
        self._flat: _Memo[tuple[str, str, bool], tuple[Entry, ...]] = _Memo(_MEMO_ROWS)

    def rows(self, tree: str) -> list[Row]:
        """The entries of one tree, in Git's order."""
        rows = self._rows.get(tree)
        if rows is None:
            try:
                rows = parse_rows(self._read(tree))
            except ValueError as error:
                raise Permanent(f"tree {tree}: {error}") from error
            self._rows.put(tree, rows, len(rows))
        return rows

    def remember(self, tree: str, rows: list[Row]) -> None:
        """Take the rows of a tree that was just written, so that it need not be read."""
        if self._rows.get(tree) is None:
            self._rows.put(tree, rows, len(rows))

    def entries(self, tree: str, under: str = "") -> list[Entry]:
        """All entries below the directory (or the one file) `under`, sorted as Git sorts; [] when there is none."""
        if not under.strip("/"):
            return list(self._list(tree, "", False, 0, _Budget()))
        under = under.strip("/")
        row = self.find(tree, under)
        if row is None:
            return []
        if not is_tree(row):
            return [Entry(under, row[2].hex(), int(row[0], 8))]
        return list(self._list(row[2].hex(), under + "/", False, under.count("/") + 1, _Budget()))

    def changed(self, old: str | None, new: str | None) -> list[str]:
        """The sorted paths that one of two trees has and the other has not, or has with other content or mode."""
        paths: set[str] = set()
        self._compare(old, new, "", 0, paths, _Budget())
        return sorted(paths)

    def find(self, tree: str, path: str) -> Row | None:
        """The entry at a path; None when there is none."""
        parts = path.encode("utf-8", "surrogatepass").split(b"/")
        for part in parts[:-1]:
            row = self._child(tree, part)
            if row is None or not is_tree(row):
                return None
            tree = row[2].hex()
        return self._child(tree, parts[-1])

    def _child(self, tree: str, name: bytes) -> Row | None:
        return next((row for row in self.rows(tree) if row[1] == name), None)

    def _list(self, tree: str, prefix: str, odd: bool, depth: int, budget: _Budget) -> tuple[Entry, ...]:
        found = self._flat.get((tree, prefix, odd))
        if found is not None:
            budget.spend(len(found) + 1)
            return found
        rows = self.rows(tree)
        budget.spend(len(rows) + 1)
        result: list[Entry] = []
        for row, name, strange in _named(rows):
            path, blob = prefix + name, row[2].hex()
            if not is_tree(row):
                result.append(Entry(path, blob, int(row[0], 8), odd or strange))
            elif depth >= MAX_DEPTH:
                result.append(Entry(path, blob, TREE, True))
            else:
                result.extend(self._list(blob, path + "/", odd or strange, depth + 1, budget))
        found = tuple(result)
        self._flat.put((tree, prefix, odd), found, len(found))
        return found

    def _compare(self, old: str | None, new: str | None, prefix: str, depth: int, paths: set[str], budget: _Budget) -> None:
        before = set(self.rows(old)) if old else set()
        after = set(self.rows(new)) if new else set()
        sides: dict[str, list[str | None]] = {}
        for side, rows in enumerate((before - after, after - before)):
            budget.spend(len(rows))
            for row, name, _ in _named(rows):
                if not is_tree(row) or depth >= MAX_DEPTH:
                    paths.add(prefix + name)
                else:
                    sides.setdefault(name, [None, None])[side] = row[2].hex()
        for name, (was, now) in sides.items():
            self._compare(was, now, f"{prefix}{name}/", depth + 1, paths, budget)


def _named(rows: Iterable[Row]) -> Iterable[tuple[Row, str, bool]]:
    """Each row with its name as text and whether that name is odd."""
    seen: set[bytes] = set()
    for row in rows:
        name = row[1]
        try:
            text, odd = name.decode(), name in (b".", b"..") or b"/" in name or name.lower() == b".git" or name in seen
        except UnicodeDecodeError:
            text, odd = name.decode("utf-8", "backslashreplace"), True
        seen.add(name)
        yield row, text, odd


class _Budget:
    """Small trees can name one another so often that their listing is endless: the entries of one listing are counted."""

    def __init__(self) -> None:
        self.left = MAX_ENTRIES

    def spend(self, entries: int) -> None:
        self.left -= entries
        if self.left < 0:
            raise Permanent(f"the tree has more than {MAX_ENTRIES:,} entries")


K = TypeVar("K")
V = TypeVar("V")


class _Memo(Generic[K, V]):
    """A mapping that forgets what was used longest ago once the weights exceed the limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._total = 0
        self._items: dict[K, tuple[V, int]] = {}

    def get(self, key: K) -> V | None:
        item = self._items.pop(key, None)
        if item is None:
            return None
        self._items[key] = item
        return item[0]

    def put(self, key: K, value: V, weight: int) -> None:
        self._total += weight + 1
        self._items[key] = (value, weight + 1)
        while self._total > self._limit and len(self._items) > 1:
            oldest = next(iter(self._items))
            self._total -= self._items.pop(oldest)[1]
