"""Write results to stdout, reports to files (--report), and logs, progress and CI annotations to stderr."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeVar

import click

from gitsched.model.errors import Permanent

if TYPE_CHECKING:
    from gitsched.model.finding import Finding
    from gitsched.model.progress import Progress
    from gitsched.model.scheduling import Outcome
    from gitsched.report.paint import Paint
    from gitsched.report.review import Review

Rendered = TypeVar("Rendered")
DEFAULT_WIDTH = 160
"""The width if stdout is not a terminal and COLUMNS is not set."""

_CI_COMMAND = re.compile(r"(##(?:vso|teamcity)?)\[", re.IGNORECASE)
LOGGER = logging.getLogger("gitsched")


def show(text: str, stream: TextIO | None = None) -> None:
    """Write what another program reads to stdout, or to another stream: in UTF-8, whatever the locale is."""
    stream = stream or sys.stdout
    stream.flush()
    stream.buffer.write(text.encode("utf-8", "backslashreplace"))
    stream.flush()


def show_faults(faults: Iterable[Finding]) -> None:
    """Write findings about documents on which a bug shows to stderr, for commands whose result has no findings."""
    from gitsched.report.lines import escape_unprintable

    for fault in faults:
        click.echo(escape_unprintable(str(fault)), err=True)


def show_text(text: str) -> None:
    """Write text for people to stdout, with CI commands escaped."""
    from gitsched.report.lines import escape_ci_commands

    show_formatted("text", escape_ci_commands(text))


def show_as(form: str, text: Callable[[int], str], data: Callable[[], dict[str, Any]]) -> None:
    """Write a result as text for the current width, or as JSON or YAML."""
    show_formatted(form, format_as(form, text, data))


def show_formatted(form: str, text: str) -> None:
    """Write a result that `format_as` has formatted: text in the encoding of stdout."""
    if form != "text":
        show(text)
        return
    sys.stdout.write(text)
    sys.stdout.flush()


def format_as(form: str, text: Callable[[int], str], data: Callable[[], dict[str, Any]]) -> str:
    """Return a result as text for the current width, with CI commands escaped, or as JSON or YAML."""
    if form != "text":
        return format_document(form, "", data)
    from gitsched.report.lines import escape_ci_commands

    return escape_ci_commands(text(find_width()))


def show_document(form: str, text: str, data: Callable[[], dict[str, Any]]) -> None:
    """Write what another program reads: the text as it is, or JSON or YAML."""
    show(format_document(form, text, data))


def format_document(form: str, text: str, data: Callable[[], dict[str, Any]]) -> str:
    """Return what another program reads: the text as it is, or JSON or YAML.

    YAML in which a CI runner would find a command is written as JSON, which is YAML, too. Only JSON can escape the command so that its
    meaning stays the same.
    """
    if form == "json":
        return format_json(data())
    from gitsched.render.yaml import dump
    from gitsched.report.lines import escape_ci_commands

    written = text if form == "text" else dump(data())
    return written if escape_ci_commands(written) == written else format_json(data())


def format_json(data: dict[str, Any]) -> str:
    """Return data as indented JSON with CI commands escaped."""
    import json

    return escape_json(json.dumps(data, indent=2)) + "\n"


def escape_json(text: str) -> str:
    """Return equivalent JSON in which a CI runner finds no commands."""
    return _CI_COMMAND.sub(r"\1\\u005b", text)


def find_width() -> int:
    """Return the width of the terminal, else COLUMNS, else a default."""
    if not _is_width_known():
        return DEFAULT_WIDTH
    import shutil  # only for a terminal

    return shutil.get_terminal_size((80 if sys.stdout.isatty() else DEFAULT_WIDTH, 24)).columns


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


class _ProgressLine:
    """Shows a stage, and how much of it is done, at most once in PROGRESS_INTERVAL unless the stage changes."""

    def __init__(self, message: str, show_line: Callable[[str], object]) -> None:
        self._message, self._show_line = message, show_line
        self._stage, self._next = "", 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if stage == self._stage and now < self._next:
            return
        self._stage, self._next = stage, now + PROGRESS_INTERVAL
        self._show_line(f"{self._message}: {stage}{f' {done:,} of {total:,}' if total else ''}")


@contextmanager
def show_progress(message: str) -> Iterator[Progress | None]:
    """Show a spinner with a message on stderr, and return what adds stages and counts to it; nothing unless stderr is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console  # loaded only for a terminal

    with Console(stderr=True).status(message) as status:
        yield _ProgressLine(message, status.update)


class _LogFormatter(logging.Formatter):
    """Formats a record as one line: a JSON object, or time, level and message. `extra={"fields": {...}}` adds JSON members."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form, self.count = form, 0

    def format(self, record: logging.LogRecord) -> str:
        self.count += 1
        from gitsched.report.lines import escape_ci_commands, escape_unprintable

        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields: dict[str, Any] = getattr(record, "fields", {})
        if self.form == "json":
            import json

            entry = {"time": time, "level": record.levelname.lower(), "message": record.getMessage(), **fields}
            return escape_json(json.dumps(entry))
        return f"{time} {record.levelname.lower():<7} {escape_ci_commands(escape_unprintable(record.getMessage()))}"


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
_DEVICE_DIRECTORIES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))
_STANDARD_OUTPUTS = {
    f"{directory}/{name}": stream
    for number, stream in ((1, "stdout"), (2, "stderr"))
    for directory, name in (("/dev", stream), ("/dev/fd", number), ("/proc/self/fd", number))
}
"""The files that are standard streams, with their names in `sys`. Opened once more, a file would be written from its start."""


class ReportRequest(NamedTuple):
    """The format and file of a report; annotations have no file."""

    form: str
    path: Path | None = None


def report_option(*more: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return the option --report with the common formats and the given additional ones."""
    forms = ("sarif", "junit", *more)
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
ReportWriter = Callable[[], str]


