"""The rows of a plan state in the memory of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gitsched.reconcile.cache.plan_file import Row


class MemoryRows:
    """A RowStore that is lost with the process. Each state that is opened from it has objects of its own."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], tuple[int, bytes]] = {}

    def read(self, kind: str, name: str) -> bytes | None:
        """See `RowStore`."""
        found = self._rows.get((kind, name))
        return found[1] if found is not None else None

    def read_all(self, kind: str) -> Iterable[tuple[str, bytes]]:
        """See `RowStore`."""
        found = sorted((row[0], name, row[1]) for (other, name), row in self._rows.items() if other == kind)
        return [(name, data) for _, name, data in found]

    def create(self, rows: Iterable[Row]) -> None:
        """See `RowStore`."""
        self._rows = {(kind, name): (position, data) for kind, name, position, data in rows if data is not None}

    def update(self, rows: Iterable[Row], is_known: Callable[[bytes | None], bool], /) -> bool:
        """See `RowStore`."""
        if not is_known(self.read("header", "")):
            return False
        for kind, name, position, data in rows:
            if data is None:
                self._rows.pop((kind, name), None)
            else:
                self._rows[kind, name] = self._rows.get((kind, name), (position, b""))[0], data
        return True

    def discard(self, _error: Exception) -> None:
        """See `RowStore`."""
        self._rows.clear()
