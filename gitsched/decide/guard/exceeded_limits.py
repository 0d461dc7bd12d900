"""Find the changes of a plan that exceed a limit of the guard, with those of workloads that follow the same decisions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.guard_config import MIN_PERCENT_SIZE, GuardConfig
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.engines import collect_cluster_facts
from gitsched.decide.guard.large_changes import GuardedMoves, find_returning, find_withheld_changes, list_guarded_moves
from gitsched.decide.guard.mistaken_selections import add_mistaken_selections, find_mistaken_selections
from gitsched.decide.guard.observed_moves import (
    ObservedMoves,
    exceeds_half,
    find_observed_moves,
    limit_moves,
    list_decisions,
)
from gitsched.decide.guard.scope_sizes import PlacedWorkload
from gitsched.decide.guard.withheld_changes import extend_to_followers
from gitsched.decide.guard.withheld_companions import extend_to_companions
from gitsched.decide.plan_input import PlanInput
from gitsched.decide.plan_result import HadWorkloads, list_previous_replicas, select_active
from gitsched.decide.removals import RemovedPlacement
from gitsched.decide.renames import continue_moves, find_successors, list_rename_requests
from gitsched.model.changes import NOTHING_WITHHELD, Cause, Move, RetainedCopy, WithheldChanges
from gitsched.model.document import Key

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.guard.guard_settings import GuardInput
    from gitsched.model.scheduling import Outcome


def find_exceeding_changes(
    source: PlanInput,
    decisions: DecisionSet,
    removed: Mapping[Key, RemovedPlacement],
    moves: tuple[Move, ...],
    had_workloads: HadWorkloads,
) -> WithheldChanges:
    """Return the changes that exceed a limit of the guard. Where the settings are stricter for what exceeds one, these count as well.

    A workload that continues under another name is not removed: it counts as one that moves to the clusters of the other one.
    """
    own = source.source.config.guard
    successors = find_successors(list_rename_requests(decisions), removed) if removed else {}
    moves = continue_moves(moves, successors)
    guarded = guard_moves(moves, decisions.engines, had_workloads, source.previous.retained)
    if not (guarded.is_guarded or (guarded.failover and source.guard.choose_settings(own).limits_evictions)):
        return NOTHING_WITHHELD
    continued = frozenset(outcome.key for outcome in successors.values())
    placed = list(list_placed(decisions.outcomes.values(), removed, continued, had_workloads))
    observed: ObservedMoves = {}
    if len(placed) > MIN_PERCENT_SIZE:
        observed = find_observed_moves(guarded.counted, decisions, source.guard.list_edits, source.guard.record.rate)
    mistaken = find_mistaken_selections(guarded.counted, removed, decisions.engines)

    def find(config: GuardConfig) -> WithheldChanges:
        withheld = _extend_withheld(source, guarded, placed, config, decisions, observed, mistaken)
        return extend_to_companions(withheld, guarded.every, moves, decisions.outcomes.get, removed, source.previous.records)

    return choose_withheld(source.guard, own, find)


def guard_moves(
    moves: Iterable[Move], engines: Sequence[PolicyEngine], had_workloads: HadWorkloads, retained: Iterable[RetainedCopy]
) -> GuardedMoves:
    """Return which moves of placed workloads the guard counts. Only clusters that received workloads in the last run count. `retained` are
    the copies of the previous output."""
    active = (
        move._replace(before=select_active(move.before, had_workloads))
        for move in moves
        if not move.preserved  # nothing is lost that stays in its clusters
    )
    guarded = list_guarded_moves(active, engines, len(collect_cluster_facts(engines)))
    return guarded._replace(returning=find_returning(guarded.counted, retained))


def list_placed(
    outcomes: Iterable[Outcome], removed: Mapping[Key, RemovedPlacement], continued: Collection[Key], had_workloads: HadWorkloads
) -> Iterator[PlacedWorkload]:
    """Yield the workloads of the previous output: decided and removed ones. What an earlier run placed of those that are `continued` under
    another name is no further workload."""
    for outcome in outcomes:
        if outcome.key not in continued and (before := list_previous_replicas(outcome, had_workloads)):
            yield PlacedWorkload(outcome.key, before, outcome.stays_placed)
    for key, (workload, *_) in removed.items():
        if before := select_active(workload.replicas, had_workloads):
            yield PlacedWorkload(key, before, workload.preservation is not None)


def choose_withheld(guard: GuardInput, own: GuardConfig, find: Callable[[GuardConfig], WithheldChanges]) -> WithheldChanges:
    """Return the changes of a commit with its `own` settings that are withheld, which `find` finds by the settings that count."""
    withheld = find(guard.choose_settings(own))
    later = guard.choose_later_settings(own, withheld) if withheld.moves else None
    withheld = withheld if later is None else find(later)
    return withheld._replace(lift="; ".join(guard.list_cures(own))) if withheld.freeze else withheld


def _extend_withheld(
    source: PlanInput,
    guarded: GuardedMoves,
    placed: list[PlacedWorkload],
    config: GuardConfig,
    decisions: DecisionSet,
    observed: ObservedMoves,
    mistaken: Mapping[Key, Cause],
) -> WithheldChanges:
    """Return the changes that exceed a limit, and those of other workloads that follow the same decisions; and the moves that wait."""
    if not exceeds_half(observed, placed):
        guarded = guarded._replace(limited=frozenset(observed))
    moves = guarded.every
    withheld = find_withheld_changes(guarded, placed, config, source.source.tenancy, source.guard.find_former_owner)
    withheld = add_mistaken_selections(withheld, guarded.counted, mistaken, config) if mistaken else withheld
    withheld = extend_to_followers(withheld, moves, decisions.engines, decisions.templates) if withheld.moves else withheld
    evicted = {move.key: list_decisions(move.key, decisions) for move in guarded.failover} if config.limits_evictions else {}
    rate, now = source.guard.record.rate, source.times.now
    limited = limit_moves(withheld, moves, {**observed, **evicted}, placed, decisions, config, rate, now)
    if not limited.waiting:
        return limited
    waiting = extend_to_followers(WithheldChanges(limited.waiting), moves, decisions.engines, decisions.templates).moves
    return limited._replace(waiting=tuple(move for move in waiting if move not in limited.moves))
