"""Find the rollouts in which a workload waits for its stage, and when they began and stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.model.explanation import ExplainedRollout, Explanation
from gitsched.model.history import RolloutHistory
from gitsched.reconcile.review.rollout_histories import find_rollout_histories

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.decide.plan_result import Plan
    from gitsched.model.document import Key
    from gitsched.reconcile.run import Fetched, RunContext


def list_rollouts(plan: Plan, key: Key, now: datetime) -> tuple[ExplainedRollout, ...]:
    """Return the rollouts of a plan in which clusters do not have a workload yet as it was decided."""
    found = []
    statuses = {one.name: one for one in plan.rollouts}
    for record in plan.rollout_records:
        held = [one for one in record.held if one.workload == key]
        if held and record.name in statuses:
            kept = tuple(sorted(one.cluster for one in held if one.paths))
            lacking = tuple(sorted(one.cluster for one in held if not one.paths))
            found.append(ExplainedRollout(statuses[record.name], kept, lacking, RolloutHistory(), now))
    return tuple(found)


def add_rollout_histories(context: RunContext, fetched: Fetched, found: Explanation) -> Explanation:
    """Return an explanation with when the rollouts that its workload waits for began and stopped."""
    rollouts = found.delivery.rollouts
    if not rollouts:
        return found
    histories = find_rollout_histories(context, fetched, [one.status for one in rollouts])
    known = tuple(one._replace(history=histories.get(one.status.name, one.history)) for one in rollouts)
    return found._replace(delivery=found.delivery._replace(rollouts=known))
