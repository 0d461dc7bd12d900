"""Write reports to files (--report), and reviews to stdout."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from gitsched.cli.formats import ReviewRenderer
from gitsched.cli.output import FINDING_FORMATS, ReportRequest, show
from gitsched.model.errors import Permanent
from gitsched.model.system_errors import make_write_error
from gitsched.report.finding_report import FindingReport
from gitsched.report.review import Review


def list_report_writers(report: FindingReport) -> dict[str, ReportWriter]:
    """Return the writers of the formats that all commands support."""

    def write(name: str) -> str:
        from gitsched.cli import report_formats  # most runs write no report

        text: str = getattr(report_formats, name)(report)
        return text

    return {form: partial(write, name) for form, name in FINDING_FORMATS.items()}


def list_review_writers(rendered: ReviewRenderer, *, only_new: bool = False) -> dict[str, ReportWriter]:
    """Return the writers of all formats for the findings of a review; `only_new` leaves out findings that the base has, too."""

    def write(form: str, review: Review) -> str:
        findings = review.new_findings if only_new else review.findings
        report = FindingReport(findings, review.outcomes, review.comparison.changed_paths)
        return list_report_writers(report)[form]()

    return {form: partial(rendered.render, partial(write, form)) for form in FINDING_FORMATS}


def format_outputs(review: Review) -> str:
    """Return values for later pipeline steps as lines of NAME=VALUE, for `$GITHUB_OUTPUT` and GitLab's dotenv reports.

    `changed` is true if there is a new commit, or for a plan, if there would be one; `sha` is the head of the output branch or "". `race`
    is "same" or "different" if another run made the new commit. `unchanged` is true if there is nothing that a reviewer has to know.
    """
    outputs = {
        "changed": str(review.changed and not review.refused).lower(),
        "sha": review.after or review.before or "",
        "race": review.race,
        "moves": len(review.moves),
        "records": len(review.record_changes),
        "unplaced": review.states["pending"],
        "errors": sum(finding.severity == "error" for finding in review.findings),
        "unchanged": str(not review.has_news).lower(),
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
        raise make_write_error(path, error) from error


_DEVICE_DIRECTORIES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


_STANDARD_OUTPUTS = {
    f"{directory}/{name}": stream
    for number, stream in ((1, "stdout"), (2, "stderr"))
    for directory, name in (("/dev", stream), ("/dev/fd", number), ("/proc/self/fd", number))
}
"""The files that are standard streams, with their names in `sys`. Opened once more, a file would be written from its start."""


ReportWriter = Callable[[], str]
