"""State of the vreplica scheduler: pods, vpods, and free capacity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from gitsched.named_tuples import NamedTuple

VreplicasByOrdinal = dict[int, int]
"""Vreplicas of one vpod by the ordinal of the pod, in the order of its status; every number is positive."""


class Pod(NamedTuple):
    """A pod that may receive new vreplicas."""

    ordinal: int
    node: str
    zone: str


class Vpod(NamedTuple):
    """A source: its desired number of vreplicas, and its present placements. `preferred` are the ordinals of the pods that come before all
    others, in their order."""

    name: str
    expected: int
    placements: VreplicasByOrdinal
    preferred: tuple[int, ...] = ()


@dataclass(frozen=True)
class AdapterStatefulSet:
    """The pods of the StatefulSet. `capacity` counts vreplicas per pod; `pods` are those that may receive new vreplicas, by
    ascending ordinal; `zones` maps usable nodes, with or without a pod, to their zones; `unschedulable` are ordinals to be
    emptied.

    A pod that is not in `pods` although its ordinal is below `replicas` keeps its vreplicas, unless it is unschedulable.
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
        """Return a copy with these pods also marked unschedulable."""
        pods = {ordinal: pod for ordinal, pod in self.pods.items() if ordinal not in ordinals}
        return AdapterStatefulSet(self.capacity, self.replicas, pods, self.zones, self.unschedulable | ordinals)

    def add_pods(self, first: int, count: int) -> AdapterStatefulSet:
        """Return a copy with more pods, starting at an ordinal, on a node of their own."""
        new = range(first, first + count)
        pods, zones = {**self.pods, **{ordinal: Pod(ordinal, "", "") for ordinal in new}}, {**self.zones, "": ""}
        return AdapterStatefulSet(self.capacity, max(self.replicas, new.stop), pods, zones, self.unschedulable - frozenset(new))


class FreeCapacity:
    """Free capacity by ordinal; negative when a pod exceeds its capacity."""

    __slots__ = ("capacity", "free")

    def __init__(self, adapter: AdapterStatefulSet, all_placements: Iterable[VreplicasByOrdinal]) -> None:
        self.capacity = adapter.capacity
        self.free = dict.fromkeys(adapter.pods, adapter.capacity)
        for placements in all_placements:
            self.reserve(placements)

    def reserve(self, placements: VreplicasByOrdinal) -> None:
        for ordinal, count in placements.items():
            self.free[ordinal] = self.free.get(ordinal, self.capacity) - count

    def release(self, placements: VreplicasByOrdinal) -> None:
        for ordinal, count in placements.items():
            self.free[ordinal] = self.free.get(ordinal, self.capacity) + count


class State(NamedTuple):
    """The state of the pods. `free` is by ordinal up to `last_ordinal`, the greatest ordinal that is schedulable or has vreplicas
    (-1: none). Spreads and counts are by vpod."""

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
        """Free capacity on schedulable pods."""
        return sum(self.free[ordinal] for ordinal in self.schedulable)


def collect_state(adapter: AdapterStatefulSet, vpods: Iterable[Vpod], others: Iterable[VreplicasByOrdinal] = ()) -> State:
    """Return the state of the pods with the placements of the vpods; `others` are placements of unlisted vpods."""
    vpod_list = list(vpods)
    all_placements = [*(vpod.placements for vpod in vpod_list), *others]
    last_ordinal = max((*adapter.pods, *(ordinal for placements in all_placements for ordinal in placements)), default=-1)
    free = [adapter.capacity] * (last_ordinal + 1)
    for placements in all_placements:
        for ordinal, count in placements.items():
            free[ordinal] -= count
    pod_spread = {v.name: {o: n for o, n in sorted(v.placements.items()) if o in adapter.pods} for v in vpod_list}
    return State(
        adapter.capacity,
        adapter.replicas,
        tuple(adapter.pods),
        tuple(free),
        adapter.zones,
        pod_spread,
        {
            name: _sum_by_location(placements, {o: adapter.pods[o].node for o in placements})
            for name, placements in pod_spread.items()
        },
        {
            name: _sum_by_location(placements, {o: adapter.pods[o].zone for o in placements})
            for name, placements in pod_spread.items()
        },
        {vpod.name: max(0, vpod.expected - sum(vpod.placements.values())) for vpod in vpod_list},
        {vpod.name: vpod.expected for vpod in vpod_list},
    )


def _sum_by_location(placements: VreplicasByOrdinal, location_of: Mapping[int, str]) -> dict[str, int]:
    spread: dict[str, int] = {}
    for ordinal, count in placements.items():
        spread[location_of[ordinal]] = spread.get(location_of[ordinal], 0) + count
    return dict(sorted(spread.items()))
