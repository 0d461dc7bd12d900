"""Errors that are reported as messages: permanent, temporary, and update conflicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gitsched.model.document import Key


class GitschedError(Exception):
    """An error that is reported as a message, without a traceback."""


class Permanent(GitschedError):
    """An error that remains until the input or the configuration changes."""


class DamagedOutput(Permanent):
    """What runs record on the output branch cannot be read, because somebody changed or removed it."""


class UnknownObject(Permanent):
    """A name on the command line for which the source has no object."""


class UnknownCluster(UnknownObject):
    """The name of a cluster, given by an option, that the source does not have."""

    def __init__(self, name: str, suggestion: str) -> None:
        super().__init__(f"there is no cluster {name!r}{suggestion}")
        self.name = name


class Temporary(GitschedError):
    """An error after which the same call may succeed later.

    `retry_after` is in seconds, or None when the caller chooses.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Conflict(GitschedError):
    """Another process moved the ref: observe and plan again."""


class NeedsCompletePlan(GitschedError):
    """Only a complete plan can tell what a change means, or what a report has to say. The text is why, without a full stop."""


class LimitsExceededError(Permanent):
    """The guard withholds changes of a plan that has to be within its limits. `decided` is how many workloads were decided for that."""

    def __init__(self, message: str, decided: int) -> None:
        super().__init__(message)
        self.decided = decided


class RejectedInput(Exception):
    """Data that a client sent over the network is invalid. The message is for the client."""


class DocumentFault(Exception):
    """Unexpected errors while some documents were handled, by document: bugs that concern only these."""

    def __init__(self, errors: Mapping[Key, Exception]) -> None:
        super().__init__(f"documents that could not be handled: {len(errors)}")
        self.errors = errors
