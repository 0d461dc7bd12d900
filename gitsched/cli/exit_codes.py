"""What a pipeline is told: every exit code, its meaning, and the one place that decides between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from gitsched.model.errors import Conflict, GitschedError, Temporary
from gitsched.model.finding import Finding

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


def judge_error(error: BaseException) -> int:
    """The code for what a command raised."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, Temporary | Conflict):
        return TEMPORARY
    return FINDINGS if isinstance(error, GitschedError) else BUG


def judge_run(
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
