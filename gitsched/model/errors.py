"""Exceptions of gitsched, by what the caller does next. Mistakes in the input are findings, never exceptions."""

from __future__ import annotations


class GitschedError(Exception):
    """Print the message and stop; never a traceback."""


class Permanent(GitschedError):
    """Nothing will help until the input or the configuration changes."""


class Temporary(GitschedError):
    """The same call may succeed later.

    `retry_after` is in seconds, or None when the caller chooses.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Conflict(GitschedError):
    """Somebody else moved the ref: observe and plan again."""
