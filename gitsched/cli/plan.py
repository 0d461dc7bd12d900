"""gitsched plan: show the changes of a commit without writing anything (a dry run)."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, options, output, saved_plan, scenario_options
from gitsched.cli.worktree import NOT_PLANNED, note_uncommitted

if TYPE_CHECKING:
    from gitsched.report.review import Review

MAX_CHARS, MIN_CHARS = 65_024, 16_384
"""The default and minimum length of a comment. GitHub allows 65,536 characters; the rest is reserved for the program that posts it."""


def _read_comment_id(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
        raise click.BadParameter(f"{value!r} does not consist of 1 to 64 letters, digits, '.', '_' and '-'")
    return value


@click.command(
    "plan",
    epilog=options.show_examples(
        ("What the next reconcile changes", "plan"),
        ("What a branch changes", "plan main feature"),
        ("With uncommitted files, and exit code 2 for changes", "plan --worktree --detailed-exitcode"),
    ),
)
@click.argument("base", required=False, shell_complete=options.complete_with("revisions"))
@click.argument("head", required=False, shell_complete=options.complete_with("revisions"))
@click.option("--revision", metavar="REVISION", help="Compare this branch, tag or commit with the output branch.")
@click.option("--worktree", is_flag=True, help="Plan the files of the worktree, including uncommitted changes.")
@click.option("--detailed-exitcode", "detailed", is_flag=True, help="Exit with 2 if there are changes.")
@options.RECORDED_METRICS
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.RUN_CONDITIONS
@options.RELEASED_CLUSTERS
@options.FAIL_ON
@output.report_option("markdown", "json", "html", "env")
@click.option(
    "--max-chars",
    type=click.IntRange(min=MIN_CHARS),
    default=MAX_CHARS,
    show_default=True,
    help="Maximum length of the Markdown; what does not fit is omitted in the order of docs/review.md.",
)
@click.option(
    "--comment-id",
    metavar="ID",
    default="default",
    show_default=True,
    callback=_read_comment_id,
    help="Identifies the comment in the hidden first line of the Markdown, so that a later run can update it.",
)
@click.option(
    "--resilience",
    type=click.Choice(list(scenario_options.FAILURE_DOMAINS)),
    help="Also simulate losing each of them; with BASE, compare the results.",
)
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the plan; `gitsched reconcile --plan FILE` carries out exactly this one.",
)
@click.option("--show", metavar="FILE", help="Show a plan that --out has saved; make no plan.")
@options.choose_format("text", "markdown", "json", "yaml", "html")
@options.EACH_WORKLOAD
@options.COLOR
@options.LOG
def command(
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
    """Show which workloads would move, and why. Writes nothing.

    Without arguments, compare the source branch with the output branch. With BASE, compare the plan of HEAD (a branch, tag or commit;
    the checked-out commit by default) with the plan of BASE: the changes of a merge. `diff` is an alias of this command.
    """
    if sum((worktree, revision is not None, head is not None)) > 1 or (revision is not None and base is not None):
        raise click.UsageError("use only one of --worktree, --revision and HEAD, and do not use --revision with BASE")
    if out is not None and worktree:
        raise click.UsageError("--out saves the plan of a commit: commit the files of the worktree first")
    from gitsched.report.markdown import write_markdown

    paint = output.choose_paint(color)
    if show is not None:
        if any((base, revision, worktree, out, resilience, wanted)) or form == "html":
            raise click.UsageError(
                "--show prints a saved plan as text, markdown, json or yaml; it is used without BASE and plan options"
            )
        limited = partial(write_markdown, limit=max_chars, identity=comment_id)
        return saved_plan.show_saved_plan(show, form, limited, paint, each=each)
    from gitsched.reconcile import RunSettings
    from gitsched.reconcile.review.comparison import compare_plans
    from gitsched.report.serialization import serialize_review
    from gitsched.report.text import write_plan

    output.configure_logging(log_format)
    settings = RunSettings(
        location=location,
        revision=revision or head or ("HEAD" if base is not None and not worktree else None),
        worktree=worktree,
        output=output_repository,
        trusted=False,
        **chosen,
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
            from gitsched.reconcile.review.source_simulation import assess_resilience  # loaded only with --resilience

            found = found._replace(resilience=assess_resilience(compared, scenario_options.FAILURE_DOMAINS[resilience]))

    rendered = output.ReviewRenderer(found)

    def markdown() -> str:
        return rendered.render(lambda review: write_markdown(review, max_chars, comment_id))

    def page() -> str:
        from gitsched.reconcile.review.fleet_view import view_fleet
        from gitsched.report.page import write_page

        def write(review: Review) -> str:
            if compared.fleet is not None:
                return write_page(review, compared.fleet)
            with output.show_progress("Writing the page") as progress:
                fleet = view_fleet(compared.context, compared.later, review, progress)
            return write_page(review, fleet)

        return rendered.render(write)

    def serialize(review: Review) -> dict[str, Any]:
        if review.resilience is None:
            return serialize_review(review)
        from gitsched.report.serialization import serialize_losses

        return {**serialize_review(review), "resilience": serialize_losses(review.resilience)}

    if form == "markdown":
        output.show_text(markdown())
    elif form == "html":
        output.show(page())
    else:
        rendered.show_as(form, partial(write_plan, paint=paint, each=each), serialize)
    writers = rendered.list_writers(only_new=base is not None)
    writers |= {
        "markdown": markdown,
        "html": page,
        "json": lambda: output.format_json(rendered.render(serialize)),
        "env": lambda: rendered.render(output.format_outputs),
    }
    output.write_reports(wanted, writers)
    if out is not None:
        said = saved_plan.save_plan(out, compared)
        if form == "text":
            output.show_text(said)
    return exit_codes.get_review_code(rendered.review, fail_on, detailed=detailed)
