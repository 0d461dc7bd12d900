"""Exit codes: their meanings, and the code for an error. That for a result is in `gitsched.cli.output`."""

from __future__ import annotations

from gitsched.model.errors import Conflict, GitschedError, Temporary

DONE, FINDINGS, USAGE, BUG, TEMPORARY, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 130, 143
CHANGES = USAGE
"""The exit code with --detailed-exitcode if there are changes, or expired documents."""

MEANINGS = {
    DONE: "success; there may be warnings",
    FINDINGS: "a finding of severity error, changes that the guard withholds, or invalid input or settings",
    USAGE: "wrong usage; with `--detailed-exitcode` of `plan`, `tidy` or `status` also: there are changes or expired documents, or the "
    "fleet needs attention",
    BUG: "a bug in gitsched",
    TEMPORARY: "temporary failure: a remote did not answer, or five concurrent updates in a row prevented the push",
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
