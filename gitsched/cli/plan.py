"""gitsched plan: what would change, before anything does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, options, output, reports

if TYPE_CHECKING:
    from gitsched.reconcile import Run, Settings


@click.command("plan")
@click.argument("revision", required=False)
@click.option("--worktree", is_flag=True, help="Plan the files as they lie in the worktree, committed or not.")
@click.option("--detailed-exitcode", "detailed", is_flag=True, help="Exit with 2 if something would change.")
@click.option(
    "--observations",
    type=click.Choice(["recorded", "live"]),
    default="recorded",
    show_default=True,
    help="Take metrics as the output branch recorded them, or ask their providers, where those are what the output branch was made with.",
)
@options.HOSTS
@options.SOURCE
@options.TARGET
@options.EXPECT
@options.FAIL_ON
@reports.OPTION
@options.choose_format("text", "json", "yaml", "html")
@options.LOG
def command(
    revision: str | None,
    worktree: bool,
    detailed: bool,
    form: str,
    fail_on: exit_codes.FailOn,
    log_format: str,
    location: str,
    output_repository: str | None,
    wanted: tuple[reports.Report, ...],
    **chosen: Any,
) -> int:
    """Show which workloads would move where, and why.

    Compares REVISION (a branch, tag or commit; the source branch by default) with the output branch. Writes nothing.
    """
    if worktree and revision is not None:
        raise click.UsageError("--worktree and a REVISION exclude each other")
    from gitsched.cli.reviewing import judge, review
    from gitsched.reconcile import Settings, preview
    from gitsched.report.data import describe_review
    from gitsched.report.text import write_plan

    output.start_log(log_format)
    settings = Settings(location=location, revision=revision, worktree=worktree, output=output_repository, trusted=False, **chosen)
    if form == "html":
        run = _show_page(settings)
        found = review(run)
    else:
        with output.progress("Planning"):
            run = preview(settings)
        found = review(run)
        output.show_as(form, lambda width: write_plan(found, width), lambda: describe_review(found))
    reports.write_reports(wanted, reports.list_writers(found.findings, found.outcomes))
    return judge(found, fail_on, detailed=detailed)


def _show_page(settings: Settings) -> Run:
    """Write the page, for which every decision is explained."""
    from gitsched.cli.reviewing import review
    from gitsched.reconcile.surveying import survey
    from gitsched.report.page import Fleet, write_page

    with output.progress("Planning"):
        run, explanations = survey(settings)
    output.show(write_page(review(run), Fleet(run.plan.facts, explanations)))
    return run
