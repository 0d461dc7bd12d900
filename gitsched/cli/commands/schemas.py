"""gitsched schemas: list the kinds that have a JSON Schema, and write the schema with which an editor checks documents."""

from __future__ import annotations

import json
from pathlib import Path

from gitsched.cli import exit_codes, formats, reports
from gitsched.cli.schemas import SCHEMA_FILE
from gitsched.decide.editor_schema import list_kinds, make_editor_schema

_IGNORED = "# `gitsched schemas --write .gitsched/schema.json` writes what is here.\n*\n"


def run(file: Path | None, form: str) -> int:
    """Carry out the command, and return its exit code."""
    if file is not None:
        reports.write_file(file, format_editor_schema(), make_directories=True)
        formats.show_text(f"wrote {file}\n")
        return exit_codes.DONE
    kinds = list(list_kinds())
    width = max(len(version) for version, _ in kinds)
    formats.show_as(
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
    return json.dumps(make_editor_schema(), separators=(",", ":"), ensure_ascii=False) + "\n"
