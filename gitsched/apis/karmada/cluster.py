"""Karmada's Cluster as a candidate of the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gitsched.model.document import Body, Document, member, text_map
from gitsched.model.quantity import Quantity, count_quantity, parse_quantity
from gitsched.model.taints import NO_EXECUTE, Taint, parse_taint
from gitsched.schedule.fleet import Candidate
from gitsched.schedule.room import Grade, Room


def parse_cluster(document: Document, assume_facts: bool, since: Mapping[str, datetime]) -> Candidate:
    """A Cluster as a candidate.

    With `assume_facts` a Cluster without status.apiEnablements serves everything; strictly it serves nothing. `since` says when an
    undated NoExecute taint was first seen, by its text.
    """
    body = document.body
    spec = body.get("spec") or {}
    metadata = body["metadata"]
    enablements = member(body, "status", "apiEnablements") or []
    return Candidate(
        document.key.name,
        text_map(metadata.get("labels")),
        {
            "provider": _present(spec.get("provider")),
            "region": _present(spec.get("region")),
            "zone": tuple(spec.get("zones") or _present(spec.get("zone"))),
        },
        tuple(_dated(parse_taint(entry), since) for entry in spec.get("taints") or ()),
        None if assume_facts and not enablements else _features(enablements),
        bool(metadata.get("deletionTimestamp")),
        room=_room(body, assume_facts),
    )


def has_facts(body: Body) -> tuple[bool, bool]:
    """Whether a Cluster says which APIs it serves, and what room it has."""
    return bool(member(body, "status", "apiEnablements")), bool(member(body, "status", "resourceSummary"))


def undated_taints(body: Body) -> list[Taint]:
    """NoExecute taints without timeAdded: they count from when they are first seen."""
    taints = [parse_taint(entry) for entry in member(body, "spec", "taints") or ()]
    return [taint for taint in taints if taint.effect == NO_EXECUTE and taint.since is None]


def _room(body: Body, assume_facts: bool) -> Room | None:
    """What is free: allocatable without what is allocated and what is being allocated. A Cluster that does not say has none of anything,
    or with `assume_facts` enough."""
    summary = member(body, "status", "resourceSummary")
    if not isinstance(summary, dict):
        return None if assume_facts else Room({})
    taken = [_amounts(summary.get(name)) for name in ("allocated", "allocating")]
    free = {}
    for name, amount in _amounts(summary.get("allocatable")).items():
        left = amount - sum(amounts.get(name, 0) for amounts in taken)
        free[name] = count_quantity(name, Quantity(left))
    return Room(free, _grades(body, summary))


def _grades(body: Body, summary: Body) -> tuple[Grade, ...]:
    """The modelled nodes, by grade; none where the counts make no sense."""
    counts = {entry.get("grade"): entry.get("count") for entry in summary.get("allocatableModelings") or ()}
    if any(not isinstance(count, int) or count < 0 for count in counts.values()):
        return ()
    models = (member(body, "spec", "resourceModels") or ()) if counts else ()
    return tuple(Grade(counts.get(model.get("grade"), 0), _least(model)) for model in models)


def _least(model: Body) -> tuple[tuple[str, int], ...]:
    minima = {str(entry.get("name")): parse_quantity(entry.get("min")) for entry in model.get("ranges") or ()}
    return tuple((name, count_quantity(name, minimum)) for name, minimum in minima.items() if minimum is not None)


def _amounts(value: Any) -> dict[str, int]:
    """By resource, in thousand millionths."""
    entries = value.items() if isinstance(value, dict) else ()
    parsed = {str(name): parse_quantity(text) for name, text in entries}
    return {name: quantity.nano for name, quantity in parsed.items() if quantity is not None}


def _dated(taint: Taint, since: Mapping[str, datetime]) -> Taint:
    return taint if taint.since or taint.effect != NO_EXECUTE else taint._replace(since=since.get(str(taint)))


def _present(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) and value else ()


def _features(enablements: list[Body]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (str(entry.get("groupVersion")), str(resource.get("kind")))
        for entry in enablements
        for resource in entry.get("resources") or ()
    )
