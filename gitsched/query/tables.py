"""The pages of all inputs, results and relations with the index of readers: what a database saves and a fork shares."""

from __future__ import annotations

import marshal
from collections.abc import Iterator
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


class Tables:
    """The tables of a schema. `head` is the content of the row `HEAD` as it was last read or written; None for a new state."""

    def __init__(self, schema: Schema, store: Store | None = None) -> None:
        self.schema, self.store = schema, store
        self.head: bytes | None = None
        self._serial = 0
        self._reads: dict[tuple[str, Key], int] = {}
        data = store.load(HEAD) if store is not None else None
        checksums: dict[str, bytes] = {}
        self.readers = ReaderIndex(store)
        if data is not None and digest(data[DIGEST_SIZE:]) == data[:DIGEST_SIZE]:
            form, identity, *rest = marshal.loads(memoryview(data)[DIGEST_SIZE:])  # noqa: S302 - its checksum is right
            if (form, identity) == (FORMAT, schema.identity):
                self.head = data
                self._serial, bits, size, listed, parts = rest
                checksums, self.readers = dict(listed), ReaderIndex(store, bits, size, dict(parts))
        self.results = {
            name: PageTable(name, schema.page_size, partial(self._take_number, position), self.readers, store, checksums.get(name))
            for position, name in enumerate(schema.tables)
        }
        self.entries = {
            name: PageTable(
                name, schema.page_size * _ENTRIES, partial(self._take_number, MAX_TABLES), None, store, checksums.get(name)
            )
            for name in (*schema.inputs, *schema.relations)
        }

    def fork(self) -> Tables:
        """Return tables with the same contents, which change without an effect on these. They are never saved."""
        other = Tables(self.schema)
        other._serial = self._serial
        other.readers = self.readers.fork()
        for position, (name, table) in enumerate(self.results.items()):
            other.results[name] = table.fork(partial(other._take_number, position), other.readers)
        for name, table in self.entries.items():
            other.entries[name] = table.fork(partial(other._take_number, MAX_TABLES), None)
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
        tables = (*self.results.values(), *self.entries.values())
        listed = sorted((table.name, table.checksum) for table in tables if table.checksum is not None)
        parts = sorted(self.readers.checksums.items())
        content = marshal.dumps(
            (FORMAT, self.schema.identity, self._serial, self.readers.bits, self.readers.size, listed, parts), _VERSION
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

    def _take_number(self, table: int) -> int:
        """Return a number that no page has. Its last eight bits are those of the table."""
        self._serial += 1
        return self._serial << 8 | table
