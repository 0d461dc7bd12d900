"""What workloads request of clusters with a known capacity, and what that leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import CapacitySharing, ClusterCapacity
from gitsched.model.capacity_use import CapacityUse, PlacedRequests, Requests, add_requests
from gitsched.model.document import Document
from gitsched.model.scheduling import EqualPods
from gitsched.schedule.capacity_ledger import has_nodes_for, sum_counts, sum_pods
from gitsched.schedule.estimator import PODS, Capacity, ResourceRequest
from gitsched.schedule.shared_capacity import limit_capacity

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.model.changes import RetainedCopy
    from gitsched.model.document import Key
    from gitsched.model.scheduling import Outcome

PodsByCluster = Mapping[str, "tuple[EqualPods, ...]"]


class CapacityReader:
    """The clusters with a known capacity, and what workloads of any API request there."""

    def __init__(self, engine: CapacitySharing, is_set: Callable[[Key], bool], api: str) -> None:
        """`is_set` says of a workload whether it has variants, so that it may be placed as a whole. `api` is the name of the engine's."""
        self.api = api
        self.engine, self.clusters = engine, engine.list_capacities()
        self._is_set = is_set
        self._pods: dict[Key, tuple[Document, tuple[EqualPods, ...]]] = {}

    def measure(self, outcome: Outcome, template: Document, replicas: Mapping[str, int | None]) -> PodsByCluster:
        """Return the pods of a workload in clusters with a known capacity, given its replicas by cluster; None is as many as it has."""
        known = {name: count for name, count in replicas.items() if name in self.clusters and (count is None or count > 0)}
        if not known:
            return {}
        if self._has_objects(outcome):
            delivered, pods = outcome.replicas_by_cluster, self._measure_objects(outcome, template, known)
            parts = {name: _divide(groups, known[name], delivered.get(name))[0] for name, groups in pods.items()}
            return {name: groups for name, groups in parts.items() if groups}
        if self._is_set(outcome.key):
            return self.engine.measure_pods(template, known)
        groups = self._read_pods(template)
        if len(groups) != 1:  # a whole set
            return dict.fromkeys(known, groups) if groups else {}
        own, request, decimal = groups[0]
        return {
            name: groups if count is None or count == own else (EqualPods(int(count), request, decimal),)
            for name, count in known.items()
        }

    def _read_pods(self, template: Document) -> tuple[EqualPods, ...]:
        """Return the pods that a workload without variants has in one cluster."""
        known = self._pods.get(template.key)
        if known is None or known[0] is not template:
            known = self._pods[template.key] = template, self.engine.measure_pods(template, {"": None}).get("", ())
        return known[1]

    def _has_objects(self, outcome: Outcome) -> bool:
        """Return whether clusters get several objects of a workload, each with replicas of its own."""
        return outcome.manifests is not None or (outcome.replicas is None and self._is_set(outcome.key))

    def _measure_objects(self, outcome: Outcome, template: Document, clusters: Iterable[str]) -> PodsByCluster:
        """Return the pods of the objects that clusters get of a workload, each with its own replicas."""
        if outcome.manifests is None:
            return self.engine.measure_pods(template, dict.fromkeys(clusters, 1))
        found: dict[str, tuple[EqualPods, ...]] = {}
        for key, body in outcome.manifests:
            document = Document(key, str(body.get("apiVersion") or ""), body)
            for name, pods in self.engine.measure_pods(document, dict.fromkeys(clusters)).items():
                found[name] = (*found.get(name, ()), *pods)
        return found

    def measure_added(self, outcome: Outcome, template: Document, running: Mapping[str, int | None] | None = None) -> PodsByCluster:
        """Return the pods that a workload starts in this run, beside those that are `running`, which the outcome has if None are given."""
        before, after = outcome.previous_replicas if running is None else running, outcome.replicas_by_cluster
        if not before:
            return self.measure(outcome, template, after)
        if self._has_objects(outcome):
            known = [name for name in dict(_list_increases(after, before)) if name in self.clusters]
            pods = self._measure_objects(outcome, template, known) if known else {}
            parts = {name: _divide(pods[name], before[name], after[name])[1] if name in before else pods[name] for name in pods}
            return {name: groups for name, groups in parts.items() if groups}
        return self.measure(outcome, template, dict(_list_increases(after, before)))


