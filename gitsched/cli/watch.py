"""gitsched watch: the output branch follows the source."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gitsched.cli import exit_codes, options, output, serving
from gitsched.model.time import format_time

if TYPE_CHECKING:
    from gitsched.reconcile import Settings
    from gitsched.report.review import Review
    from gitsched.watch import Attempt, Bell
    from gitsched.watch.service import Service


@click.command("watch")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to look at a remote; refs on this machine are seen at once.",
)
@click.option("--once", is_flag=True, help="Run once and leave, like reconcile, with the log of watch.")
@click.option(
    "--grace",
    type=click.FloatRange(min=0),
    default=20.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a run that has begun may go on after SIGTERM or SIGINT.",
)
@serving.SERVE
@options.SOURCE
@options.TARGET
@options.COMMIT
@options.METRICS
@options.EXPECT
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
    """Reconcile whenever the source moves or a deadline passes.

    Mistakes in the input are logged and waited out. SIGTERM ends it with 0, SIGINT (Ctrl-C) with 130; a run that has begun is ended
    first, or given up after --grace seconds and at a second signal, which leaves nothing half done.
    """
    from gitsched.reconcile import Settings

    output.start_log(log_format)
    asked = serving.Serving(*(chosen.pop(name) for name in serving.Serving._fields))
    settings = Settings(location=location, output=output_repository, now=now, **chosen)
    if once:
        return _run_once(settings, fail_on)
    from gitsched.watch import Abandoned, Bell, heed_signals

    bell = Bell()
    with heed_signals(bell, timedelta(seconds=grace)) as ending:
        try:
            _run(settings, asked, bell, fail_on, (timedelta(seconds=interval), timedelta(seconds=debounce)))
        except Abandoned:
            output.LOGGER.warning("the run was given up where it was", extra={"fields": {"event": "abandoned"}})
    output.LOGGER.info("ended", extra={"fields": {"event": "end"}})
    return exit_codes.INTERRUPTED if ending.number == signal.SIGINT else exit_codes.DONE


options.read_environment(command)


def _run_once(settings: Settings, fail_on: exit_codes.FailOn) -> int:
    from gitsched.cli.reviewing import judge
    from gitsched.reconcile import Session
    from gitsched.reconcile.account import review

    found = review(Session(settings).run(settings.now))
    Journal().write(found)
    return judge(found, fail_on)


def _run(
    settings: Settings, asked: serving.Serving, bell: Bell, fail_on: exit_codes.FailOn, times: tuple[timedelta, timedelta]
) -> None:
    from gitsched.git.urls import redact
    from gitsched.reconcile import Session
    from gitsched.watch import watch

    session = Session(settings)
    service = serving.open_service(asked, session, bell, fail_on)
    try:
        output.LOGGER.info("watching %s", redact(settings.location), extra={"fields": {"event": "start"}})
        interval, debounce = times
        watch(session, interval=interval, debounce=debounce, listener=Audience(Journal(), service), bell=bell)
    finally:
        service.close()


class Audience(NamedTuple):
    """Who is told of what the loop does."""

    journal: Journal
    service: Service

    def begin(self) -> None:
        """A look begins, which is not worth a line."""
        self.service.begin()

    def end(self, attempt: Attempt) -> None:
        """It is over; what went wrong is told by the loop."""
        from gitsched.reconcile.account import review

        found = review(attempt.run) if attempt.run is not None else None
        if found is not None:
            self.journal.write(found)
        self.service.end(attempt, found)


class Journal:
    """The log of a resident process: one line for each run that changed something, findings when they are new."""

    def __init__(self) -> None:
        self.known: frozenset[str] = frozenset()
        self.source: str | None = None
        self.refused = ""
        self.reviewed: Sequence[str] = ()

    def write(self, found: Review) -> None:
        """Tell what is new since the last run."""
        fresh = {str(finding): finding for finding in found.findings if finding.severity != "info"}
        for text, finding in fresh.items():
            if text not in self.known:
                log = output.LOGGER.error if finding.severity == "error" else output.LOGGER.warning
                log("%s", finding.plain, extra={"fields": {"event": "finding", "code": finding.code}})
        self.known = frozenset(fresh)
        if found.refused and found.refused != self.refused:
            output.LOGGER.error("refused: %s", found.refused, extra={"fields": {"event": "refused", "source": found.source}})
        self.refused = found.refused
        if found.reviewed and found.reviewed != self.reviewed:
            fields = {"event": "review", "source": found.source, "reviewed": list(found.reviewed)}
            output.LOGGER.info("%s", " ".join(line.strip() for line in found.reviewed), extra={"fields": fields})
        self.reviewed = found.reviewed
        if found.after is not None or found.source != self.source:
            self._tell(found)
        self.source = found.source

    def _tell(self, found: Review) -> None:
        from gitsched.report.table import count
        from gitsched.report.verdict import short

        source, after, wakeup = found.source, found.after, found.next_wakeup
        moment = format_time(wakeup) if wakeup else None
        fields = {"event": "run", "source": source, "commit": after, "moves": len(found.moves), "nextWakeup": moment}
        message = f"committed {short(after)}, {count(len(found.moves), 'workload')} moved" if after else "nothing to commit"
        output.LOGGER.info(
            "commit %s: %s; %d of %d workloads placed",
            short(source),
            message,
            found.states["placed"],
            len(found.outcomes),
            extra={"fields": fields},
        )
