"""Estimate how many replicas fit on a candidate, as Karmada's general estimator does (MaxAvailableReplicas).

Amounts are whole numbers: cpu in thousandths, any other resource in its own unit, both rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitsched.named_tuples import NamedTuple

UNLIMITED = 2**31 - 1
"""The estimate without a limit or without data."""

PODS = "pods"
MAX_PODS_PER_NODE = 110
"""Maximum number of pods on one modelled node."""

ResourceRequest = tuple[tuple[str, int], ...]
"""The request of one replica, by resource."""


class ModelGrade(NamedTuple):
    """A grade of the resource model: `nodes` modelled nodes with at least `minimum` of each resource."""

    nodes: int
    minimum: tuple[tuple[str, int], ...]


class Capacity(NamedTuple):
    """The free resources of a candidate. A resource that is not in `free` does not exist there. Without `grades` there is no
    resource model. `binary` are the resources whose amount is written with Ki, Mi and so on."""

    free: Mapping[str, int]
    grades: tuple[ModelGrade, ...] = ()
    binary: frozenset[str] = frozenset()


def estimate_replicas(capacity: Capacity | None, resource_request: ResourceRequest | None) -> int:
    """Return how many replicas fit. `capacity` None is unlimited; `resource_request` None requests only a pod.

    With a resource model each node is counted separately; otherwise the free amounts are one pool.
    """
    if capacity is None:
        return UNLIMITED
    pods = capacity.free.get(PODS, 0)
    if pods <= 0 or resource_request is None:
        return max(pods, 0)
    if capacity.grades:
        return min(pods, sum(grade.nodes * _fit_on_node(dict(grade.minimum), resource_request) for grade in capacity.grades))
    for resource, amount in resource_request:
        free = capacity.free.get(resource, 0)
        if free <= 0:
            return 0
        pods = min(pods, free // amount)
    return pods


class Estimator:
    """The capacities of many candidates, with a column for each requested resource."""

    __slots__ = ("_capacities", "_fits", "_free", "_single")

    def __init__(self, capacities: Sequence[Capacity | None]) -> None:
        self._capacities = capacities
        self._single = [i for i, capacity in enumerate(capacities) if capacity is None or capacity.grades]
        self._free: dict[str, list[int]] = {}
        self._fits: dict[tuple[str, int], list[int]] = {}

    def estimate_replicas(self, resource_request: ResourceRequest | None) -> list[int]:
        """Return the estimate of each candidate, by index."""
        first, *others = [self._fitting(*requested) for requested in resource_request or ()] or [self._free_column(PODS)]
        fits = list(first)
        for column in others:
            fits = [count if count < fit else fit for count, fit in zip(column, fits, strict=True)]
        for i in self._single:
            fits[i] = estimate_replicas(self._capacities[i], resource_request)
        return fits

    def _fitting(self, resource: str, amount: int) -> list[int]:
        """Return how many pods fit on each candidate if they request an amount of one resource."""
        column = self._fits.get((resource, amount))
        if column is None:
            columns = zip(self._free_column(resource), self._free_column(PODS), strict=True)
            column = [count if (count := free // amount) < pods else pods for free, pods in columns]
            self._fits[resource, amount] = column
        return column

    def _free_column(self, resource: str) -> list[int]:
        column = self._free.get(resource)
        if column is None:
            column = [max(capacity.free.get(resource, 0), 0) if capacity is not None else 0 for capacity in self._capacities]
            self._free[resource] = column
        return column


def _fit_on_node(minimum: Mapping[str, int], resource_request: ResourceRequest) -> int:
    return min(
        MAX_PODS_PER_NODE,
        *(minimum.get(resource, 0) // amount for resource, amount in resource_request if resource != PODS),
        MAX_PODS_PER_NODE,
    )
