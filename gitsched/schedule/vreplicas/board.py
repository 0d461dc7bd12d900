"""The candidates for the next vreplica of one source, grouped by what plug-ins can tell apart.

Pods with equal counts (their own, their node's, in the same zone) fare alike and differ in their ordinal only. So each group keeps its
pods in a heap, a choice looks at the groups alone, and a vreplica that is placed moves no more than the pods of one node. Where there are
many small zones, these are told apart by their counts, too, and a vreplica moves the pods of one zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from gitsched.schedule.vreplicas.adapter import Adapter
from gitsched.schedule.vreplicas.plugins import Level, Plugin, Scope
from gitsched.schedule.vreplicas.profile import Profile
from gitsched.schedule.vreplicas.tally import Others, Tally

ABSENT = -1
"""A count where there is no entry, which is not the same as an entry of zero."""


class Compared(NamedTuple):
    """Whether something is among what a count is compared with, by a plug-in's scope."""

    usable: bool
    not_full: bool


_ALWAYS = Compared(True, True)
_NOTHING = Others(Tally(), None)


class Likeness(NamedTuple):
    """What the pods of a group have in common; members that no plug-in looks at are ABSENT or "". `zone` is a name or, where there are
    many, a count. `compared` is about the pods."""

    zone: str | int
    node: int
    pod: int
    compared: Compared


Costs = dict[tuple[Level, int | str, Compared], int]


def _is_among(scope: Scope, count: int, compared: Compared) -> bool:
    if scope == "listed":
        return count != ABSENT
    return compared.not_full if scope == "not full" else compared.usable


class Group:
    """Pods as (penalty for the ordinal, tie, ordinal); entries whose pod has left are dropped when they come up."""

    __slots__ = ("heap", "size")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, int]] = []
        self.size = 0


