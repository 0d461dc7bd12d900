"""The pages of all inputs, results and relations with the index of readers: what a database saves and a fork shares."""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping
from functools import partial
from sys import byteorder
from typing import TYPE_CHECKING

from gitsched.query.canonical import DIGEST_SIZE, Key, digest, identify
from gitsched.query.pages import PageTable
from gitsched.query.reader_index import ReaderIndex
from gitsched.query.schema import MAX_TABLES
from gitsched.query.store import HEAD

if TYPE_CHECKING:
    from gitsched.query.schema import Schema
    from gitsched.query.store import Store

FORMAT = f"1 {byteorder}"
"""The form of rows. A state of another form is not used."""
_ENTRIES = 4
"""A page has this many times more inputs, or rows of relations, than results."""
_VERSION = 2
_KNOWN_READS = 1 << 17
"""How many numbers of reads are remembered at most."""


class _PageNumbers:
    """The numbers of the pages of all tables. They are no part of `Tables`, which would be in cycles with its tables otherwise."""

    def __init__(self, taken: int = 0) -> None:
        self.taken = taken

    def take(self, table: int) -> int:
        """Return a number that no page has. Its last eight bits are those of the table."""
        self.taken += 1
        return self.taken << 8 | table


class _TablesByName(dict[str, PageTable]):
    """Tables by name, each of which is made when it is used: a run uses few of them. `numbers` has the number of each."""

    def __init__(
        self,
        numbers: Mapping[str, int],
        limit: int,
        pages: _PageNumbers,
        readers: ReaderIndex | None,
        store: Store | None,
        checksums: Mapping[str, bytes],
    ) -> None:
        self._numbers, self._limit, self._pages, self._readers, self._store = numbers, limit, pages, readers, store
        self._checksums = checksums

    def __missing__(self, name: str) -> PageTable:
        take = partial(self._pages.take, self._numbers[name])
        table = self[name] = PageTable(name, self._limit, take, self._readers, self._store, self._checksums.get(name))
        return table

    def list_checksums(self) -> list[tuple[str, bytes]]:
        """Return the checksums of the tables that have, or have had, a page."""
        known = {name: self[name].checksum if name in self else self._checksums.get(name) for name in self._numbers}
        return [(name, checksum) for name, checksum in known.items() if checksum is not None]

    def fork(self, pages: _PageNumbers, readers: ReaderIndex | None) -> _TablesByName:
        """Return tables with the same pages, which change without an effect on these."""
        other = _TablesByName(self._numbers, self._limit, pages, readers, None, {})
        for name, number in self._numbers.items():
            if name in self or name in self._checksums:
                other[name] = self[name].fork(partial(pages.take, number), readers)
        return other


class Tables:
    """The tables of a schema. `head` is the content of the row `HEAD` as it was last read or written; None for a new state."""

    def __init__(self, schema: Schema, store: Store | None = None) -> None:
        self.schema, self.store = schema, store
        self.head: bytes | None = None
        self._numbers = _PageNumbers()
        self._reads: dict[tuple[str, Key], int] = {}
        data = store.load(HEAD) if store is not None else None
        checksums: dict[str, bytes] = {}
        self.readers = ReaderIndex(store)
        if data is not None and digest(data[DIGEST_SIZE:]) == data[:DIGEST_SIZE]:
            form, identity, *rest = marshal.loads(memoryview(data)[DIGEST_SIZE:])  # noqa: S302 - its checksum is right
            if (form, identity) == (FORMAT, schema.identity):
                self.head = data
                taken, bits, size, listed, parts = rest
                self._numbers = _PageNumbers(taken)
                checksums, self.readers = dict(listed), ReaderIndex(store, bits, size, dict(parts))
        size = schema.page_size
        self.results = _TablesByName(
            {name: number for number, name in enumerate(schema.tables)}, size, self._numbers, self.readers, store, checksums
        )
        self.entries = _TablesByName(
            dict.fromkeys((*schema.inputs, *schema.relations), MAX_TABLES), size * _ENTRIES, self._numbers, None, store, checksums
        )

    def fork(self) -> Tables:
        """Return tables with the same contents, which change without an effect on these. They are never saved."""
        other = Tables(self.schema)
        numbers = other._numbers = _PageNumbers(self._numbers.taken)
        other.readers = self.readers.fork()
        other.results = self.results.fork(numbers, other.readers)
        other.entries = self.entries.fork(numbers, None)
        return other

    def identify(self, name: str, key: Key) -> int:
        """Return the number of a read."""
        found = self._reads.get((name, key))
        if found is None:
            if len(self._reads) >= _KNOWN_READS:
                self._reads.clear()
            found = self._reads[name, key] = identify(name, key)
        return found

    def name_of(self, number: int) -> str:
        """Return the query whose results a page has."""
        return self.schema.tables[number & 255]

    def save(self) -> bool:
        """Write what has changed. Return False if another process has saved its state since this one was read."""
        if self.store is None:
            return False
        rows = dict(self._list_changed_rows())
        if not rows and self.head is not None:
            return True
        listed = sorted((*self.results.list_checksums(), *self.entries.list_checksums()))
        parts = sorted(self.readers.checksums.items())
        content = marshal.dumps(
            (FORMAT, self.schema.identity, self._numbers.taken, self.readers.bits, self.readers.size, listed, parts), _VERSION
        )
        head = digest(content) + content
        store, self.store = self.store, None  # nothing more is saved after a failure, or if the store has another state
        if not store.save({**rows, HEAD: head}, self.head):
            return False
        self.store, self.head = store, head
        return True

    def _list_changed_rows(self) -> Iterator[tuple[str, bytes | None]]:
        for table in (*self.results.values(), *self.entries.values()):
            yield from table.list_changed_rows()
        yield from self.readers.list_changed_rows()  # saving pages changes it
