"""gitsched apply: set values that only an API server can take, such as a status, in a cluster with kubectl."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitsched.apis.live_apply import LiveApply
from gitsched.cli import exit_codes, formats, output
from gitsched.git import open_source
from gitsched.kubectl.client import KubectlClient, KubectlOptions
from gitsched.reconcile.output.live_apply import ApplyOptions, LiveApplier, apply_branch
from gitsched.report.live_apply import format_apply, list_events, make_apply_object
from gitsched.watch import Wakeup, handle_signals
from gitsched.watch.apply_loop import watch_and_apply

if TYPE_CHECKING:
    from gitsched.model.merge_patch import ApplyReport


def run(
    apply: LiveApply,
    location: str,
    branch: str,
    prefix: str,
    cluster: str,
    groups: tuple[str, ...],
    scale: bool,
    dry_run: bool,
    watching: bool,
    interval: float,
    context: str,
    kubeconfig: str,
    executable: str,
    timeout: float,
    cache: Path,
    form: str,
    log_format: str,
) -> int:
    if watching and (dry_run or form != "text"):
        raise click.UsageError("--watch excludes --dry-run, and --output other than text")

    output.configure_logging(log_format)
    applier = LiveApplier(KubectlClient(KubectlOptions(context, kubeconfig, timeout, executable)), scale=scale)
    source = open_source(location, cache=cache)
    chosen = ApplyOptions(branch, prefix, cluster, frozenset(groups))

    def run() -> ApplyReport:
        return apply_branch(source, applier, apply, chosen, dry_run=dry_run)

    if watching:
        return _watch(run, timedelta(seconds=interval))
    report = run()

    formats.show_as(form, lambda _: format_apply(report), lambda: make_apply_object(report))
    return get_apply_code(report)


def get_apply_code(report: ApplyReport) -> int:
    """Return the exit code for a result. An error that remains takes precedence over a temporary one."""
    if report.refused or report.list_state("failed"):
        return exit_codes.FINDINGS
    return exit_codes.TEMPORARY if report.list_state("temporary") else exit_codes.DONE


def _watch(run: Callable[[], ApplyReport], interval: timedelta) -> int:
    gc.enable()
    wakeup, known = Wakeup(), EventLog()
    with handle_signals(wakeup, timedelta(seconds=20)) as handler:
        if not handler.complete(lambda: watch_and_apply(run, interval=interval, listener=known.write, wakeup=wakeup)):
            output.LOGGER.warning("run aborted", extra={"fields": {"event": "abandoned"}})
    output.LOGGER.info("stopped", extra={"fields": {"event": "end"}})
    return exit_codes.INTERRUPTED if handler.signal_number == signal.SIGINT else exit_codes.DONE


class EventLog:
    """The log of --watch: a line for each event that the previous run did not have, and one for each commit."""

    def __init__(self) -> None:
        self._events: frozenset[str] = frozenset()
        self._commit = ""

    def write(self, report: ApplyReport) -> None:
        """Log what is new since the last run."""
        events = list(list_events(report))
        for event in events:
            if event.startswith("set "):
                output.LOGGER.info("%s", event, extra={"fields": {"event": "apply"}})
            elif event not in self._events:
                output.LOGGER.warning("%s", event.removeprefix("warning: "), extra={"fields": {"event": "apply"}})
        if report.commit != self._commit:
            output.LOGGER.info("%s", format_apply(report).splitlines()[-1], extra={"fields": {"event": "applied"}})
        self._events, self._commit = frozenset(events), report.commit
