"""gitsched watch: the output branch follows the source."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, options, output

if TYPE_CHECKING:
    from gitsched.reconcile import Run, Settings
    from gitsched.watch import Attempt, Bell


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
    settings = Settings(location=location, output=output_repository, now=now, **chosen)
    if once:
        return _run_once(settings, fail_on)
    from gitsched.watch import Abandoned, Bell, heed_signals

    bell = Bell()
    with heed_signals(bell, timedelta(seconds=grace)) as ending:
        try:
            _run(settings, bell, timedelta(seconds=interval))
        except Abandoned:
            output.LOGGER.warning("the run was given up where it was", extra={"fields": {"event": "abandoned"}})
    output.LOGGER.info("ended", extra={"fields": {"event": "end"}})
    return exit_codes.INTERRUPTED if ending.number == signal.SIGINT else exit_codes.DONE


def _run_once(settings: Settings, fail_on: exit_codes.FailOn) -> int:
    from gitsched.cli.reviewing import judge, review
    from gitsched.reconcile import Session

    run = Session(settings).run(settings.now)
    Journal().write(run)
    return judge(review(run), fail_on)


def _run(settings: Settings, bell: Bell, interval: timedelta) -> None:
    from gitsched.reconcile import Session
    from gitsched.watch import watch

    session = Session(settings)
    output.LOGGER.info("watching %s", settings.location, extra={"fields": {"event": "start"}})
    watch(session, interval=interval, listener=Journal(), bell=bell)


class Journal:
    """The log of a resident process: one line for each run that changed something, findings when they are new."""

    def __init__(self) -> None:
        self.known: frozenset[str] = frozenset()
        self.source: str | None = None
        self.refused = ""

    def begin(self) -> None:
        """A look that begins is not worth a line."""

    def end(self, attempt: Attempt) -> None:
        """What went wrong is told by the loop."""
        if attempt.run is not None:
            self.write(attempt.run)

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
