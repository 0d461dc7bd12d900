"""Predicates and priorities for vreplicas, the histograms of counts they compare, and the profiles that combine them. A new plug-in
is a class here and its line in PREDICATES or PRIORITIES."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal


class CountHistogram:
    """A histogram of counts. The distance to all of them is asked for again and again between two changes, so it is remembered."""

    __slots__ = ("_distances", "_numbers", "size")

    def __init__(self, counts: Iterable[int] = ()) -> None:
        self._numbers: dict[int, int] = {}
        self._distances: dict[int, int] = {}
        self.size = 0
        for count in counts:
            self.add(count)

    def add(self, count: int) -> None:
        self._numbers[count] = self._numbers.get(count, 0) + 1
        self.size += 1
        self._distances.clear()

    def remove(self, count: int) -> None:
        left = self._numbers[count] - 1
        if left:
            self._numbers[count] = left
        else:
            del self._numbers[count]
        self.size -= 1
        self._distances.clear()

    def distance(self, count: int) -> int:
        """The sum of the differences between a count and every one here."""
        known = self._distances.get(count)
        if known is None:
            known = self._distances[count] = sum(number * abs(count - other) for other, number in self._numbers.items())
        return known

    def extremes(self, own: int | None) -> tuple[int, int] | None:
        """The smallest and the greatest count, one occurrence of `own` left out; None when nothing is left."""
        alone = own is not None and self._numbers.get(own) == 1
        counts = [count for count in self._numbers if not (alone and count == own)]
        return (min(counts), max(counts)) if counts else None


class OtherCounts:
    """A tally without the candidate's own count, which is None where it is not in it."""

    __slots__ = ("_histogram", "_own")

    def __init__(self, tally: CountHistogram, own: int | None) -> None:
        self._histogram, self._own = tally, own

    @property
    def size(self) -> int:
        return self._histogram.size - (self._own is not None)

    def distance(self, count: int) -> int:
        return self._histogram.distance(count) - (0 if self._own is None else abs(count - self._own))

    def extremes(self) -> tuple[int, int] | None:
        return self._histogram.extremes(self._own)


PluginLevel = Literal["room", "ordinal", "pod", "node", "zone"]
CountScope = Literal["usable", "not full", "listed"]
"""Pods that have some of the source or room; the same with pods that hold more than they can, as upstream weighs them; or what has an entry
for the source, be it zero."""


@dataclass(frozen=True, slots=True)
class SchedulerPlugin:
    """`argument` names the one argument that the plug-in needs, "" for none; it is a whole number of so many `bits`. `value` is its
    value; `strict` is how upstream reads it, where that differs."""

    name: ClassVar[str]
    level: ClassVar[PluginLevel]
    argument: ClassVar[str] = ""
    bits: ClassVar[int] = 32
    value: int = 0
    strict: bool = False

    @property
    def scope(self) -> CountScope:
        return "usable"


class PodPredicate(SchedulerPlugin, ABC):
    """Says whether a candidate may take one more vreplica. `reason` is told where it may not. A `soft` one gives way where it alone
    leaves vreplicas without a place, unless it is to be read as upstream does."""

    __slots__ = ()
    reason: ClassVar[str]
    soft: ClassVar[bool] = False

    @abstractmethod
    def admits(self, count: int, known: bool, others: OtherCounts) -> bool:
        """`count` is what the level says, 0 where there is no entry; `known` is whether there is one."""


class PodPriority(SchedulerPlugin, ABC):
    """Says how bad a candidate is; the least sum of penalty times weight wins."""

    __slots__ = ()

    @abstractmethod
    def penalty(self, count: int, others: OtherCounts) -> int:
        """`count` is what the level says, 0 where there is no entry; for the level ordinal it is the ordinal."""


class PodFitsResources(PodPredicate):
    """The pod has room."""

    __slots__ = ()
    name, level, reason = "PodFitsResources", "room", "the pod is full"

    def admits(self, count: int, known: bool, others: OtherCounts) -> bool:
        return count > 0


class NoMaxResourceCount(PodPredicate):
    """The source is on no more pods than it has resources, such as Kafka partitions."""

    __slots__ = ()
    name, level, argument, bits = "NoMaxResourceCount", "pod", "NumPartitions", 64
    reason = "the source is on as many pods as it has partitions"

    @property
    def scope(self) -> CountScope:
        return "listed"

    def admits(self, count: int, known: bool, others: OtherCounts) -> bool:
        return known or others.size + 1 <= self.value


class EvenPodSpread(PodPredicate):
    """No pod gets too far ahead of another that could take a vreplica. Strictly, none may stay too far behind, either."""

    __slots__ = ()
    name, level, argument = "EvenPodSpread", "pod", "MaxSkew"
    reason, soft = "the skew between the pods would be too large", True

    def admits(self, count: int, known: bool, others: OtherCounts) -> bool:
        bounds = others.extremes()
        if bounds is None:
            return True
        least, most = bounds
        return count + 1 - least <= self.value and (not self.strict or most - count - 1 <= self.value)


class _EvenSpreadPriority(PodPriority):
    """Keeps the counts of a level close to each other when one is added."""

    __slots__ = ()
    argument = "MaxSkew"

    def penalty(self, count: int, others: OtherCounts) -> int:
        return others.distance(count + 1)


class EvenPodSpreadPriority(_EvenSpreadPriority):
    """Strictly, pods that hold more than they can are compared, too."""

    __slots__ = ()
    name, level = "EvenPodSpread", "pod"

    @property
    def scope(self) -> CountScope:
        return "not full" if self.strict else "usable"


