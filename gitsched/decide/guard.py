"""List the moves of a plan, and refuse a plan that removes too many workloads from all of their clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gitsched.apis.gitsched.config import Config
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.plan_state import PreviousOutput
from gitsched.decide.registry import find_policy_api
from gitsched.model.changes import Move
from gitsched.model.document import Body, parse_api_group
from gitsched.model.scheduling import Outcome

MAX_NAMED_WORKLOADS = 5
"""The maximum number of workloads that the message of the guard lists."""

REMOVED_REASON = "removed from the source"
UNSELECTED_REASON = "no longer selected by a policy"

HadWorkloads = Callable[[str], bool]
"""Whether a cluster received workloads in the previous output. False for a cluster without a document, even if bindings refer to it."""


def list_moves(outcomes: Iterable[Outcome], had_workloads: HadWorkloads) -> Iterator[Move]:
    """Yield a move for each outcome whose clusters or replicas differ from the previous output, in the order of the outcomes."""
    for outcome in outcomes:
        before, after = _list_previous_replicas(outcome, had_workloads), outcome.replicas_by_cluster
        if before != after:
            yield Move(outcome.key, before, after, describe_reason(outcome))


def describe_reason(outcome: Outcome) -> str:
    """Describe in one line why a workload has its placement."""
    return "; ".join(filter(None, (outcome.reason, outcome.trigger)))


def list_removed_workloads(decisions: DecisionSet, previous: PreviousOutput) -> list[Move]:
    """Return a move for each workload that the previous output placed and that no API places now."""
    recorded = [key for outcome in decisions.outcomes.values() for key, _ in outcome.records]
    moves = []
    for body in previous.list_other_records(recorded):
        move = _make_removal(body, decisions)
        if move is not None:
            moves.append(move)
    return moves


def _make_removal(record: Body, decisions: DecisionSet) -> Move | None:
    """Return the move of the workload that a record belongs to; None for a record without a placement."""
    api = find_policy_api(parse_api_group(str(record.get("apiVersion") or record.get("api") or "")))
    removed = api.read_removed_workload(record) if api is not None and api.read_removed_workload is not None else None
    if removed is None:
        return None
    reason = REMOVED_REASON
    if removed.key in decisions.templates:
        reason = "no workload depends on it" if removed.dependent else UNSELECTED_REASON
    return Move(removed.key, removed.replicas, {}, reason)


def _list_previous_replicas(outcome: Outcome, had_workloads: HadWorkloads) -> dict[str, int | None]:
    """Return the replicas of a workload by cluster in the previous output, without clusters that it was being evicted from."""
    return {
        target.cluster: target.replicas
        for target in outcome.previous_targets
        if not target.evicting and had_workloads(target.cluster)
    }


def check_removal_guard(decided: Iterable[Outcome], had_workloads: HadWorkloads, workload_count: int, config: Config) -> str:
    """Return why the plan is refused, or "". It is refused when too many workloads become unplaced while policies still select them,
    because delivery tools would prune them.

    `decided` are the outcomes that this run decided, of `workload_count` workloads in all.
    """
    lost = [
        outcome
        for outcome in decided
        if outcome.previous_targets and not outcome.replicas_by_cluster and _list_previous_replicas(outcome, had_workloads)
    ]
    percent = 100 * len(lost) / workload_count if workload_count else 0.0
    if len(lost) <= config.guard.max_removals or percent <= config.guard.max_removals_percent:
        return ""
    first = ", ".join(str(outcome.key) for outcome in sorted(lost, key=lambda outcome: outcome.key)[:MAX_NAMED_WORKLOADS])
    more = ", ..." if len(lost) > MAX_NAMED_WORKLOADS else ""
    return f"{len(lost)} of {workload_count} workloads would lose their last placement ({first}{more})"
