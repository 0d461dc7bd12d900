"""Reconcile whenever the source changes, with the service of `gitsched watch`, until a signal."""

from __future__ import annotations

import gc
import signal
from datetime import timedelta

from gitsched.cli import exit_codes, output
from gitsched.cli.run_log import RunLog
from gitsched.cli.service import open_service
from gitsched.cli.service_options import ServiceOptions
from gitsched.git.urls import redact
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile import Reconciler, RunSettings
from gitsched.reconcile.run import make_review
from gitsched.watch import GracefulShutdown, ReconcileAttempt, Wakeup, handle_signals, watch
from gitsched.watch.service import WatchService


def watch_until_signal(
    settings: RunSettings,
    service: ServiceOptions,
    fail_on: exit_codes.FailOn,
    interval: timedelta,
    debounce: timedelta,
    grace: timedelta,
) -> int:
    """Reconcile at each change until SIGTERM or SIGINT, and return the exit code."""
    wakeup = Wakeup()
    with handle_signals(wakeup, grace) as handler:
        if not handler.complete(lambda: _run(settings, service, handler, fail_on, interval, debounce)):
            output.LOGGER.warning("run aborted", extra={"fields": {"event": "abandoned"}})
    output.LOGGER.info("stopped", extra={"fields": {"event": "end"}})
    return exit_codes.INTERRUPTED if handler.signal_number == signal.SIGINT else exit_codes.DONE


def _run(
    settings: RunSettings,
    chosen: ServiceOptions,
    shutdown: GracefulShutdown,
    fail_on: exit_codes.FailOn,
    interval: timedelta,
    debounce: timedelta,
) -> None:
    gc.enable()
    reconciler = Reconciler(settings._replace(progress=shutdown.follow_run))
    wakeup = shutdown.wakeup
    service = open_service(chosen, reconciler, wakeup, fail_on)
    try:
        output.LOGGER.info("watching %s", redact(settings.location), extra={"fields": {"event": "start"}})
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

        found = make_review(attempt.run) if attempt.run is not None else None
        if found is not None:
            self.run_log.write(found)
        self.service.end(attempt, found)
