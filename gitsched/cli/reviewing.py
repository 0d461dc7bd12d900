"""From a run to what is shown of it, and to the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.cli import exit_codes
from gitsched.report.review import Review

if TYPE_CHECKING:
    from gitsched.reconcile import Run


def review(run: Run) -> Review:
    """What reports know of a run."""
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
        moves=plan.moves,
        findings=plan.findings,
        unclaimed=plan.unclaimed,
        next_wakeup=plan.next_wakeup,
        time=plan.time,
    )


def judge(reviewed: Review, fail_on: exit_codes.FailOn, *, detailed: bool = False) -> int:
    """The exit code for a run; `detailed` is --detailed-exitcode."""
    return exit_codes.judge_run(
        reviewed.findings,
        fail_on,
        pending=reviewed.states["pending"],
        refused=bool(reviewed.refused),
        changes=detailed and reviewed.changed,
    )
