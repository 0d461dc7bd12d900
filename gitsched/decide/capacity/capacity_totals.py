"""What workloads use of clusters after a plan, as its state and the output branch keep it, and the clusters that lack capacity for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.capacity.requested_capacity import (
    CapacityReader,
    PodsByCluster,
    find_reader,
    list_current,
    sum_by_cluster,
)
from gitsched.model.capacity_use import NO_CAPACITY_USE, CapacityUse, PlacedRequests, Requests, add_requests
from gitsched.model.document import Document
from gitsched.model.finding import OVERCOMMITTED, Finding, locate_document
from gitsched.model.quantity import describe_amount
from gitsched.render.output_files import object_path

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine, RemovedWorkload
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.model.document import Body, Key
    from gitsched.model.scheduling import EqualPods

_MAX_NEW: Final = 200
"""How many workloads of clusters that begin to report their capacity an incremental plan reads."""
_MAX_ENTRIES: Final = 16
"""How many runs are told apart for one cluster; earlier ones are added up, and count as long as the last of them."""

_NOT_STARTED: Final[tuple[None, PodsByCluster]] = None, {}


def measure_capacity(decisions: DecisionSet, now: datetime) -> CapacityUse:
    """Return what workloads use after a complete plan."""
    reader = find_reader(decisions.engines, decisions.variants.__contains__)
    if reader is None or decisions.input is None:
        return NO_CAPACITY_USE
    placed, started, shared = list[PodsByCluster](), list[PodsByCluster](), decisions.shared
    withheld = decisions.input.earlier.withheld
    for key, outcome in decisions.outcomes.items():
        if key in withheld and key in decisions.withheld:
            placed.append(withheld[key])  # the source may not have it
            continue
        template, replicas, before = decisions.templates.get(key), outcome.replicas_by_cluster, outcome.previous_replicas
        if template is not None:
            known, pods = shared.started.get(key, _NOT_STARTED) if shared is not None else _NOT_STARTED
            is_known = known is outcome and not before
            placed.append(pods if is_known else reader.measure(outcome, template, replicas))
            if replicas != before:
                started.append(reader.measure_added(outcome, template) if before else placed[-1])
    requested = sum_by_cluster(placed)
    added = requested if started == placed else sum_by_cluster(started)
    limited = shared.limited if shared is not None else frozenset[Key]()
    return CapacityUse(
        {name: add_requests((requested.get(name, {}),)) for name in reader.clusters},
        _continue_placed(reader, decisions.input.earlier.placed, added, now),
        limited,
    )


def measure_withheld(
    decisions: DecisionSet, removed: Iterable[RemovedWorkload], read_manifest: Callable[[str], Body | None]
) -> dict[Key, PodsByCluster]:
    """Return the pods of workloads whose removal is withheld in clusters with a known capacity, as their manifests say."""
    reader = find_reader(decisions.engines, decisions.variants.__contains__)
    if reader is None:
        return {}
    found: dict[Key, PodsByCluster] = {}
    for workload in removed:
        clusters = workload.replicas.keys() & reader.clusters.keys()
        pods = {name: tuple(_read_delivered(reader, workload, name, read_manifest)) for name in sorted(clusters)}
        if any(pods.values()):
            found[workload.key] = pods
    return found


def _read_delivered(
    reader: CapacityReader, workload: RemovedWorkload, cluster: str, read_manifest: Callable[[str], Body | None]
) -> Iterator[EqualPods]:
    """Yield the pods of the manifests that a cluster has of a workload."""
    for key in (workload.key,) if workload.objects is None else workload.objects:
        body = read_manifest(object_path(cluster, key))
        if body is not None:
            document = Document(key, str(body.get("apiVersion") or ""), body)
            yield from reader.engine.measure_pods(document, {cluster: None}).get(cluster, ())


def find_continued_reader(changes: IncrementalChanges) -> CapacityReader | None:
    """Return the clusters with a known capacity in an incremental plan; None if no engine shares their capacity."""
    return find_reader(changes.continued.engines, changes.totals.source.with_variants.__contains__)


def update_capacity(changes: IncrementalChanges) -> CapacityUse:
    """Return what workloads use after an incremental plan."""
    before, reader = changes.totals.capacity, find_continued_reader(changes)
    if reader is None:
        return before if not changes.continued.engines else NO_CAPACITY_USE
    lost = sum_by_cluster(measure_former(changes, reader, (*changes.removed, *changes.outcomes)))
    pairs = [(outcome, changes.documents[key]) for key, outcome in changes.outcomes.items() if key in changes.documents]
    new = sum_by_cluster(reader.measure(outcome, template, outcome.replicas_by_cluster) for outcome, template in pairs)
    added = sum_by_cluster(reader.measure_added(outcome, template) for outcome, template in pairs)
    known = list_requested(changes, reader)
    assert known is not None, "else the plan is complete"
    requested = {
        name: add_requests((amounts, new.get(name, {}), negate(lost.get(name, {})))) if name in new or name in lost else amounts
        for name, amounts in known.items()
    }
    placed = _continue_placed(reader, before.placed, added, changes.snapshot.now)
    return CapacityUse(requested, placed, changes.limited)


def list_requested(changes: IncrementalChanges, reader: CapacityReader) -> dict[str, Requests] | None:
    """Return what workloads requested in the last plan of each cluster that has a known capacity now; None if those of one whose capacity
    was not known are too many."""
    before = changes.totals.capacity.requested
    found = {name: before.get(name, {}) for name in reader.clusters}
    added = reader.clusters.keys() - before.keys()
    rows = {name: changes.rows.read_cluster(name) for name in added}
    if not any(row is not None and row.facts.workloads for row in rows.values()):
        return found
    if sum(row.facts.workloads for row in rows.values() if row is not None) > _MAX_NEW or changes.totals.engines.own:
        return None
    parts = []
    for row in changes.rows.list_workloads():
        replicas = {name: count for name, count in row.outcome.replicas_by_cluster.items() if name in added}
        if replicas:
            template = _find_former(changes, row.outcome.key)
            if template is None:
                return None
            parts.append(reader.measure(row.outcome, template, replicas))
    return {**found, **sum_by_cluster(parts)}


def _find_former(changes: IncrementalChanges, key: Key) -> Document | None:
    """Return the template of a workload in the last plan."""
    return changes.templates[key][0] if key in changes.templates else changes.snapshot.templates.get(key)


def measure_former(changes: IncrementalChanges, reader: CapacityReader, keys: Iterable[Key]) -> Iterator[PodsByCluster]:
    """Yield what workloads used in the last plan."""
    for key in keys:
        row = changes.removed.get(key) or changes.rows.read_workload(key)
        former = changes.templates[key][0] if key in changes.templates else changes.documents.get(key)
        if row is not None and former is not None:
            yield reader.measure(row.outcome, former, row.outcome.replicas_by_cluster)


def negate(requests: Requests) -> dict[str, int]:
    """Return requests to be subtracted from others."""
    return {name: -amount for name, amount in requests.items()}


def _continue_placed(
    reader: CapacityReader, placed: Mapping[str, tuple[PlacedRequests, ...]], added: Mapping[str, Requests], now: datetime
) -> Mapping[str, tuple[PlacedRequests, ...]]:
    """Return what was placed since the facts about each cluster were observed, with what this run adds. A run that adds nothing keeps what
    the output branch says, because it may commit nothing. A cluster may not say for a while when its facts were observed."""
    if not added:
        return placed
    found = {}
    for name, cluster in reader.clusters.items():
        entries = list_current(cluster, placed.get(name, ())) if cluster.observed is not None else placed.get(name, ())
        if name in added and cluster.observed is not None:
            entries = (*entries, PlacedRequests(now, added[name]))
        if len(entries) > _MAX_ENTRIES:
            first = entries[: len(entries) - _MAX_ENTRIES + 1]
            entries = (PlacedRequests(first[-1].at, add_requests(one.requests for one in first)), *entries[len(first) :])
        if entries:
            found[name] = entries
    return found


def find_overcommitted(
    engines: Iterable[PolicyEngine], use: CapacityUse, documents: Mapping[tuple[str, str], tuple[Document, ...]]
) -> Iterator[Finding]:
    """Yield a warning for each cluster that lacks capacity for what its workloads request."""
    reader = find_reader(engines, lambda _: False)
    if reader is None:
        return
    located: dict[str, Document] = {}
    for kind in sorted(list_cluster_kinds()):
        for document in documents.get(kind, ()):
            located.setdefault(document.key.name, document)
    for name in sorted(reader.clusters):
        lacks = list(_list_lacking(reader, name, use))
        if lacks and name in located:
            document = located[name]
            message = (
                f"cluster {name} lacks capacity for what is placed there: {', '.join(lacks)}; pods wait. Add nodes, or remove workloads; "
                "replicas that a policy divides by capacity (Aggregated or dynamicWeight) are only placed where they fit"
            )
            yield Finding("warning", OVERCOMMITTED, message, locate_document(document), document.key.resource)


def _list_lacking(reader: CapacityReader, name: str, use: CapacityUse) -> Iterator[str]:
    """Yield the resources of which workloads request more than a cluster has, or more than was free when its facts were observed."""
    cluster, requested = reader.clusters[name], use.requested.get(name, {})
    since = add_requests(one.requests for one in list_current(cluster, use.placed.get(name, ())))
    total = cluster.total.free if cluster.total is not None else {}
    for resource in sorted({*requested, *since}):
        limits = (
            (requested.get(resource, 0), total.get(resource), "requested", "allocatable"),
            (since.get(resource, 0), cluster.free.free.get(resource), "requested since its facts were observed", "free then"),
        )
        for amount, limit, what, which in limits:
            if limit is not None and amount > max(limit, 0):
                shown = (describe_amount(resource, number) for number in (amount, max(limit, 0)))
                yield f"{next(shown)} {resource} {what}, {next(shown)} {which}"
                break