def list_report_writers(
    findings: Sequence[Finding], outcomes: Iterable[Outcome] = (), paths: Collection[str] = ()
) -> dict[str, ReportWriter]:
    """Return the writers of the formats that all commands support; see `write_annotations` for `paths`."""

    def sarif() -> str:
        from gitsched import __version__
        from gitsched.report.finding_codes import read_codes
        from gitsched.report.sarif import write_sarif

        return write_sarif(findings, read_codes(read_documentation("findings.md")), __version__)

    def junit() -> str:
        from gitsched.report.junit import write_junit

        return write_junit(findings, outcomes)

    def annotations() -> str:
        from gitsched.report.annotations import write_annotations

        return write_annotations(findings, paths)

    return {"sarif": sarif, "junit": junit, ANNOTATIONS: annotations}


class ReviewRenderer:
    """Renders a review. Entries on which that fails because of a bug are left out of `review`, which has a finding about each instead."""

    def __init__(self, review: Review) -> None:
        self.review = review

    def render(self, write: Callable[[Review], Rendered]) -> Rendered:
        try:
            return write(self.review)
        except Exception as error:
            from gitsched.model.system_errors import is_bug

            if not is_bug(error):
                raise
            from gitsched.report.isolated_review import isolate_review  # only after a bug

            self.review = isolate_review(self.review, write)
            return write(self.review)

    def format_as(self, form: str, text: Callable[[Review, int], str], data: Callable[[Review], dict[str, Any]]) -> str:
        """Return the review as text for the current width, or as JSON or YAML."""
        return format_as(form, lambda width: self.render(lambda review: text(review, width)), lambda: self.render(data))

    def show_as(self, form: str, text: Callable[[Review, int], str], data: Callable[[Review], dict[str, Any]]) -> None:
        """Write the review as text for the current width, or as JSON or YAML."""
        show_formatted(form, self.format_as(form, text, data))

    def list_writers(self, *, only_new: bool = False) -> dict[str, ReportWriter]:
        """Return the writers of the formats that all commands support; `only_new` leaves out findings that the base has, too."""

        def render(form: str) -> str:
            def write(review: Review) -> str:
                findings = review.new_findings if only_new else review.findings
                return list_report_writers(findings, review.outcomes, review.changed_paths)[form]()

            return self.render(write)

        return {form: partial(render, form) for form in list_report_writers(())}


def format_outputs(review: Review) -> str:
    """Return values for later pipeline steps as lines of NAME=VALUE, for `$GITHUB_OUTPUT` and GitLab's dotenv reports.

    `changed` is true if there is a new commit, or for a plan, if there would be one; `sha` is the head of the output branch or "". `race`
    is "same" or "different" if another run made the new commit.
    """
    outputs = {
        "changed": str(review.changed and not review.refused).lower(),
        "sha": review.after or review.before or "",
        "race": review.race,
        "moves": len(review.moves),
        "records": len(review.record_changes),
        "unplaced": review.states["pending"],
        "errors": sum(finding.severity == "error" for finding in review.findings),
    }
    return "".join(f"{name}={value}\n" for name, value in outputs.items())


def write_reports(reports: Iterable[ReportRequest], writers: Mapping[str, ReportWriter]) -> None:
    """Write the requested reports. Annotations go to stderr, which the runner reads, too."""
    for report in reports:
        text = writers[report.form]()
        if report.path is None:
            sys.stderr.write(text)
            continue
        write_file(report.path, text)


def write_file(path: Path, text: str, *, make_directories: bool = False) -> None:
    """Write a file. Symbolic links other than devices such as /dev/fd/3 are refused, because a commit can point them anywhere; so are
    linked directories of a worktree. What is for /dev/stdout or /dev/stderr follows what has been written there."""
    stream = _STANDARD_OUTPUTS.get(str(path))
    if stream is not None:
        show(text, getattr(sys, stream))
        return
    if path.is_symlink() and path.parent not in _DEVICE_DIRECTORIES:
        raise Permanent(f"cannot write {path}: it is a symbolic link; remove it, or use the path of its target")
    for parent in path.absolute().parents:
        if parent.is_symlink() and any((outer / ".git").exists() for outer in parent.parents):
            raise Permanent(f"cannot write {path}: {parent} is a symbolic link in a worktree; use the path of its target")
    try:
        if make_directories:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", "backslashreplace")
    except OSError as error:
        from gitsched.model.system_errors import make_write_error

        raise make_write_error(path, error) from error


def read_documentation(name: str) -> str:
    """Return a page of docs/, which is in gitsched/docs in a wheel and next to the package in a checkout."""
    from importlib.resources import files  # only documentation needs it

    package = files("gitsched")
    inside = package.joinpath("docs")
    return (inside if inside.is_dir() else package.joinpath("..", "docs")).joinpath(name).read_text("utf-8")
