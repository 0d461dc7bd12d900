"""What a pass over a workload leaves behind: the scheduler's answer against what was there before (spec/karmada.md §8)."""

from __future__ import annotations

from datetime import datetime

from gitsched.apis.karmada.binding import Memory, Result
from gitsched.apis.karmada.policy import Policy
from gitsched.apis.karmada.triggers import is_rebalance_pending
from gitsched.model.decision import Decision
from gitsched.model.time import parse_time

_REASON = {"scheduled": "Success", "no-fit": "NoClusterFit", "unschedulable": "Unschedulable", "error": "SchedulerError"}


def settle(decision: Decision | None, policy: Policy, before: Memory, memory: Memory, moment: datetime) -> Result:
    """What a decision leaves in the binding (spec/karmada.md §8). Times move only when something a reader cares about did."""
    reason, message = str(memory.condition.get("reason") or ""), str(memory.condition.get("message") or "")
    clusters, applied, observed = memory.clusters, memory.applied, memory.observed
    scheduled = memory.scheduled
    if decision is not None:
        reason, message = _REASON[decision.outcome], decision.message
        if decision.outcome in ("scheduled", "no-fit"):
            # The same targets in another order, as more room here or there gives them, are no other decision.
            clusters = clusters if set(clusters) == set(decision.targets) else decision.targets
            applied = policy.applied
        if decision.outcome == "scheduled" and decision.group:
            observed = decision.group
        pending = is_rebalance_pending(memory)
        changed = set(clusters) != set(before.clusters) or observed != before.observed or pending
        if decision.outcome == "scheduled" and (changed or scheduled is None or before.condition.get("reason") != reason):
            # What was asked for until now is done, also by a clock that is ahead and before anything was placed.
            scheduled = max(moment, memory.triggered or moment)
    same = before.condition.get("reason") == reason
    transition = parse_time(before.condition.get("lastTransitionTime")) if same else moment
    return Result(clusters, memory.tasks, applied, observed, reason, message, scheduled, transition or moment)
