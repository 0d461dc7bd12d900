"""The --report option: SARIF, JUnit, HTML and other files, and GitHub annotations, beside the normal output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding
from gitsched.model.scheduling import Outcome

if TYPE_CHECKING:
    from gitsched.report.review import Review

ANNOTATIONS = "github"
_DEVICE_DIRECTORIES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


class ReportRequest(NamedTuple):
    """What to write, and where; annotations have no file."""

    form: str
    path: Path | None = None


def report_option(*more: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """--report, with forms that only some commands know beside those of all."""
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
        help="Also write this file, or annotations for GitHub Actions to stderr; may be repeated.",
    )


def _parse_report(value: str, forms: Collection[str], names: str) -> ReportRequest:
    form, _, file = value.partition("=")
    if value == ANNOTATIONS:
        return ReportRequest(ANNOTATIONS)
    if form not in forms or not file:
        raise click.BadParameter(f"{value!r} is none of {names}")
    path = Path(file)
    if path.is_dir() or not path.parent.is_dir():
        raise click.BadParameter(f"{file} is a directory" if path.is_dir() else f"there is no directory {path.parent}")
    return ReportRequest(form, path)


REPORT_OPTION = report_option()
ReportWriter = Callable[[], str]


def list_report_writers(
    findings: Sequence[Finding], outcomes: Iterable[Outcome] = (), paths: Collection[str] = ()
) -> dict[str, ReportWriter]:
    """What every command can report of findings, and of workloads where it decided about any; see `write_annotations` for `paths`."""

    def sarif() -> str:
        from gitsched import __version__
        from gitsched.cli.help_code import read_documentation
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


def format_outputs(review: Review) -> str:
    """What a pipeline goes on with, as lines of NAME=VALUE: GitHub's `$GITHUB_OUTPUT` and GitLab's dotenv reports read them.

    `changed` is whether there is a new commit, or for a plan, whether there would be; `sha` is the output branch's commit, "" for none.
    """
    outputs = {
        "changed": str(review.changed and not review.refused).lower(),
        "sha": review.after or review.before or "",
        "moves": len(review.moves),
        "unplaced": review.states["pending"],
        "errors": sum(finding.severity == "error" for finding in review.findings),
    }
    return "".join(f"{name}={value}\n" for name, value in outputs.items())


def write_reports(reports: Iterable[ReportRequest], writers: Mapping[str, ReportWriter]) -> None:
    """Write what was asked for. Annotations go to stderr: the runner reads them there as well, and stdout is for people."""
    for report in reports:
        text = writers[report.form]()
        if report.path is None:
            sys.stderr.write(text)
            continue
        _write_file(report.path, text)


def _write_file(path: Path, text: str) -> None:
    """Write a file. A link is not followed, but for those of the system such as /dev/stdout: in a checkout it leads where whoever
    committed it likes."""
    if path.is_symlink() and path.parent not in _DEVICE_DIRECTORIES:
        raise Permanent(f"cannot write {path}: it is a symbolic link; remove it, or name the file that it leads to")
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise Permanent(f"cannot write {path}: {error.strerror}") from error
