"""gitsched reconcile: schedule workloads and commit the result to the output branch."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, options, output
from gitsched.cli.worktree import note_uncommitted
from gitsched.model.errors import Permanent

if TYPE_CHECKING:
    from gitsched.diff.plans import ReviewedPlan
    from gitsched.report.review import Review


def _serialize(review: Review) -> dict[str, Any]:
    from gitsched.report.serialization import serialize_review  # only for -o json and -o yaml

    return serialize_review(review)


def _read_reviewed(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> ReviewedPlan | None:
    if value is None:
        return None
    from gitsched.diff.plans import parse_reviewed_plan

    try:
        return parse_reviewed_plan(value if value.startswith("sha256:") else Path(value).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, Permanent) as error:
        raise click.BadParameter(f"{value}: {error}") from error


def _read_saved(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> ReviewedPlan | None:
    if value is None:
        return None
    from gitsched.cli.saved_plan import read_saved_plan
    from gitsched.diff.plans import make_reviewed_plan

    return make_reviewed_plan(read_saved_plan(value).review)


@click.command(
    "reconcile",
    epilog=options.show_examples(
        ("Commit to the output branch of this repository", "reconcile"),
        ("Push the output branch to origin as well", "reconcile --push"),
        ("Push signed commits", "reconcile --push --sign ssh:/keys/gitsched"),
    ),
)
@options.SOURCE
@options.TARGET
@options.STATE
@options.COMMIT
@click.option(
    "--reviewed",
    metavar="DIGEST|FILE",
    callback=_read_reviewed,
    help="The reviewed plan: its digest, or the output of `gitsched plan -o json`. By default, the trailer of the source commit.",
)
@click.option(
    "--plan",
    "saved",
    metavar="FILE",
    callback=_read_saved,
    help="Carry out exactly the plan that `gitsched plan --out FILE` has saved, or nothing.",
)
@options.LIVE_METRICS
@options.RUN_CONDITIONS
@options.RELEASED_CLUSTERS
@click.option(
    "--allow-older",
    is_flag=True,
    envvar="GITSCHED_ALLOW_OLDER",
    show_envvar=True,
    help="Reconcile also a commit that is older than that of the last run, or does not have it: what came since is taken back.",
)
@options.FAIL_ON
@output.report_option("env")
@options.FORMAT
@options.EACH_WORKLOAD
@options.COLOR
@options.LOG
def command(
    form: str,
    fail_on: exit_codes.FailOn,
    log_format: str,
    location: str,
    output_repository: str | None,
    wanted: tuple[output.ReportRequest, ...],
    saved: ReviewedPlan | None,
    each: bool,
    color: str,
    **chosen: Any,
) -> int:
    """Schedule all workloads and commit the result to the output branch.

    Commits only if a decision or a manifest changes. Invalid documents do not affect valid ones.
    """
    if saved is not None:
        if chosen["reviewed"] is not None:
            raise click.UsageError("use only one of --plan and --reviewed")
        chosen |= {"reviewed": saved, "require_reviewed": True}
    count_lines = output.configure_logging(log_format)
    if chosen["branch"] is None:
        note_uncommitted(location, log_format, "are|is not reconciled: commit them|it first")
    answers = None
    if not wanted and chosen["cache"].is_dir():
        from gitsched.reconcile.cache.idle_answers import open_idle_answers

        given = {"fail_on": fail_on, "each": each, "output_repository": output_repository, "log_format": log_format, **chosen}
        del given["now"]
        terminal = (form, output.find_width(), output.choose_paint(color) is None)
        answers = open_idle_answers(chosen["cache"], location, chosen["now"], given, os.environ, terminal)
        text = answers.read() if answers is not None else None
        if text is not None:
            output.show_formatted(form, text)
            return exit_codes.DONE
    from gitsched.reconcile.reconciler import reconcile
    from gitsched.reconcile.run import make_review
    from gitsched.reconcile.run_settings import RunSettings
    from gitsched.report.text import write_run

    logged = count_lines()
    with output.show_progress("Reconciling") as progress:
        run = reconcile(RunSettings(location=location, output=output_repository, progress=progress, **chosen))
    found = make_review(run)
    rendered = output.ReviewRenderer(found)
    text = rendered.format_as(form, partial(write_run, paint=output.choose_paint(color), each=each), _serialize)
    output.show_formatted(form, text)
    output.write_reports(wanted, {**rendered.list_writers(), "env": lambda: rendered.render(output.format_outputs)})
    code = exit_codes.get_review_code(rendered.review, fail_on)
    if answers is not None and code == exit_codes.DONE and count_lines() == logged and rendered.review is found:
        answers.keep(run, text)
    return code
