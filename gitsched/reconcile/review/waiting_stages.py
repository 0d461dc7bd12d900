"""Find the rollouts in which a workload waits for its stage, and when they began and stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.model.explanation import ExplainedRollout, Explanation, ReplicaShare
from gitsched.model.history import RolloutHistory
from gitsched.reconcile.review.rollout_histories import find_rollout_histories

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from gitsched.decide.plan_result import Plan
    from gitsched.model.document import Key
    from gitsched.reconcile.run import Fetched, RunContext


def list_rollouts(
    plan: Plan, key: Key, result: Iterable[ReplicaShare], copied: Mapping[str, int | None], now: datetime
) -> tuple[ExplainedRollout, ...]:
    """Return the rollouts of a plan in which clusters do not have a workload yet as it was decided, given what is delivered of it, and the
    replicas of copies that stay for an overlap."""
    found = []
    statuses = {one.name: one for one in plan.rollouts}
    shares = {share.cluster: share for share in result}
    running = {**copied} | {name: share.replicas if share.copied is None else share.copied for name, share in shares.items()}
    for record in plan.rollout_records:
        held = [one for one in record.held if one.workload == key]
        if held and record.name in statuses:
            kept = {one.cluster: running.get(one.cluster) for one in sorted(held) if one.paths}
            lacking = {one.cluster: _find_assigned(shares.get(one.cluster)) for one in sorted(held) if not one.paths}
            updated = {name: running[name] for name in shares if name not in kept and name not in lacking}
            found.append(ExplainedRollout(statuses[record.name], updated, kept, lacking, RolloutHistory(), now))
    return tuple(found)


def _find_assigned(share: ReplicaShare | None) -> int | None:
    """Return the replicas that a cluster without any gets in its turn; None if that is not known."""
    return share.assigned if share is not None else None


def add_rollout_histories(context: RunContext, fetched: Fetched, found: Explanation) -> Explanation:
    """Return an explanation with when the rollouts that its workload waits for began and stopped."""
    rollouts = found.delivery.rollouts
    if not rollouts:
        return found
    histories = find_rollout_histories(context, fetched, [one.status for one in rollouts])
    known = tuple(one._replace(history=histories.get(one.status.name, one.history)) for one in rollouts)
    return found._replace(delivery=found.delivery._replace(rollouts=known))
