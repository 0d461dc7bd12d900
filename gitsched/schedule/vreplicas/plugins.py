"""Predicates and priorities. A new one is a class here and its line in PREDICATES or PRIORITIES.

A plug-in looks at one level: the pod's free room, its ordinal, or how many vreplicas of the source are on the pod, on its node or in its
zone. It is asked once for all candidates that have the same counts, so it may depend on nothing else. `scope` says what a count is compared
with; nodes and zones are either usable or listed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from gitsched.schedule.vreplicas.tally import Others

Level = Literal["room", "ordinal", "pod", "node", "zone"]
Scope = Literal["usable", "not full", "listed"]
"""Pods that have some of the source or room; the same with pods that hold more than they can, as upstream weighs them; or what has an entry
for the source, be it zero."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """`argument` names the one argument that the plug-in needs, "" for none; it is a whole number of so many `bits`. `value` is its
    value; `strict` is how upstream reads it, where that differs."""

    name: ClassVar[str]
    level: ClassVar[Level]
    argument: ClassVar[str] = ""
    bits: ClassVar[int] = 32
    value: int = 0
    strict: bool = False

    @property
    def scope(self) -> Scope:
        return "usable"


class Predicate(Plugin, ABC):
    """Says whether a candidate may take one more vreplica. `reason` is told where it may not. A `soft` one gives way where it alone
    leaves vreplicas without a place, unless it is to be read as upstream does."""

    __slots__ = ()
    reason: ClassVar[str]
    soft: ClassVar[bool] = False

    @abstractmethod
    def admits(self, count: int, known: bool, others: Others) -> bool:
        """`count` is what the level says, 0 where there is no entry; `known` is whether there is one."""


class Priority(Plugin, ABC):
    """Says how bad a candidate is; the least sum of penalty times weight wins."""

    __slots__ = ()

    @abstractmethod
    def penalty(self, count: int, others: Others) -> int:
        """`count` is what the level says, 0 where there is no entry; for the level ordinal it is the ordinal."""


class PodFitsResources(Predicate):
    """The pod has room."""

    __slots__ = ()
    name, level, reason = "PodFitsResources", "room", "the pod is full"

    def admits(self, count: int, known: bool, others: Others) -> bool:
        return count > 0


class NoMaxResourceCount(Predicate):
    """The source is on no more pods than it has resources, such as Kafka partitions."""

    __slots__ = ()
    name, level, argument, bits = "NoMaxResourceCount", "pod", "NumPartitions", 64
    reason = "the source is on as many pods as it has partitions"

    @property
    def scope(self) -> Scope:
        return "listed"

    def admits(self, count: int, known: bool, others: Others) -> bool:
        return known or others.size + 1 <= self.value


class EvenPodSpread(Predicate):
    """No pod gets too far ahead of another that could take a vreplica. Strictly, none may stay too far behind, either."""

    __slots__ = ()
    name, level, argument = "EvenPodSpread", "pod", "MaxSkew"
    reason, soft = "the skew between the pods would be too large", True

    def admits(self, count: int, known: bool, others: Others) -> bool:
        bounds = others.extremes()
        if bounds is None:
            return True
        least, most = bounds
        return count + 1 - least <= self.value and (not self.strict or most - count - 1 <= self.value)


class _Even(Priority):
    """Keeps the counts of a level close to each other when one is added."""

    __slots__ = ()
    argument = "MaxSkew"

    def penalty(self, count: int, others: Others) -> int:
        return others.distance(count + 1)


class EvenPods(_Even):
    """Strictly, pods that hold more than they can are compared, too."""

    __slots__ = ()
    name, level = "EvenPodSpread", "pod"

    @property
    def scope(self) -> Scope:
        return "not full" if self.strict else "usable"


class FewestOnPod(Priority):
    """Pods with the fewest vreplicas of the source first. It is asked where a soft predicate gives way, and cannot be configured: a sum
    of distances, as the others have it, would rather join many full pods than level the one that is behind."""

    __slots__ = ()
    name, level = "FewestOnPod", "pod"

    def penalty(self, count: int, others: Others) -> int:
        return count


class EvenNodes(_Even):
    __slots__ = ()
    name, level = "AvailabilityNodePriority", "node"


class EvenZones(_Even):
    __slots__ = ()
    name, level = "AvailabilityZonePriority", "zone"


class LowestOrdinal(Priority):
    """Fills pods with small ordinals first, so that the others can go."""

    __slots__ = ()
    name, level = "LowestOrdinalPriority", "ordinal"

    def penalty(self, count: int, others: Others) -> int:
        return count


class _EvenAfterRemoval(Priority):
    """Keeps the counts of a level close to each other when one is taken away; only what has an entry is compared."""

    __slots__ = ()
    argument = "MaxSkew"

    @property
    def scope(self) -> Scope:
        return "listed"

    def penalty(self, count: int, others: Others) -> int:
        return others.distance(count - 1)


class EvenPodsAfterRemoval(_EvenAfterRemoval):
    __slots__ = ()
    name, level = "RemoveWithEvenPodSpreadPriority", "pod"


class EvenNodesAfterRemoval(_EvenAfterRemoval):
    __slots__ = ()
    name, level = "RemoveWithAvailabilityNodePriority", "node"


class EvenZonesAfterRemoval(_EvenAfterRemoval):
    __slots__ = ()
    name, level = "RemoveWithAvailabilityZonePriority", "zone"


class HighestOrdinal(Priority):
    """Empties pods with great ordinals first."""

    __slots__ = ()
    name, level = "RemoveWithHighestOrdinalPriority", "ordinal"

    def penalty(self, count: int, others: Others) -> int:
        return -count


PREDICATES: Mapping[str, type[Predicate]] = {
    plugin.name: plugin
    for plugin in (
        PodFitsResources,
        NoMaxResourceCount,
        EvenPodSpread,
    )
}
PRIORITIES: Mapping[str, type[Priority]] = {
    plugin.name: plugin
    for plugin in (
        EvenPods,
        EvenNodes,
        EvenZones,
        LowestOrdinal,
        EvenPodsAfterRemoval,
        EvenNodesAfterRemoval,
        EvenZonesAfterRemoval,
        HighestOrdinal,
    )
}
ALIASES: Mapping[str, str] = {"HighestOrdinalPriority": HighestOrdinal.name}
"""Other names of priorities."""
