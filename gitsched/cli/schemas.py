"""gitsched schemas: list the kinds that have a JSON Schema, and write the schema with which an editor checks documents."""

from __future__ import annotations

from pathlib import Path

import click

from gitsched.cli import LazyCommand, options

SCHEMA_FILE = ".gitsched/schema.json"
"""Where `gitsched init` writes the schema: no manifest is read below a directory whose name starts with a dot."""


@click.command(
    "schemas",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("All kinds", "schemas"),
        ("The schema for an editor", "schemas --write .gitsched/schema.json"),
    ),
)
@click.option(
    "--write",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"Write one JSON Schema for all kinds to this file, such as {SCHEMA_FILE}. An existing file is replaced.",
)
@options.FORMAT
def command() -> None:
    """List the kinds that have a JSON Schema: those of policy APIs and of gitsched, and those of Kubernetes.

    With --write, write the schema that an editor uses to check and complete documents of all these kinds.
    """
