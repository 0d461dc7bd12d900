"""Find the best pod for the next vreplica: pods with equal scores are grouped, so that few of them are compared.

Pods with equal counts (their own, their node's and their zone's) differ only in their ordinal. Each group keeps its pods in a heap, so a
choice compares only groups, and a placed vreplica moves only the pods of one node. With many small zones, groups are formed by the count
of a zone, too, and a vreplica moves the pods of one zone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush

from gitsched.named_tuples import NamedTuple
from gitsched.schedule.vreplicas.plugins import (
    CountHistogram,
    CountScope,
    OtherCounts,
    PluginLevel,
    PodPredicate,
    Profile,
    SchedulerPlugin,
)
from gitsched.schedule.vreplicas.state import AdapterStatefulSet

NO_ENTRY = -1
"""The count without an entry, which differs from an entry of zero."""


class ScopeMembership(NamedTuple):
    """Whether a pod is counted, by the scope of a plug-in."""

    usable: bool
    not_full: bool


_IN_EVERY_SCOPE = ScopeMembership(True, True)
_NO_OTHERS = OtherCounts(CountHistogram(), None)


class GroupKey(NamedTuple):
    """The common properties of the pods of a group; properties that no plug-in uses are NO_ENTRY or "". `zone` is a name or, with
    many zones, a count. `membership` is that of the pods."""

    zone: str | int
    node: int
    pod: int
    membership: ScopeMembership


PenaltyCache = dict[tuple[PluginLevel, int | str, ScopeMembership], int]


def _is_in_scope(scope: CountScope, count: int, membership: ScopeMembership) -> bool:
    if scope == "listed":
        return count != NO_ENTRY
    return membership.not_full if scope == "not full" else membership.usable


class PodGroup:
    """Pods as (penalty for the ordinal, tie, ordinal); entries of pods that left the group are removed when they reach the top."""

    __slots__ = ("heap", "size")

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, int]] = []
        self.size = 0


class CandidatePods:
    """The counts and candidates of one vpod. `free` is the free capacity of every pod, shared by all vpods, and is updated.

    `counts` are the vpod's entries on schedulable pods. `candidates` are ordinals of schedulable pods; the first one wins ties.
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
            histograms = self._histograms_by_level[level]
            for count, membership in counts if histograms else ():
                for scope, histogram in histograms:
                    if _is_in_scope(scope, count, membership):
                        histogram.add(max(count, 0))

    def _list_histograms(self, level: PluginLevel) -> list[tuple[CountScope, CountHistogram]]:
        return [(scope, histogram) for (among, scope), histogram in self._histograms.items() if among == level]

    def _find_membership(self, ordinal: int) -> ScopeMembership:
        """Return the membership of a pod: one that is full of other vpods' vreplicas is not counted as usable."""
        has, free = self.counts.get(ordinal, 0) > 0, self.free[ordinal]
        return ScopeMembership(has or free > 0, has or free != 0)

    def find_best(self) -> int | None:
        """Return the best candidate; None when there is none."""
        best: tuple[int, int, int] | None = None
        penalty_cache: PenaltyCache = {}
        for group_key, group in self._groups.items():
            if not self._passes_predicates(group_key):
                continue
            heap = group.heap
            while self._group_keys.get(heap[0][2]) != group_key:
                heappop(heap)
            ordinal_penalty, tie, ordinal = heap[0]
            found = (ordinal_penalty + self._sum_penalties(group_key, penalty_cache), tie, ordinal)
            if best is None or found < best:
                best = found
        return best[2] if best is not None else None

    def _passes_predicates(self, group_key: GroupKey) -> bool:
        for predicate in self._profile.predicates:
            if predicate.level != "capacity":
                count, others = self._get_counts(predicate, group_key)
                if not predicate.admits(max(count, 0), count != NO_ENTRY, others):
                    return False
        return True

    def _sum_penalties(self, group_key: GroupKey, penalty_cache: PenaltyCache) -> int:
        total = 0
        for level, location in (("zone", group_key.zone), ("node", group_key.node), ("pod", group_key.pod)):
            if level not in self._levels:
                continue
            key = (level, location, group_key.membership)
            cached = penalty_cache.get(key)
            if cached is None:
                cached = 0
                for priority, weight in self._profile.priorities:
                    if priority.level == level and weight:
                        count, others = self._get_counts(priority, group_key)
                        cached += weight * priority.penalty(max(count, 0), others)
                penalty_cache[key] = cached
            total += cached
        return total

    def _get_counts(self, plugin: SchedulerPlugin, group_key: GroupKey) -> tuple[int, OtherCounts]:
        """Return the count that a plug-in uses, and the counts that it is compared with."""
        membership = _IN_EVERY_SCOPE
        match plugin.level:
            case "pod":
                count, membership = group_key.pod, group_key.membership
            case "node":
                count = group_key.node
            case _:
                zone = group_key.zone
                count = self._zones.get(zone, NO_ENTRY) if isinstance(zone, str) else zone
        own_count = max(count, 0) if _is_in_scope(plugin.scope, count, membership) else None
        return count, OtherCounts(self._histograms[plugin.level, plugin.scope], own_count)

    def add_vreplicas(self, ordinal: int, number: int = 1) -> None:
        """Add vreplicas to a pod, or remove them."""
        pod = self._pods[ordinal]
        before, membership = self.counts.get(ordinal, NO_ENTRY), self._find_membership(ordinal)
        count = self.counts[ordinal] = max(before, 0) + number
        self.free[ordinal] -= number
        self._update_histograms("pod", before, count, membership, self._find_membership(ordinal))
        for level, counts, location in (("node", self._nodes, pod.node), ("zone", self._zones, pod.zone)):
            before = counts.get(location, NO_ENTRY)
            counts[location] = max(before, 0) + number
            self._update_histograms(
                "node" if level == "node" else "zone", before, counts[location], _IN_EVERY_SCOPE, _IN_EVERY_SCOPE
            )
        for affected in self._list_affected(ordinal):
            if affected in self._group_keys or affected == ordinal:
                self._update_group(affected)

    def _list_affected(self, ordinal: int) -> Sequence[int]:
        """Return the candidates whose group depends on the vreplicas of a pod."""
        pod = self._pods[ordinal]
        if not self._zones_by_name:
            return self._pods_by_location.get(pod.zone, ())
        return self._pods_by_location.get(pod.node, ()) if "node" in self._levels else (ordinal,)

    def _update_histograms(self, level: PluginLevel, before: int, after: int, was: ScopeMembership, now: ScopeMembership) -> None:
        for scope, histogram in self._histograms_by_level[level]:
            if _is_in_scope(scope, before, was):
                histogram.remove(max(before, 0))
            if _is_in_scope(scope, after, now):
                histogram.add(after)

    def remove_candidate(self, ordinal: int) -> None:
        """Remove a pod from the candidates."""
        self._ties.pop(ordinal, None)
        self._leave_group(ordinal)

    def _update_group(self, ordinal: int) -> None:
        """Move a candidate to its group."""
        if ordinal not in self._ties:
            return
        group_key = self._build_group_key(ordinal)
        previous_key = self._group_keys.get(ordinal)
        has_capacity = self._has_capacity(ordinal)
        if previous_key == group_key and has_capacity:
            return
        self._leave_group(ordinal)
        if has_capacity:
            self._group_keys[ordinal] = group_key
            group = self._groups.get(group_key)
            if group is None:
                group = self._groups[group_key] = PodGroup()
            heappush(group.heap, (self._ordinal_penalties[ordinal], self._ties[ordinal], ordinal))
            group.size += 1

    def _leave_group(self, ordinal: int) -> None:
        group_key = self._group_keys.pop(ordinal, None)
        if group_key is not None:
            group = self._groups[group_key]
            group.size -= 1
            if not group.size:
                del self._groups[group_key]

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
        return all(p.admits(free, True, _NO_OTHERS) for p in self._profile.predicates if p.level == "capacity")

    def explain_rejection(self, ordinal: int) -> str:
        """Return why a pod may not receive a vreplica; "" if it may."""
        for predicate in self._profile.predicates:
            if self._rejects(predicate, ordinal):
                return f"{predicate.name}: {predicate.reason}"
        return ""

    def _rejects(self, predicate: PodPredicate, ordinal: int) -> bool:
        count, others = (
            (self.free[ordinal], _NO_OTHERS)
            if predicate.level == "capacity"
            else self._get_counts(predicate, self._build_group_key(ordinal))
        )
        return not predicate.admits(max(count, 0), count != NO_ENTRY, others)

    def explain_relaxed_predicates(self, ordinal: int) -> str:
        """Return which soft predicates a pod fails that passes all others, and what follows; "" if it fails none or others, too."""
        if self._profile.relaxed is None:
            return ""
        hard = {predicate.name for predicate in self._profile.relaxed.predicates}
        failed = [predicate for predicate in self._profile.predicates if self._rejects(predicate, ordinal)]
        if not failed or any(predicate.name in hard for predicate in failed):
            return ""
        reasons = ", ".join(f"{predicate.name}: {predicate.reason}" for predicate in failed)
        return f"{reasons}; used only for vreplicas that no other pod can take"

    def list_scores(self, ordinal: int) -> dict[str, int]:
        """Return the score of a pod by each priority times its weight: the greatest sum wins; only high ordinals give positive
        scores."""
        group_key = self._build_group_key(ordinal)
        scores = {}
        for priority, weight in self._profile.priorities:
            if weight:
                count, others = (ordinal, _NO_OTHERS) if priority.level == "ordinal" else self._get_counts(priority, group_key)
                scores[priority.name] = -weight * priority.penalty(max(count, 0), others)
        return scores
