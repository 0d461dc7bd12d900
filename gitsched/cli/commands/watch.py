"""gitsched watch: reconcile whenever the source changes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from gitsched.cli import exit_codes, output, service_options
from gitsched.cli.commands.reconciliation import group_options
from gitsched.cli.run_log import RunLog
from gitsched.reconcile import Reconciler, RunSettings
from gitsched.reconcile.run import make_review


def run(
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
    """Carry out the command, and return its exit code."""
    output.configure_logging(log_format)
    service = service_options.ServiceOptions(*(chosen.pop(name) for name in service_options.ServiceOptions._fields))
    settings = RunSettings(location=location, output=output_repository, now=now, **group_options(chosen))
    if once:
        return _run_once(settings, fail_on)
    from gitsched.cli.watch_process import watch_until_signal  # not with --once

    times = (timedelta(seconds=interval), timedelta(seconds=debounce), timedelta(seconds=grace))
    return watch_until_signal(settings, service, fail_on, *times)


def _run_once(settings: RunSettings, fail_on: exit_codes.FailOn) -> int:
    found = make_review(Reconciler(settings).run(settings.now))
    RunLog().write(found)
    return exit_codes.get_review_code(found, fail_on)
