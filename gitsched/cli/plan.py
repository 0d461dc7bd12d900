"""gitsched plan: show the changes of a commit without writing anything (a dry run)."""

from __future__ import annotations

import re
from pathlib import Path

import click

from gitsched.cli import LazyCommand, options, output, scenario_options

MAX_CHARS, MIN_CHARS = 65_024, 16_384
"""The default and minimum length of a comment. GitHub allows 65,536 characters; the rest is reserved for the program that posts it."""


def _read_comment_id(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", value):
        raise click.BadParameter(f"{value!r} does not consist of 1 to 64 letters, digits, '.', '_' and '-'")
    return value


@click.command(
    "plan",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("What a reconcile of this branch would change", "plan"),
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
def command() -> None:
    """Show which workloads would move, and why. Writes nothing.

    Without arguments, compare the checked-out branch with the output branch. With BASE, compare the plan of HEAD (a branch, tag or commit;
    the checked-out commit by default) with the plan of BASE: the changes of a merge. `diff` is an alias of this command.
    """
