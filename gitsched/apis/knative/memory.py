"""What the last run left on the output branch, and what this one leaves there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.knative import names
from gitsched.apis.knative.pods import Cluster, read_replicas
from gitsched.apis.knative.settling import Memory
from gitsched.apis.knative.source import write_placements
from gitsched.apis.world import World, list_previous
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.model.time import format_time, parse_time
from gitsched.schedule.vreplicas.adapter import Shares


class Rendering(NamedTuple):
    """Where the StatefulSet was rendered: cluster and replicas."""

    cluster: str
    replicas: int


def recall(adapter: Document, cluster: Cluster, previous: Mapping[Key, Body]) -> Memory:
    """What the last run decided, unless the StatefulSet in the source says another number than it did then."""
    said = read_replicas(adapter.body)
    record = previous.get(adapter.key)
    recorded = ((ordinal, previous.get(names.pod_key(adapter.key, ordinal))) for ordinal in cluster.pods)
    known = {ordinal: _is_mark(mark) for ordinal, mark in recorded if mark is not None}
    marks = frozenset(ordinal for ordinal, marked in known.items() if marked)
    lifted = cluster.marked & (known.keys() - marks)
    if record is None:
        return Memory(said, marks, lifted)
    notes = _notes(record)
    heard = notes.get(names.SOURCE_REPLICAS)
    replicas = read_replicas(record) if heard in (None, str(said)) else said
    return Memory(replicas, marks, lifted, parse_time(notes.get(names.SURPLUS_SINCE)), parse_time(notes.get(names.COMPACTED_AT)))


def recall_adapter(world: World) -> tuple[Key, Body] | None:
    """The StatefulSet that the last run decided about, and what it left there; None when the source has it no more."""
    for key, record in list_previous(world.previous, "apps", "StatefulSet"):
        if names.SOURCE_REPLICAS in _notes(record) and (key in world.templates or key in world.broken):
            return key, record
    return None


def recall_marks(adapter: Key, world: World) -> list[tuple[Key, Body]]:
    """What the last run left about pods."""
    pods = list_previous(world.previous, "", "Pod")
    return [
        (key, body)
        for key, body in pods
        if key.namespace == adapter.namespace and names.read_ordinal(key.name, adapter.name) is not None
    ]


def recall_rendering(previous: Body | None) -> Rendering | None:
    """Where the last run rendered the StatefulSet."""
    cluster = _notes(previous or {}).get(names.RENDERED_TO)
    return Rendering(cluster, read_replicas(previous or {})) if cluster else None


def record_adapter(adapter: Document, memory: Memory, cluster: str) -> Body:
    """The StatefulSet as its API server would show it, with what the next run has to know."""
    notes = {
        names.RENDERED_TO: cluster,
        names.COMPACTED_AT: _write(memory.compacted),
        names.SOURCE_REPLICAS: str(read_replicas(adapter.body)),
        names.SURPLUS_SINCE: _write(memory.since),
    }
    metadata = {"name": adapter.key.name, "namespace": adapter.key.namespace}
    return {
        "apiVersion": adapter.api_version,
        "kind": adapter.key.kind,
        "metadata": {**metadata, "annotations": {name: text for name, text in notes.items() if text}},
        "spec": {"replicas": memory.replicas},
    }


def record_source(document: Document, adapter: Key, shares: Shares) -> Body:
    """A source with its placements."""
    metadata = {"name": document.key.name, "namespace": document.key.namespace}
    status = {"placements": write_placements(shares, adapter)}
    return {"apiVersion": document.api_version, "kind": document.key.kind, "metadata": metadata, "status": status}


def record_mark(key: Key, marked: bool) -> Body:
    """A pod that is to be emptied, or not any more although the source says so."""
    metadata = {"name": key.name, "namespace": key.namespace, "annotations": {names.UNSCHEDULABLE: str(marked).lower()}}
    return {"apiVersion": "v1", "kind": key.kind, "metadata": metadata}


def _notes(body: Body) -> Mapping[str, str]:
    return text_map(member(body, "metadata", "annotations"))


def _is_mark(record: Body) -> bool:
    return names.is_true(_notes(record).get(names.UNSCHEDULABLE))


def _write(moment: datetime | None) -> str:
    return format_time(moment) if moment is not None else ""
