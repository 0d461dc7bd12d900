"""Bindings of a hub that are committed to the source: they take the place of records that there are not yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitsched.apis.karmada.names import BINDING, CLUSTER_BINDING, WORK_GROUP
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Body, Key, as_object, get_field

BINDING_KINDS = ((WORK_GROUP, BINDING), (WORK_GROUP, CLUSTER_BINDING))


class PreviousRecords(Mapping[Key, Body]):
    """The records of the last run, with `spec.suspension.scheduling` of the bindings of a hub; these bindings for workloads without a
    record."""

    __slots__ = ("_hub", "_records")

    def __init__(self, records: Mapping[Key, Body], hub_bindings: Mapping[Key, Body]) -> None:
        self._records, self._hub = records, hub_bindings

    def __getitem__(self, key: Key) -> Body:
        record, binding = self._records.get(key), self._hub.get(key)
        if record is None:
            return self._hub[key]
        return record if binding is None else _suspend(record, is_suspended=_is_suspended(binding))

    def __iter__(self) -> Iterator[Key]:
        yield from self._records
        yield from (key for key in self._hub if key not in self._records)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def add_hub_bindings(snapshot: Snapshot) -> Snapshot:
    """Use committed bindings, from a dump of a hub, as previous bindings of workloads without a record, and suspend the scheduling of
    workloads as they say.

    A binding without clusters that suspends nothing is ignored: it may be there only to report health.
    """
    bodies = {d.key: d.body for kind in BINDING_KINDS for d in snapshot.documents.get(kind, ())}
    hub_bindings = {key: body for key, body in bodies.items() if get_field(body, "spec", "clusters") or _is_suspended(body)}
    return snapshot._replace(previous=PreviousRecords(snapshot.previous, hub_bindings)) if hub_bindings else snapshot


def _is_suspended(binding: Body) -> bool:
    return get_field(binding, "spec", "suspension", "scheduling") is True


def _suspend(record: Body, *, is_suspended: bool) -> Body:
    """Return a record whose scheduling is suspended, or is not; the same object if it is so already."""
    spec = as_object(record.get("spec"))
    suspension = as_object(spec.get("suspension"))
    if bool(suspension.get("scheduling")) == is_suspended:
        return record
    others = {name: value for name, value in suspension.items() if name != "scheduling"}
    changed = {**others, "scheduling": True} if is_suspended else others
    rest = {name: value for name, value in spec.items() if name != "suspension"}
    return {**record, "spec": {**rest, **({"suspension": changed} if changed else {})}}
