"""Write results to stdout, reports to files (--report), and logs, progress and CI annotations to stderr."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.finding import Finding
    from gitsched.model.progress import Progress
    from gitsched.report.paint import Paint


UNLIMITED_WIDTH = 1_000_000
"""The width if stdout is not a terminal and COLUMNS is not set: what a program or a log reads is not wrapped."""


LOGGER = logging.getLogger("gitsched")


def show(text: str, stream: TextIO | None = None) -> None:
    """Write what another program reads to stdout, or to another stream: in UTF-8, whatever the locale is."""
    stream = stream or sys.stdout
    stream.flush()
    stream.buffer.write(text.encode("utf-8", "backslashreplace"))
    stream.flush()


def show_formatted(form: str, text: str) -> None:
    """Write a result that `format_as` has formatted: text in the encoding of stdout."""
    if form != "text":
        show(text)
        return
    sys.stdout.write(text)
    sys.stdout.flush()


def find_width() -> int:
    """Return the width of the terminal, else COLUMNS, else one in which nothing is wrapped."""
    if not _is_width_known():
        return UNLIMITED_WIDTH
    import shutil  # only for a terminal

    return shutil.get_terminal_size((80, 24)).columns


def _is_width_known() -> bool:
    return sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()


_COLORS: dict[str, dict[str, Any]] = {
    "heading": {"bold": True},
    "added": {"fg": "green"},
    "removed": {"fg": "red"},
    "changed": {"fg": "yellow"},
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow", "bold": True},
    "note": {"fg": "cyan"},
}
"""The colours of roles, of the sixteen that every theme of a terminal adapts to its background."""


def choose_paint(color: str) -> Paint | None:
    """Return how to colour text on stdout for the option --color; None without colours."""
    if color == "never":
        return None
    if color == "auto" and (not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"):
        return None
    return lambda text, role: click.style(text, **_COLORS[role])


PROGRESS_INTERVAL = 0.1
"""Seconds between two updates of the line that shows progress."""


LOG_INTERVAL = 30.0
"""Seconds between two lines in the log of work that takes long."""


class _ProgressLine:
    """Shows a stage, and how much of it is done, at most once in an interval unless the stage changes. If `timed`, it also shows the rate
    and how long the rest takes at that rate."""

    def __init__(self, message: str, show_line: Callable[[str], object], interval: float, *, timed: bool) -> None:
        self._message, self._show_line, self._interval, self._timed = message, show_line, interval, timed
        self._stage, self._next, self._start = "", 0.0, 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage == self._stage and now < self._next:
            return
        if stage != self._stage:
            self._start = now
        self._stage, self._next = stage, now + self._interval
        rate = self._describe_rate(done, total, now - self._start) if self._timed else ""
        self._show_line(f"{self._message}: {stage}{f' {done:,} of {total:,}' if total else ''}{rate}")

    def _describe_rate(self, done: int, total: int, seconds: float) -> str:
        if not done or seconds < 1:
            return ""
        rate = done / seconds
        return f", {rate:,.1f} a second, {_format_seconds((total - done) / rate)} left"


def _format_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"


@contextmanager
def show_progress(message: str, *, timed: bool = False) -> Iterator[Progress | None]:
    """Show a spinner with a message on stderr, and return what adds stages and counts to it. Unless stderr is a terminal, nothing is shown,
    or with `timed` a line in the log now and then."""
    if not sys.stderr.isatty():
        line = _ProgressLine(message, lambda text: LOGGER.info("%s", text), LOG_INTERVAL, timed=True)
        yield _skip_first(line) if timed else None
        return
    from rich.console import Console  # loaded only for a terminal

    with Console(stderr=True).status(message) as status:
        yield _ProgressLine(message, status.update, PROGRESS_INTERVAL, timed=timed)


def _skip_first(show: Progress) -> Progress:
    """Return what reports progress from LOG_INTERVAL on: most work has ended before."""
    start = time.monotonic()

    def report(stage: str, done: int, total: int) -> None:
        if time.monotonic() - start >= LOG_INTERVAL:
            show(stage, done, total)

    return report


class _LogFormatter(logging.Formatter):
    """Formats records as `log_lines` does, and counts them."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form, self.count = form, 0

    def format(self, record: logging.LogRecord) -> str:
        from gitsched.cli.log_lines import format_record  # most runs write no log

        self.count += 1
        return format_record(record, self.form)


def log_findings(findings: Iterable[Finding]) -> None:
    """Write findings to the log, each with its severity."""
    for finding in findings:
        log = {"error": LOGGER.error, "warning": LOGGER.warning, "info": LOGGER.info}[finding.severity]
        log("%s", finding.without_severity, extra={"fields": {"event": "finding", "code": finding.code}})


def configure_logging(form: str) -> Callable[[], int]:
    """Write gitsched's log to stderr, as text or JSON. Return what counts the lines of the log."""
    handler, formatter = logging.StreamHandler(), _LogFormatter(form)
    handler.setFormatter(formatter)
    LOGGER.handlers = [handler]
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    return lambda: formatter.count


ANNOTATIONS = "github"
FINDING_FORMATS: Mapping[str, str] = {
    "sarif": "write_sarif_report",
    "junit": "write_junit_report",
    ANNOTATIONS: "write_annotation_report",
}
"""The functions of gitsched.cli.report_formats that write a `FindingReport`, by format of --report."""


class ReportRequest(NamedTuple):
    """The format and file of a report; annotations have no file."""

    form: str
    path: Path | None = None


def report_option(*more: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return the option --report with the common formats and the given additional ones."""
    forms = (*(form for form in FINDING_FORMATS if form != ANNOTATIONS), *more)
    names = "|".join((*(f"{form}=FILE" for form in forms), ANNOTATIONS))

    def read(_ctx: click.Context, _parameter: click.Parameter, values: Sequence[str]) -> tuple[ReportRequest, ...]:
        return tuple(_parse_report(value, forms, names) for value in values)

    return click.option(
        "--report",
        "wanted",
        metavar=names,
        multiple=True,
        callback=read,
        help="Also write a report to FILE, or GitHub Actions annotations to stderr; may be repeated.",
    )


def _parse_report(value: str, forms: Collection[str], names: str) -> ReportRequest:
    form, _, file = value.partition("=")
    if value == ANNOTATIONS:
        return ReportRequest(ANNOTATIONS)
    if form not in forms or not file:
        raise click.BadParameter(f"{value!r} is not one of {names}")
    path = Path(file)
    if path.is_dir() or not path.parent.is_dir():
        raise click.BadParameter(f"{file} is a directory" if path.is_dir() else f"there is no directory {path.parent}")
    return ReportRequest(form, path)


REPORT_OPTION = report_option()
