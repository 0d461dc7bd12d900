"""The document ClusterFacts: what it says beyond its schema, and the facts in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gitsched.model.cluster_facts import FACTS_KIND, ClusterFacts, NodeCount, Readiness
from gitsched.model.document import Body, as_object
from gitsched.model.finding import Issue, Pointer, format_part
from gitsched.model.quantity import MAX_AMOUNT, NANO, parse_quantity
from gitsched.model.time import format_time, parse_time

MAX_RESOURCES: Final = 200
"""Resources of one list; a node reports about ten."""
_AMOUNTS: Final = ("capacity", "allocatable", "allocated")


def validate_facts(body: Body) -> Iterator[Issue]:
    """Yield what is wrong with a document that the schema accepts: times and amounts that cannot be, and members without effect."""
    status = body["status"]
    for pointer, text in (
        (("status", "observedAt"), status["observedAt"]),
        (("status", "ready", "since"), as_object(status.get("ready")).get("since")),
    ):
        if text is not None and parse_time(text) is None:
            yield Issue(
                "error", "invalid-facts", f"{text!r:.60} is not a time: write RFC 3339, such as 2026-03-01T08:00:00Z", pointer
            )
    for name in _AMOUNTS:
        yield from _check_amounts(name, status.get(name))
    nodes = as_object(status.get("nodes"))
    if nodes and nodes["ready"] > nodes["total"]:
        message = f"{format_part(nodes['ready'], nodes['total'], 'node', 'is', 'are')} ready: there cannot be more than all"
        yield Issue("error", "invalid-facts", message, ("status", "nodes", "ready"))
    metadata = as_object(body.get("metadata"))
    beyond: list[Pointer] = [("metadata", name) for name in ("labels", "annotations") if metadata.get(name)]
    for found in beyond:
        message = (
            f"{'.'.join(map(str, found))} has no effect: facts give a status only; change the document of the cluster in the source"
        )
        yield Issue("warning", "facts-beyond-status", message, found)


def _check_amounts(name: str, amounts: Any) -> Iterator[Issue]:
    if not isinstance(amounts, Mapping):
        return
    if len(amounts) > MAX_RESOURCES:
        message = f"{name} has {len(amounts)} resources: at most {MAX_RESOURCES} can be"
        yield Issue("error", "invalid-facts", message, ("status", name))
        return
    for resource, text in amounts.items():
        quantity = parse_quantity(text)
        if quantity is None or not 0 <= quantity.nano <= MAX_AMOUNT * NANO:
            message = f"{name} of {resource} is {text!r:.60}: it must be a quantity from 0 to 2^63-1"
            yield Issue("error", "invalid-facts", message, ("status", name, str(resource)))


def read_facts(body: Body) -> ClusterFacts:
    """Return the facts of a valid document."""
    status = body["status"]
    ready, nodes = as_object(status.get("ready")), as_object(status.get("nodes"))
    observed = parse_time(status["observedAt"])
    assert observed is not None
    return ClusterFacts(
        str(body["metadata"]["name"]),
        observed,
        Readiness(
            str(ready["status"]), str(ready.get("reason") or ""), str(ready.get("message") or ""), parse_time(ready.get("since"))
        )
        if ready
        else None,
        str(status.get("kubernetesVersion") or ""),
        {str(name): tuple(map(str, kinds)) for name, kinds in as_object(status.get("apis")).items()},
        _read_amounts(status.get("capacity")) or {},
        _read_amounts(status.get("allocatable")) or {},
        _read_amounts(status.get("allocated")),
        NodeCount(int(nodes["total"]), int(nodes["ready"])) if nodes else None,
        {int(entry["grade"]): int(entry["count"]) for entry in status.get("allocatableModelings") or ()},
    )


def _read_amounts(amounts: Any) -> dict[str, str] | None:
    return {str(name): str(text) for name, text in amounts.items()} if isinstance(amounts, Mapping) else None


def write_facts(facts: ClusterFacts) -> Body:
    """Return the document of facts. Members are sorted, so that equal facts have equal documents."""
    status: dict[str, Any] = {"observedAt": format_time(facts.observed)}
    if facts.readiness is not None:
        ready = facts.readiness
        members = {"status": ready.status, "reason": ready.reason, "message": ready.message}
        status["ready"] = {name: text for name, text in members.items() if text}
        if ready.since is not None:
            status["ready"]["since"] = format_time(ready.since)
    if facts.version:
        status["kubernetesVersion"] = facts.version
    if facts.nodes is not None:
        status["nodes"] = {"total": facts.nodes.total, "ready": facts.nodes.ready}
    amounts = (("capacity", facts.capacity or None), ("allocatable", facts.allocatable or None), ("allocated", facts.allocated))
    status |= {name: dict(sorted(value.items())) for name, value in amounts if value is not None}
    if facts.grades:
        status["allocatableModelings"] = [{"grade": grade, "count": count} for grade, count in sorted(facts.grades.items())]
    if facts.apis:
        status["apis"] = {name: sorted(set(kinds)) for name, kinds in sorted(facts.apis.items())}
    group, kind = FACTS_KIND
    return {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": {"name": facts.cluster}, "status": status}
