"""Candidate pods for the next vreplica of one vpod, grouped by the counts that plug-ins can tell apart.

Pods with equal counts (their own, their node's, in the same zone) fare alike and differ in their ordinal only. So each group keeps its
pods in a heap, a choice looks at the groups alone, and a vreplica that is placed moves no more than the pods of one node. Where there are
many small zones, these are told apart by their counts, too, and a vreplica moves the pods of one zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from gitsched.schedule.vreplicas.plugins import CountHistogram, CountScope, OtherCounts, PluginLevel, Profile, SchedulerPlugin
from gitsched.schedule.vreplicas.state import AdapterStatefulSet

NO_ENTRY = -1
"""A count where there is no entry, which is not the same as an entry of zero."""


class ScopeMembership(NamedTuple):
    """Whether something is among what a count is compared with, by a plug-in's scope."""

    usable: bool
    not_full: bool


_IN_EVERY_SCOPE = ScopeMembership(True, True)
_NO_OTHERS = OtherCounts(CountHistogram(), None)


class GroupKey(NamedTuple):
    """What the pods of a group have in common; members that no plug-in looks at are ABSENT or "". `zone` is a name or, where there are
    many, a count. `compared` is about the pods."""

    zone: str | int
    node: int
    pod: int
    membership: ScopeMembership


PenaltyCache = dict[tuple[PluginLevel, int | str, ScopeMembership], int]


def _is_in_scope(scope: CountScope, count: int, compared: ScopeMembership) -> bool:
    if scope == "listed":
        return count != NO_ENTRY
    return compared.not_full if scope == "not full" else compared.usable


class PodGroup:
    """Pods as (penalty for the ordinal, tie, ordinal); entries whose pod has left are dropped when they come up."""

    __slots__ = ("heap", "size")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, int]] = []
        self.size = 0


