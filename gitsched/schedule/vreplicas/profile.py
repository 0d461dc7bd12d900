"""Which plug-ins place vreplicas, and which take them away."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gitsched.schedule.vreplicas.plugins import (
    EvenNodes,
    EvenNodesAfterRemoval,
    EvenZones,
    EvenZonesAfterRemoval,
    FewestOnPod,
    HighestOrdinal,
    LowestOrdinal,
    NoMaxResourceCount,
    PodFitsResources,
    Predicate,
    Priority,
)

Weighted = tuple[tuple[Priority, int], ...]

_FIRST = 1_000_000
"""A weight that no other priority outweighs."""


@dataclass(frozen=True)
class Profile:
    """Predicates in the order in which they are asked, and priorities with their weights, each name once."""

    predicates: tuple[Predicate, ...]
    priorities: Weighted

    @cached_property
    def relaxed(self) -> Profile | None:
        """The same with evenness as the first wish instead of a condition; None where it is none."""
        hard = tuple(predicate for predicate in self.predicates if not predicate.soft or predicate.strict)
        if len(hard) == len(self.predicates):
            return None
        return Profile(hard, ((FewestOnPod(), _FIRST), *self.priorities))

    @cached_property
    def limited(self) -> bool:
        """Whether it keeps pods within their capacity."""
        return any(predicate.level == "room" for predicate in self.predicates)

    @cached_property
    def most_pods(self) -> int | None:
        """On how many pods a source may be; None where nothing limits it."""
        limits = [predicate.value for predicate in self.predicates if isinstance(predicate, NoMaxResourceCount)]
        return min(limits, default=None)

    @cached_property
    def welcomes(self) -> bool:
        """Whether a new pod takes anything that it has room for."""
        return all(predicate.level == "room" for predicate in (self.relaxed or self).predicates)

    def has(self, plugin: type[Predicate] | type[Priority]) -> bool:
        """Whether a plug-in is listed, be it with weight 0."""
        return any(isinstance(entry, plugin) for entry in (*self.predicates, *(priority for priority, _ in self.priorities)))


ADDING = Profile((PodFitsResources(),), ((EvenZones(), 10), (EvenNodes(), 10), (LowestOrdinal(), 2)))
"""How vreplicas are placed where nobody said."""
REMOVING = Profile((), ((EvenZonesAfterRemoval(), 10), (EvenNodesAfterRemoval(), 10), (HighestOrdinal(), 2)))
"""How vreplicas are taken away where nobody said."""
