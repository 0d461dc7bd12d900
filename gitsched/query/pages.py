"""Pages: results of one query by key, in the order of their keys, at most a few dozen together. A page is one row of the store.

It is loaded when one of its results is read or has to be computed again. A fork shares the pages of its database until one of them changes
a page, which it copies first.
"""

from __future__ import annotations

import marshal
import zlib
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from gitsched.query.canonical import Key, digest
from gitsched.query.errors import Node
from gitsched.query.store import load_checked

if TYPE_CHECKING:
    from collections.abc import Callable

    from gitsched.query.reader_index import ReaderIndex
    from gitsched.query.store import Store

VALUE, FAILED, EVICTED, TRANSIENT = range(4)
"""What the data of an item are: canonical bytes of a value or of a failure, the digest of bytes that were dropped, or nothing."""
UNLOADED: Final = object()
Row = tuple[str, Key]
"""The name of a relation, and a row of it."""
Expected = tuple[str, Key, bytes]
"""The name and key of an input, and the digest with which it leaves a result as it is."""
_VERSION, _LEVEL = 2, 1


class Item:
    """A result: its data, the numbers of what it read, the results of its own step among these in the order in which it read them, the rows
    that it emits, and the inputs that it expects. `value` is the decoded value; UNLOADED until it is needed."""

    __slots__ = ("data", "expected", "kind", "peers", "reads", "rows", "value")

    def __init__(
        self,
        data: bytes,
        kind: int = VALUE,
        reads: tuple[int, ...] = (),
        peers: tuple[Node, ...] = (),
        rows: tuple[Row, ...] = (),
        expected: tuple[Expected, ...] = (),
        value: Any = UNLOADED,
    ) -> None:
        self.data, self.kind, self.value = data, kind, value
        self.reads, self.peers, self.rows, self.expected = reads, peers, rows, expected

    def is_same_result(self, other: Item) -> bool:
        """Return whether both have the same value or failure, also if the bytes of one have been dropped."""
        if self.kind == EVICTED or other.kind == EVICTED:
            return self._summarize() == other._summarize()
        return self.kind == other.kind != TRANSIENT and self.data == other.data

    def evict(self) -> Item:
        """Return the item without its value. It is computed again when it is needed."""
        return Item(self._summarize(), EVICTED, self.reads, self.peers, self.rows, self.expected)

    def _summarize(self) -> bytes:
        return self.data if self.kind == EVICTED else digest(bytes((self.kind,)) + self.data)


class Page:
    """The items of some keys. `edges` are the reads that the index of readers has for this page: at least those of its items."""

    __slots__ = ("edges", "items", "keys", "number", "owner")

    def __init__(self, number: int, owner: object, keys: list[Key], items: dict[Key, Item], edges: set[int]) -> None:
        self.number, self.owner, self.keys, self.items, self.edges = number, owner, keys, items, edges

    def list_readers(self, reads: set[int]) -> Iterator[Key]:
        """Yield the keys of the items that read something of this."""
        for key, item in self.items.items():
            if not reads.isdisjoint(item.reads):
                yield key

    def encode(self) -> bytes:
        """Return the content of the page's row. Each read is written once, and items refer to it."""
        items = [self.items[key] for key in self.keys]
        reads = sorted(self.edges)
        positions = {read: position for position, read in enumerate(reads)}
        packed = (array("I", map(positions.__getitem__, item.reads)).tobytes() for item in items)
        rest = [
            (item.data, item.kind, reads_of, item.peers, item.rows, item.expected)
            for item, reads_of in zip(items, packed, strict=True)
        ]
        return zlib.compress(marshal.dumps((self.keys, array("Q", reads).tobytes(), rest), _VERSION), _LEVEL)

    @classmethod
    def decode(cls, number: int, owner: object, row: bytes) -> Page:
        """Return the page of a row."""
        keys, packed, rest = marshal.loads(zlib.decompress(row))  # noqa: S302 - its checksum is that of what was written
        reads = array("Q", packed).tolist()
        items = {
            key: Item(data, kind, tuple(map(reads.__getitem__, array("I", positions))), *others)
            for key, (data, kind, positions, *others) in zip(keys, rest, strict=True)
        }
        return cls(number, owner, keys, items, set(reads))


