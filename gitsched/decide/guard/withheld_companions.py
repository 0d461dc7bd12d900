"""Withhold the moves of objects that follow withheld workloads, such as their Services: a run that keeps the workloads keeps these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from typing import TYPE_CHECKING

from gitsched.decide.guard.large_changes import add_moves
from gitsched.decide.registry import read_required_by
from gitsched.model.changes import Move, WithheldChanges
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.model.document import Body, Key
    from gitsched.model.scheduling import Outcome

_RecordName = tuple[str, str]


class _Requirement(NamedTuple):
    """The records of a workload, and those of the workloads that bring it along now or did before, as (namespace, name)."""

    records: frozenset[_RecordName]
    required_by: frozenset[_RecordName]


def extend_to_companions(
    withheld: WithheldChanges,
    guarded: Iterable[Move],
    moves: Collection[Move],
    find_outcome: Callable[[Key], Outcome | None],
    removed: Mapping[Key, RemovedPlacement],
    previous: Mapping[Key, Body],
) -> WithheldChanges:
    """Return the withheld changes with the `guarded` moves of objects that only withheld workloads bring along. `moves` are all moves of
    the plan: an object that a moving workload brings along as well goes where that one goes. `previous` are the previous records."""
    if not withheld.kept:
        return withheld
    known = {move.key: _read_requirement(move.key, find_outcome, removed, previous) for move in moves}
    following = {key: found for key, found in known.items() if found.required_by}
    if not following:
        return withheld
    leaving = {move.key for move in moves if move.before.keys() != move.after.keys()}
    stopped = _add_following({move.key for move in withheld.moves}, leaving, known, following)
    delayed = _add_following({move.key for move in withheld.kept}, leaving, known, following) - stopped
    return _add_moves(withheld, stopped, delayed, guarded)


def _add_moves(withheld: WithheldChanges, stopped: Set[Key], delayed: Set[Key], guarded: Iterable[Move]) -> WithheldChanges:
    """Return the withheld changes with the moves of companions that are `stopped`, and with those that wait for a later period."""
    own = {move.key for move in withheld.kept}
    candidates = [move for move in guarded if move.key not in own]
    added, waiting = (tuple(move for move in candidates if move.key in keys) for keys in (stopped, delayed))
    withheld = add_moves(withheld, added) if added else withheld
    companions = frozenset(move.key for move in (*added, *waiting))
    return withheld._replace(waiting=(*withheld.waiting, *waiting), companions=companions)


def _add_following(
    keys: Set[Key], leaving: Set[Key], known: Mapping[Key, _Requirement], following: Mapping[Key, _Requirement]
) -> set[Key]:
    """Return some workloads with those that only they bring along, and with what these bring along."""
    found = set(keys)
    while True:
        kept, moving = (
            {name for key in chosen if key in known for name in known[key].records} for chosen in (found, leaving - found)
        )
        added = {
            key
            for key, one in following.items()
            if key not in found and not one.required_by.isdisjoint(kept) and one.required_by.isdisjoint(moving - one.records)
        }
        if not added:
            return found
        found |= added


def _read_requirement(
    key: Key, find_outcome: Callable[[Key], Outcome | None], removed: Mapping[Key, RemovedPlacement], previous: Mapping[Key, Body]
) -> _Requirement:
    """Return what brings a workload along that moves or is removed."""
    entry, outcome = removed.get(key), find_outcome(key)
    if entry is not None:
        record, _ = entry.record
        return _Requirement(frozenset({(record.namespace, record.name)}), entry.workload.required_by)
    if outcome is None:
        return _Requirement(frozenset(), frozenset())
    bodies = [body for record, body in outcome.records] + [previous[record] for record, _ in outcome.records if record in previous]
    records = frozenset((record.namespace, record.name) for record, _ in outcome.records)
    return _Requirement(records, read_required_by(outcome.api, bodies))
