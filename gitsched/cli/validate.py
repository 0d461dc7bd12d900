"""gitsched validate: check all documents and report findings with file, line and column."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options, output


@click.command(
    "validate",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("The worktree", "validate"),
        ("One file", "validate gitsched.yaml"),
        (
            "A commit, with warnings as failures and a report for the forge",
            "validate HEAD --fail-on warning --report sarif=out.sarif",
        ),
    ),
)
@click.argument("target", metavar="[PATH|REVISION]", required=False, shell_complete=options.complete_with("targets"))
@options.SOURCE
@options.NOW
@options.FAIL_ON
@output.REPORT_OPTION
@options.FORMAT
@options.COLOR
@options.LOG
def command() -> None:
    """Check manifests, clusters and policies against their schemas and against each other.

    Checks the worktree if there is one, or the commit of REVISION. With PATH, all documents are checked, because policies and the
    documents that they select are checked together, but only findings below PATH are shown.
    """
