"""gitsched version: print the version."""

from __future__ import annotations

import click

from gitsched.cli import output


@click.command("version")
def command() -> None:
    """Print the version."""
    from gitsched import __version__

    output.show_text(f"gitsched {__version__}\n")
