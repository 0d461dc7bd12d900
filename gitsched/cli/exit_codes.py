"""Exit codes: their meanings, and the code for a result or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gitsched.model.errors import Conflict, GitschedError, Temporary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitsched.model.finding import Finding
    from gitsched.report.review import Review

FailOn = Literal["error", "unschedulable", "none"]

DONE, FINDINGS, USAGE, BUG, TEMPORARY, INTERRUPTED = 0, 1, 2, 3, 4, 130
CHANGES = USAGE
"""The exit code with --detailed-exitcode if there are changes, or expired documents."""

MEANINGS = {
    DONE: "success; there may be warnings",
    FINDINGS: "a finding of severity error, a change refused by the guard, or invalid input or settings",
    USAGE: "wrong usage; with `--detailed-exitcode` of `plan` or `tidy` also: there are changes or expired documents",
    BUG: "a bug in gitsched",
    TEMPORARY: "temporary failure: a remote did not answer, or five concurrent updates in a row prevented the push",
    INTERRUPTED: "interrupted",
}


def get_error_code(error: BaseException) -> int:
    """Return the exit code for an exception."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, Temporary | Conflict):
        return TEMPORARY
    return FINDINGS if isinstance(error, GitschedError) else BUG


def get_run_code(
    findings: Iterable[Finding], fail_on: FailOn, *, pending: int = 0, refused: bool = False, changes: bool = False
) -> int:
    """Return the exit code for a result; `pending` is the number of unplaced workloads, `changes` is for --detailed-exitcode.

    A refused change fails regardless of --fail-on, because nothing was written. Errors take precedence over changes.
    """
    if refused:
        return FINDINGS
    if fail_on != "none" and any(finding.severity == "error" for finding in findings):
        return FINDINGS
    if fail_on == "unschedulable" and pending:
        return FINDINGS
    return CHANGES if changes else DONE


def get_review_code(reviewed: Review, fail_on: FailOn, *, detailed: bool = False) -> int:
    """Return the exit code for a plan or a reconcile; `detailed` is --detailed-exitcode."""
    return get_run_code(
        reviewed.findings,
        fail_on,
        pending=reviewed.states["pending"],
        refused=bool(reviewed.refused),
        changes=detailed and reviewed.changed,
    )
