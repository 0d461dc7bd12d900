"""Schedule the vreplicas of one vpod: keep valid placements, remove surplus vreplicas, add missing ones.

1. Vreplicas on missing pods, on unschedulable pods, or beyond a pod's capacity must move; all others stay.
2. With too many vreplicas, those that must move are removed first, then those on pods that accept no new ones, then one at a time by
   the descheduler profile.
3. With too few vreplicas, one at a time is added by the scheduler profile, each with the counts that the previous ones left. If only
   a soft predicate rejects a pod, the most even placement is used; with a limit on the number of pods, pods with much capacity come
   first.
4. Pods that the vpod prefers come before all others: new vreplicas go there while the predicates admit them, and vreplicas on other pods
   move there.
5. If that is not enough, what was placed stays, and so do vreplicas on an unschedulable pod; or, if all are rescheduled, the previous
   placements are restored.
"""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.named_tuples import NamedTuple
from gitsched.schedule.vreplicas.candidate_pods import CandidatePods
from gitsched.schedule.vreplicas.plugins import Profile
from gitsched.schedule.vreplicas.state import AdapterStatefulSet, FreeCapacity, Vpod, VreplicasByOrdinal


class SchedulingStrategy(NamedTuple):
    """How vreplicas are placed. `max_fill_up` fills one pod after the other and uses no profile. `reschedules_all`: when a vpod
    lacks vreplicas, all of them are placed again, or none. `descheduler_profile` None means that a vpod with too many is also
    rescheduled."""

    scheduler_profile: Profile
    descheduler_profile: Profile | None
    max_fill_up: bool = False
    reschedules_all: bool = False


def schedule_vpod(
    vpod: Vpod, adapter: AdapterStatefulSet, free_capacity: FreeCapacity, strategy: SchedulingStrategy
) -> VreplicasByOrdinal:
    """Return the placements of a vpod, by ordinal. `free_capacity` contains the vpod's previous placements before the call, and
    its new ones after it."""
    free_capacity.release(vpod.placements)
    retained = _keep_placements(vpod, adapter, free_capacity, strategy)
    surplus = sum(retained.values()) - vpod.expected
    if surplus > 0 and (strategy.max_fill_up or strategy.descheduler_profile is not None):
        retained = _remove_from_unusable_pods(retained, surplus, adapter)
        surplus = sum(retained.values()) - vpod.expected
    free_capacity.reserve(retained)
    if surplus == 0:
        placements = retained
    elif strategy.max_fill_up:
        placements = (
            _remove_from_last_pods(retained, surplus, free_capacity)
            if surplus > 0
            else _fill_up_pods(vpod, retained, -surplus, adapter, free_capacity)
        )
    elif surplus > 0 and strategy.descheduler_profile is not None:
        placements = _remove_vreplicas(retained, surplus, adapter, free_capacity, strategy.descheduler_profile)
    elif strategy.reschedules_all:
        placements = _reschedule_all(vpod, retained, adapter, free_capacity, strategy.scheduler_profile)
    else:
        placements = _add_vreplicas(vpod, retained, -surplus, adapter, free_capacity, strategy.scheduler_profile)
    if vpod.preferred:
        placements = _move_to_preferred(vpod, placements, adapter, free_capacity, strategy)
    if not strategy.reschedules_all:
        _keep_on_unschedulable_pods(vpod, placements, adapter, free_capacity)
    return dict(sorted(placements.items()))


