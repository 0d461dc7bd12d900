"""How much of each cluster is requested before and after a plan.

It is what is not free for the next workload, as explanations of clusters and `cluster-overcommitted` count it: the larger of what the
cluster reports, with what was placed since, and of what placed workloads request. What leaves a cluster is free after the plan, though.
A report without a time may lack all that was placed, so that the number is the least that is requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import ClusterCapacity
from gitsched.decide.capacity.capacity_totals import negate
from gitsched.decide.capacity.requested_capacity import CapacityReader, PodsByCluster, find_reader, reduce_capacity, sum_by_cluster
from gitsched.model.capacity_use import CapacityUse, PlacedRequests, Requests, add_requests
from gitsched.model.fleet_topology import ResourceUse
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.model.changes import Move
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome

RESOURCES = ("cpu", "memory", "pods")
"""The resources that are shown of a cluster, if it reports them."""


class _Change(NamedTuple):
    """What moves add to the requests in a cluster, negative for less, and what they start there."""

    requested: Requests = {}
    started: Requests = {}


_NO_CHANGE = _Change()


def list_cluster_use(
    engines: Iterable[PolicyEngine],
    totals: Totals,
    moves: Sequence[Move] = (),
    outcomes: Mapping[Key, Outcome] = {},
    templates: Mapping[Key, Document] = {},
) -> dict[str, tuple[ResourceUse, ...]]:
    """Return what is in use of each cluster with a known capacity, by name; nothing where placed workloads do not count.

    `totals` are those of the plan that carries out the moves; `outcomes` and `templates` are those of the moved workloads, or of more."""
    reader = find_reader(engines, totals.source.with_variants.__contains__)
    if reader is None:
        return {}
    changes = _count_changes(reader, moves, outcomes, templates)
    return {
        name: tuple(_list_resources(cluster, name, totals.capacity, changes.get(name, _NO_CHANGE)))
        for name, cluster in reader.clusters.items()
    }


def list_simulated_use(
    engines: Iterable[PolicyEngine],
    decided: DecisionSet,
    use: CapacityUse,
    moves: Iterable[Move],
    templates: Mapping[Key, Document],
) -> dict[str, tuple[ResourceUse, ...]]:
    """Return what is in use of each cluster with a known capacity before an event, and what its moves change; nothing where placed
    workloads do not count. `use` is what the plan before the event uses, and the engines know the clusters before or after it."""
    reader = find_reader(engines, decided.variants.__contains__)
    if reader is None:
        return {}
    changes = _count_changes(reader, moves, decided.outcomes, templates)
    return {
        name: tuple(
            one._replace(change=added, added=added)
            for one in _list_resources(cluster, name, use, _NO_CHANGE)
            for added in (changes.get(name, _NO_CHANGE).requested.get(one.resource, 0),)
        )
        for name, cluster in reader.clusters.items()
    }


def _count_changes(
    reader: CapacityReader, moves: Iterable[Move], outcomes: Mapping[Key, Outcome], templates: Mapping[Key, Document]
) -> dict[str, _Change]:
    """Return what moves change in each cluster. A workload that the source does not have any more is not counted."""
    after, before, started = list[PodsByCluster](), list[PodsByCluster](), list[PodsByCluster]()
    for move in moves:
        outcome, template = outcomes.get(move.key), templates.get(move.key)
        if outcome is None or template is None:
            continue
        after.append(reader.measure(outcome, template, move.after))
        before.append(reader.measure(outcome, template, move.before))
        started.append(reader.measure_added(outcome, template, move.before) if move.before else after[-1])
    added, left, begun = map(sum_by_cluster, (after, before, started))
    return {
        name: _Change(add_requests((added.get(name, {}), negate(left.get(name, {})))), begun.get(name, {}))
        for name in {**added, **left}
    }


def _list_resources(cluster: ClusterCapacity, name: str, use: CapacityUse, change: _Change) -> Iterable[ResourceUse]:
    """Yield the resources of a cluster. What the plan starts there is the last that was placed since its facts were observed."""
    if cluster.total is None:
        return
    requested, placed, total = use.requested.get(name, {}), use.placed.get(name, ()), cluster.total.free
    earlier = (*placed, PlacedRequests(placed[-1].at, negate(change.started))) if placed else ()
    free = reduce_capacity(cluster, {}, earlier).free
    for resource in RESOURCES:
        allocatable = total.get(resource, 0)
        if allocatable <= 0 or resource not in free:
            continue
        reported, after, added = allocatable - free[resource], requested.get(resource, 0), change.requested.get(resource, 0)
        before = max(reported, after - added)
        later = max(reported if cluster.observed is None else reported + added, after)
        is_least = cluster.observed is None or later == after
        yield ResourceUse(resource, allocatable, before, later - before, reported if is_least else None, added)
