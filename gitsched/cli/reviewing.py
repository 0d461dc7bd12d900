"""From what a run found to the exit code."""

from __future__ import annotations

from gitsched.cli import exit_codes
from gitsched.report.review import Review


def judge(reviewed: Review, fail_on: exit_codes.FailOn, *, detailed: bool = False) -> int:
    """The exit code for a run; `detailed` is --detailed-exitcode."""
    return exit_codes.judge_run(
        reviewed.findings,
        fail_on,
        pending=reviewed.states["pending"],
        refused=bool(reviewed.refused),
        changes=detailed and reviewed.changed,
    )
