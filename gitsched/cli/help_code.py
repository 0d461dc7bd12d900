"""gitsched help-code: print the cause and fix of a finding code from docs/findings.md."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options


@click.command(
    "help-code",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("One finding", "help-code unknown-field"),
        ("All findings", "help-code"),
    ),
)
@click.argument("code", required=False, shell_complete=options.complete_with("codes"))
@options.FORMAT
def command() -> None:
    """Print the cause and the fix of a finding by the CODE in its square brackets. Without CODE, list all codes."""