class CandidatePods:
    """One source's counts and candidates. `free` is the room of every pod, shared by all sources, and is kept up to date.

    `counts` are the source's entries on schedulable pods. `candidates` are ordinals of schedulable pods; the first one wins ties.
    """

    def __init__(
        self,
        adapter: AdapterStatefulSet,
        profile: Profile,
        free: dict[int, int],
        counts: Mapping[int, int],
        candidates: Sequence[int],
    ) -> None:
        self._pods, self._profile, self.free = adapter.pods, profile, free
        self.counts = dict(counts)
        self._nodes: dict[str, int] = {}
        self._zones: dict[str, int] = {}
        for ordinal, count in counts.items():
            pod = adapter.pods[ordinal]
            self._nodes[pod.node] = self._nodes.get(pod.node, 0) + count
            self._zones[pod.zone] = self._zones.get(pod.zone, 0) + count
        used: list[SchedulerPlugin] = [*profile.predicates, *(priority for priority, weight in profile.priorities if weight)]
        self._levels = {plugin.level for plugin in used}
        self._histograms = {(plugin.level, plugin.scope): CountHistogram() for plugin in used}
        levels: tuple[PluginLevel, ...] = ("pod", "node", "zone")
        self._histograms_by_level = {level: self._list_histograms(level) for level in levels}
        self._fill_histograms(adapter)
        self._ties = {ordinal: tie for tie, ordinal in enumerate(candidates)}
        self._zones_by_name = len(adapter.zone_names) ** 2 <= len(adapter.pods) or "zone" not in self._levels
        self._pods_by_location: dict[str, list[int]] = {}
        for ordinal in candidates:
            pod = self._pods[ordinal]
            self._pods_by_location.setdefault(pod.node if self._zones_by_name else pod.zone, []).append(ordinal)
        by_ordinal = [(priority, weight) for priority, weight in profile.priorities if priority.level == "ordinal"]
        self._ordinal_penalties = {
            o: sum(weight * priority.penalty(o, _NO_OTHERS) for priority, weight in by_ordinal) for o in candidates
        }
        self._groups: dict[GroupKey, PodGroup] = {}
        self._group_keys: dict[int, GroupKey] = {}
        for ordinal in candidates:
            self._update_group(ordinal)

    def _fill_histograms(self, adapter: AdapterStatefulSet) -> None:
        every: dict[PluginLevel, Iterable[tuple[int, ScopeMembership]]] = {
            "pod": ((self.counts.get(ordinal, NO_ENTRY), self._find_membership(ordinal)) for ordinal in adapter.pods),
            "node": ((self._nodes.get(node, NO_ENTRY), _IN_EVERY_SCOPE) for node in adapter.zones),
            "zone": ((self._zones.get(zone, NO_ENTRY), _IN_EVERY_SCOPE) for zone in adapter.zone_names),
        }
        for level, counts in every.items():
            tallies = self._histograms_by_level[level]
            for count, compared in counts if tallies else ():
                for scope, tally in tallies:
                    if _is_in_scope(scope, count, compared):
                        tally.add(max(count, 0))

    def _list_histograms(self, level: PluginLevel) -> list[tuple[CountScope, CountHistogram]]:
        return [(scope, tally) for (among, scope), tally in self._histograms.items() if among == level]

    def _find_membership(self, ordinal: int) -> ScopeMembership:
        """A pod without a vreplica of this source that is full of others' is none that could have one."""
        has, free = self.counts.get(ordinal, 0) > 0, self.free[ordinal]
        return ScopeMembership(has or free > 0, has or free != 0)

    def find_best(self) -> int | None:
        """The best candidate; None when there is none."""
        best: tuple[int, int, int] | None = None
        costs: PenaltyCache = {}
        for likeness, group in self._groups.items():
            if not self._passes_predicates(likeness):
                continue
            heap = group.heap
            while self._group_keys.get(heap[0][2]) != likeness:
                heappop(heap)
            fixed, tie, ordinal = heap[0]
            found = (fixed + self._sum_penalties(likeness, costs), tie, ordinal)
            if best is None or found < best:
                best = found
        return best[2] if best is not None else None

    def _passes_predicates(self, likeness: GroupKey) -> bool:
        for predicate in self._profile.predicates:
            if predicate.level != "room":
                count, others = self._get_counts(predicate, likeness)
                if not predicate.admits(max(count, 0), count != NO_ENTRY, others):
                    return False
        return True

    def _sum_penalties(self, likeness: GroupKey, costs: PenaltyCache) -> int:
        total = 0
        for level, place in (("zone", likeness.zone), ("node", likeness.node), ("pod", likeness.pod)):
            if level not in self._levels:
                continue
            key = (level, place, likeness.membership)
            known = costs.get(key)
            if known is None:
                known = 0
                for priority, weight in self._profile.priorities:
                    if priority.level == level and weight:
                        count, others = self._get_counts(priority, likeness)
                        known += weight * priority.penalty(max(count, 0), others)
                costs[key] = known
            total += known
        return total

    def _get_counts(self, plugin: SchedulerPlugin, likeness: GroupKey) -> tuple[int, OtherCounts]:
        """The count that a plug-in looks at, and what it is compared with."""
        compared = _IN_EVERY_SCOPE
        match plugin.level:
            case "pod":
                count, compared = likeness.pod, likeness.membership
            case "node":
                count = likeness.node
            case _:
                zone = likeness.zone
                count = self._zones.get(zone, NO_ENTRY) if isinstance(zone, str) else zone
        own = max(count, 0) if _is_in_scope(plugin.scope, count, compared) else None
        return count, OtherCounts(self._histograms[plugin.level, plugin.scope], own)

    def add_vreplicas(self, ordinal: int, number: int = 1) -> None:
        """Place vreplicas on a pod, or take them away."""
        pod = self._pods[ordinal]
        before, compared = self.counts.get(ordinal, NO_ENTRY), self._find_membership(ordinal)
        count = self.counts[ordinal] = max(before, 0) + number
        self.free[ordinal] -= number
        self._update_histograms("pod", before, count, compared, self._find_membership(ordinal))
        for level, counts, place in (("node", self._nodes, pod.node), ("zone", self._zones, pod.zone)):
            before = counts.get(place, NO_ENTRY)
            counts[place] = max(before, 0) + number
            self._update_histograms("node" if level == "node" else "zone", before, counts[place], _IN_EVERY_SCOPE, _IN_EVERY_SCOPE)
        for neighbour in self._list_affected(ordinal):
            if neighbour in self._group_keys or neighbour == ordinal:
                self._update_group(neighbour)

    def _list_affected(self, ordinal: int) -> Sequence[int]:
        """The candidates whose likeness depends on what is on a pod."""
        pod = self._pods[ordinal]
        if not self._zones_by_name:
            return self._pods_by_location.get(pod.zone, ())
        return self._pods_by_location.get(pod.node, ()) if "node" in self._levels else (ordinal,)

    def _update_histograms(self, level: PluginLevel, before: int, after: int, was: ScopeMembership, now: ScopeMembership) -> None:
        for scope, tally in self._histograms_by_level[level]:
            if _is_in_scope(scope, before, was):
                tally.remove(max(before, 0))
            if _is_in_scope(scope, after, now):
                tally.add(after)

    def remove_candidate(self, ordinal: int) -> None:
        """A pod is no candidate any more."""
        self._ties.pop(ordinal, None)
        self._leave_group(ordinal)

    def _update_group(self, ordinal: int) -> None:
        """Put a candidate into the group of its like."""
        if ordinal not in self._ties:
            return
        likeness = self._build_group_key(ordinal)
        known = self._group_keys.get(ordinal)
        fits = self._has_capacity(ordinal)
        if known == likeness and fits:
            return
        self._leave_group(ordinal)
        if fits:
            self._group_keys[ordinal] = likeness
            group = self._groups.get(likeness)
            if group is None:
                group = self._groups[likeness] = PodGroup()
            heappush(group.heap, (self._ordinal_penalties[ordinal], self._ties[ordinal], ordinal))
            group.size += 1

    def _leave_group(self, ordinal: int) -> None:
        likeness = self._group_keys.pop(ordinal, None)
        if likeness is not None:
            group = self._groups[likeness]
            group.size -= 1
            if not group.size:
                del self._groups[likeness]

    def _build_group_key(self, ordinal: int) -> GroupKey:
        pod, levels = self._pods[ordinal], self._levels
        zone: str | int = pod.zone if self._zones_by_name else self._zones.get(pod.zone, NO_ENTRY)
        return GroupKey(
            zone if "zone" in levels else "",
            self._nodes.get(pod.node, NO_ENTRY) if "node" in levels else NO_ENTRY,
            self.counts.get(ordinal, NO_ENTRY) if "pod" in levels else NO_ENTRY,
            self._find_membership(ordinal) if "pod" in levels else _IN_EVERY_SCOPE,
        )

    def _has_capacity(self, ordinal: int) -> bool:
        free = self.free[ordinal]
        return all(p.admits(free, True, _NO_OTHERS) for p in self._profile.predicates if p.level == "room")

    def explain_rejection(self, ordinal: int) -> str:
        """Why a pod may not take a vreplica; "" where it may."""
        likeness = self._build_group_key(ordinal)
        for predicate in self._profile.predicates:
            count, others = (self.free[ordinal], _NO_OTHERS) if predicate.level == "room" else self._get_counts(predicate, likeness)
            if not predicate.admits(max(count, 0), count != NO_ENTRY, others):
                return f"{predicate.name}: {predicate.reason}"
        return ""

    def list_scores(self, ordinal: int) -> dict[str, int]:
        """What each priority gives a pod, times its weight: the greatest sum wins, and none is above zero but for high ordinals."""
        likeness = self._build_group_key(ordinal)
        scores = {}
        for priority, weight in self._profile.priorities:
            if weight:
                count, others = (ordinal, _NO_OTHERS) if priority.level == "ordinal" else self._get_counts(priority, likeness)
                scores[priority.name] = -weight * priority.penalty(max(count, 0), others)
        return scores
