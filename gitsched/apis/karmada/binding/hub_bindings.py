"""Bindings of a hub that are committed to the source: they take the place of records that there are not yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitsched.apis.karmada.names import BINDING, CLUSTER_BINDING, WORK_GROUP
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Body, Key, get_field

BINDING_KINDS = ((WORK_GROUP, BINDING), (WORK_GROUP, CLUSTER_BINDING))


class PreviousRecords(Mapping[Key, Body]):
    """The records of the last run; bindings of a hub for workloads without a record."""

    __slots__ = ("_hub", "_records")

    def __init__(self, records: Mapping[Key, Body], hub_bindings: Mapping[Key, Body]) -> None:
        self._records, self._hub = records, hub_bindings

    def __getitem__(self, key: Key) -> Body:
        record = self._records.get(key)
        return self._hub[key] if record is None else record

    def __iter__(self) -> Iterator[Key]:
        yield from self._records
        yield from (key for key in self._hub if key not in self._records)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def add_hub_bindings(snapshot: Snapshot) -> Snapshot:
    """Use committed bindings, from a dump of a hub, as previous bindings of workloads without a record.

    A binding without clusters is ignored: it may be there only to report health.
    """
    documents = (d for kind in BINDING_KINDS for d in snapshot.documents.get(kind, ()))
    hub_bindings = {document.key: document.body for document in documents if get_field(document.body, "spec", "clusters")}
    return snapshot._replace(previous=PreviousRecords(snapshot.previous, hub_bindings)) if hub_bindings else snapshot
