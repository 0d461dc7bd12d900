"""gitsched watch: the output branch follows the source."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, options, output

if TYPE_CHECKING:
    from gitsched.reconcile import Run


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
    fail_on: exit_codes.FailOn,
    log_format: str,
    location: str,
    output_repository: str | None,
    now: datetime,
    **chosen: Any,
) -> int:
    """Reconcile whenever the source moves or a deadline passes.

    Mistakes in the input are logged and waited out. SIGTERM ends it with 0, SIGINT (Ctrl-C) with 130; a run that has begun is ended
    first.
    """
    from gitsched.reconcile import Session, Settings
    from gitsched.watch import watch

    output.start_log(log_format)
    session = Session(Settings(location=location, output=output_repository, now=now, **chosen))
    journal = Journal()
    if once:
        from gitsched.cli.reviewing import judge, review

        run = session.run(now)
        journal.write(run)
        return judge(review(run), fail_on)
    with stopped() as signals:
        output.LOGGER.info("watching %s", location, extra={"fields": {"event": "start"}})
        watch(session, interval=timedelta(seconds=interval), report=journal.write, stop=signals.event)
    return exit_codes.INTERRUPTED if signals.number == signal.SIGINT else exit_codes.DONE


class Signals:
    """Which signal asked for an end, if one did."""

    def __init__(self) -> None:
        self.event, self.number = threading.Event(), 0

    def note(self, number: int, _frame: FrameType | None) -> None:
        self.number = number
        self.event.set()
        # Whoever asks twice does not want to wait for the end of a run.
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def stopped() -> Iterator[Signals]:
    """Signals that end a process set an event instead, so that a run that has begun comes to its end."""
    signals = Signals()
    before = {number: signal.signal(number, signals.note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Journal:
    """The log of a resident process: one line for each run that changed something, findings when they are new."""

    def __init__(self) -> None:
        self.known: frozenset[str] = frozenset()
        self.source: str | None = None
        self.refused = ""

    def write(self, run: Run) -> None:
        """Tell what is new since the last run."""
        from gitsched.cli.reviewing import review
        from gitsched.report.data import describe_review

        found = review(run)
        fresh = {str(finding): finding for finding in found.findings if finding.severity != "info"}
        for text, finding in fresh.items():
            if text not in self.known:
                log = output.LOGGER.error if finding.severity == "error" else output.LOGGER.warning
                log("%s", finding.plain, extra={"fields": {"event": "finding", "code": finding.code}})
        self.known = frozenset(fresh)
        if found.refused and found.refused != self.refused:
            output.LOGGER.error("refused: %s", found.refused, extra={"fields": {"event": "refused", "source": found.source}})
        self.refused = found.refused
        if found.after is not None or found.source != self.source:
            self._tell(found.source, found.after, describe_review(found))
        self.source = found.source

    def _tell(self, source: str, after: str | None, data: dict[str, Any]) -> None:
        from gitsched.report.text import short

        fields = {"event": "run", "source": source, "commit": after, "moves": len(data["moves"]), "nextWakeup": data["nextWakeup"]}
        counts = data["workloads"]
        message = f"committed {short(after)}, {fields['moves']} moves" if after else "nothing to commit"
        output.LOGGER.info(
            "commit %s: %s; %d of %d workloads placed",
            short(source),
            message,
            counts["placed"],
            counts["total"],
            extra={"fields": fields},
        )
