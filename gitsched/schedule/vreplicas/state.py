"""Pods of the StatefulSet, vpods, their placements, the free capacity of each pod, and the state snapshot that the autoscaler
reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

VreplicasByOrdinal = dict[int, int]
"""Vreplicas of one source by the ordinal of the pod, in the order of its status; every number is above zero."""


class Pod(NamedTuple):
    """A pod that may take new vreplicas."""

    ordinal: int
    node: str
    zone: str


class Vpod(NamedTuple):
    """A source: how many vreplicas it wants, and where it has some already."""

    name: str
    expected: int
    placements: VreplicasByOrdinal


@dataclass(frozen=True)
class AdapterStatefulSet:
    """The StatefulSet's pods. `capacity` counts vreplicas a pod; `pods` are those that may take new ones, by ascending ordinal; `zones`
    are the usable nodes, with or without a pod, and their zone; `marked` are ordinals to be emptied.

    A pod that is not in `pods` although its ordinal is below `replicas` keeps what it has, unless it is marked.
    """

    capacity: int
    replicas: int
    pods: Mapping[int, Pod]
    zones: Mapping[str, str]
    unschedulable: frozenset[int] = frozenset()

    @cached_property
    def zone_names(self) -> frozenset[str]:
        return frozenset(self.zones.values())

    def mark_unschedulable(self, ordinals: frozenset[int]) -> AdapterStatefulSet:
        """The same with these pods marked, and nobody else's marks touched."""
        pods = {ordinal: pod for ordinal, pod in self.pods.items() if ordinal not in ordinals}
        return AdapterStatefulSet(self.capacity, self.replicas, pods, self.zones, self.unschedulable | ordinals)

    def add_pods(self, first: int, number: int) -> AdapterStatefulSet:
        """The same with more pods, from an ordinal on, on a node of their own."""
        new = range(first, first + number)
        pods, zones = {**self.pods, **{ordinal: Pod(ordinal, "", "") for ordinal in new}}, {**self.zones, "": ""}
        return AdapterStatefulSet(self.capacity, max(self.replicas, new.stop), pods, zones, self.unschedulable - frozenset(new))


class FreeCapacity:
    """`free` is by ordinal, and below zero where a pod holds more than its capacity."""

    __slots__ = ("capacity", "free")

    def __init__(self, adapter: AdapterStatefulSet, held: Iterable[VreplicasByOrdinal]) -> None:
        self.capacity = adapter.capacity
        self.free = dict.fromkeys(adapter.pods, adapter.capacity)
        for shares in held:
            self.reserve(shares)

    def reserve(self, shares: VreplicasByOrdinal) -> None:
        for ordinal, number in shares.items():
            self.free[ordinal] = self.free.get(ordinal, self.capacity) - number

    def release(self, shares: VreplicasByOrdinal) -> None:
        for ordinal, number in shares.items():
            self.free[ordinal] = self.free.get(ordinal, self.capacity) + number


class State(NamedTuple):
    """`free` is by ordinal up to `last`, the greatest ordinal that is schedulable or holds something (-1: none). The spreads and counts
    are by source."""

    capacity: int
    replicas: int
    schedulable: tuple[int, ...]
    free: tuple[int, ...]
    zones: Mapping[str, str]
    pod_spread: Mapping[str, VreplicasByOrdinal]
    node_spread: Mapping[str, Mapping[str, int]]
    zone_spread: Mapping[str, Mapping[str, int]]
    pending: Mapping[str, int]
    expected: Mapping[str, int]

    @property
    def last_ordinal(self) -> int:
        return len(self.free) - 1

    @property
    def free_capacity(self) -> int:
        """Room on schedulable pods."""
        return sum(self.free[ordinal] for ordinal in self.schedulable)


def collect_state(adapter: AdapterStatefulSet, vpods: Iterable[Vpod], others: Iterable[VreplicasByOrdinal] = ()) -> State:
    """The state of the pods with what the sources hold; `others` is held by nobody that is listed."""
    sources = list(vpods)
    held = [*(vpod.placements for vpod in sources), *others]
    touched = max((*adapter.pods, *(ordinal for shares in held for ordinal in shares)), default=-1)
    free = [adapter.capacity] * (touched + 1)
    for shares in held:
        for ordinal, number in shares.items():
            free[ordinal] -= number
    on_pods = {v.name: {o: n for o, n in sorted(v.placements.items()) if o in adapter.pods} for v in sources}
    return State(
        adapter.capacity,
        adapter.replicas,
        tuple(adapter.pods),
        tuple(free),
        adapter.zones,
        on_pods,
        {name: _sum_by_location(shares, {o: adapter.pods[o].node for o in shares}) for name, shares in on_pods.items()},
        {name: _sum_by_location(shares, {o: adapter.pods[o].zone for o in shares}) for name, shares in on_pods.items()},
        {vpod.name: max(0, vpod.expected - sum(vpod.placements.values())) for vpod in sources},
        {vpod.name: vpod.expected for vpod in sources},
    )


def _sum_by_location(shares: VreplicasByOrdinal, place_of: Mapping[int, str]) -> dict[str, int]:
    spread: dict[str, int] = {}
    for ordinal, number in shares.items():
        spread[place_of[ordinal]] = spread.get(place_of[ordinal], 0) + number
    return dict(sorted(spread.items()))
