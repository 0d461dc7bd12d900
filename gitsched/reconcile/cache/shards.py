"""Small entries of many objects in a fixed number of rows of a plan state."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

from gitsched.model.document import Key
from gitsched.reconcile.cache.row_format import serialize

if TYPE_CHECKING:
    from gitsched.reconcile.cache.plan_file import Row

V = TypeVar("V")
SHARDS = 64


class Shards(Mapping[Key, V]):
    """Entries by key, in the rows of one kind. Rows are read on demand with `read`."""

    def __init__(self, kind: str, read: Callable[[str, str], Any]) -> None:
        self._kind, self._read = kind, read
        self._shards: dict[int, dict[Key, V]] = {}
        self._changed: set[int] = set()

    def fill(self, entries: Mapping[Key, V]) -> None:
        """Set all entries."""
        self._shards = {number: {} for number in range(SHARDS)}
        for key, entry in entries.items():
            self._shards[_choose_shard(key)][key] = entry

    def update(self, entries: Mapping[Key, V | None]) -> None:
        """Change some entries; None removes one."""
        for key, entry in entries.items():
            number = _choose_shard(key)
            shard = self._load(number)
            if entry is not None:
                shard[key] = entry
            else:
                shard.pop(key, None)
            self._changed.add(number)

    def list_rows(self, *, every: bool = False) -> list[Row]:
        """Return every row with an entry, or those that changed since the last call, without content if they have no entry any more."""
        numbers = [number for number in range(SHARDS) if self._load(number)] if every else sorted(self._changed)
        self._changed.clear()
        return [(self._kind, str(number), 0, serialize(shard) if (shard := self._load(number)) else None) for number in numbers]

    def __getitem__(self, key: Key) -> V:
        return self._load(_choose_shard(key))[key]

    def __iter__(self) -> Iterator[Key]:
        return (key for number in range(SHARDS) for key in self._load(number))

    def __len__(self) -> int:
        return sum(len(self._load(number)) for number in range(SHARDS))

    def items(self) -> ItemsView[Key, V]:
        """Return all entries, without a lookup of each."""
        return {key: entry for number in range(SHARDS) for key, entry in self._load(number).items()}.items()

    def _load(self, number: int) -> dict[Key, V]:
        if number not in self._shards:
            self._shards[number] = dict(self._read(self._kind, str(number)) or {})  # other readers may share what is read
        return self._shards[number]


def _choose_shard(key: Key) -> int:
    return crc32("\n".join(key).encode("utf-8", "surrogatepass")) % SHARDS
