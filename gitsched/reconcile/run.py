"""Settings and result of one run, and the result as reports read it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from gitsched.decide.plan import Plan
from gitsched.diff.plans import ReviewedPlan
from gitsched.model.changes import SelectionChange
from gitsched.report.review import Review


class RunSettings(NamedTuple):
    """None means: what gitsched.yaml says, else the default.

    `observations` is live or recorded; `hosts` are the only ones that may be asked for live ones (None: all); `trusted` says that the
    documents may be followed to whom they name.

    `reviewed` is the plan that somebody reviewed, where no trailer of the source commit names it; `require_reviewed`: nothing else
    may be written.

    `location` is a path or URL. `revision` and `worktree` (the files as they lie in the work tree) are for looking only. `output` is
    another repository for the decisions, `push` a remote's name or URL. `signing` is (ssh or gpg, key). `checking`: only findings are
    wanted, wherever the output may be.
    """

    now: datetime
    cache: Path
    location: str = "."
    branch: str | None = None
    revision: str | None = None
    worktree: bool = False
    output: str | None = None
    output_branch: str | None = None
    push: str | None = None
    paths: tuple[str, ...] = ()
    allow_removals: bool = False
    author: tuple[str, str] | None = None
    signing: tuple[str, str] | None = None
    observations: str = "live"
    hosts: tuple[str, ...] | None = None
    trusted: bool = True
    reviewed: ReviewedPlan | None = None
    require_reviewed: bool = False
    findings_only: bool = False


class RunResult(NamedTuple):
    """`source` is the commit that was read ("" for the work tree), `before` the output's head then, `after` the new commit or None.

    `changed` says that the output differs, or would. `refused` is why nothing may be written. `place` is where the branch is. `tree` is the
    output as planned, its front page still the last one. `reviewed` says how it compares with the plan that somebody reviewed, `choices`
    which documents choose other clusters than the output's head has.
    """

    source: str
    before: str | None
    after: str | None
    plan: Plan
    branch: str
    repository: str
    changed: bool
    refused: str = ""
    tree: str = ""
    reviewed: tuple[str, ...] = ()
    choices: tuple[SelectionChange, ...] = ()


def make_review(run: RunResult) -> Review:
    """What reports know of a run alone."""
    plan = run.plan
    return Review(
        source=run.source,
        branch=run.branch,
        output_repository=run.repository,
        before=run.before,
        after=run.after,
        changed=run.changed,
        refused=run.refused,
        outcomes=plan.outcomes.values(),
        state_counts=plan.state_counts,
        cluster_count=plan.cluster_count,
        moves=plan.moves,
        findings=plan.findings,
        unclaimed=plan.unclaimed,
        next_wakeup=plan.next_wakeup,
        time=plan.time,
        review_messages=run.reviewed,
        choices=run.choices,
    )
