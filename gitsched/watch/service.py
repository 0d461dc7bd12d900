"""What a resident process does beside reconciling: it serves HTTP, counts, and tells the forge what became of a commit."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from gitsched.forge.status import Status
from gitsched.model.errors import GitschedError, Permanent
from gitsched.report.review import Review
from gitsched.watch.bell import Bell
from gitsched.watch.condition import Condition
from gitsched.watch.loop import Attempt

if TYPE_CHECKING:
    from gitsched.forge.reporter import Outcome as Delivery
    from gitsched.forge.reporter import Reporter
    from gitsched.forge.secret import Secret
    from gitsched.watch.meters import Meters
    from gitsched.watch.server import Server

FAREWELL = 3.0
"""Seconds for statuses that wait when the process ends."""


class Facts(Protocol):
    """What a service asks its surroundings."""

    def date(self, commit: str) -> datetime:
        """The time of a source commit."""

    def head(self) -> str:
        """The source commit that is the newest one here, "" where there is none."""

    def judge(self, review: Review) -> bool:
        """Whether what was decided is a success."""

    def link(self, review: Review, commit: str) -> str:
        """The page of an output commit, or ""."""


class Service:
    """Told of every attempt and its review; neither the network nor a forge can hold it up. A webhook rings the bell."""

    def __init__(self, facts: Facts, branch: str, bell: Bell) -> None:
        self._facts, self._bell = facts, bell
        self._context = _name_context(branch)
        self._condition = Condition(bell)
        self._meters: Meters | None = None
        self._server: Server | None = None
        self._reporter: Reporter | None = None
        self._source: str | None = None
        self._heard: float | None = None
        self._began = self._looked = 0.0

    def serve(self, sockets: Sequence[socket.socket], secret: Secret | None) -> None:
        """Answer at these sockets from now on; without a secret there is no hook."""
        # Here, because a process that does not listen should not pay for it.
        from gitsched.watch.meters import Meters
        from gitsched.watch.pages import Pages
        from gitsched.watch.server import Server

        self._meters = Meters(self._condition)
        self._server = Server(sockets, Pages(self._condition, self._meters, secret=secret, ring=self._bell.ring))

    def report_by(self, reporter: Reporter) -> None:
        """Tell a forge, too."""
        self._reporter = reporter

    def count_status(self, outcome: Delivery) -> None:
        """A status was sent, or was not."""
        if self._meters is not None:
            self._meters.count_status(outcome)

    def begin(self) -> None:
        """A look begins."""
        self._began = time.time()
        self._condition.begin()

    def end(self, attempt: Attempt, review: Review | None) -> None:
        """It is over; `review` is what it decided, unless it failed."""
        now = time.time()
        self._condition.end(attempt)
        # A push waits since it was first heard of, through every look that failed.
        self._heard = self._heard or attempt.heard
        if self._meters is not None:
            self._meters.note(attempt, review, now)
            if review is not None and review.after is not None and self._source not in (None, review.source):
                self._meters.note_latency(max(now - self._find_push(review, now), 0))
        if review is not None:
            self._source, self._heard, self._looked = review.source, None, self._began
        if self._reporter is not None:
            status = self._describe(review) if review is not None else self._describe_error(attempt.error)
            if status is not None:
                self._reporter.report(status)

    def close(self) -> None:
        """No more requests, and a farewell to the forge."""
        if self._reporter is not None:
            self._reporter.close(FAREWELL)
        if self._server is not None:
            self._server.close()

    def _find_push(self, review: Review, now: float) -> float:
        """When the commit was pushed, as far as anybody here can know.

        A webhook says so. Else it was after the commit was made, and after the last look that went well, which did not see it.
        """
        if self._heard is not None:
            return now - (time.monotonic() - self._heard)
        return max(self._facts.date(review.source).timestamp(), self._looked)

    def _describe_error(self, error: GitschedError | None) -> Status | None:
        """For a commit that came since the last run and with which there can be none, because of its settings, say."""
        commit = self._facts.head() if isinstance(error, Permanent) else ""
        return Status(commit, "failure", str(error), self._context) if commit and commit != self._source else None

    def _describe(self, review: Review) -> Status | None:
        """The same words for the same outcome, whichever process says them: two that watch one source do not contradict each other."""
        if not review.source:
            return None
        self._context = _name_context(review.branch)
        states = review.states
        head = review.after or review.before or ""
        parts = [f"{states['placed']} of {len(review.outcomes)} workloads placed"]
        parts += [f"{states[state]} {state}" for state in ("pending", "stale") if states[state]]
        errors = sum(finding.severity == "error" for finding in review.findings)
        parts += [f"{errors} error{'s' if errors > 1 else ''} in the source"] if errors else []
        text = f"the guard refused: {review.refused}" if review.refused else ", ".join(parts)
        success = self._facts.judge(review)
        link = self._facts.link(review, head) if head else ""
        return Status(review.source, "success" if success else "failure", text, self._context, link)


def _name_context(branch: str) -> str:
    """The name of statuses: two watchers with different outputs do not overwrite each other's."""
    return f"gitsched/{branch}"
