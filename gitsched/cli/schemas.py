"""gitsched schemas: list the kinds that have a JSON Schema, and write the schema with which an editor checks documents."""

from __future__ import annotations

import json
from pathlib import Path

import click

from gitsched.cli import exit_codes, options, output

SCHEMA_FILE = ".gitsched/schema.json"
"""Where `gitsched init` writes the schema: no manifest is read below a directory whose name starts with a dot."""
_IGNORED = "# `gitsched schemas --write .gitsched/schema.json` writes what is here.\n*\n"


@click.command(
    "schemas",
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
def command(file: Path | None, form: str) -> int:
    """List the kinds that have a JSON Schema: those of policy APIs and of gitsched, and those of Kubernetes.

    With --write, write the schema that an editor uses to check and complete documents of all these kinds.
    """
    from gitsched.decide.editor_schema import list_kinds

    if file is not None:
        output.write_file(file, format_editor_schema(), make_directories=True)
        output.show_text(f"wrote {file}\n")
        return exit_codes.DONE
    kinds = list(list_kinds())
    width = max(len(version) for version, _ in kinds)
    output.show_as(
        form,
        lambda _: "".join(f"{version:<{width}}  {kind}\n" for version, kind in kinds),
        lambda: {
            "apiVersion": "gitsched.io/v1alpha1",
            "kind": "Kinds",
            "items": [{"apiVersion": version, "kind": kind} for version, kind in kinds],
        },
    )
    return exit_codes.DONE


def list_editor_files() -> dict[str, str]:
    """Return the files for editors that `gitsched init` writes, by path in the repository."""
    return {SCHEMA_FILE: format_editor_schema(), f"{SCHEMA_FILE.partition('/')[0]}/.gitignore": _IGNORED}


def format_editor_schema() -> str:
    """Return the text of the schema of all kinds."""
    from gitsched.decide.editor_schema import make_editor_schema

    return json.dumps(make_editor_schema(), separators=(",", ":"), ensure_ascii=False) + "\n"