def count_placeable_on_new_pods(
    placements: VreplicasByOrdinal,
    count: int,
    first_ordinal: int,
    adapter: AdapterStatefulSet,
    free_capacity: FreeCapacity,
    profile: Profile,
) -> int:
    """Return how many more vreplicas of a vpod would fit on new pods alone, starting at an ordinal; at most as many as given."""
    pods = -(-count // adapter.capacity)
    extended = adapter.add_pods(first_ordinal, pods)
    free = {**free_capacity.free, **dict.fromkeys(range(first_ordinal, first_ordinal + pods), adapter.capacity)}
    candidate_pods = CandidatePods(
        extended,
        profile.relaxed or profile,
        free,
        _filter_usable_pods(placements, extended),
        range(first_ordinal, first_ordinal + pods),
    )
    return sum(_place_one_by_one(candidate_pods, {}, count).values())


def can_keep_vreplicas(ordinal: int, adapter: AdapterStatefulSet) -> bool:
    """Return whether a pod may keep its vreplicas. A pod that is temporarily missing, or whose node is, comes back under its
    name."""
    return ordinal < adapter.replicas and ordinal not in adapter.unschedulable


def _keep_placements(
    vpod: Vpod, adapter: AdapterStatefulSet, free_capacity: FreeCapacity, strategy: SchedulingStrategy
) -> VreplicasByOrdinal:
    limited = strategy.reschedules_all or strategy.max_fill_up or strategy.scheduler_profile.enforces_capacity
    retained = {}
    for ordinal, count in vpod.placements.items():
        if can_keep_vreplicas(ordinal, adapter):
            capacity = free_capacity.free.get(ordinal, adapter.capacity)
            kept_count = max(min(count, capacity), 0) if limited else count
            if kept_count:
                retained[ordinal] = kept_count
    return retained


def _remove_from_unusable_pods(retained: VreplicasByOrdinal, surplus: int, adapter: AdapterStatefulSet) -> VreplicasByOrdinal:
    """Remove vreplicas from pods that are not running, the largest ordinal first."""
    remaining = dict(retained)
    for ordinal in sorted(retained.keys() - adapter.pods.keys(), reverse=True):
        removed = min(remaining[ordinal], surplus)
        surplus -= removed
        remaining[ordinal] -= removed
        if not remaining[ordinal]:
            del remaining[ordinal]
    return remaining


def _remove_vreplicas(
    retained: VreplicasByOrdinal, surplus: int, adapter: AdapterStatefulSet, free_capacity: FreeCapacity, profile: Profile
) -> VreplicasByOrdinal:
    working = {ordinal: count for ordinal, count in retained.items() if ordinal in adapter.pods}
    candidate_pods = CandidatePods(adapter, profile, free_capacity.free, working, list(working))
    remaining = dict(retained)
    for _ in range(surplus):
        ordinal = candidate_pods.find_best()
        if ordinal is None:  # the predicates reject every pod, which cannot be intended
            candidate_pods = CandidatePods(
                adapter,
                Profile((), profile.priorities),
                free_capacity.free,
                candidate_pods.counts,
                list(remaining.keys() & working.keys()),
            )
            ordinal = candidate_pods.find_best()
        if ordinal is None:
            break
        candidate_pods.add_vreplicas(ordinal, -1)
        remaining[ordinal] -= 1
        if not remaining[ordinal]:
            del remaining[ordinal]
            candidate_pods.remove_candidate(ordinal)
    return remaining


def _add_vreplicas(
    vpod: Vpod,
    retained: VreplicasByOrdinal,
    missing: int,
    adapter: AdapterStatefulSet,
    free_capacity: FreeCapacity,
    profile: Profile,
) -> VreplicasByOrdinal:
    max_pods = profile.max_pods
    free_before = {} if max_pods is None else dict(free_capacity.free)
    placements = _add_to_candidates(vpod, list(adapter.pods), retained, missing, adapter, free_capacity, profile)
    if max_pods is None or sum(placements.values()) == sum(retained.values()) + missing:
        return placements
    # Pods with little capacity used up the limit on the number of pods: try the pods with the most capacity instead.
    own_pods = _filter_usable_pods(retained, adapter)
    others = sorted(adapter.pods.keys() - own_pods.keys(), key=lambda ordinal: (-free_before[ordinal], ordinal))
    largest_pods = sorted((*own_pods, *others[: max(max_pods - len(own_pods), 0)]))
    after, free_capacity.free = free_capacity.free, free_before
    second_attempt = _add_to_candidates(vpod, largest_pods, retained, missing, adapter, free_capacity, profile)
    if sum(second_attempt.values()) > sum(placements.values()):
        return second_attempt
    free_capacity.free = after
    return placements


def _add_to_candidates(
    vpod: Vpod,
    candidates: Sequence[int],
    retained: VreplicasByOrdinal,
    missing: int,
    adapter: AdapterStatefulSet,
    free_capacity: FreeCapacity,
    profile: Profile,
) -> VreplicasByOrdinal:
    placements = _place_on_preferred(vpod, candidates, dict(retained), missing, adapter, free_capacity, profile)
    remaining = missing + sum(retained.values()) - sum(placements.values())
    candidate_pods = CandidatePods(adapter, profile, free_capacity.free, _filter_usable_pods(placements, adapter), candidates)
    placements = _place_one_by_one(candidate_pods, placements, remaining)
    remaining = missing + sum(retained.values()) - sum(placements.values())
    if remaining and profile.relaxed is not None:
        placements = _place_one_by_one(
            CandidatePods(adapter, profile.relaxed, free_capacity.free, candidate_pods.counts, candidates), placements, remaining
        )
    return placements


def _reschedule_all(
    vpod: Vpod, retained: VreplicasByOrdinal, adapter: AdapterStatefulSet, free_capacity: FreeCapacity, profile: Profile
) -> VreplicasByOrdinal:
    """Place all vreplicas again; if not all fit, return the previous placements. These can be more than desired; the surplus is
    removed only if some are on a pod that may keep none, or that exceeds its capacity."""
    free_capacity.release(retained)
    placements = _place_all_vreplicas(vpod, adapter, free_capacity, profile)
    if sum(placements.values()) == vpod.expected:
        return placements
    free_capacity.release(placements)
    free_capacity.reserve(vpod.placements)
    surplus = sum(vpod.placements.values()) - vpod.expected
    if surplus <= 0 or vpod.placements == _filter_usable_pods(retained, adapter):
        return vpod.placements
    placements = _remove_from_unusable_pods(vpod.placements, surplus, adapter)
    free_capacity.release(vpod.placements)
    free_capacity.reserve(placements)
    return _remove_from_last_pods(placements, max(sum(placements.values()) - vpod.expected, 0), free_capacity)


def _place_all_vreplicas(
    vpod: Vpod, adapter: AdapterStatefulSet, free_capacity: FreeCapacity, profile: Profile
) -> VreplicasByOrdinal:
    pods = list(adapter.pods)
    counts = dict.fromkeys(_filter_usable_pods(vpod.placements, adapter), 0)
    placements = _place_on_preferred(vpod, pods, {}, vpod.expected, adapter, free_capacity, profile)
    candidate_pods = CandidatePods(adapter, profile, free_capacity.free, counts | placements, pods)
    return _place_one_by_one(candidate_pods, placements, vpod.expected - sum(placements.values()))


def _place_on_preferred(
    vpod: Vpod,
    candidates: Sequence[int],
    placements: VreplicasByOrdinal,
    missing: int,
    adapter: AdapterStatefulSet,
    free_capacity: FreeCapacity,
    profile: Profile,
) -> VreplicasByOrdinal:
    """Place up to `missing` vreplicas on those of the candidates that the vpod prefers, as the profile spreads them."""
    preferred = [ordinal for ordinal in vpod.preferred if ordinal in candidates]
    if not preferred:
        return placements
    counts = _filter_usable_pods(placements, adapter)
    return _place_one_by_one(CandidatePods(adapter, profile, free_capacity.free, counts, preferred), placements, missing)


def _move_to_preferred(
    vpod: Vpod,
    placements: VreplicasByOrdinal,
    adapter: AdapterStatefulSet,
    free_capacity: FreeCapacity,
    strategy: SchedulingStrategy,
) -> VreplicasByOrdinal:
    """Move vreplicas from other usable pods to preferred ones while the predicates admit them; the last of these pods is emptied first.

    If all are rescheduled, they are placed again at once, unless that brings no more of them to preferred pods.
    """
    preferred = frozenset(vpod.preferred).intersection(adapter.pods)
    others = [ordinal for ordinal in sorted(placements, reverse=True) if ordinal in adapter.pods and ordinal not in preferred]
    if not preferred or not others:
        return placements
    profile = Profile((), ()) if strategy.max_fill_up else strategy.scheduler_profile
    if strategy.reschedules_all and not strategy.max_fill_up:
        free_capacity.release(placements)
        again = _place_all_vreplicas(vpod, adapter, free_capacity, profile)
        gained = sum(number for ordinal, number in again.items() if ordinal in preferred)
        if sum(again.values()) == vpod.expected and gained > sum(placements.get(ordinal, 0) for ordinal in preferred):
            return again
        free_capacity.release(again)
        free_capacity.reserve(placements)
        return placements
    moved = dict(placements)
    for ordinal in others:
        while ordinal in moved and _move_one(vpod, ordinal, moved, adapter, free_capacity, profile):
            continue
    return moved


def _move_one(
    vpod: Vpod,
    ordinal: int,
    placements: VreplicasByOrdinal,
    adapter: AdapterStatefulSet,
    free_capacity: FreeCapacity,
    profile: Profile,
) -> bool:
    """Move one vreplica from a pod to a preferred one, and return whether one takes it."""
    candidates = [one for one in vpod.preferred if one in adapter.pods and free_capacity.free[one] > 0]
    before = dict(placements)
    _decrease(placements, ordinal)
    free_capacity.release({ordinal: 1})
    placed = _place_on_preferred(vpod, candidates, placements, 1, adapter, free_capacity, profile)
    if sum(placed.values()) == sum(before.values()):
        return True
    free_capacity.reserve({ordinal: 1})
    placements.clear()
    placements.update(before)
    return False


def _decrease(placements: VreplicasByOrdinal, ordinal: int) -> None:
    placements[ordinal] -= 1
    if not placements[ordinal]:
        del placements[ordinal]


def _place_one_by_one(candidate_pods: CandidatePods, placements: VreplicasByOrdinal, missing: int) -> VreplicasByOrdinal:
    for _ in range(missing):
        ordinal = candidate_pods.find_best()
        if ordinal is None:
            break
        candidate_pods.add_vreplicas(ordinal)
        placements[ordinal] = placements.get(ordinal, 0) + 1
    return placements


def _fill_up_pods(
    vpod: Vpod, retained: VreplicasByOrdinal, missing: int, adapter: AdapterStatefulSet, free_capacity: FreeCapacity
) -> VreplicasByOrdinal:
    """Fill up the preferred pods, then the pods of the vpod, then the others by ordinal."""
    placements = dict(retained)
    preferred = (ordinal for ordinal in vpod.preferred if ordinal in adapter.pods)
    for ordinal in (*preferred, *_filter_usable_pods(retained, adapter), *adapter.pods):
        count = min(free_capacity.free[ordinal], missing)
        if count > 0:
            placements[ordinal] = placements.get(ordinal, 0) + count
            free_capacity.free[ordinal] -= count
            missing -= count
    return placements


def _remove_from_last_pods(retained: VreplicasByOrdinal, surplus: int, free_capacity: FreeCapacity) -> VreplicasByOrdinal:
    """Remove vreplicas from the pods that were added last."""
    placements = dict(retained)
    for ordinal in reversed(retained):
        removed = min(placements[ordinal], surplus)
        surplus -= removed
        placements[ordinal] -= removed
        free_capacity.release({ordinal: removed})
        if not placements[ordinal]:
            del placements[ordinal]
    return placements


def _keep_on_unschedulable_pods(
    vpod: Vpod, placements: VreplicasByOrdinal, adapter: AdapterStatefulSet, free_capacity: FreeCapacity
) -> None:
    """Keep vreplicas that fit nowhere else on their unschedulable pod: a consumer there is better than none."""
    missing = vpod.expected - sum(placements.values())
    for ordinal, count in vpod.placements.items():
        kept_count = min(count, missing, free_capacity.free.get(ordinal, adapter.capacity))
        if kept_count > 0 and ordinal in adapter.unschedulable and ordinal < adapter.replicas:
            placements[ordinal] = kept_count
            missing -= kept_count
            free_capacity.reserve({ordinal: kept_count})


def _filter_usable_pods(placements: VreplicasByOrdinal, adapter: AdapterStatefulSet) -> VreplicasByOrdinal:
    return {ordinal: count for ordinal, count in placements.items() if ordinal in adapter.pods}
