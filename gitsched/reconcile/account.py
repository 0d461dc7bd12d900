"""What a run did, as reports take it: without a comparison, which only a plan needs."""

from __future__ import annotations

from gitsched.reconcile.settings import Run
from gitsched.report.review import Review


def review(run: Run) -> Review:
    """What reports know of a run alone."""
    plan = run.plan
    return Review(
        source=run.source,
        branch=run.branch,
        place=run.place,
        before=run.before,
        after=run.after,
        changed=run.changed,
        refused=run.refused,
        outcomes=plan.outcomes.values(),
        counted=plan.states,
        clusters=plan.clusters,
        moves=plan.moves,
        findings=plan.findings,
        unclaimed=plan.unclaimed,
        next_wakeup=plan.next_wakeup,
        time=plan.time,
        reviewed=run.reviewed,
        choices=run.choices,
    )
