"""Schedule the vreplicas of one vpod: keep valid placements, remove surplus vreplicas, add missing ones.

1. What is held on pods that are gone, on marked pods, or beyond a pod's capacity has to move; all else stays.
2. Too many: those that have to move go first, then those on pods that may take no new ones, then one at a time by the removing profile.
3. Too few: one at a time by the adding profile, each with the counts that the ones before it left. What only a soft predicate keeps
   from a place gets the most even one there is; and where the number of pods is limited, those with much room come before little.
4. Where that is not enough, what was placed stays, and so does what sits on a marked pod; or, where all are placed anew, everything
   goes back to where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gitsched.schedule.vreplicas.candidate_pods import CandidatePods
from gitsched.schedule.vreplicas.plugins import Profile
from gitsched.schedule.vreplicas.state import AdapterStatefulSet, FreeCapacity, Vpod, VreplicasByOrdinal


class SchedulingStrategy(NamedTuple):
    """How a run places. `packs` fills pods one after the other and asks no profile. `replaces`: a source that lacks vreplicas has all of
    them placed anew, or none. `removing` None means that one with too many is placed anew, too."""

    scheduler_profile: Profile
    descheduler_profile: Profile | None
    max_fill_up: bool = False
    reschedules_all: bool = False


def schedule_vpod(
    vpod: Vpod, adapter: AdapterStatefulSet, ledger: FreeCapacity, strategy: SchedulingStrategy
) -> VreplicasByOrdinal:
    """Where a source's vreplicas go, by ordinal. The ledger holds what the source had, and then what it has."""
    ledger.release(vpod.placements)
    stays = _keep_placements(vpod, adapter, ledger, strategy)
    surplus = sum(stays.values()) - vpod.expected
    if surplus > 0 and (strategy.max_fill_up or strategy.descheduler_profile is not None):
        stays = _remove_from_unusable_pods(stays, surplus, adapter)
        surplus = sum(stays.values()) - vpod.expected
    ledger.reserve(stays)
    if surplus == 0:
        shares = stays
    elif strategy.max_fill_up:
        shares = _remove_from_last_pods(stays, surplus, ledger) if surplus > 0 else _fill_up_pods(stays, -surplus, adapter, ledger)
    elif surplus > 0 and strategy.descheduler_profile is not None:
        shares = _remove_vreplicas(stays, surplus, adapter, ledger, strategy.descheduler_profile)
    elif strategy.reschedules_all:
        shares = _reschedule_all(vpod, stays, adapter, ledger, strategy.scheduler_profile)
    else:
        shares = _add_vreplicas(stays, -surplus, adapter, ledger, strategy.scheduler_profile)
    if not strategy.reschedules_all:
        _keep_on_unschedulable_pods(vpod, shares, adapter, ledger)
    return dict(sorted(shares.items()))


