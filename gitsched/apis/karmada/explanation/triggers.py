"""Explain why a workload was scheduled, or was not, and when time alone will move it."""

from __future__ import annotations

from datetime import datetime

from gitsched.apis.karmada.binding.resource_binding import (
    REBALANCE_REQUESTED,
    REPLICAS_CHANGED,
    PreviousState,
    SchedulingPass,
    binding_key,
    is_rebalance_pending,
)
from gitsched.apis.karmada.binding.scheduling_pass import is_scheduling_skipped
from gitsched.apis.karmada.failover.failback import read_failback_timers
from gitsched.apis.karmada.failover.graceful_eviction import APPLICATION_FAILURE
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.state import KarmadaState
from gitsched.model.document import Body, Document, read_annotations
from gitsched.model.scheduling import Outcome
from gitsched.model.time import add_duration, format_time


def describe_trigger(state: KarmadaState, policy: PropagationPolicy, decisive: SchedulingPass, outcome: Outcome) -> str:
    if outcome.state == "stale" or not outcome.records:
        return f"Not applied: {outcome.reason}."
    removed = [target.name for target in decisive.previous.clusters if target not in decisive.current.clusters]
    evicted = _describe_evictions(removed, decisive.current.eviction_tasks)
    trigger = decisive.trigger
    if trigger == REPLICAS_CHANGED and not decisive.current.clusters:
        trigger = "no cluster has it"
    if trigger is not None and is_rebalance_pending(decisive.current):
        request = state.reschedule_triggers.describe_trigger(binding_key(outcome.key), decisive.current)
        trigger = request if trigger == REBALANCE_REQUESTED else f"{trigger}, without regard to present replicas because {request}"
    return f"{_explain_trigger(policy, decisive.current, trigger)}{evicted}"


def _describe_evictions(removed: list[str], tasks: tuple[Body, ...]) -> str:
    reasons = {task.get("fromCluster"): task.get("reason") for task in tasks}
    failed = [name for name in removed if reasons.get(name) == APPLICATION_FAILURE]
    tainted = [name for name in removed if name not in failed]
    text = f" Evicted by a NoExecute taint: {', '.join(tainted)}." if tainted else ""
    return f"{text} Evicted because it was unhealthy for too long: {', '.join(failed)}." if failed else text


def describe_health_timers(state: KarmadaState, template: Document, policy: PropagationPolicy, outcome: Outcome) -> str:
    """Say when the workload is evicted from a cluster because of its health."""
    if outcome.state == "stale" or not outcome.records:
        return ""
    annotations = read_annotations(outcome.records[0][1])
    timers = state.failover.list_health_timers(template, policy, annotations, outcome.replicas_by_cluster)
    return "".join(
        f" It is unhealthy in {name} since {format_time(since)}, and is evicted at {format_time(end)} unless it recovers."
        for name, since, end in timers
    )


def describe_toleration_timers(state: KarmadaState, time: datetime, outcome: Outcome) -> str:
    """Say when a limited toleration of a NoExecute taint expires."""
    if outcome.state == "stale" or not outcome.records:
        return ""
    annotations = read_annotations(outcome.records[0][1])
    timers = state.failover.list_toleration_timers(annotations, outcome.replicas_by_cluster, time)
    return "".join(
        f" It is evicted from {name} at {format_time(end)} unless the NoExecute taint is removed." for name, _, end in timers
    )


def describe_failback_timers(state: KarmadaState, outcome: Outcome) -> str:
    """Say when the workload returns to an earlier affinity group."""
    if outcome.state == "stale" or not outcome.records:
        return ""
    settings = state.settings.failback
    timers = read_failback_timers(read_annotations(outcome.records[0][1]))
    return "".join(
        f" It returns to group {name} at {format_time(add_duration(since, settings.after))} if that group can run it until then, "
        f"as it could since {format_time(since)}."
        for name, since in timers
    )


def _explain_trigger(policy: PropagationPolicy, current: PreviousState, trigger: str | None) -> str:
    if trigger is None:
        return "Not scheduled again: placement and replicas are unchanged, and no rebalance was requested."
    if is_scheduling_skipped(policy, suspended=current.scheduling_suspended):
        name = policy.spec.get("schedulerName")
        return f"Not scheduled: {'scheduling is suspended' if current.scheduling_suspended else f'it is for scheduler {name}'}."
    return f"Scheduled because {'it was never scheduled before' if current.applied_placement is None else trigger}."
