"""gitsched watch: reconcile whenever the source changes."""

from __future__ import annotations

import gc
import signal
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gitsched.cli import exit_codes, options, output, service_options
from gitsched.model.time import format_time

if TYPE_CHECKING:
    from gitsched.reconcile import RunSettings
    from gitsched.report.review import Review
    from gitsched.watch import GracefulShutdown, ReconcileAttempt
    from gitsched.watch.service import WatchService


@click.command(
    "watch",
    epilog=options.show_examples(
        ("Reconcile this worktree when a branch changes, and serve the pages", "watch --listen 127.0.0.1:8080"),
        ("A remote repository", "watch -C https://git.example.com/fleet.git --push"),
    ),
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to poll a remote; changes of local refs are detected immediately.",
)
@click.option("--once", is_flag=True, help="Run once and exit, like reconcile, but with the log of watch.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a run that publishes its commit may continue after SIGTERM or SIGINT.",
)
@service_options.SERVICE
@options.SOURCE
@options.TARGET
@options.STATE
@options.COMMIT
@options.LIVE_METRICS
@options.RUN_CONDITIONS
@options.FAIL_ON
@options.LOG
def command(
    interval: float,
    once: bool,
    grace: float,
    debounce: float,
    fail_on: exit_codes.FailOn,
    log_format: str,
    location: str,
    output_repository: str | None,
    now: datetime,
    **chosen: Any,
) -> int:
    """Reconcile when the source changes or a deadline passes.

    Errors are logged, and the next run tries again. SIGTERM exits with 0, SIGINT (Ctrl-C) with 130. Either ends a run that is not
    publishing yet; one that publishes its commit is aborted after --grace seconds or at a second signal. No partial output is left.
    """
    from gitsched.reconcile import RunSettings

    output.configure_logging(log_format)
    service = service_options.ServiceOptions(*(chosen.pop(name) for name in service_options.ServiceOptions._fields))
    settings = RunSettings(location=location, output=output_repository, now=now, **chosen)
    if once:
        return _run_once(settings, fail_on)
    from gitsched.watch import Wakeup, handle_signals

    wakeup = Wakeup()
    with handle_signals(wakeup, timedelta(seconds=grace)) as handler:
        times = (timedelta(seconds=interval), timedelta(seconds=debounce))
        if not handler.complete(lambda: _run(settings, service, handler, fail_on, times)):
            output.LOGGER.warning("run aborted", extra={"fields": {"event": "abandoned"}})
    output.LOGGER.info("stopped", extra={"fields": {"event": "end"}})
    return exit_codes.INTERRUPTED if handler.signal_number == signal.SIGINT else exit_codes.DONE


options.add_environment_variables(command)


def _run_once(settings: RunSettings, fail_on: exit_codes.FailOn) -> int:
    from gitsched.reconcile import Reconciler
    from gitsched.reconcile.run import make_review

    found = make_review(Reconciler(settings).run(settings.now))
    RunLog().write(found)
    return exit_codes.get_review_code(found, fail_on)


def _run(
    settings: RunSettings,
    chosen: service_options.ServiceOptions,
    shutdown: GracefulShutdown,
    fail_on: exit_codes.FailOn,
    times: tuple[timedelta, timedelta],
) -> None:
    from gitsched.git.urls import redact
    from gitsched.reconcile import Reconciler
    from gitsched.watch import watch

    gc.enable()
    reconciler = Reconciler(settings._replace(progress=shutdown.follow_run))
    wakeup = shutdown.wakeup
    service = service_options.open_service(chosen, reconciler, wakeup, fail_on)
    try:
        output.LOGGER.info("watching %s", redact(settings.location), extra={"fields": {"event": "start"}})
        interval, debounce = times
        watch(reconciler, interval=interval, debounce=debounce, listener=WatchListener(RunLog(), service, shutdown), wakeup=wakeup)
    finally:
        service.close()


class WatchListener(NamedTuple):
    """Passes the attempts of the loop to the log and the service."""

    run_log: RunLog
    service: WatchService
    shutdown: GracefulShutdown

    def begin(self) -> None:
        """Start an attempt; nothing is logged."""
        self.service.begin()

    def end(self, attempt: ReconcileAttempt) -> None:
        """End an attempt; the loop logs errors."""
        self.shutdown.end_run()
        from gitsched.reconcile.run import make_review

        found = make_review(attempt.run) if attempt.run is not None else None
        if found is not None:
            self.run_log.write(found)
        self.service.end(attempt, found)


class RunLog:
    """The log of the watch process: one line for each run with a change, and new findings."""

    def __init__(self) -> None:
        self.known_findings: frozenset[str] = frozenset()
        self.source: str | None = None
        self.refused = ""
        self.reviewed: Sequence[str] = ()

    def write(self, found: Review) -> None:
        """Log what is new since the last run."""
        current = {str(finding): finding for finding in found.findings if finding.severity != "info"}
        for text, finding in current.items():
            if text not in self.known_findings:
                log = output.LOGGER.error if finding.severity == "error" else output.LOGGER.warning
                log("%s", finding.without_severity, extra={"fields": {"event": "finding", "code": finding.code}})
        self.known_findings = frozenset(current)
        if found.refused and found.refused != self.refused:
            output.LOGGER.error("refused: %s", found.refused, extra={"fields": {"event": "refused", "source": found.source}})
        self.refused = found.refused
        if found.review_messages and found.review_messages != self.reviewed:
            fields = {"event": "review", "source": found.source, "reviewed": list(found.review_messages)}
            output.LOGGER.info("%s", " ".join(line.strip() for line in found.review_messages), extra={"fields": fields})
        self.reviewed = found.review_messages
        if found.after is not None or found.source != self.source:
            self._log_run(found)
        self.source = found.source

    def _log_run(self, found: Review) -> None:
        from gitsched.model.finding import format_count
        from gitsched.report.lines import abbreviate_oid

        source, after, wakeup = found.source, None if found.race else found.after, found.next_wakeup
        next_wakeup = format_time(wakeup) if wakeup else None
        records = len(found.record_changes)
        fields = {"event": "run", "source": source, "commit": after, "moves": len(found.moves), "records": records}
        fields["nextWakeup"] = next_wakeup
        if after:
            message = f"committed {abbreviate_oid(after)}, {format_count(len(found.moves), 'workload')} moved"
            message += f", {format_count(records, 'recorded decision')} changed" if records else ""
        elif found.after:
            fields |= {"race": found.race, "raceCommit": found.after}
            message = f"another run committed {abbreviate_oid(found.after)} first"
        else:
            message = "nothing to commit"
        output.LOGGER.info(
            "commit %s: %s; %d of %d workloads placed",
            abbreviate_oid(source),
            message,
            found.states["placed"],
            len(found.outcomes),
            extra={"fields": fields},
        )
