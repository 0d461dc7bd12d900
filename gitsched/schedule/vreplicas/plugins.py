"""Predicates and priorities of the vreplica scheduler, and the profiles that combine them.

A new plug-in is a class in this module and an entry in PREDICATES or PRIORITIES.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal


class CountHistogram:
    """A histogram of counts. Distances are cached, since they are computed many times between two changes."""

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
        """Return the sum of the differences between a count and every count here."""
        known = self._distances.get(count)
        if known is None:
            known = self._distances[count] = sum(number * abs(count - other) for other, number in self._numbers.items())
        return known

    def extremes(self, own: int | None) -> tuple[int, int] | None:
        """Return the smallest and the greatest count, without one occurrence of `own`; None when nothing remains."""
        is_single = own is not None and self._numbers.get(own) == 1
        counts = [count for count in self._numbers if not (is_single and count == own)]
        return (min(counts), max(counts)) if counts else None


class OtherCounts:
    """A histogram without the candidate's own count, which is None if it is not included."""

    __slots__ = ("_histogram", "_own")

    def __init__(self, histogram: CountHistogram, own: int | None) -> None:
        self._histogram, self._own = histogram, own

    @property
    def size(self) -> int:
        return self._histogram.size - (self._own is not None)

    def distance(self, count: int) -> int:
        return self._histogram.distance(count) - (0 if self._own is None else abs(count - self._own))

    def extremes(self) -> tuple[int, int] | None:
        return self._histogram.extremes(self._own)


PluginLevel = Literal["capacity", "ordinal", "pod", "node", "zone"]
CountScope = Literal["usable", "not full", "listed"]
"""The counted pods. "usable": pods with vreplicas of the vpod or free capacity; "not full": also pods that exceed their capacity,
as upstream counts them; "listed": pods with an entry for the vpod, even zero."""


@dataclass(frozen=True, slots=True)
class SchedulerPlugin:
    """A plug-in. `argument` is the name of its only argument, "" for none; it is an integer of `bits` bits. `value` is its value;
    `strict` selects upstream's behaviour where it differs."""

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
    """Decides whether a candidate may receive one more vreplica; `reason` says why not. A `soft` predicate is ignored if it alone
    leaves vreplicas unplaced, unless it is strict."""

    __slots__ = ()
    reason: ClassVar[str]
    soft: ClassVar[bool] = False

    @abstractmethod
    def admits(self, count: int, known: bool, others: OtherCounts) -> bool:
        """Return whether a candidate passes. `count` is the count of the plug-in's level, 0 without an entry; `known` says
        whether there is an entry."""


class PodPriority(SchedulerPlugin, ABC):
    """Ranks the candidates; the least sum of penalty times weight wins."""

    __slots__ = ()

    @abstractmethod
    def penalty(self, count: int, others: OtherCounts) -> int:
        """Return the penalty. `count` is the count of the plug-in's level, 0 without an entry; for the level "ordinal" it is the
        ordinal."""


class PodFitsResources(PodPredicate):
    """The pod has free capacity."""

    __slots__ = ()
    name, level, reason = "PodFitsResources", "capacity", "the pod is full"

    def admits(self, count: int, known: bool, others: OtherCounts) -> bool:
        return count > 0


class NoMaxResourceCount(PodPredicate):
    """The vpod uses no more pods than it has resources, such as Kafka partitions."""

    __slots__ = ()
    name, level, argument, bits = "NoMaxResourceCount", "pod", "NumPartitions", 64
    reason = "the source is on as many pods as it has partitions"

    @property
    def scope(self) -> CountScope:
        return "listed"

    def admits(self, count: int, known: bool, others: OtherCounts) -> bool:
        return known or others.size + 1 <= self.value