def _divide(
    pods: tuple[EqualPods, ...], before: int | None, after: int | None
) -> tuple[tuple[EqualPods, ...], tuple[EqualPods, ...]]:
    """Divide the pods of several objects that a cluster has in those that it had, given how many replicas it had and has, and others: the
    pods that request most count as the new ones. Without exact numbers there are none."""
    more = after - before if type(before) is int and type(after) is int else 0
    rest, new = list[EqualPods](), list[EqualPods]()
    for one in sorted(pods, key=lambda one: sorted(one.resource_request or ()), reverse=True):
        taken = min(max(more, 0), one.replicas)
        more -= taken
        new += (one._replace(replicas=taken),) if taken else ()
        rest += (one._replace(replicas=one.replicas - taken),) if one.replicas > taken else ()
    return tuple(rest), tuple(new)


def _list_increases(after: Mapping[str, int | None], before: Mapping[str, int | None]) -> Iterator[tuple[str, int | None]]:
    """Yield the clusters with more replicas than before, and how many more; None is one copy."""
    for name, count in after.items():
        earlier = before.get(name, 0)
        if name not in before or (earlier is not None and (count is None or count > earlier)):
            yield name, count if not earlier or count is None else count - earlier


def find_reader(engines: Iterable[PolicyEngine], is_set: Callable[[Key], bool]) -> CapacityReader | None:
    """Return the clusters with a known capacity; None if what is placed counts for nothing."""
    found = (CapacityReader(one, is_set, one.name) for one in engines if one.shares_capacity and isinstance(one, CapacitySharing))
    return next(found, None)


def collect_by_cluster(parts: Iterable[PodsByCluster]) -> dict[str, list[EqualPods]]:
    """Return the pods of workloads together, by cluster."""
    found: dict[str, list[EqualPods]] = {}
    for part in parts:
        for name, pods in part.items():
            found.setdefault(name, []).extend(pods)
    return found


def sum_by_cluster(parts: Iterable[PodsByCluster]) -> dict[str, dict[str, int]]:
    """Return what workloads request together, by cluster."""
    found: dict[str, dict[ResourceRequest | None, int]] = {}
    for part in parts:
        for name, pods in part.items():
            counts = found.setdefault(name, {})
            for replicas, request, _ in pods:
                counts[request] = counts.get(request, 0) + (replicas if replicas > 0 else 0)
    return {name: sum_counts(counts.items()) for name, counts in found.items()}


def list_current(cluster: ClusterCapacity, placed: Iterable[PlacedRequests]) -> tuple[PlacedRequests, ...]:
    """Return what was placed after the facts about a cluster were observed; nothing where that time is not known."""
    return tuple(one for one in placed if cluster.observed is not None and one.at > cluster.observed)


def measure_retained(
    reader: CapacityReader, retained: Iterable[RetainedCopy], find: Callable[[Key], tuple[Outcome, Document] | None]
) -> dict[str, dict[str, int]]:
    """Return what copies request by cluster that stay for an overlap, beyond what their workloads have there. `find` returns the outcome
    and the document of a workload; None if the source does not have it."""
    parts: list[PodsByCluster] = []
    for copy in retained:
        found = find(copy.workload)
        if found is None:
            continue
        outcome, template = found
        had = outcome.previous_replicas
        count = copy.replicas if copy.cluster not in had or copy.replicas is None else copy.replicas - int(had[copy.cluster] or 0)
        if copy.cluster not in had or (count is not None and count > 0):
            parts.append(reader.measure(outcome, template, {copy.cluster: count}))
    return sum_by_cluster(parts)


def reduce_capacity(cluster: ClusterCapacity, staying: Requests, placed: Iterable[PlacedRequests]) -> Capacity:
    """Return what is free on a cluster: what its facts say without what was placed since, and no more than what it has in total without
    what stays there."""
    since = add_requests(one.requests for one in list_current(cluster, placed))
    return limit_capacity(cluster.free, cluster.total, staying, since)


def list_free(reader: CapacityReader, use: CapacityUse) -> dict[str, Capacity]:
    """Return what is free on each cluster after a plan, given what workloads use then."""
    requested, placed = use.requested, use.placed
    clusters = reader.clusters.items()
    return {name: reduce_capacity(cluster, requested.get(name, {}), placed.get(name, ())) for name, cluster in clusters}


def find_lack(free: Capacity, pods: Iterable[EqualPods]) -> bool:
    """Return whether a cluster lacks capacity for pods. One that does not say how many pods it takes has no limit."""
    groups = tuple(pods)
    needed = sum_pods(groups)
    for resource, amount in needed.items():
        if amount > 0 and (resource != PODS or PODS in free.free) and amount > free.free.get(resource, 0):
            return True
    return bool(free.grades) and not has_nodes_for(free, groups)
