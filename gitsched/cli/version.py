"""gitsched version: print the version."""

from __future__ import annotations

import click

from gitsched import __version__
from gitsched.cli import formats


@click.command("version")
def command() -> None:
    """Print the version."""
    formats.show_text(f"gitsched {__version__}\n")
