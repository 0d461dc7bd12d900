"""Estimate how many replicas with given resource requests fit on a candidate, as Karmada's general estimator does.

Amounts are whole numbers: cpu in thousandths, everything else in its own unit, both rounded up where they were not whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

UNLIMITED = 2**31 - 1
"""The estimate where nothing limits it, or nothing is known."""

PODS = "pods"
MAX_PODS_PER_NODE = 110
"""What one modelled node holds at most."""

ResourceRequest = tuple[tuple[str, int], ...]
"""What one replica asks for, by resource."""


class ModelGrade(NamedTuple):
    """`nodes` modelled nodes that have at least `least` of each resource."""

    nodes: int
    minimum: tuple[tuple[str, int], ...]


class Capacity(NamedTuple):
    """What is free on a candidate. A resource that is not in `free` does not exist there. No `grades`: it is not modelled."""

    free: Mapping[str, int]
    grades: tuple[ModelGrade, ...] = ()


def estimate_replicas(room: Capacity | None, demand: ResourceRequest | None) -> int:
    """How many replicas fit. `room` None is boundless; `demand` None asks for a pod each and nothing else.

    Where nodes are modelled, each node counts for itself; else the free amounts are taken as one heap.
    """
    if room is None:
        return UNLIMITED
    pods = room.free.get(PODS, 0)
    if pods <= 0 or demand is None:
        return max(pods, 0)
    if room.grades:
        return min(pods, sum(grade.nodes * _fit_on_node(dict(grade.minimum), demand) for grade in room.grades))
    for resource, amount in demand:
        free = room.free.get(resource, 0)
        if free <= 0:
            return 0
        pods = min(pods, free // amount)
    return pods


class Estimator:
    """The rooms of many candidates, a column for each resource that is asked for."""

    __slots__ = ("_capacities", "_free", "_single")

    def __init__(self, rooms: Sequence[Capacity | None]) -> None:
        self._capacities = rooms
        self._single = [i for i, room in enumerate(rooms) if room is None or room.grades]
        self._free: dict[str, list[int]] = {}

    def estimate_replicas(self, demand: ResourceRequest | None) -> list[int]:
        """What `estimate` says of each, by index."""
        fits = self._free_column(PODS)
        for resource, amount in demand or ():
            counts = [free // amount for free in self._free_column(resource)]
            fits = [count if count < fit else fit for count, fit in zip(counts, fits, strict=True)]
        fits = list(fits)
        for i in self._single:
            fits[i] = estimate_replicas(self._capacities[i], demand)
        return fits

    def _free_column(self, resource: str) -> list[int]:
        column = self._free.get(resource)
        if column is None:
            column = [max(room.free.get(resource, 0), 0) if room is not None else 0 for room in self._capacities]
            self._free[resource] = column
        return column


def _fit_on_node(least: Mapping[str, int], demand: ResourceRequest) -> int:
    return min(
        MAX_PODS_PER_NODE, *(least.get(resource, 0) // amount for resource, amount in demand if resource != PODS), MAX_PODS_PER_NODE
    )
