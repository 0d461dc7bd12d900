"""gitsched fits: show which branches or pull requests fit together, before any is merged."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options


@click.command(
    "fits",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Branches, in the order in which they are to be merged", "fits --onto main add-cart move-pay"),
        ("Pull requests that the clone has fetched", "fits --onto main '#41' '#52'"),
    ),
)
@click.argument("refs", metavar="REF...", nargs=-1, required=True, shell_complete=options.complete_with("revisions"))
@click.option(
    "--onto",
    "base",
    metavar="REVISION",
    shell_complete=options.complete_with("revisions"),
    help="Merge onto this branch, tag or commit; the source branch by default.",
)
@click.option(
    "--time-limit",
    "limit",
    metavar="SECONDS",
    type=click.IntRange(1, 86_400),
    default=300,
    show_default=True,
    help="Try no further sets after this time.",
)
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.RUN_CONDITIONS
@options.choose_format("text", "markdown", "json", "yaml", "html")
@options.LOG
def command() -> None:
    """Merge branches in memory, and show which of them fit together: without conflicts, and with plans that do not fail. Writes nothing.

    REF is a branch, a tag, a commit, or #NUMBER for a pull or merge request that the clone has fetched. The guard, Tenants and reserves of
    the base count, as in `gitsched plan BASE`.
    """