class FewestOnPodPriority(PodPriority):
    """Pods with the fewest vreplicas of the source first. It is asked where a soft predicate gives way, and cannot be configured: a sum
    of distances, as the others have it, would rather join many full pods than level the one that is behind."""

    __slots__ = ()
    name, level = "FewestOnPod", "pod"

    def penalty(self, count: int, others: OtherCounts) -> int:
        return count


class AvailabilityNodePriority(_EvenSpreadPriority):
    __slots__ = ()
    name, level = "AvailabilityNodePriority", "node"


class AvailabilityZonePriority(_EvenSpreadPriority):
    __slots__ = ()
    name, level = "AvailabilityZonePriority", "zone"


class LowestOrdinalPriority(PodPriority):
    """Fills pods with small ordinals first, so that the others can go."""

    __slots__ = ()
    name, level = "LowestOrdinalPriority", "ordinal"

    def penalty(self, count: int, others: OtherCounts) -> int:
        return count


class _RemoveWithEvenSpreadPriority(PodPriority):
    """Keeps the counts of a level close to each other when one is taken away; only what has an entry is compared."""

    __slots__ = ()
    argument = "MaxSkew"

    @property
    def scope(self) -> CountScope:
        return "listed"

    def penalty(self, count: int, others: OtherCounts) -> int:
        return others.distance(count - 1)


class RemoveWithEvenPodSpreadPriority(_RemoveWithEvenSpreadPriority):
    __slots__ = ()
    name, level = "RemoveWithEvenPodSpreadPriority", "pod"


class RemoveWithAvailabilityNodePriority(_RemoveWithEvenSpreadPriority):
    __slots__ = ()
    name, level = "RemoveWithAvailabilityNodePriority", "node"


class RemoveWithAvailabilityZonePriority(_RemoveWithEvenSpreadPriority):
    __slots__ = ()
    name, level = "RemoveWithAvailabilityZonePriority", "zone"


class RemoveWithHighestOrdinalPriority(PodPriority):
    """Empties pods with great ordinals first."""

    __slots__ = ()
    name, level = "RemoveWithHighestOrdinalPriority", "ordinal"

    def penalty(self, count: int, others: OtherCounts) -> int:
        return -count


PREDICATES: Mapping[str, type[PodPredicate]] = {
    plugin.name: plugin
    for plugin in (
        PodFitsResources,
        NoMaxResourceCount,
        EvenPodSpread,
    )
}
PRIORITIES: Mapping[str, type[PodPriority]] = {
    plugin.name: plugin
    for plugin in (
        EvenPodSpreadPriority,
        AvailabilityNodePriority,
        AvailabilityZonePriority,
        LowestOrdinalPriority,
        RemoveWithEvenPodSpreadPriority,
        RemoveWithAvailabilityNodePriority,
        RemoveWithAvailabilityZonePriority,
        RemoveWithHighestOrdinalPriority,
    )
}
ALIASES: Mapping[str, str] = {"HighestOrdinalPriority": RemoveWithHighestOrdinalPriority.name}
"""Other names of priorities."""


WeightedPriorities = tuple[tuple[PodPriority, int], ...]

_DOMINANT_WEIGHT = 1_000_000
"""A weight that no other priority outweighs."""


@dataclass(frozen=True)
class Profile:
    """Predicates in the order in which they are asked, and priorities with their weights, each name once."""

    predicates: tuple[PodPredicate, ...]
    priorities: WeightedPriorities

    @cached_property
    def relaxed(self) -> Profile | None:
        """The same with evenness as the first wish instead of a condition; None where it is none."""
        hard = tuple(predicate for predicate in self.predicates if not predicate.soft or predicate.strict)
        if len(hard) == len(self.predicates):
            return None
        return Profile(hard, ((FewestOnPodPriority(), _DOMINANT_WEIGHT), *self.priorities))

    @cached_property
    def enforces_capacity(self) -> bool:
        """Whether it keeps pods within their capacity."""
        return any(predicate.level == "room" for predicate in self.predicates)

    @cached_property
    def max_pods(self) -> int | None:
        """On how many pods a source may be; None where nothing limits it."""
        limits = [predicate.value for predicate in self.predicates if isinstance(predicate, NoMaxResourceCount)]
        return min(limits, default=None)

    @cached_property
    def accepts_new_pods(self) -> bool:
        """Whether a new pod takes anything that it has room for."""
        return all(predicate.level == "room" for predicate in (self.relaxed or self).predicates)

    def has_plugin(self, plugin: type[PodPredicate] | type[PodPriority]) -> bool:
        """Whether a plug-in is listed, be it with weight 0."""
        return any(isinstance(entry, plugin) for entry in (*self.predicates, *(priority for priority, _ in self.priorities)))


DEFAULT_SCHEDULER_PROFILE = Profile(
    (PodFitsResources(),), ((AvailabilityZonePriority(), 10), (AvailabilityNodePriority(), 10), (LowestOrdinalPriority(), 2))
)
"""How vreplicas are placed where nobody said."""
DEFAULT_DESCHEDULER_PROFILE = Profile(
    (),
    (
        (RemoveWithAvailabilityZonePriority(), 10),
        (RemoveWithAvailabilityNodePriority(), 10),
        (RemoveWithHighestOrdinalPriority(), 2),
    ),
)
"""How vreplicas are taken away where nobody said."""