class Board:
    """One source's counts and candidates. `free` is the room of every pod, shared by all sources, and is kept up to date.

    `counts` are the source's entries on schedulable pods. `candidates` are ordinals of schedulable pods; the first one wins ties.
    """

    def __init__(
        self, adapter: Adapter, profile: Profile, free: dict[int, int], counts: Mapping[int, int], candidates: Sequence[int]
    ) -> None:
        self._pods, self._profile, self.free = adapter.pods, profile, free
        self.counts = dict(counts)
        self._nodes: dict[str, int] = {}
        self._zones: dict[str, int] = {}
        for ordinal, count in counts.items():
            pod = adapter.pods[ordinal]
            self._nodes[pod.node] = self._nodes.get(pod.node, 0) + count
            self._zones[pod.zone] = self._zones.get(pod.zone, 0) + count
        used: list[Plugin] = [*profile.predicates, *(priority for priority, weight in profile.priorities if weight)]
        self._levels = {plugin.level for plugin in used}
        self._tallies = {(plugin.level, plugin.scope): Tally() for plugin in used}
        levels: tuple[Level, ...] = ("pod", "node", "zone")
        self._tallied = {level: self._find_tallies(level) for level in levels}
        self._fill(adapter)
        self._ties = {ordinal: tie for tie, ordinal in enumerate(candidates)}
        self._named = len(adapter.zone_names) ** 2 <= len(adapter.pods) or "zone" not in self._levels
        self._neighbours: dict[str, list[int]] = {}
        for ordinal in candidates:
            pod = self._pods[ordinal]
            self._neighbours.setdefault(pod.node if self._named else pod.zone, []).append(ordinal)
        by_ordinal = [(priority, weight) for priority, weight in profile.priorities if priority.level == "ordinal"]
        self._fixed = {o: sum(weight * priority.penalty(o, _NOTHING) for priority, weight in by_ordinal) for o in candidates}
        self._groups: dict[Likeness, Group] = {}
        self._likeness: dict[int, Likeness] = {}
        for ordinal in candidates:
            self._settle(ordinal)

    def _fill(self, adapter: Adapter) -> None:
        every: dict[Level, Iterable[tuple[int, Compared]]] = {
            "pod": ((self.counts.get(ordinal, ABSENT), self._compare(ordinal)) for ordinal in adapter.pods),
            "node": ((self._nodes.get(node, ABSENT), _ALWAYS) for node in adapter.zones),
            "zone": ((self._zones.get(zone, ABSENT), _ALWAYS) for zone in adapter.zone_names),
        }
        for level, counts in every.items():
            tallies = self._tallied[level]
            for count, compared in counts if tallies else ():
                for scope, tally in tallies:
                    if _is_among(scope, count, compared):
                        tally.add(max(count, 0))

    def _find_tallies(self, level: Level) -> list[tuple[Scope, Tally]]:
        return [(scope, tally) for (among, scope), tally in self._tallies.items() if among == level]

    def _compare(self, ordinal: int) -> Compared:
        """A pod without a vreplica of this source that is full of others' is none that could have one."""
        has, free = self.counts.get(ordinal, 0) > 0, self.free[ordinal]
        return Compared(has or free > 0, has or free != 0)

    def pick(self) -> int | None:
        """The best candidate; None when there is none."""
        best: tuple[int, int, int] | None = None
        costs: Costs = {}
        for likeness, group in self._groups.items():
            if not self._admits(likeness):
                continue
            heap = group.heap
            while self._likeness.get(heap[0][2]) != likeness:
                heappop(heap)
            fixed, tie, ordinal = heap[0]
            found = (fixed + self._cost(likeness, costs), tie, ordinal)
            if best is None or found < best:
                best = found
        return best[2] if best is not None else None

    def _admits(self, likeness: Likeness) -> bool:
        for predicate in self._profile.predicates:
            if predicate.level != "room":
                count, others = self._view(predicate, likeness)
                if not predicate.admits(max(count, 0), count != ABSENT, others):
                    return False
        return True

    def _cost(self, likeness: Likeness, costs: Costs) -> int:
        total = 0
        for level, place in (("zone", likeness.zone), ("node", likeness.node), ("pod", likeness.pod)):
            if level not in self._levels:
                continue
            key = (level, place, likeness.compared)
            known = costs.get(key)
            if known is None:
                known = 0
                for priority, weight in self._profile.priorities:
                    if priority.level == level and weight:
                        count, others = self._view(priority, likeness)
                        known += weight * priority.penalty(max(count, 0), others)
                costs[key] = known
            total += known
        return total

    def _view(self, plugin: Plugin, likeness: Likeness) -> tuple[int, Others]:
        """The count that a plug-in looks at, and what it is compared with."""
        compared = _ALWAYS
        match plugin.level:
            case "pod":
                count, compared = likeness.pod, likeness.compared
            case "node":
                count = likeness.node
            case _:
                zone = likeness.zone
                count = self._zones.get(zone, ABSENT) if isinstance(zone, str) else zone
        own = max(count, 0) if _is_among(plugin.scope, count, compared) else None
        return count, Others(self._tallies[plugin.level, plugin.scope], own)

    def put(self, ordinal: int, number: int = 1) -> None:
        """Place vreplicas on a pod, or take them away."""
        pod = self._pods[ordinal]
        before, compared = self.counts.get(ordinal, ABSENT), self._compare(ordinal)
        count = self.counts[ordinal] = max(before, 0) + number
        self.free[ordinal] -= number
        self._retell("pod", before, count, compared, self._compare(ordinal))
        for level, counts, place in (("node", self._nodes, pod.node), ("zone", self._zones, pod.zone)):
            before = counts.get(place, ABSENT)
            counts[place] = max(before, 0) + number
            self._retell("node" if level == "node" else "zone", before, counts[place], _ALWAYS, _ALWAYS)
        for neighbour in self._find_neighbours(ordinal):
            if neighbour in self._likeness or neighbour == ordinal:
                self._settle(neighbour)

    def _find_neighbours(self, ordinal: int) -> Sequence[int]:
        """The candidates whose likeness depends on what is on a pod."""
        pod = self._pods[ordinal]
        if not self._named:
            return self._neighbours.get(pod.zone, ())
        return self._neighbours.get(pod.node, ()) if "node" in self._levels else (ordinal,)

    def _retell(self, level: Level, before: int, after: int, was: Compared, now: Compared) -> None:
        for scope, tally in self._tallied[level]:
            if _is_among(scope, before, was):
                tally.remove(max(before, 0))
            if _is_among(scope, after, now):
                tally.add(after)

    def withdraw(self, ordinal: int) -> None:
        """A pod is no candidate any more."""
        self._ties.pop(ordinal, None)
        self._leave(ordinal)

    def _settle(self, ordinal: int) -> None:
        """Put a candidate into the group of its like."""
        if ordinal not in self._ties:
            return
        likeness = self._liken(ordinal)
        known = self._likeness.get(ordinal)
        fits = self._has_room(ordinal)
        if known == likeness and fits:
            return
        self._leave(ordinal)
        if fits:
            self._likeness[ordinal] = likeness
            group = self._groups.get(likeness)
            if group is None:
                group = self._groups[likeness] = Group()
            heappush(group.heap, (self._fixed[ordinal], self._ties[ordinal], ordinal))
            group.size += 1

    def _leave(self, ordinal: int) -> None:
        likeness = self._likeness.pop(ordinal, None)
        if likeness is not None:
            group = self._groups[likeness]
            group.size -= 1
            if not group.size:
                del self._groups[likeness]

    def _liken(self, ordinal: int) -> Likeness:
        pod, levels = self._pods[ordinal], self._levels
        zone: str | int = pod.zone if self._named else self._zones.get(pod.zone, ABSENT)
        return Likeness(
            zone if "zone" in levels else "",
            self._nodes.get(pod.node, ABSENT) if "node" in levels else ABSENT,
            self.counts.get(ordinal, ABSENT) if "pod" in levels else ABSENT,
            self._compare(ordinal) if "pod" in levels else _ALWAYS,
        )

    def _has_room(self, ordinal: int) -> bool:
        free = self.free[ordinal]
        return all(p.admits(free, True, _NOTHING) for p in self._profile.predicates if p.level == "room")

    def refusal(self, ordinal: int) -> str:
        """Why a pod may not take a vreplica; "" where it may."""
        likeness = self._liken(ordinal)
        for predicate in self._profile.predicates:
            count, others = (self.free[ordinal], _NOTHING) if predicate.level == "room" else self._view(predicate, likeness)
            if not predicate.admits(max(count, 0), count != ABSENT, others):
                return f"{predicate.name}: {predicate.reason}"
        return ""

    def scores(self, ordinal: int) -> dict[str, int]:
        """What each priority gives a pod, times its weight: the greatest sum wins, and none is above zero but for high ordinals."""
        likeness = self._liken(ordinal)
        scores = {}
        for priority, weight in self._profile.priorities:
            if weight:
                count, others = (ordinal, _NOTHING) if priority.level == "ordinal" else self._view(priority, likeness)
                scores[priority.name] = -weight * priority.penalty(max(count, 0), others)
        return scores
