"""Exit codes: their meanings, and which one a run or an error leads to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from gitsched.cli import exit_codes
from gitsched.model.errors import Conflict, GitschedError, Temporary
from gitsched.model.finding import Finding
from gitsched.report.review import Review

FailOn = Literal["error", "unschedulable", "none"]

DONE, FINDINGS, USAGE, BUG, TEMPORARY, INTERRUPTED = 0, 1, 2, 3, 4, 130
CHANGES = USAGE
"""Under `plan --detailed-exitcode`."""

MEANINGS = {
    DONE: "done; warnings are allowed",
    FINDINGS: "a finding of severity error, a refusal of the guard, or input or settings that cannot be used",
    USAGE: "wrong usage; under `plan --detailed-exitcode` also: there are changes",
    BUG: "a bug in gitsched",
    TEMPORARY: "temporary: a remote did not answer, or five races in a row were lost",
    INTERRUPTED: "interrupted",
}


def get_error_code(error: BaseException) -> int:
    """The code for what a command raised."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, Temporary | Conflict):
        return TEMPORARY
    return FINDINGS if isinstance(error, GitschedError) else BUG


def get_run_code(
    findings: Iterable[Finding], fail_on: FailOn, *, pending: int = 0, refused: bool = False, changes: bool = False
) -> int:
    """The code for a command that ended: `pending` counts workloads without a place, `changes` is only for --detailed-exitcode.

    A refusal counts whatever --fail-on says: nothing was written. Errors win over changes.
    """
    if refused:
        return FINDINGS
    if fail_on != "none" and any(finding.severity == "error" for finding in findings):
        return FINDINGS
    if fail_on == "unschedulable" and pending:
        return FINDINGS
    return CHANGES if changes else DONE


def get_review_code(reviewed: Review, fail_on: exit_codes.FailOn, *, detailed: bool = False) -> int:
    """The exit code for a run; `detailed` is --detailed-exitcode."""
    return exit_codes.get_run_code(
        reviewed.findings,
        fail_on,
        pending=reviewed.states["pending"],
        refused=bool(reviewed.refused),
        changes=detailed and reviewed.changed,
    )
