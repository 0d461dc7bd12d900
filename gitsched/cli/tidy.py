"""gitsched tidy: list and remove the expired documents of the worktree."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options


@click.command(
    "tidy",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("List expired documents", "tidy"),
        ("Remove them from the worktree", "tidy --write"),
    ),
)
@click.option("--write", is_flag=True, help="Remove the documents from their files, and files without other documents.")
@click.option("--detailed-exitcode", "detailed", is_flag=True, help="Exit with 2 if there are expired documents.")
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.NOW
@options.FORMAT
@options.LOG
def command() -> None:
    """List the documents of the worktree that have expired, such as finished WorkloadRebalancers, and remove them with --write.

    Everything else in a file stays byte for byte, comments included. A request that no reconcile has handled yet is not expired. Commit the
    changes like any other; they move no workload.
    """