def count_placeable_on_new_pods(
    shares: VreplicasByOrdinal, number: int, first: int, adapter: AdapterStatefulSet, ledger: FreeCapacity, profile: Profile
) -> int:
    """How many more vreplicas of a source would find a place on new pods alone, from an ordinal on; as many of them as could do."""
    pods = -(-number // adapter.capacity)
    wider = adapter.add_pods(first, pods)
    free = {**ledger.free, **dict.fromkeys(range(first, first + pods), adapter.capacity)}
    board = CandidatePods(wider, profile.relaxed or profile, free, _filter_usable_pods(shares, wider), range(first, first + pods))
    return sum(_place_one_by_one(board, {}, number).values())


def can_keep_vreplicas(ordinal: int, adapter: AdapterStatefulSet) -> bool:
    """Whether what a pod holds may stay there. A pod that is gone for a while, or whose node is, comes back under its name."""
    return ordinal < adapter.replicas and ordinal not in adapter.unschedulable


def _keep_placements(
    vpod: Vpod, adapter: AdapterStatefulSet, ledger: FreeCapacity, strategy: SchedulingStrategy
) -> VreplicasByOrdinal:
    limited = strategy.reschedules_all or strategy.max_fill_up or strategy.scheduler_profile.enforces_capacity
    stays = {}
    for ordinal, number in vpod.placements.items():
        if can_keep_vreplicas(ordinal, adapter):
            room = ledger.free.get(ordinal, adapter.capacity)
            kept = max(min(number, room), 0) if limited else number
            if kept:
                stays[ordinal] = kept
    return stays


def _remove_from_unusable_pods(stays: VreplicasByOrdinal, surplus: int, adapter: AdapterStatefulSet) -> VreplicasByOrdinal:
    """Take away from pods that do no work now, the greatest ordinal first."""
    left = dict(stays)
    for ordinal in sorted(stays.keys() - adapter.pods.keys(), reverse=True):
        gone = min(left[ordinal], surplus)
        surplus -= gone
        left[ordinal] -= gone
        if not left[ordinal]:
            del left[ordinal]
    return left


def _remove_vreplicas(
    stays: VreplicasByOrdinal, surplus: int, adapter: AdapterStatefulSet, ledger: FreeCapacity, profile: Profile
) -> VreplicasByOrdinal:
    working = {ordinal: number for ordinal, number in stays.items() if ordinal in adapter.pods}
    board = CandidatePods(adapter, profile, ledger.free, working, list(working))
    left = dict(stays)
    for _ in range(surplus):
        ordinal = board.find_best()
        if ordinal is None:  # its predicates let nothing go, which cannot be meant
            board = CandidatePods(
                adapter, Profile((), profile.priorities), ledger.free, board.counts, list(left.keys() & working.keys())
            )
            ordinal = board.find_best()
        if ordinal is None:
            break
        board.add_vreplicas(ordinal, -1)
        left[ordinal] -= 1
        if not left[ordinal]:
            del left[ordinal]
            board.remove_candidate(ordinal)
    return left


def _add_vreplicas(
    stays: VreplicasByOrdinal, missing: int, adapter: AdapterStatefulSet, ledger: FreeCapacity, profile: Profile
) -> VreplicasByOrdinal:
    most = profile.max_pods
    before = {} if most is None else dict(ledger.free)
    shares = _add_to_candidates(list(adapter.pods), stays, missing, adapter, ledger, profile)
    if most is None or sum(shares.values()) == sum(stays.values()) + missing:
        return shares
    # A limit on the number of pods was used up by pods with little room: those with much are tried instead.
    mine = _filter_usable_pods(stays, adapter)
    others = sorted(adapter.pods.keys() - mine.keys(), key=lambda ordinal: (-before[ordinal], ordinal))
    roomy = sorted((*mine, *others[: max(most - len(mine), 0)]))
    after, ledger.free = ledger.free, before
    again = _add_to_candidates(roomy, stays, missing, adapter, ledger, profile)
    if sum(again.values()) > sum(shares.values()):
        return again
    ledger.free = after
    return shares


def _add_to_candidates(
    candidates: Sequence[int],
    stays: VreplicasByOrdinal,
    missing: int,
    adapter: AdapterStatefulSet,
    ledger: FreeCapacity,
    profile: Profile,
) -> VreplicasByOrdinal:
    board = CandidatePods(adapter, profile, ledger.free, _filter_usable_pods(stays, adapter), candidates)
    shares = _place_one_by_one(board, dict(stays), missing)
    left = missing + sum(stays.values()) - sum(shares.values())
    if left and profile.relaxed is not None:
        shares = _place_one_by_one(CandidatePods(adapter, profile.relaxed, ledger.free, board.counts, candidates), shares, left)
    return shares


def _reschedule_all(
    vpod: Vpod, stays: VreplicasByOrdinal, adapter: AdapterStatefulSet, ledger: FreeCapacity, profile: Profile
) -> VreplicasByOrdinal:
    """All anew, without looking back; or, where not all find a place, what there was. That may be more than is wanted; the surplus is
    taken away only where something sits on a pod that may take nothing, or that holds more than it can."""
    ledger.release(stays)
    entries = dict.fromkeys(_filter_usable_pods(vpod.placements, adapter), 0)
    board = CandidatePods(adapter, profile, ledger.free, entries, list(adapter.pods))
    shares = _place_one_by_one(board, {}, vpod.expected)
    if sum(shares.values()) == vpod.expected:
        return shares
    ledger.release(shares)
    ledger.reserve(vpod.placements)
    surplus = sum(vpod.placements.values()) - vpod.expected
    if surplus <= 0 or vpod.placements == _filter_usable_pods(stays, adapter):
        return vpod.placements
    shares = _remove_from_unusable_pods(vpod.placements, surplus, adapter)
    ledger.release(vpod.placements)
    ledger.reserve(shares)
    return _remove_from_last_pods(shares, max(sum(shares.values()) - vpod.expected, 0), ledger)


def _place_one_by_one(board: CandidatePods, shares: VreplicasByOrdinal, missing: int) -> VreplicasByOrdinal:
    for _ in range(missing):
        ordinal = board.find_best()
        if ordinal is None:
            break
        board.add_vreplicas(ordinal)
        shares[ordinal] = shares.get(ordinal, 0) + 1
    return shares


def _fill_up_pods(stays: VreplicasByOrdinal, missing: int, adapter: AdapterStatefulSet, ledger: FreeCapacity) -> VreplicasByOrdinal:
    """Fill up the pods that the source is on, then the others by ordinal."""
    shares = dict(stays)
    for ordinal in (*_filter_usable_pods(stays, adapter), *adapter.pods):
        number = min(ledger.free[ordinal], missing)
        if number > 0:
            shares[ordinal] = shares.get(ordinal, 0) + number
            ledger.free[ordinal] -= number
            missing -= number
    return shares


def _remove_from_last_pods(stays: VreplicasByOrdinal, surplus: int, ledger: FreeCapacity) -> VreplicasByOrdinal:
    """Empty the pods that the source came to last."""
    shares = dict(stays)
    for ordinal in reversed(stays):
        gone = min(shares[ordinal], surplus)
        surplus -= gone
        shares[ordinal] -= gone
        ledger.release({ordinal: gone})
        if not shares[ordinal]:
            del shares[ordinal]
    return shares


def _keep_on_unschedulable_pods(vpod: Vpod, shares: VreplicasByOrdinal, adapter: AdapterStatefulSet, ledger: FreeCapacity) -> None:
    """What found no other place stays on its marked pod: better a consumer there than none at all."""
    missing = vpod.expected - sum(shares.values())
    for ordinal, number in vpod.placements.items():
        kept = min(number, missing, ledger.free.get(ordinal, adapter.capacity))
        if kept > 0 and ordinal in adapter.unschedulable and ordinal < adapter.replicas:
            shares[ordinal] = kept
            missing -= kept
            ledger.reserve({ordinal: kept})


def _filter_usable_pods(shares: VreplicasByOrdinal, adapter: AdapterStatefulSet) -> VreplicasByOrdinal:
    return {ordinal: number for ordinal, number in shares.items() if ordinal in adapter.pods}
