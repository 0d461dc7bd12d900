"""gitsched plan: show the changes of a commit without writing anything (a dry run)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.apis.registered import Registered
from gitsched.cli import exit_codes, formats, output, reports, saved_plan, scenario_options
from gitsched.cli.commands.reconciliation import group_options, show_failing
from gitsched.cli.worktree import NOT_PLANNED, note_uncommitted
from gitsched.reconcile import RunSettings
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.report.consequences import loses_placements
from gitsched.report.markdown import write_markdown
from gitsched.report.serialization import serialize_review
from gitsched.report.serialized_simulation import serialize_losses
from gitsched.report.text import write_plan

if TYPE_CHECKING:
    from gitsched.report.review import Review

_SERIALIZE_RESERVE = Registered("gitsched.report.reserve", "serialize_reserve")


def _check_shown(form: str, *options: object) -> None:
    """Raise UsageError if a saved plan is shown with options that a new plan takes, or as a page."""
    if any(options) or form == "html":
        raise click.UsageError(
            "--show prints a saved plan as text, markdown, json or yaml; it is used without BASE and plan options"
        )


def run(
    base: str | None,
    head: str | None,
    revision: str | None,
    worktree: bool,
    detailed: bool,
    form: str,
    fail_on: exit_codes.FailOn,
    log_format: str,
    location: str,
    output_repository: str | None,
    wanted: tuple[output.ReportRequest, ...],
    max_chars: int,
    comment_id: str,
    resilience: str | None,
    out: Path | None,
    show: str | None,
    each: bool,
    color: str,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
    base, head = _split_range(base, head)
    _check_selection(base, head, revision, worktree, out)
    paint = output.choose_paint(color)
    if show is not None:
        _check_shown(form, base, revision, worktree, out, resilience, wanted)
        limited = partial(write_markdown, limit=max_chars, identity=comment_id)
        return saved_plan.show_saved_plan(show, form, limited, paint, each=each)

    output.configure_logging(log_format)
    settings = RunSettings(
        location=location,
        revision=revision or head or ("HEAD" if base is not None and not worktree else None),
        worktree=worktree,
        output=output_repository,
        trusted=False,
        **group_options(chosen),
    )
    if not worktree and head is None and revision is None and chosen["branch"] is None:
        note_uncommitted(location, log_format, NOT_PLANNED)
    shows_fleet = form == "html" or any(report.form == "html" for report in wanted)
    # A loss may concern any workload.
    with output.show_progress("Planning") as progress:
        compared = compare_plans(
            settings._replace(progress=progress), base, complete=resilience is not None, shows_fleet=shows_fleet
        )
        found = compared.review
        if resilience is not None:
            from gitsched.reconcile.review.source_simulation import assess_resilience  # few plans are simulated as well

            found = found._replace(resilience=assess_resilience(compared, scenario_options.FAILURE_DOMAINS[resilience]))

    rendered = formats.ReviewRenderer(found)

    def markdown() -> str:
        return rendered.render(lambda review: write_markdown(review, max_chars, comment_id))

    def html() -> str:
        from gitsched.cli.html_reports import write_plan_page  # needs jinja2

        return rendered.render(lambda review: write_plan_page(compared, review))

    def serialize(review: Review) -> dict[str, Any]:
        found = serialize_review(review)
        if review.resilience is not None:
            found["resilience"] = serialize_losses(review.resilience)
        if review.comparison.reserve is not None:
            found["reserve"] = _SERIALIZE_RESERVE(review.comparison.reserve)
        return found

    if form == "markdown":
        formats.show_text(markdown())
    elif form == "html":
        output.show(html())
    else:
        rendered.show_as(form, partial(write_plan, paint=paint, each=each), serialize)
    writers = reports.list_review_writers(rendered, only_new=base is not None)
    writers |= {
        "markdown": markdown,
        "html": html,
        "json": lambda: formats.format_json(rendered.render(serialize)),
        "env": lambda: rendered.render(reports.format_outputs),
    }
    reports.write_reports(wanted, writers)
    if out is not None:
        said = saved_plan.save_plan(out, compared)
        if form == "text":
            formats.show_text(said)
    show_failing(form, rendered.review, fail_on)
    lost = base is not None and loses_placements(rendered.review)
    return exit_codes.get_review_code(rendered.review, fail_on, detailed=detailed, lost=lost)


def _split_range(base: str | None, head: str | None) -> tuple[str | None, str | None]:
    """Return the commits of BASE..HEAD, as git names them; no ref has two dots in its name."""
    first, dots, last = (base or "").partition("..")
    return (first or "HEAD", last.removeprefix(".") or "HEAD") if dots and head is None else (base, head)


def _check_selection(base: str | None, head: str | None, revision: str | None, worktree: bool, out: Path | None) -> None:
    """Raise a usage error unless one thing is planned."""
    if sum((worktree, revision is not None, head is not None)) > 1 or (revision is not None and base is not None):
        raise click.UsageError("use only one of --worktree, --revision and HEAD, and do not use --revision with BASE")
    if out is not None and worktree:
        raise click.UsageError("--out saves the plan of a commit: commit the files of the worktree first")
