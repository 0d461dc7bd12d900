"""What workloads use of clusters after a plan, as its state and the output branch keep it, and the clusters that lack capacity for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.capacity.requested_capacity import (
    CapacityReader,
    PodsByCluster,
    collect_by_cluster,
    find_lack,
    find_reader,
    list_current,
    reduce_capacity,
    sum_by_cluster,
)
from gitsched.decide.incremental.plan_state import OVERCOMMITTED
from gitsched.model.capacity_use import NO_CAPACITY_USE, CapacityUse, PlacedRequests, Requests, add_requests
from gitsched.model.finding import Finding, locate_document
from gitsched.model.quantity import format_resource_amount

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.model.document import Document, Key

_MAX_NEW: Final = 200
"""How many workloads of clusters that begin to report their capacity an incremental plan reads."""
_MAX_ENTRIES: Final = 16
"""How many runs are told apart for one cluster; earlier ones are added up, and count as long as the last of them."""


def measure_capacity(decisions: DecisionSet, now: datetime) -> CapacityUse:
    """Return what workloads use after a complete plan."""
    reader = find_reader(decisions.engines, decisions.variants.__contains__)
    if reader is None or decisions.input is None:
        return NO_CAPACITY_USE
    templates, outcomes = decisions.templates, decisions.outcomes
    known = [(outcome, templates[key]) for key, outcome in outcomes.items() if key in templates]
    requested = sum_by_cluster(reader.measure(outcome, template, outcome.replicas_by_cluster) for outcome, template in known)
    changed = ((one, template) for one, template in known if one.replicas_by_cluster != one.previous_replicas)
    added = sum_by_cluster(reader.measure_added(outcome, template) for outcome, template in changed)
    limited = decisions.shared is not None and bool(decisions.shared.limited)
    return CapacityUse(
        {name: add_requests((requested.get(name, {}),)) for name in reader.clusters},
        _continue_placed(reader, decisions.input.earlier.placed, added, now),
        limited,
    )


def update_capacity(changes: IncrementalChanges) -> CapacityUse:
    """Return what workloads use after an incremental plan."""
    before, reader = changes.totals.capacity, find_reader(changes.continued.engines, changes.totals.varied.__contains__)
    if reader is None:
        return before if not changes.continued.engines else NO_CAPACITY_USE
    lost = sum_by_cluster(_measure_former(changes, reader, (*changes.removed, *changes.outcomes)))
    pairs = [(outcome, changes.documents[key]) for key, outcome in changes.outcomes.items() if key in changes.documents]
    new = sum_by_cluster(reader.measure(outcome, template, outcome.replicas_by_cluster) for outcome, template in pairs)
    added = sum_by_cluster(reader.measure_added(outcome, template) for outcome, template in pairs)
    known = _list_requested(changes, reader)
    assert known is not None, "else the plan is complete"
    requested = {
        name: add_requests((amounts, new.get(name, {}), _negate(lost.get(name, {})))) if name in new or name in lost else amounts
        for name, amounts in known.items()
    }
    return before._replace(requested=requested, placed=_continue_placed(reader, before.placed, added, changes.snapshot.now))


def needs_complete_plan(changes: IncrementalChanges) -> bool:
    """Return whether only a complete plan can tell what is placed: pods of a workload that follows capacity start on a cluster that lacks
    capacity for all that starts there."""
    use, reader = changes.totals.capacity, find_reader(changes.continued.engines, changes.totals.varied.__contains__)
    if reader is None:
        return bool(use.requested)
    clusters, requested = reader.clusters, _list_requested(changes, reader)
    if use.is_limited or requested is None:
        return True
    if not (changes.own | changes.totals.own).isdisjoint((*changes.outcomes, *changes.removed)):
        return True  # the state does not have the objects that are delivered in place of a workload
    parts: list[PodsByCluster] = []
    following: dict[str, None] = {}
    for key, outcome in changes.outcomes.items():
        if key in changes.documents:
            pods = reader.measure_added(outcome, changes.documents[key])
            parts.append(pods)
            position = reader.engine.find_queue_position(changes.documents[key])
            following |= dict.fromkeys(pods if position is not None and position.follows_capacity else ())
    if any(copy.cluster in following for copy in changes.totals.retained):
        return True
    started = collect_by_cluster(parts)
    left = sum_by_cluster(_measure_former(changes, reader, changes.removed)) if following else {}
    for name in following:
        staying = add_requests((requested[name], _negate(left.get(name, {}))))
        if find_lack(reduce_capacity(clusters[name], staying, use.placed.get(name, ())), started[name]):
            return True
    return False


def _list_requested(changes: IncrementalChanges, reader: CapacityReader) -> dict[str, Requests] | None:
    """Return what workloads requested in the last plan of each cluster that has a known capacity now; None if those of one whose capacity
    was not known are too many."""
    before = changes.totals.capacity.requested
    found = {name: before.get(name, {}) for name in reader.clusters}
    added = reader.clusters.keys() - before.keys()
    rows = {name: changes.rows.read_cluster(name) for name in added}
    if not any(row is not None and row.facts.workloads for row in rows.values()):
        return found
    if sum(row.facts.workloads for row in rows.values() if row is not None) > _MAX_NEW or changes.totals.own:
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


def _measure_former(changes: IncrementalChanges, reader: CapacityReader, keys: Iterable[Key]) -> Iterator[PodsByCluster]:
    """Yield what workloads used in the last plan."""
    for key in keys:
        row = changes.removed.get(key) or changes.rows.read_workload(key)
        former = changes.templates[key][0] if key in changes.templates else changes.documents.get(key)
        if row is not None and former is not None:
            yield reader.measure(row.outcome, former, row.outcome.replicas_by_cluster)


def _negate(requests: Requests) -> dict[str, int]:
    return {name: -amount for name, amount in requests.items()}


def _continue_placed(
    reader: CapacityReader, placed: Mapping[str, tuple[PlacedRequests, ...]], added: Mapping[str, Requests], now: datetime
) -> dict[str, tuple[PlacedRequests, ...]]:
    """Return what was placed since the facts about each cluster were observed, with what this run adds."""
    found = {}
    for name, cluster in reader.clusters.items():
        entries = list_current(cluster, placed.get(name, ()))
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
                shown = (format_resource_amount(resource, number, binary=False) for number in (amount, max(limit, 0)))
                yield f"{next(shown)} {resource} {what}, {next(shown)} {which}"
                break
