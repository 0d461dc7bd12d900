"""The previous binding of a workload: read from the last output, or from the bindings that a dump of a hub contains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gitsched.apis.engine import Snapshot
from gitsched.apis.karmada.names import BINDING, CLUSTER_BINDING, WORK_GROUP
from gitsched.model.document import Body, Key, get_field


class PreviousRecords(Mapping[Key, Body]):
    """Records first, then what a hub decided."""

    __slots__ = ("_hub", "_records")

    def __init__(self, records: Mapping[Key, Body], hub: Mapping[Key, Body]) -> None:
        self._records, self._hub = records, hub

    def __getitem__(self, key: Key) -> Body:
        record = self._records.get(key)
        return self._hub[key] if record is None else record

    def __iter__(self) -> Iterator[Key]:
        yield from self._records
        yield from (key for key in self._hub if key not in self._records)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def add_hub_bindings(world: Snapshot) -> Snapshot:
    """The world whose memory goes back to the hub. A binding that is bound to nothing, as one that only reports health, is no memory."""
    documents = (d for kind in (BINDING, CLUSTER_BINDING) for d in world.documents.get((WORK_GROUP, kind), ()))
    hub = {document.key: document.body for document in documents if get_field(document.body, "spec", "clusters")}
    return replace(world, previous=PreviousRecords(world.previous, hub)) if hub else world
