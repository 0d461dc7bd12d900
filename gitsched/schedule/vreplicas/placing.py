"""Place the vreplicas of one source: keep what has a place, or place all of them anew.

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

from gitsched.schedule.vreplicas.adapter import Adapter, Shares, Vpod
from gitsched.schedule.vreplicas.board import Board
from gitsched.schedule.vreplicas.ledger import Ledger
from gitsched.schedule.vreplicas.profile import Profile


class Strategy(NamedTuple):
    """How a run places. `packs` fills pods one after the other and asks no profile. `replaces`: a source that lacks vreplicas has all of
    them placed anew, or none. `removing` None means that one with too many is placed anew, too."""

    adding: Profile
    removing: Profile | None
    packs: bool = False
    replaces: bool = False


def place(vpod: Vpod, adapter: Adapter, ledger: Ledger, strategy: Strategy) -> Shares:
    """Where a source's vreplicas go, by ordinal. The ledger holds what the source had, and then what it has."""
    ledger.give(vpod.held)
    stays = _stay(vpod, adapter, ledger, strategy)
    surplus = sum(stays.values()) - vpod.wanted
    if surplus > 0 and (strategy.packs or strategy.removing is not None):
        stays = _remove_idle(stays, surplus, adapter)
        surplus = sum(stays.values()) - vpod.wanted
    ledger.take(stays)
    if surplus == 0:
        shares = stays
    elif strategy.packs:
        shares = _unpack(stays, surplus, ledger) if surplus > 0 else _pack(stays, -surplus, adapter, ledger)
    elif surplus > 0 and strategy.removing is not None:
        shares = _remove(stays, surplus, adapter, ledger, strategy.removing)
    elif strategy.replaces:
        shares = _replace(vpod, stays, adapter, ledger, strategy.adding)
    else:
        shares = _add(stays, -surplus, adapter, ledger, strategy.adding)
    if not strategy.replaces:
        _linger(vpod, shares, adapter, ledger)
    return dict(sorted(shares.items()))


