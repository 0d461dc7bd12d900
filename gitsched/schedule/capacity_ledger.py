"""Free resources of candidates, less what workloads use that were placed since the facts about the candidates were observed.

Amounts are those of `gitsched.schedule.estimator`. With a resource model, what is assumed is put on the modelled nodes first: each pod
on the first node with enough of each resource.

Source: karmada/pkg/estimator/client/general.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from gitsched.model.scheduling import EqualPods, Estimates
from gitsched.schedule.estimator import MAX_PODS_PER_NODE, PODS, UNLIMITED, Capacity, ModelGrade, ResourceRequest, estimate_replicas

_MILLI = 1000


class _Estimates:
    """How much fits on candidates at this moment, by index. `changes` counts those of each candidate, and `known` are estimates with that
    number."""

    __slots__ = ("_changes", "_compute", "_known")

    def __init__(self, compute: Callable[[int], int], changes: Sequence[int], known: dict[int, tuple[int, int]]) -> None:
        self._compute, self._changes, self._known = compute, changes, known

    def __getitem__(self, index: int, /) -> int:
        known, number = self._known.get(index), self._changes[index]
        if known is None or known[0] != number:
            known = self._known[index] = number, self._compute(index)
        return known[1]


class CapacityLedger:
    """The free resources of candidates by index. What is assumed changes while workloads are placed; estimates follow."""

    __slots__ = ("_assumed", "_capacities", "_changes", "_known", "_scales", "_used")

    def __init__(self, capacities: Sequence[Capacity | None], *, scales: bool = False) -> None:
        """With `scales`, amounts of sets are counted as Karmada does: in thousandths where they are written in a decimal format, so that
        memory in G and in Gi is not comparable."""
        self._capacities, self._scales = capacities, scales
        self._assumed: dict[int, dict[str, tuple[EqualPods, ...]]] = {}
        self._used: dict[int, dict[str, int]] = {}
        self._changes = [0] * len(capacities)
        self._known: dict[object, dict[int, tuple[int, int]]] = {}

    def assume(self, owner: str, index: int, pods: Sequence[EqualPods]) -> None:
        """Assume that a candidate runs the pods of an owner, in place of those that were assumed before; none if there are no pods."""
        entries, used = self._assumed.setdefault(index, {}), self._used.setdefault(index, {})
        for resource, amount in sum_pods(entries.pop(owner, ())).items():
            used[resource] = used.get(resource, 0) - amount
        if pods:
            entries[owner] = tuple(pods)
            for resource, amount in sum_pods(pods).items():
                used[resource] = used.get(resource, 0) + amount
        self._changes[index] += 1

    def read_capacity(self, index: int) -> Capacity | None:
        """Return what is left on a candidate; None if its capacity is not known."""
        capacity = self._capacities[index]
        return None if capacity is None else capacity._replace(free=self._subtract(index, capacity))

    def estimate_replicas(self, resource_request: ResourceRequest | None) -> Estimates:
        """Return how many replicas fit on each candidate, by index. `resource_request` None requests only a pod."""
        return self._estimate(resource_request, lambda index: self._estimate_replicas(index, resource_request))

    def estimate_sets(self, pods: tuple[EqualPods, ...]) -> Estimates:
        """Return how many whole sets of pods fit on each candidate, by index."""
        return self._estimate(pods, lambda index: self._estimate_sets(index, pods))

    def _estimate(self, key: object, compute: Callable[[int], int]) -> Estimates:
        """Return estimates that are computed when they are read, again only for candidates that have changed since."""
        return _Estimates(compute, self._changes, self._known.setdefault(key, {}))

    def _estimate_replicas(self, index: int, resource_request: ResourceRequest | None) -> int:
        capacity = self._capacities[index]
        if capacity is None:
            return UNLIMITED
        free = self._subtract(index, capacity)
        if not capacity.grades or resource_request is None or free.get(PODS, 0) <= 0:
            return estimate_replicas(Capacity(free), resource_request)
        nodes = _Nodes(capacity.grades, self._list_pods(index))
        return min(free[PODS], nodes.count(resource_request))

    def _estimate_sets(self, index: int, pods: tuple[EqualPods, ...]) -> int:
        capacity = self._capacities[index]
        if capacity is None:
            return UNLIMITED
        free = self._subtract(index, capacity)
        left, size = max(free.get(PODS, 0), 0), sum(group.replicas for group in pods)
        if not left or not size:
            return left
        sets = left // size
        needed = sum_pods(pods)
        del needed[PODS]
        for resource, amount in needed.items():
            available = free.get(resource, 0)
            if self._scales and resource != "cpu":
                available, amount = self._scale(index, capacity, resource), _sum_scaled(pods, resource)
            sets = min(sets, max(available, 0) // amount)
        return _Nodes(capacity.grades, self._list_pods(index)).count_sets(pods, sets) if capacity.grades and sets else sets

    def _scale(self, index: int, capacity: Capacity, resource: str) -> int:
        """Return what is free of a resource, each amount in the unit of its format."""
        free = capacity.free.get(resource, 0) * (1 if resource in capacity.binary else _MILLI)
        return free - _sum_scaled(self._list_pods(index), resource)

    def _list_pods(self, index: int) -> Iterable[EqualPods]:
        entries = self._assumed.get(index, {})
        return (group for owner in sorted(entries) for group in entries[owner])

    def _subtract(self, index: int, capacity: Capacity) -> Mapping[str, int]:
        """Return the free resources of a candidate without what is assumed there."""
        used = self._used.get(index)
        if not used:
            return capacity.free
        return {resource: amount - used.get(resource, 0) for resource, amount in capacity.free.items()}


def _sum_scaled(pods: Iterable[EqualPods], resource: str) -> int:
    """Return what pods request of a resource, each amount in the unit of its format."""
    return sum(
        group.replicas * amount * (_MILLI if resource in group.decimal else 1)
        for group in pods
        if group.replicas > 0
        for name, amount in group.resource_request or ()
        if name == resource
    )


def sum_pods(pods: Iterable[EqualPods]) -> dict[str, int]:
    """Return what pods use together: their number, and what they request."""
    return sum_counts((request, replicas) for replicas, request, _ in pods)


def sum_counts(counts: Iterable[tuple[ResourceRequest | None, int]]) -> dict[str, int]:
    """Return what pods use together, given requests and how many pods have each of them."""
    total = {PODS: 0}
    for request, replicas in counts:
        if replicas > 0:
            total[PODS] += replicas
            for resource, amount in request or ():
                if resource != PODS:
                    total[resource] = total.get(resource, 0) + replicas * amount
    return {resource: amount for resource, amount in total.items() if amount or resource == PODS}


def has_nodes_for(capacity: Capacity, pods: Iterable[EqualPods]) -> bool:
    """Return whether all pods fit on the modelled nodes of a candidate, each on the first node with enough of each resource."""
    nodes = _Nodes(capacity.grades, ())
    return all(map(nodes.place, tuple(pods)))


class _Nodes:
    """Modelled nodes, in the order of their grades: runs of equal nodes with what is free on each of them."""

    def __init__(self, grades: Iterable[ModelGrade], assumed: Iterable[EqualPods]) -> None:
        self._runs = [(grade.nodes, {**dict(grade.minimum), PODS: MAX_PODS_PER_NODE}) for grade in grades if grade.nodes > 0]
        for group in assumed:
            self.place(group)

    def count(self, request: ResourceRequest) -> int:
        """Return how many replicas fit on all nodes."""
        return sum(nodes * _fit(free, request) for nodes, free in self._runs)

    def count_sets(self, pods: tuple[EqualPods, ...], limit: int) -> int:
        """Return how many sets fit, one after the other, up to a limit."""
        for number in range(limit):
            for group in pods:
                if not self.place(group):
                    return number
        return limit

    def place(self, group: EqualPods) -> bool:
        """Put pods on the first nodes where they fit. Return whether all of them fit; those that do stay."""
        left, request = group.replicas, group.resource_request or ()
        runs: list[tuple[int, dict[str, int]]] = []
        for nodes, free in self._runs:
            each = _fit(free, request) if left > 0 else 0
            full, rest = (min(left // each, nodes), left % each if left // each < nodes else 0) if each else (0, 0)
            left -= full * each + rest
            parts = ((full, each), (1 if rest else 0, rest), (nodes - full - (1 if rest else 0), 0))
            runs += ((count, _use(free, request, pods)) for count, pods in parts if count)
        self._runs = runs
        return left <= 0


def _fit(free: Mapping[str, int], request: ResourceRequest) -> int:
    return max(0, min((free[PODS], *(free.get(resource, 0) // amount for resource, amount in request if resource != PODS))))


def _use(free: dict[str, int], request: ResourceRequest, pods: int) -> dict[str, int]:
    if not pods:
        return free
    used = {resource: free.get(resource, 0) - pods * amount for resource, amount in request if resource != PODS}
    return {**free, **used, PODS: free[PODS] - pods}
