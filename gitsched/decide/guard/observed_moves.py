"""Limit how many decisions move workloads in a period where observations alone cause it: a metric, a score, a status or a timer.

A decision is one request to a scheduler, whatever number of workloads follows it: a Placement, an Application, a binding. It counts for the
fleet, for the namespaces of its workloads, and for the clusters that these leave or enter. At least one passes in each period.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from gitsched.apis.capabilities import ObservationFollowing, SharedDecisions
from gitsched.apis.gitsched.guard_config import MIN_PERCENT_SIZE, GuardConfig
from gitsched.decide.guard.large_changes import compute_digest
from gitsched.decide.guard.scope_sizes import PlacedWorkload
from gitsched.model.changes import Move, MoveRate, WithheldChanges
from gitsched.model.source_edits import NO_EDITS, SourceEdits
from gitsched.model.time import EPOCH, add_duration, choose_start
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.document import Key
    from gitsched.model.scheduling import Outcome

_LARGE_PART: Final = 0.5
"""Where observations alone would move a larger part of the fleet, the moves count as those of an edit."""
_OFF: Final = 100.0
_Scope = tuple[str, str]
"""A scope of the guard and the name of the namespace or cluster."""
ObservedMoves = Mapping["Key", frozenset["Key"]]
"""The decisions that each workload follows whose move observations alone cause."""


class _WaitingDecision(NamedTuple):
    """A decision that moves workloads, with its place in the order: first those that wait already, then those of the earliest event."""

    is_new: bool
    time: datetime
    namespace: str
    name: str
    key: Key
    scopes: frozenset[_Scope]


def _leaves_known_clusters(move: Move, decisions: DecisionSet) -> bool:
    """Return whether a decided workload goes from clusters that exist to others."""
    left, outcome = _list_left(move), decisions.outcomes.get(move.key)
    return bool(move.after and left) and left <= decisions.cluster_facts.keys() and outcome is not None and outcome.state != "stale"


def find_observed_moves(
    moves: Iterable[Move], decisions: DecisionSet, list_edits: Callable[[], SourceEdits | None], rate: MoveRate
) -> ObservedMoves:
    """Return the moves from one cluster to another that observations alone cause.

    A move with an edit that can have caused it is not one of them; nor is any move if the edits since the last run are not known. A move
    that waits already stays one of them as long as it has the same clusters.
    """
    leaving = [move for move in moves if _leaves_known_clusters(move, decisions)]
    if not leaving:
        return {}
    edits = list_edits()
    if edits is not None:
        api_documents = (document for listed in decisions.catalog.api_documents.values() for document in listed)
        edits = edits.add_built((*decisions.templates.values(), *api_documents))
    engines = {engine.name: engine for engine in decisions.engines}
    found: dict[Key, frozenset[Key]] = {}
    for move in leaving:
        waits = rate.waiting.get(str(move.key)) == compute_digest([move])
        document, engine = decisions.templates.get(move.key), engines.get(decisions.outcomes[move.key].api)
        if document is None or not isinstance(engine, ObservationFollowing) or (edits is None and not waits):
            continue
        followed = engine.list_observed_decisions(document, NO_EDITS if waits or edits is None else edits)
        if followed:
            found[move.key] = followed
    return found


def exceeds_half(observed: ObservedMoves, placed: Collection[PlacedWorkload]) -> bool:
    """Return whether observations alone would move more than half of the fleet."""
    return len(observed) > _LARGE_PART * sum(one.key in observed or not one.stays for one in placed)


def limit_moves(
    withheld: WithheldChanges,
    moves: tuple[Move, ...],
    observed: ObservedMoves,
    placed: Collection[PlacedWorkload],
    decisions: DecisionSet,
    config: GuardConfig,
    rate: MoveRate,
    now: datetime,
) -> WithheldChanges:
    """Return what is withheld, with the moves that wait for a later period. `rate` is what the last run recorded."""
    left = {move.key for move in withheld.moves}
    candidates = [move for move in moves if move.key in observed and move.key not in left]
    if not candidates:
        return withheld
    pending = _order_decisions(candidates, observed, decisions, rate)
    start, passed = rate.start, Counter(rate.passed)
    if start is None or now >= add_duration(start, config.period):
        passed.clear()
        event = min(one.time for one in pending)
        if rate.waiting and start is not None:
            event = add_duration(start, config.period)
        start = choose_start(min(event, now), now, config.period)
    limits = _compute_limits(placed, decisions, config)
    waiting: set[Key] = set()
    for one in pending:
        if any(passed[_write_scope(scope)] >= limits[scope] for scope in one.scopes if scope in limits):
            waiting.add(one.key)
        else:
            passed.update(map(_write_scope, one.scopes))
    late = tuple(move for move in candidates if not waiting.isdisjoint(observed[move.key]))
    counts = {name: passed[name] for name in sorted(passed)}
    return withheld._replace(
        waiting=late,
        next_period=add_duration(start, config.period) if late else None,
        rate=MoveRate(start, counts, _digest_moves(late)),
    )


def _digest_moves(moves: Iterable[Move]) -> dict[str, str]:
    return {str(move.key): compute_digest([move]) for move in moves}


def _order_decisions(
    candidates: Iterable[Move], observed: ObservedMoves, decisions: DecisionSet, rate: MoveRate
) -> list[_WaitingDecision]:
    """Return the decisions that move workloads, in the order in which they pass."""
    followed: dict[Key, list[Move]] = {}
    for move in candidates:
        for key in observed[move.key]:
            followed.setdefault(key, []).append(move)
    return sorted(
        _WaitingDecision(
            all(str(move.key) not in rate.waiting for move in moves),
            min((_find_event(decisions.outcomes[move.key], decisions) for move in moves), default=EPOCH),
            key.namespace,
            key.name,
            key,
            frozenset(scope for move in moves for scope in _list_scopes(move)),
        )
        for key, moves in followed.items()
    )


def _find_event(outcome: Outcome, decisions: DecisionSet) -> datetime:
    """Return the time of the event that led to an outcome: its own, or a later deadline of its API, such as the end of a score."""
    deadlines = (engine.time for engine in decisions.engines if engine.name == outcome.api and engine.time is not None)
    return max((outcome.time, *deadlines))


def _list_scopes(move: Move) -> Iterator[_Scope]:
    yield "fleet", ""
    yield "namespace", move.key.namespace
    yield from (("cluster", cluster) for cluster in move.before.keys() ^ move.after.keys())


def _list_left(move: Move) -> frozenset[str]:
    return frozenset(move.before.keys() - move.after.keys())


def _write_scope(scope: _Scope) -> str:
    return " ".join(filter(None, scope))


def _compute_limits(placed: Iterable[PlacedWorkload], decisions: DecisionSet, config: GuardConfig) -> dict[_Scope, int]:
    """Return how many decisions may move workloads in a period, of each scope that is large enough for a limit in percent."""
    units: dict[_Scope, set[Key]] = {}
    sizes: Counter[_Scope] = Counter()
    for workload in placed:
        key = workload.key
        followed = list_decisions(key, decisions)
        for scope in (("fleet", ""), ("namespace", key.namespace), *(("cluster", cluster) for cluster in workload.replicas)):
            sizes[scope] += 1
            units.setdefault(scope, set()).update(followed)
    limits: dict[_Scope, int] = {}
    for scope, count in sizes.items():
        percent = config.limits.get(scope[0], {}).get("movedPerPeriod")
        if percent is not None and percent < _OFF and count > MIN_PERCENT_SIZE:
            limits[scope] = max(1, math.floor(percent * len(units[scope]) / 100))
    return limits


def list_decisions(key: Key, decisions: DecisionSet) -> frozenset[Key]:
    """Return the decisions that a workload follows: those that it shares with others, else its own."""
    document = decisions.templates.get(key)
    if document is None:
        return frozenset((key,))
    shared = (engine for engine in decisions.engines if isinstance(engine, SharedDecisions))
    found = {decision for engine in shared for decision in engine.list_shared_records(document)}
    return frozenset(found) or frozenset((key,))
