"""The HTTP endpoints, metrics and commit statuses of the watch process."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from gitsched.forge.commit_status import CommitStatus
from gitsched.model.errors import Conflict, GitschedError, Permanent
from gitsched.model.finding import format_part
from gitsched.named_tuples import NamedTuple
from gitsched.report.review import Review
from gitsched.watch.health import WatchHealth
from gitsched.watch.loop import ReconcileAttempt
from gitsched.watch.wakeup import Wakeup

if TYPE_CHECKING:
    from gitsched.forge.credentials import Credential
    from gitsched.forge.status_reporter import StatusOutcome, StatusReporter
    from gitsched.model.fleet_status import Freeze
    from gitsched.model.history import SourceChange
    from gitsched.reconcile import RunResult
    from gitsched.reconcile.output.output_history import OutputHistory
    from gitsched.watch.http_server import HttpServer
    from gitsched.watch.live_pages import LivePages
    from gitsched.watch.prometheus_metrics import PrometheusMetrics
    from gitsched.watch.score_endpoint import ClusterTokens, ScoreCommitter

CLOSE_TIMEOUT = 3.0
"""Seconds to send queued statuses at shutdown."""


class WatchContext(Protocol):
    """Queries about repository and settings that the service needs."""

    def commit_time(self, commit: str) -> datetime:
        """Return the time of a source commit."""

    def head_commit(self) -> str:
        """Return the newest available source commit, "" when there is none."""

    def is_success(self, review: Review) -> bool:
        """Return whether the result counts as a success."""

    def link_commit(self, review: Review, commit: str) -> str:
        """Return the web page of an output commit, or ""."""


class ScoreSettings(NamedTuple):
    """The tokens of the clusters, and what commits their scores."""

    tokens: ClusterTokens
    receiver: ScoreCommitter


class PageSettings(NamedTuple):
    """The Git directory of the source, what opens the history of an output branch, whether only this machine may read the pages, the URL of
    the source, None for a local one, who froze placements, as a run found them, which source commits ask for what it has withheld, and when
    each cluster was observed."""

    source: Callable[[], str]
    open_history: Callable[[str, str, str], OutputHistory]
    local_only: bool
    url: str | None = None
    list_freezes: Callable[[RunResult], tuple[Freeze, ...]] = lambda _: ()
    list_requests: Callable[[RunResult], tuple[SourceChange, ...]] = lambda _: ()
    list_observed: Callable[[RunResult], Mapping[str, datetime]] = lambda _: {}


class WatchService:
    """Receives every attempt with its review; neither the network nor a forge can block it. A webhook requests a run."""

    def __init__(self, context: WatchContext, branch: str, wakeup: Wakeup) -> None:
        self._watch_context, self._wakeup = context, wakeup
        self._status_context = _format_context(branch)
        self._health = WatchHealth(wakeup)
        self._metrics: PrometheusMetrics | None = None
        self._server: HttpServer | None = None
        self._pages: LivePages | None = None
        self._reporter: StatusReporter | None = None
        self._source: str | None = None
        self._requested_at: float | None = None
        self._started_at = self._last_success = 0.0

    def serve(
        self,
        sockets: Sequence[socket.socket],
        secret: Credential | None,
        scores: ScoreSettings | None = None,
        pages: PageSettings | None = None,
    ) -> None:
        """Start to serve HTTP on these sockets; without a secret there is no webhook, and without `scores` and `pages` none of these."""
        # Lazy: a process that does not listen does not load these modules.
        from gitsched.watch.http_routes import HttpRoutes
        from gitsched.watch.http_server import HttpServer
        from gitsched.watch.prometheus_metrics import PrometheusMetrics

        self._metrics = PrometheusMetrics(self._health)
        endpoint, request_run = None, self._wakeup.request_run
        if scores is not None:
            from gitsched.watch.score_endpoint import ScoreEndpoint

            endpoint = ScoreEndpoint(*scores, self._metrics.count_scores, request_run)
        if pages is not None:
            from gitsched.watch.live_pages import LivePages

            self._pages = LivePages(**pages._asdict())
        routes = HttpRoutes(self._health, self._metrics, secret=secret, request_run=request_run, scores=endpoint, pages=self._pages)
        self._server = HttpServer(sockets, routes)

    def set_status_reporter(self, reporter: StatusReporter) -> None:
        """Also report statuses to a forge."""
        self._reporter = reporter

    def count_status(self, outcome: StatusOutcome) -> None:
        """Count a status that was sent, failed or was dropped."""
        if self._metrics is not None:
            self._metrics.count_status(outcome)

    def begin(self) -> None:
        """Record that a run begins."""
        self._started_at = time.time()
        self._health.begin()

    def end(self, attempt: ReconcileAttempt, review: Review | None) -> None:
        """Record that a run ended; `review` is its result, None after an error."""
        now = time.time()
        self._health.end(attempt)
        # The latency of a push starts at its first request and includes failed runs.
        self._requested_at = self._requested_at or attempt.requested_at
        if self._metrics is not None:
            self._metrics.record_attempt(attempt, review, now)
            if review is not None and review.after is not None and not review.race and self._source not in (None, review.source):
                self._metrics.record_latency(max(now - self._estimate_push_time(review, now), 0))
        if self._pages is not None and attempt.run is not None and review is not None:
            self._pages.update(attempt.run, review)
        elif self._pages is not None and attempt.error is not None and not isinstance(attempt.error, Conflict):
            self._pages.report_failure(attempt.error)
        if review is not None:
            self._source, self._requested_at, self._last_success = review.source, None, self._started_at
        if self._reporter is not None:
            status = self._describe_review(review) if review is not None else self._describe_error(attempt.error)
            if status is not None:
                self._reporter.report(status)

    def close(self) -> None:
        """Stop serving and send the queued statuses."""
        if self._reporter is not None:
            self._reporter.close(CLOSE_TIMEOUT)
        if self._server is not None:
            self._server.close()
        if self._pages is not None:
            self._pages.close()

    def _estimate_push_time(self, review: Review, now: float) -> float:
        """Estimate when the commit was pushed.

        A webhook gives the time. Otherwise the push happened after the commit was made, and after the last successful run, which
        did not find it.
        """
        if self._requested_at is not None:
            return now - (time.monotonic() - self._requested_at)
        return max(self._watch_context.commit_time(review.source).timestamp(), self._last_success)

    def _describe_error(self, error: GitschedError | None) -> CommitStatus | None:
        """Return a failure status for a new commit that cannot be planned, for example because of its settings; None for any
        other error."""
        commit = self._watch_context.head_commit() if isinstance(error, Permanent) else ""
        return CommitStatus(commit, "failure", str(error), self._status_context) if commit and commit != self._source else None

    def _describe_review(self, review: Review) -> CommitStatus | None:
        """Return the status of a review. Equal results give equal texts, so two processes that watch one source agree."""
        if not review.source:
            return None
        self._status_context = _format_context(review.branch)
        states = review.states_left
        head = review.after or review.before or ""
        parts = [f"{format_part(states['placed'], sum(states.values()), 'workload')} placed"]
        parts += [f"{states[state]} {state}" for state in ("pending", "stale") if states[state]]
        errors = sum(finding.severity == "error" for finding in review.findings)
        parts += [f"{errors} error{'s' if errors > 1 else ''} in the source"] if errors else []
        withheld = len(review.withheld.moves)
        parts += [f"{review.withheld.withheld_by} withholds {withheld} change{'s' if withheld > 1 else ''}"] if withheld else []
        text = f"nothing was committed: {review.refused}" if review.refused else ", ".join(parts)
        success = self._watch_context.is_success(review)
        link = self._watch_context.link_commit(review, head) if head else ""
        return CommitStatus(review.source, "success" if success else "failure", text, self._status_context, link)


def _format_context(branch: str) -> str:
    """Return the name of statuses: processes with different output branches use different names."""
    return f"gitsched/{branch}"
