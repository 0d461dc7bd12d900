"""--report: files and annotations for machines, beside what people read."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome

if TYPE_CHECKING:
    from gitsched.report.review import Review

ANNOTATIONS = "github"
_DEVICES = (Path("/dev"), Path("/dev/fd"), Path("/proc/self/fd"))


class Report(NamedTuple):
    """What to write, and where; annotations have no file."""

    form: str
    path: Path | None = None


def report_option(*more: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """--report, with forms that only some commands know beside those of all."""
    forms = ("sarif", "junit", *more)
    names = "|".join((*(f"{form}=FILE" for form in forms), ANNOTATIONS))

    def read(_ctx: click.Context, _parameter: click.Parameter, values: Sequence[str]) -> tuple[Report, ...]:
        return tuple(_read(value, forms, names) for value in values)

    return click.option(
        "--report",
        "wanted",
        metavar=names,
        multiple=True,
        callback=read,
        help="Also write this file, or annotations for GitHub Actions to stderr; may be repeated.",
    )


def _read(value: str, forms: Collection[str], names: str) -> Report:
    form, _, file = value.partition("=")
    if value == ANNOTATIONS:
        return Report(ANNOTATIONS)
    if form not in forms or not file:
        raise click.BadParameter(f"{value!r} is none of {names}")
    path = Path(file)
    if path.is_dir() or not path.parent.is_dir():
        raise click.BadParameter(f"{file} is a directory" if path.is_dir() else f"there is no directory {path.parent}")
    return Report(form, path)


OPTION = report_option()
Writer = Callable[[], str]


def list_writers(findings: Sequence[Finding], outcomes: Iterable[Outcome] = (), paths: Collection[str] = ()) -> dict[str, Writer]:
    """What every command can report of findings, and of workloads where it decided about any; see `write_annotations` for `paths`."""

    def sarif() -> str:
        from gitsched import __version__
        from gitsched.cli.pages import read_page
        from gitsched.report.codes import read_codes
        from gitsched.report.sarif import write_sarif

        return write_sarif(findings, read_codes(read_page("findings.md")), __version__)

    def junit() -> str:
        from gitsched.report.junit import write_junit

        return write_junit(findings, outcomes)

    def annotations() -> str:
        from gitsched.report.annotations import write_annotations

        return write_annotations(findings, paths)

    return {"sarif": sarif, "junit": junit, ANNOTATIONS: annotations}


def list_outputs(review: Review) -> str:
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


def write_reports(reports: Iterable[Report], writers: Mapping[str, Writer]) -> None:
    """Write what was asked for. Annotations go to stderr: the runner reads them there as well, and stdout is for people."""
    for report in reports:
        text = writers[report.form]()
        if report.path is None:
            sys.stderr.write(text)
            continue
        _write(report.path, text)


def _write(path: Path, text: str) -> None:
    """Write a file. A link is not followed, but for those of the system such as /dev/stdout: in a checkout it leads where whoever
    committed it likes."""
    if path.is_symlink() and path.parent not in _DEVICES:
        raise Permanent(f"cannot write {path}: it is a symbolic link; remove it, or name the file that it leads to")
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise Permanent(f"cannot write {path}: {error.strerror}") from error
