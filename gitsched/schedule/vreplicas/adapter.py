"""The pods that hold vreplicas, and what is asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Shares = dict[int, int]
"""Vreplicas of one source by the ordinal of the pod, in the order of its status; every number is above zero."""


class Pod(NamedTuple):
    """A pod that may take new vreplicas."""

    ordinal: int
    node: str
    zone: str


class Vpod(NamedTuple):
    """A source: how many vreplicas it wants, and where it has some already."""

    name: str
    wanted: int
    held: Shares


@dataclass(frozen=True)
class Adapter:
    """The StatefulSet's pods. `capacity` counts vreplicas a pod; `pods` are those that may take new ones, by ascending ordinal; `zones`
    are the usable nodes, with or without a pod, and their zone; `marked` are ordinals to be emptied.

    A pod that is not in `pods` although its ordinal is below `replicas` keeps what it has, unless it is marked.
    """

    capacity: int
    replicas: int
    pods: Mapping[int, Pod]
    zones: Mapping[str, str]
    marked: frozenset[int] = frozenset()

    @cached_property
    def zone_names(self) -> frozenset[str]:
        return frozenset(self.zones.values())

    def mark(self, ordinals: frozenset[int]) -> Adapter:
        """The same with these pods marked, and nobody else's marks touched."""
        pods = {ordinal: pod for ordinal, pod in self.pods.items() if ordinal not in ordinals}
        return Adapter(self.capacity, self.replicas, pods, self.zones, self.marked | ordinals)

    def extend(self, first: int, number: int) -> Adapter:
        """The same with more pods, from an ordinal on, on a node of their own."""
        new = range(first, first + number)
        pods, zones = {**self.pods, **{ordinal: Pod(ordinal, "", "") for ordinal in new}}, {**self.zones, "": ""}
        return Adapter(self.capacity, max(self.replicas, new.stop), pods, zones, self.marked - frozenset(new))
