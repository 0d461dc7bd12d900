"""Prometheus metrics: gauges of the last run, counters and histograms since the start."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from gitsched import __version__
from gitsched.model.errors import Conflict, Temporary
from gitsched.named_tuples import NamedTuple
from gitsched.report.review import Review
from gitsched.watch.health import WatchHealth
from gitsched.watch.http_routes import WebhookOutcome
from gitsched.watch.loop import ReconcileAttempt

if TYPE_CHECKING:
    from gitsched.forge.status_reporter import StatusOutcome
    from gitsched.watch.score_endpoint import ScoreOutcome

_DURATION_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)
_OPENMETRICS, _PLAIN_TEXT = "application/openmetrics-text", "text/plain"
_FORMATS = frozenset(
    {
        (_OPENMETRICS, ""),
        (_OPENMETRICS, "version=0.0.1"),
        (_OPENMETRICS, "version=1.0.0"),
        (_PLAIN_TEXT, "version=0.0.4"),
        (_PLAIN_TEXT, "version=1.0.0"),
    }
)
_RESULTS = ("committed", "unchanged", "refused", "conflict", "temporary", "permanent")


class LastRun(NamedTuple):
    """The review of the last successful run, and its time in seconds since 1970."""

    review: Review
    time: float


class PrometheusMetrics:
    """All metrics of one process, in a registry of their own. Thread-safe."""

    def __init__(self, health: WatchHealth) -> None:
        # They would double the number of series and add nothing to process_start_time_seconds.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's only function without annotations
        self._registry = CollectorRegistry()
        self._last = _LastRunCollector(health)
        self._registry.register(self._last)
        ProcessCollector(registry=self._registry)
        self._runs = Histogram(
            "gitsched_reconcile_duration_seconds",
            "Duration of one run, from reading the remote to updating the ref.",
            ["result"],
            buckets=_DURATION_BUCKETS,
            registry=self._registry,
        )
        self._latency = Histogram(
            "gitsched_push_to_commit_seconds",
            "Time from a push to the source to the update of the output branch.",
            buckets=_DURATION_BUCKETS,
            registry=self._registry,
        )
        self._moves = self._create_counter("gitsched_decisions_changed", "Workloads whose placement a commit changed.")
        self._conflicts = self._create_counter(
            "gitsched_conflicts", "Updates of the output branch rejected because another process had moved it."
        )
        self._webhooks = self._create_counter("gitsched_webhooks", "Received webhooks by outcome.", "outcome")
        self._statuses = self._create_counter("gitsched_statuses", "Commit statuses for the forge by outcome.", "outcome")
        self._scores = self._create_counter("gitsched_score_pushes", "Scores that clusters pushed by outcome.", "outcome")
        # Create all series now: an alert cannot see the increase of a series that appears with its first event.
        for result in _RESULTS:
            self._runs.labels(result)
        for webhook in ("accepted", "unsigned", "refused"):
            self._webhooks.labels(webhook)
        for outcome in ("sent", "failed", "dropped"):
            self._statuses.labels(outcome)
        for pushed in ("committed", "unchanged", "unauthorized", "rejected", "failed"):
            self._scores.labels(pushed)

    def record_attempt(self, attempt: ReconcileAttempt, review: Review | None, now: float) -> None:
        """Record a run; `review` is its result, None after an error."""
        self._runs.labels(_classify_attempt(attempt)).observe(attempt.seconds)
        if isinstance(attempt.error, Conflict):
            self._conflicts.inc()
        if review is not None:
            self._last.last_run = LastRun(review, now)
            self._moves.inc(len(review.moves) if review.after is not None and not review.race else 0)

    def record_latency(self, seconds: float) -> None:
        """Record the time from a push to a commit."""
        self._latency.observe(seconds)

    def count_webhook(self, outcome: WebhookOutcome) -> None:
        """Count a webhook."""
        self._webhooks.labels(outcome).inc()

    def count_status(self, outcome: StatusOutcome) -> None:
        """Count a status that was sent, failed or was dropped."""
        self._statuses.labels(outcome).inc()

    def count_scores(self, outcome: ScoreOutcome) -> None:
        """Count scores that a cluster pushed."""
        self._scores.labels(outcome).inc()

    def expose(self, accepted: str) -> tuple[str, bytes]:
        """Return the content type and text of all metrics, in the format that the Accept header prefers."""
        encode, media = choose_encoder(_filter_accept(accepted))
        return media, encode(self._registry)

    def _create_counter(self, name: str, help_text: str, *labels: str) -> Counter:
        return Counter(name, help_text, labels, registry=self._registry)


def _filter_accept(accepted: str) -> str:
    """Reduce an Accept header to the supported formats: the encoder echoes, or fails on, unknown versions."""
    found = []
    for entry in accepted.split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        version = next((part for part in parameters if part.startswith("version=")), "")
        if (media, version) in _FORMATS:
            found.append(f"{media};{version}" if version else media)
    return ",".join(found)


class _LastRunCollector(Collector):
    """Gauges of one run, read from one value, so that a scrape never mixes two runs."""

    def __init__(self, health: WatchHealth) -> None:
        self.last_run: LastRun | None = None
        self._health = health

    def collect(self) -> Iterable[Metric]:
        yield InfoMetricFamily("gitsched_build", "The running version.", value={"version": __version__})
        ready = self._health.check_readiness().healthy
        yield GaugeMetricFamily("gitsched_ready", "Whether the output follows the source, as /readyz reports.", value=ready)
        if (last := self.last_run) is None:
            return
        review = last.review
        yield GaugeMetricFamily("gitsched_last_success_timestamp_seconds", "Time of the last successful run.", value=last.time)
        decisions = GaugeMetricFamily("gitsched_decisions", "Workloads by state of their decision.", labels=["state"])
        for state, number in review.states.items():
            decisions.add_metric([state], number)
        yield decisions
        yield GaugeMetricFamily("gitsched_unclaimed_objects", "Objects that no policy selects.", value=review.unclaimed)
        findings = GaugeMetricFamily("gitsched_findings", "Findings about the source, by code.", labels=["severity", "code"])
        for (severity, code), number in sorted(Tally((f.severity, f.code) for f in review.findings).items()):
            findings.add_metric([severity, code], number)
        yield findings
        withheld = len(review.withheld.moves)
        yield GaugeMetricFamily("gitsched_guard_withheld_changes", "Changes of workloads that the guard withholds.", value=withheld)
        if review.next_wakeup is not None:
            time = review.next_wakeup.timestamp()
            yield GaugeMetricFamily(
                "gitsched_next_wakeup_timestamp_seconds", "Next time at which a decision can change without a commit.", value=time
            )


def _classify_attempt(attempt: ReconcileAttempt) -> str:
    if attempt.run is not None:
        return (
            "refused"
            if attempt.run.refused
            else "committed"
            if attempt.run.after is not None and not attempt.run.race
            else "unchanged"
        )
    return (
        "conflict" if isinstance(attempt.error, Conflict) else "temporary" if isinstance(attempt.error, Temporary) else "permanent"
    )
