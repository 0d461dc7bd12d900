"""The protocol of stores, and a store in memory.

A state is a set of rows: a head, for each table of pages a directory of its pages with their checksums, the pages, and the parts of the
index of readers. The head has the checksums of the directories, so that a row that is missing, damaged or of another state is noticed when
it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from gitsched.query.canonical import digest
from gitsched.query.errors import DamagedStoreError, Interrupt

HEAD = "head"


class Store(Protocol):
    """Rows by name."""

    def load(self, name: str, /) -> bytes | None:
        """Return the content of a row; None if there is none."""
        ...

    def save(self, rows: Mapping[str, bytes | None], expected: bytes | None, /) -> bool:
        """Write rows, and remove those without content, all of them or none.

        Return False and write nothing unless the content of the row `HEAD` is the `expected` one: another process has saved its state.
        Without an expected one, remove all other rows: a new state replaces any other.
        """
        ...


class MemoryStore:
    """A store in memory."""

    def __init__(self, rows: Mapping[str, bytes] | None = None) -> None:
        self.rows: dict[str, bytes] = dict(rows or {})

    def load(self, name: str, /) -> bytes | None:
        return self.rows.get(name)

    def save(self, rows: Mapping[str, bytes | None], expected: bytes | None, /) -> bool:
        if expected is not None and self.rows.get(HEAD) != expected:
            return False
        kept = self.rows if expected is not None else {}
        self.rows = {name: data for name, data in {**kept, **rows}.items() if data is not None}
        return True


def load_checked(store: Store | None, name: str, checksum: bytes) -> bytes:
    """Return the content of a row with this checksum. Raise DamagedStoreError otherwise, past all queries."""
    data = store.load(name) if store is not None else None
    if data is None or digest(data) != checksum:
        raise Interrupt(DamagedStoreError(f"the row {name} is {'missing' if data is None else 'not the one that was written'}"))
    return data


class BufferedStore:
    """A store whose changed rows somebody else writes, together with other things. There is one writer, so that `save` never fails."""

    def __init__(self, read: Callable[[str], bytes | None] = lambda _: None) -> None:
        """`read` returns the rows that have been written."""
        self._read = read
        self._unwritten: dict[str, bytes | None] = {}

    def load(self, name: str, /) -> bytes | None:
        """See `Store`."""
        return self._unwritten[name] if name in self._unwritten else self._read(name)

    def save(self, rows: Mapping[str, bytes | None], expected: bytes | None, /) -> bool:  # noqa: ARG002 - there is one writer
        """See `Store`."""
        self._unwritten.update(rows)
        return True

    def read_from(self, read: Callable[[str], bytes | None]) -> None:
        """Set what returns the rows that have been written."""
        self._read = read

    def take_rows(self) -> dict[str, bytes | None]:
        """Return the rows to write, None for those to remove. They count as written then."""
        unwritten, self._unwritten = self._unwritten, {}
        return unwritten
