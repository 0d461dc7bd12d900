"""Exit codes: their meanings, and the code for an error or a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from gitsched.model.errors import Conflict, GitschedError, Temporary

if TYPE_CHECKING:
    from gitsched.model.finding import Finding
    from gitsched.report.review import Review

FailOn = Literal["error", "warning", "unschedulable", "none"]
"""From what on a result fails: values of --fail-on."""

DONE, FINDINGS, USAGE, BUG, TEMPORARY, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 130, 143
CHANGES = USAGE
"""The exit code with --detailed-exitcode if there are changes, or expired documents."""

MEANINGS = {
    DONE: "success; there may be warnings",
    FINDINGS: "a finding of severity error, in a plan with BASE a workload that becomes unplaced or stops, changes that the guard "
    "withholds, or invalid input or settings; of `shadow` also: decisions differ",
    USAGE: "wrong usage; of `shadow` also: the dumps cannot be compared; with `--detailed-exitcode` of `plan`, `tidy` or `status` also: "
    "there are changes or expired documents, or the fleet needs attention",
    BUG: "a bug in gitsched",
    TEMPORARY: "temporary failure: a remote did not answer, five concurrent updates in a row prevented the push, or a disk is full",
    INTERRUPTED: "interrupted",
    TERMINATED: "ended by SIGTERM; `watch` and `apply --watch` exit with 0",
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

    A refused or withheld change fails regardless of --fail-on, because it was not written. Errors take precedence over changes.
    """
    if refused:
        return FINDINGS
    if any(_fails(finding, fail_on) for finding in findings):
        return FINDINGS
    if fail_on == "unschedulable" and pending:
        return FINDINGS
    return CHANGES if changes else DONE


def _fails(finding: Finding, fail_on: FailOn) -> bool:
    return fail_on != "none" and (finding.severity == "error" or (fail_on == "warning" and finding.severity == "warning"))


def get_review_code(reviewed: Review, fail_on: FailOn, *, detailed: bool = False, lost: bool = False) -> int:
    """Return the exit code for a plan or a reconcile; `detailed` is --detailed-exitcode. `lost`: against the base of a plan, a workload
    becomes unplaced or stops, which fails unless nothing does. Findings of a base commit do not fail."""
    if lost and fail_on != "none":
        return FINDINGS
    return get_run_code(
        _list_own_findings(reviewed),
        fail_on,
        pending=reviewed.states["pending"],
        refused=bool(reviewed.refused or reviewed.withheld.moves),
        changes=detailed and reviewed.changed,
    )


def list_failing(reviewed: Review, fail_on: FailOn) -> list[Finding]:
    """Return the findings that fail a plan or a reconcile."""
    return [one for one in _list_own_findings(reviewed) if _fails(one, fail_on)]


def _list_own_findings(reviewed: Review) -> Sequence[Finding]:
    """Return the findings of a plan without those of its base commit."""
    return reviewed.new_findings if reviewed.base.commit else reviewed.findings