class EvenPodSpread(PodPredicate):
    """No pod may exceed another usable pod by more than the skew. If strict, no pod may be behind by more than the skew either."""

    __slots__ = ()
    name, level, argument = "EvenPodSpread", "pod", "MaxSkew"
    reason, soft = "the skew between the pods would be too large", True

    def admits(self, count: int, known: bool, others: OtherCounts) -> bool:
        bounds = others.extremes()
        if bounds is None:
            return True
        minimum, maximum = bounds
        return count + 1 - minimum <= self.value and (not self.strict or maximum - count - 1 <= self.value)


class _EvenSpreadPriority(PodPriority):
    """Keeps the counts of a level close to each other when a vreplica is added."""

    __slots__ = ()
    argument = "MaxSkew"

    def penalty(self, count: int, others: OtherCounts) -> int:
        return others.distance(count + 1)


class EvenPodSpreadPriority(_EvenSpreadPriority):
    """Compares pods; if strict, also those that exceed their capacity."""

    __slots__ = ()
    name, level = "EvenPodSpread", "pod"

    @property
    def scope(self) -> CountScope:
        return "not full" if self.strict else "usable"


class FewestOnPodPriority(PodPriority):
    """Prefers pods with the fewest vreplicas of the vpod. It replaces a soft predicate that is ignored, and cannot be configured:
    a sum of distances would prefer to join many full pods instead of filling the pod that is behind."""

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
    """Fills pods with small ordinals first, so that the others can be removed."""

    __slots__ = ()
    name, level = "LowestOrdinalPriority", "ordinal"

    def penalty(self, count: int, others: OtherCounts) -> int:
        return count


class _RemoveWithEvenSpreadPriority(PodPriority):
    """Keeps the counts of a level close to each other when a vreplica is removed; only entries are compared."""

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
    """Empties pods with high ordinals first."""

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
"""A weight that is larger than that of any other priority."""


@dataclass(frozen=True)
class Profile:
    """Predicates in their order, and priorities with their weights, each name once. `strict_spread`: soft predicates are never ignored."""

    predicates: tuple[PodPredicate, ...]
    priorities: WeightedPriorities
    strict_spread: bool = False

    @cached_property
    def relaxed(self) -> Profile | None:
        """The profile with even spread as the strongest priority instead of a predicate; None if it has no soft predicate."""
        hard = tuple(predicate for predicate in self.predicates if not predicate.soft or predicate.strict)
        if self.strict_spread or len(hard) == len(self.predicates):
            return None
        return Profile(hard, ((FewestOnPodPriority(), _DOMINANT_WEIGHT), *self.priorities))

    @cached_property
    def enforces_capacity(self) -> bool:
        """Whether the profile keeps pods within their capacity."""
        return any(predicate.level == "capacity" for predicate in self.predicates)

    @cached_property
    def max_pods(self) -> int | None:
        """The maximum number of pods of a vpod; None without a limit."""
        limits = [predicate.value for predicate in self.predicates if isinstance(predicate, NoMaxResourceCount)]
        return min(limits, default=None)

    @cached_property
    def accepts_new_pods(self) -> bool:
        """Whether a new pod accepts any vreplica for which it has capacity."""
        return all(predicate.level == "capacity" for predicate in (self.relaxed or self).predicates)

    def has_plugin(self, plugin: type[PodPredicate] | type[PodPriority]) -> bool:
        """Return whether a plug-in is listed, even with weight 0."""
        return any(isinstance(entry, plugin) for entry in (*self.predicates, *(priority for priority, _ in self.priorities)))


DEFAULT_SCHEDULER_PROFILE = Profile(
    (PodFitsResources(),), ((AvailabilityZonePriority(), 10), (AvailabilityNodePriority(), 10), (LowestOrdinalPriority(), 2))
)
"""The default profile for placing vreplicas."""
DEFAULT_DESCHEDULER_PROFILE = Profile(
    (),
    (
        (RemoveWithAvailabilityZonePriority(), 10),
        (RemoveWithAvailabilityNodePriority(), 10),
        (RemoveWithHighestOrdinalPriority(), 2),
    ),
)
"""The default profile for removing vreplicas."""
