"""Reconcile, and show the result: what `gitsched reconcile` does where the last answer does not count any more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from gitsched.apis.registered import Registered
from gitsched.cli import exit_codes, formats, output, reports
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.idle_answers import IdleAnswers
from gitsched.reconcile.reconciler import reconcile
from gitsched.reconcile.run import make_review
from gitsched.reconcile.run_settings import RunChoices, RunSettings
from gitsched.report.text import write_run

if TYPE_CHECKING:
    from gitsched.report.paint import Paint
    from gitsched.report.review import Review

_SERIALIZE_REVIEW = Registered("gitsched.report.serialization", "serialize_review")
_FORMAT_COUNTS = Registered("gitsched.report.lines", "format_finding_counts")


class Presentation(NamedTuple):
    """How the result of a run is shown, by the options of `reconcile`; `count_lines` returns the lines of the log."""

    form: str
    paint: Paint | None
    each: bool
    fail_on: exit_codes.FailOn
    wanted: tuple[output.ReportRequest, ...]
    count_lines: Callable[[], int]


def group_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by name as fields of `RunSettings`, with those of `RunChoices` as `choices`."""
    chosen = {name: value for name, value in options.items() if name in RunChoices._fields}
    return {**{name: value for name, value in options.items() if name not in chosen}, "choices": RunChoices(**chosen)}


def reconcile_and_show(
    location: str, output_repository: str | None, chosen: dict[str, Any], shown: Presentation, answers: IdleAnswers | None
) -> int:
    """Reconcile with the chosen settings, show the result, and return the exit code. The text is kept in `answers` if the next run would
    write it again."""
    logged = shown.count_lines()
    with output.show_progress("Reconciling") as progress:
        run = reconcile(RunSettings(location=location, output=output_repository, progress=progress, **group_options(chosen)))
    found = make_review(run)
    rendered = formats.ReviewRenderer(found)
    write = partial(write_run, paint=shown.paint, each=shown.each)
    text = rendered.format_as(shown.form, write, _SERIALIZE_REVIEW)
    output.show_formatted(shown.form, text)
    show_failing(shown.form, rendered.review, shown.fail_on)
    if shown.wanted:
        writers = {**reports.list_review_writers(rendered), "env": lambda: rendered.render(reports.format_outputs)}
        reports.write_reports(shown.wanted, writers)
    code = exit_codes.get_review_code(rendered.review, shown.fail_on)
    if answers is not None and code == exit_codes.DONE and shown.count_lines() == logged and rendered.review is found:
        answers.keep(run, text)
    return code


def show_failing(form: str, review: Review, fail_on: exit_codes.FailOn) -> None:
    """Write which findings fail a plan or a reconcile because of `--fail-on warning`, as the last line of a text."""
    findings = exit_codes.list_failing(review, fail_on) if form == "text" and fail_on == "warning" else []
    if findings:
        counts = _FORMAT_COUNTS(findings, "new" if review.base.commit else "")
        formats.show_text(f"exit {exit_codes.FINDINGS}: {counts}\n")
