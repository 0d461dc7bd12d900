"""Which pages read an input, a result or a group: the recorded reads in the other direction."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitsched.query.canonical import digest
from gitsched.query.store import load_checked

if TYPE_CHECKING:
    from gitsched.query.store import Store

_WIDTH = 64
"""The bits of the number of a read."""
_LIMIT = 512
"""A part has this many reads on average before all are divided."""
_VERSION, _LEVEL = 2, 1
Part = dict[int, "int | set[int]"]
"""The numbers of the pages that read something; a single one without a set."""


class ReaderIndex:
    """The index, in 2**bits parts by the first bits of the numbers of reads. A part is one row of the store."""

    def __init__(self, store: Store | None = None, bits: int = 0, size: int = 0, checksums: dict[int, bytes] | None = None) -> None:
        self._store, self.bits, self.size = store, bits, size
        self.checksums = checksums or {}
        self._parts: dict[int, Part] = {}
        self._unsaved: set[int] = set()
        self._shared: set[int] = set()
        """The parts that a fork has, too: they are copied before they change."""

    def fork(self) -> ReaderIndex:
        """Return an index with the same parts. Both copy a part before they change it."""
        other = ReaderIndex(self._store, self.bits, self.size, self.checksums.copy())
        other._parts, other._unsaved = self._parts.copy(), self._unsaved.copy()
        self._shared = set(self._parts)
        other._shared = set(self._parts)
        return other

    def list_pages(self, read: int) -> tuple[int, ...]:
        """Return the numbers of the pages that may read something. No page that does is missing."""
        found = self._load(read >> _WIDTH - self.bits).get(read)
        if found is None:
            return ()
        return (found,) if isinstance(found, int) else tuple(sorted(found))

    def add(self, read: int, page: int) -> None:
        """Add that a page reads something."""
        part = self._change(read >> _WIDTH - self.bits)
        found = part.get(read)
        if found is None:
            part[read] = page
            self.size += 1
        elif isinstance(found, int):
            part[read] = {found, page}
        else:
            found.add(page)

    def remove(self, read: int, page: int) -> None:
        """Remove that a page reads something."""
        part = self._change(read >> _WIDTH - self.bits)
        found = part.get(read)
        if isinstance(found, set):
            found.discard(page)
        if found in (page, set()):
            del part[read]
            self.size -= 1

    def list_changed_rows(self) -> Iterator[tuple[str, bytes | None]]:
        """Yield the rows that have changed since the last call."""
        if self.size > _LIMIT << self.bits:
            self._divide()
        for number in sorted(self._unsaved):
            content = sorted((read, _pack(found)) for read, found in self._parts[number].items())
            row = zlib.compress(marshal.dumps(content, _VERSION), _LEVEL)
            self.checksums[number] = digest(row)
            yield f"readers/{number}", row
        self._unsaved.clear()

    def _divide(self) -> None:
        """Divide all reads among as many parts as there should be, with room to grow."""
        whole = {read: found for number in range(1 << self.bits) for read, found in self._load(number).items()}
        self.bits = (2 * self.size // _LIMIT).bit_length()
        self._parts = {number: {} for number in range(1 << self.bits)}
        for read, found in whole.items():
            self._parts[read >> _WIDTH - self.bits][read] = found if isinstance(found, int) else set(found)
        self._unsaved, self._shared = set(self._parts), set()

    def _load(self, number: int) -> Part:
        part = self._parts.get(number)
        if part is None:
            part = {}
            if number in self.checksums:
                row = load_checked(self._store, f"readers/{number}", self.checksums[number])
                part = {
                    read: found if isinstance(found, int) else set(found)
                    for read, found in marshal.loads(zlib.decompress(row))  # noqa: S302 - as pages
                }
            self._parts[number] = part
        return part

    def _change(self, number: int) -> Part:
        part = self._load(number)
        if number in self._shared:
            part = self._parts[number] = {read: found if isinstance(found, int) else set(found) for read, found in part.items()}
            self._shared.discard(number)
        self._unsaved.add(number)
        return part


def _pack(found: int | set[int]) -> int | tuple[int, ...]:
    return found if isinstance(found, int) else tuple(sorted(found))
