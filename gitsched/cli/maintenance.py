"""The options of gitsched drain, cordon and uncordon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from gitsched.cli import LazyCommand, options


def make_command(action: str, text: str, *examples: tuple[str, str]) -> click.Command:
    """Return the command of an action."""
    decorate: Callable[..., Any] = options.combine(
        click.argument("clusters", metavar="[CLUSTER]...", nargs=-1, shell_complete=options.complete_with("clusters")),
        options.choose_labels("All clusters with these labels."),
        click.option("--dry-run", is_flag=True, help="Only show what would be edited, and what that leads to."),
        options.SOURCE,
        options.TARGET,
        options.STATE,
        options.FETCH,
        options.NOW,
        options.FORMAT,
        options.LOG,
    )

    def command() -> None: ...

    command.__doc__ = text
    made: click.Command = click.command(
        action,
        cls=LazyCommand,
        module="maintenance",
        given={"action": action},
        epilog=options.show_examples(*examples),
    )(decorate(command))
    return made