def try_new_pods(shares: Shares, number: int, first: int, adapter: Adapter, ledger: Ledger, profile: Profile) -> int:
    """How many more vreplicas of a source would find a place on new pods alone, from an ordinal on; as many of them as could do."""
    pods = -(-number // adapter.capacity)
    wider = adapter.extend(first, pods)
    free = {**ledger.free, **dict.fromkeys(range(first, first + pods), adapter.capacity)}
    board = Board(wider, profile.relaxed or profile, free, _on_pods(shares, wider), range(first, first + pods))
    return sum(_fill(board, {}, number).values())


def may_stay(ordinal: int, adapter: Adapter) -> bool:
    """Whether what a pod holds may stay there. A pod that is gone for a while, or whose node is, comes back under its name."""
    return ordinal < adapter.replicas and ordinal not in adapter.marked


def _stay(vpod: Vpod, adapter: Adapter, ledger: Ledger, strategy: Strategy) -> Shares:
    limited = strategy.replaces or strategy.packs or strategy.adding.limited
    stays = {}
    for ordinal, number in vpod.held.items():
        if may_stay(ordinal, adapter):
            room = ledger.free.get(ordinal, adapter.capacity)
            kept = max(min(number, room), 0) if limited else number
            if kept:
                stays[ordinal] = kept
    return stays


def _remove_idle(stays: Shares, surplus: int, adapter: Adapter) -> Shares:
    """Take away from pods that do no work now, the greatest ordinal first."""
    left = dict(stays)
    for ordinal in sorted(stays.keys() - adapter.pods.keys(), reverse=True):
        gone = min(left[ordinal], surplus)
        surplus -= gone
        left[ordinal] -= gone
        if not left[ordinal]:
            del left[ordinal]
    return left


def _remove(stays: Shares, surplus: int, adapter: Adapter, ledger: Ledger, profile: Profile) -> Shares:
    working = {ordinal: number for ordinal, number in stays.items() if ordinal in adapter.pods}
    board = Board(adapter, profile, ledger.free, working, list(working))
    left = dict(stays)
    for _ in range(surplus):
        ordinal = board.pick()
        if ordinal is None:  # its predicates let nothing go, which cannot be meant
            board = Board(adapter, Profile((), profile.priorities), ledger.free, board.counts, list(left.keys() & working.keys()))
            ordinal = board.pick()
        if ordinal is None:
            break
        board.put(ordinal, -1)
        left[ordinal] -= 1
        if not left[ordinal]:
            del left[ordinal]
            board.withdraw(ordinal)
    return left


def _add(stays: Shares, missing: int, adapter: Adapter, ledger: Ledger, profile: Profile) -> Shares:
    most = profile.most_pods
    before = {} if most is None else dict(ledger.free)
    shares = _add_to(list(adapter.pods), stays, missing, adapter, ledger, profile)
    if most is None or sum(shares.values()) == sum(stays.values()) + missing:
        return shares
    # A limit on the number of pods was used up by pods with little room: those with much are tried instead.
    mine = _on_pods(stays, adapter)
    others = sorted(adapter.pods.keys() - mine.keys(), key=lambda ordinal: (-before[ordinal], ordinal))
    roomy = sorted((*mine, *others[: max(most - len(mine), 0)]))
    after, ledger.free = ledger.free, before
    again = _add_to(roomy, stays, missing, adapter, ledger, profile)
    if sum(again.values()) > sum(shares.values()):
        return again
    ledger.free = after
    return shares


def _add_to(candidates: Sequence[int], stays: Shares, missing: int, adapter: Adapter, ledger: Ledger, profile: Profile) -> Shares:
    board = Board(adapter, profile, ledger.free, _on_pods(stays, adapter), candidates)
    shares = _fill(board, dict(stays), missing)
    left = missing + sum(stays.values()) - sum(shares.values())
    if left and profile.relaxed is not None:
        shares = _fill(Board(adapter, profile.relaxed, ledger.free, board.counts, candidates), shares, left)
    return shares


def _replace(vpod: Vpod, stays: Shares, adapter: Adapter, ledger: Ledger, profile: Profile) -> Shares:
    """All anew, without looking back; or, where not all find a place, what there was. That may be more than is wanted; the surplus is
    taken away only where something sits on a pod that may take nothing, or that holds more than it can."""
    ledger.give(stays)
    entries = dict.fromkeys(_on_pods(vpod.held, adapter), 0)
    board = Board(adapter, profile, ledger.free, entries, list(adapter.pods))
    shares = _fill(board, {}, vpod.wanted)
    if sum(shares.values()) == vpod.wanted:
        return shares
    ledger.give(shares)
    ledger.take(vpod.held)
    surplus = sum(vpod.held.values()) - vpod.wanted
    if surplus <= 0 or vpod.held == _on_pods(stays, adapter):
        return vpod.held
    shares = _remove_idle(vpod.held, surplus, adapter)
    ledger.give(vpod.held)
    ledger.take(shares)
    return _unpack(shares, max(sum(shares.values()) - vpod.wanted, 0), ledger)


def _fill(board: Board, shares: Shares, missing: int) -> Shares:
    for _ in range(missing):
        ordinal = board.pick()
        if ordinal is None:
            break
        board.put(ordinal)
        shares[ordinal] = shares.get(ordinal, 0) + 1
    return shares


def _pack(stays: Shares, missing: int, adapter: Adapter, ledger: Ledger) -> Shares:
    """Fill up the pods that the source is on, then the others by ordinal."""
    shares = dict(stays)
    for ordinal in (*_on_pods(stays, adapter), *adapter.pods):
        number = min(ledger.free[ordinal], missing)
        if number > 0:
            shares[ordinal] = shares.get(ordinal, 0) + number
            ledger.free[ordinal] -= number
            missing -= number
    return shares


def _unpack(stays: Shares, surplus: int, ledger: Ledger) -> Shares:
    """Empty the pods that the source came to last."""
    shares = dict(stays)
    for ordinal in reversed(stays):
        gone = min(shares[ordinal], surplus)
        surplus -= gone
        shares[ordinal] -= gone
        ledger.give({ordinal: gone})
        if not shares[ordinal]:
            del shares[ordinal]
    return shares


def _linger(vpod: Vpod, shares: Shares, adapter: Adapter, ledger: Ledger) -> None:
    """What found no other place stays on its marked pod: better a consumer there than none at all."""
    missing = vpod.wanted - sum(shares.values())
    for ordinal, number in vpod.held.items():
        kept = min(number, missing, ledger.free.get(ordinal, adapter.capacity))
        if kept > 0 and ordinal in adapter.marked and ordinal < adapter.replicas:
            shares[ordinal] = kept
            missing -= kept
            ledger.take({ordinal: kept})


def _on_pods(shares: Shares, adapter: Adapter) -> Shares:
    return {ordinal: number for ordinal, number in shares.items() if ordinal in adapter.pods}
