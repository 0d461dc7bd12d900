"""The HTTP endpoints, metrics and commit statuses of the watch process."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from gitsched.forge.commit_status import CommitStatus
from gitsched.model.errors import GitschedError, Permanent
from gitsched.report.review import Review
from gitsched.watch.health import WatchHealth
from gitsched.watch.loop import ReconcileAttempt
from gitsched.watch.wakeup import Wakeup

if TYPE_CHECKING:
    from gitsched.forge.credentials import Credential
    from gitsched.forge.status_reporter import StatusOutcome as Delivery
    from gitsched.forge.status_reporter import StatusReporter
    from gitsched.watch.http_server import HttpServer
    from gitsched.watch.prometheus_metrics import PrometheusMetrics

CLOSE_TIMEOUT = 3.0
"""Seconds for statuses that wait when the process ends."""


class WatchContext(Protocol):
    """What a service asks its surroundings."""

    def commit_time(self, commit: str) -> datetime:
        """The time of a source commit."""

    def head_commit(self) -> str:
        """The source commit that is the newest one here, "" where there is none."""

    def is_success(self, review: Review) -> bool:
        """Whether what was decided is a success."""

    def link_commit(self, review: Review, commit: str) -> str:
        """The page of an output commit, or ""."""


class WatchService:
    """Told of every attempt and its review; neither the network nor a forge can hold it up. A webhook rings the bell."""

    def __init__(self, facts: WatchContext, branch: str, bell: Wakeup) -> None:
        self._watch_context, self._wakeup = facts, bell
        self._status_context = _format_context(branch)
        self._health = WatchHealth(bell)
        self._metrics: PrometheusMetrics | None = None
        self._server: HttpServer | None = None
        self._reporter: StatusReporter | None = None
        self._source: str | None = None
        self._requested_at: float | None = None
        self._started_at = self._last_success = 0.0

    def serve(self, sockets: Sequence[socket.socket], secret: Credential | None) -> None:
        """Answer at these sockets from now on; without a secret there is no hook."""
        # Here, because a process that does not listen should not pay for it.
        from gitsched.watch.http_routes import HttpRoutes
        from gitsched.watch.http_server import HttpServer
        from gitsched.watch.prometheus_metrics import PrometheusMetrics

        self._metrics = PrometheusMetrics(self._health)
        self._server = HttpServer(sockets, HttpRoutes(self._health, self._metrics, secret=secret, ring=self._wakeup.request_run))

    def set_status_reporter(self, reporter: StatusReporter) -> None:
        """Tell a forge, too."""
        self._reporter = reporter

    def count_status(self, outcome: Delivery) -> None:
        """A status was sent, or was not."""
        if self._metrics is not None:
            self._metrics.count_status(outcome)

    def begin(self) -> None:
        """A look begins."""
        self._started_at = time.time()
        self._health.begin()

    def end(self, attempt: ReconcileAttempt, review: Review | None) -> None:
        """It is over; `review` is what it decided, unless it failed."""
        now = time.time()
        self._health.end(attempt)
        # A push waits since it was first heard of, through every look that failed.
        self._requested_at = self._requested_at or attempt.requested_at
        if self._metrics is not None:
            self._metrics.record_attempt(attempt, review, now)
            if review is not None and review.after is not None and self._source not in (None, review.source):
                self._metrics.record_latency(max(now - self._estimate_push_time(review, now), 0))
        if review is not None:
            self._source, self._requested_at, self._last_success = review.source, None, self._started_at
        if self._reporter is not None:
            status = self._describe_review(review) if review is not None else self._describe_error(attempt.error)
            if status is not None:
                self._reporter.report(status)

    def close(self) -> None:
        """No more requests, and a farewell to the forge."""
        if self._reporter is not None:
            self._reporter.close(CLOSE_TIMEOUT)
        if self._server is not None:
            self._server.close()

    def _estimate_push_time(self, review: Review, now: float) -> float:
        """When the commit was pushed, as far as anybody here can know.

        A webhook says so. Else it was after the commit was made, and after the last look that went well, which did not see it.
        """
        if self._requested_at is not None:
            return now - (time.monotonic() - self._requested_at)
        return max(self._watch_context.commit_time(review.source).timestamp(), self._last_success)

    def _describe_error(self, error: GitschedError | None) -> CommitStatus | None:
        """For a commit that came since the last run and with which there can be none, because of its settings, say."""
        commit = self._watch_context.head_commit() if isinstance(error, Permanent) else ""
        return CommitStatus(commit, "failure", str(error), self._status_context) if commit and commit != self._source else None

    def _describe_review(self, review: Review) -> CommitStatus | None:
        """The same words for the same outcome, whichever process says them: two that watch one source do not contradict each other."""
        if not review.source:
            return None
        self._status_context = _format_context(review.branch)
        states = review.states
        head = review.after or review.before or ""
        parts = [f"{states['placed']} of {len(review.outcomes)} workloads placed"]
        parts += [f"{states[state]} {state}" for state in ("pending", "stale") if states[state]]
        errors = sum(finding.severity == "error" for finding in review.findings)
        parts += [f"{errors} error{'s' if errors > 1 else ''} in the source"] if errors else []
        text = f"the guard refused: {review.refused}" if review.refused else ", ".join(parts)
        success = self._watch_context.is_success(review)
        link = self._watch_context.link_commit(review, head) if head else ""
        return CommitStatus(review.source, "success" if success else "failure", text, self._status_context, link)


def _format_context(branch: str) -> str:
    """The name of statuses: two watchers with different outputs do not overwrite each other's."""
    return f"gitsched/{branch}"