class PageTable:
    """The pages of one name. `take_number` returns an unused number; `readers` is None for pages whose items read nothing."""

    def __init__(
        self,
        name: str,
        limit: int,
        take_number: Callable[[], int],
        readers: ReaderIndex | None = None,
        store: Store | None = None,
        checksum: bytes | None = None,
    ) -> None:
        self.name, self._limit, self._take_number, self._readers, self._store = name, limit, take_number, readers, store
        self._checksum = checksum
        """The checksum of the stored directory, until it is read."""
        self._firsts: list[Key] = []
        self._numbers: list[int] = []
        self._checksums: dict[int, bytes] = {}
        self._pages: dict[int, Page] = {}
        self._found: dict[Key, Item] = {}
        """Items that were looked up, so that their page is not searched again."""
        self._unsaved: set[int] = set()
        self._removed: set[int] = set()
        self._owner: object = object()

    def fork(self, take_number: Callable[[], int], readers: ReaderIndex | None) -> PageTable:
        """Return a table with the same pages. Both copy a page before they change it."""
        self._read_directory()
        other = PageTable(self.name, self._limit, take_number, readers, self._store)
        other._firsts, other._numbers = self._firsts.copy(), self._numbers.copy()
        other._checksums, other._pages = self._checksums.copy(), self._pages.copy()
        other._unsaved, other._removed = self._unsaved.copy(), self._removed.copy()
        self._owner = object()
        return other

    def get(self, key: Key) -> Item | None:
        """Return the item of a key."""
        item = self._found.get(key)
        if item is None:
            position = self._locate(key)
            item = self.load(self._numbers[position]).items.get(key) if position >= 0 else None
            if item is not None:
                self._found[key] = item
        return item

    def put(self, key: Key, item: Item) -> None:
        """Set the item of a key. A page that grows too large is divided: in the middle, or at its end if keys come in order."""
        position = self._locate(key)
        if position < 0 and self._numbers:
            position, self._firsts[0] = 0, key
        if position < 0:
            page = self._add_page(0, [], {})
            self._firsts.append(key)
            position = 0
        else:
            page = self._change(self._numbers[position])
        if key not in page.items:
            insort(page.keys, key)
        page.items[key] = self._found[key] = item
        self._add_edges(page, item)
        if len(page.keys) > self._limit:
            is_last = position == len(self._numbers) - 1 and page.keys[-1] == key
            start = self._limit if is_last else len(page.keys) // 2
            moved = page.keys[start:]
            other = self._add_page(position + 1, moved, {one: page.items.pop(one) for one in moved})
            del page.keys[start:]
            self._firsts.insert(position + 1, moved[0])
            for one in other.items.values():
                self._add_edges(other, one)

    def remove(self, key: Key) -> None:
        """Remove the item of a key that has one, and its page if that is empty then."""
        position = self._locate(key)
        page = self._change(self._numbers[position])
        del page.items[key]
        self._found.pop(key, None)
        page.keys.remove(key)
        if not page.keys:
            del self._firsts[position], self._numbers[position]
            self._checksums.pop(page.number, None)
            self._pages.pop(page.number)
            self._unsaved.discard(page.number)
            self._removed.add(page.number)
            self._remove_edges(page)

    def load(self, number: int) -> Page:
        """Return a page."""
        page = self._pages.get(number)
        if page is None:
            row = load_checked(self._store, f"page/{number}", self._checksums[number])
            page = self._pages[number] = Page.decode(number, self._owner, row)
        return page

    def find(self, number: int) -> Page | None:
        """Return a page; None if it has been removed."""
        self._read_directory()
        return self.load(number) if number in self._pages or number in self._checksums else None

    def list_from(self, start: Key) -> Iterator[tuple[Key, Item]]:
        """Yield the items from a key on, in the order of their keys. The table must not be changed in between."""
        position = max(self._locate(start), 0)
        for number in self._numbers[position:]:
            page = self.load(number)
            for key in page.keys[bisect_left(page.keys, start) :]:
                yield key, page.items[key]

    def list_changed_rows(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield the rows that have changed since the last call: pages, and the directory. Pages without readers are taken off the index."""
        if not self._unsaved and not self._removed:
            return
        for number in sorted(self._unsaved):
            page = self._pages[number]
            self._remove_edges(page)
            row = page.encode()
            self._checksums[number] = digest(row)
            yield f"page/{number}", row
        yield from ((f"page/{number}", None) for number in sorted(self._removed))
        self._unsaved.clear()
        self._removed.clear()
        entries = [(first, number, self._checksums[number]) for first, number in zip(self._firsts, self._numbers, strict=True)]
        row = zlib.compress(marshal.dumps(entries, _VERSION), _LEVEL)
        self._checksum = digest(row)
        yield f"directory/{self.name}", row

    @property
    def checksum(self) -> bytes | None:
        """The checksum of the directory as it was last stored; None for a table that has never had a page."""
        return self._checksum

    def forget_pages(self) -> None:
        """Drop the pages that the store has from memory."""
        self._pages = {number: page for number, page in self._pages.items() if number in self._unsaved}
        self._found.clear()

    def _locate(self, key: Key) -> int:
        """Return the position of the page where a key is or belongs; -1 if it is before all others."""
        if self._checksum is not None and not self._numbers:
            self._read_directory()
        return bisect_right(self._firsts, key) - 1

    def _read_directory(self) -> None:
        if self._checksum is None or self._numbers or self._unsaved or self._removed:
            return
        row = load_checked(self._store, f"directory/{self.name}", self._checksum)
        for first, number, checksum in marshal.loads(zlib.decompress(row)):  # noqa: S302 - as pages
            self._firsts.append(first)
            self._numbers.append(number)
            self._checksums[number] = checksum

    def _add_page(self, position: int, keys: list[Key], items: dict[Key, Item]) -> Page:
        page = Page(self._take_number(), self._owner, keys, items, set())
        self._numbers.insert(position, page.number)
        self._pages[page.number] = page
        self._unsaved.add(page.number)
        return page

    def _change(self, number: int) -> Page:
        """Return a page to change."""
        page = self.load(number)
        if page.owner is not self._owner:
            page = Page(number, self._owner, page.keys.copy(), page.items.copy(), page.edges.copy())
            self._pages[number] = page
        self._unsaved.add(number)
        return page

    def _add_edges(self, page: Page, item: Item) -> None:
        if self._readers is not None and not page.edges.issuperset(item.reads):
            for read in item.reads:
                if read not in page.edges:
                    page.edges.add(read)
                    self._readers.add(read, page.number)

    def _remove_edges(self, page: Page) -> None:
        """Take a page off the index for what none of its items reads any more."""
        if self._readers is not None:
            for read in page.edges.difference(*(item.reads for item in page.items.values())):
                page.edges.discard(read)
                self._readers.remove(read, page.number)
