"""Previous records of which some have changed since, for engines that decide once more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from gitsched.apis.snapshot import list_previous_records, list_records_outside
from gitsched.model.document import Body, Key


class ChangedRecords(Mapping[Key, Body]):
    """Records by key: those of `before`, and the `changed` ones, which are None where the record is removed."""

    def __init__(self, before: Mapping[Key, Body], changed: Mapping[Key, Body | None]) -> None:
        self._before, self._changed = before, changed

    def __getitem__(self, key: Key) -> Body:
        body = self._changed[key] if key in self._changed else self._before[key]
        if body is None:
            raise KeyError(key)
        return body

    def __iter__(self) -> Iterator[Key]:
        yield from (key for key in self._before if key not in self._changed)
        yield from (key for key, body in self._changed.items() if body is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def of_kind(self, group: str, kind: str) -> Iterator[tuple[Key, Body]]:
        """Yield the records of one kind."""
        yield from (entry for entry in list_previous_records(self._before, group, kind) if entry[0] not in self._changed)
        yield from ((key, body) for key, body in self._changed.items() if body is not None and key[:2] == (group, kind))

    def outside_groups(self, groups: Collection[str]) -> Iterator[tuple[Key, Body]]:
        """Yield the records whose group is not one of `groups`."""
        yield from (entry for entry in list_records_outside(self._before, groups) if entry[0] not in self._changed)
        yield from ((key, body) for key, body in self._changed.items() if body is not None and key.group not in groups)
