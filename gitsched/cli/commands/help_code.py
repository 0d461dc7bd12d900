"""gitsched help-code: print the cause and fix of a finding code from docs/findings.md."""

from __future__ import annotations

import click

from gitsched.cli import formats
from gitsched.cli.documentation import read_documentation
from gitsched.report.finding_codes import (
    find_description,
    read_codes,
    serialize_codes,
    suggest_codes,
    write_codes,
    write_description,
)


def run(code: str | None, form: str) -> None:
    """Carry out the command."""
    meanings = read_codes(read_documentation("findings.md"))
    if code is None:
        formats.show_as(form, lambda width: write_codes(meanings, width), lambda: serialize_codes(meanings))
        return
    name = code.strip().strip("[]")
    meaning = find_description(meanings, name)
    if meaning is None:
        similar = ", ".join(suggest_codes(meanings, name))
        raise click.UsageError(f"there is no finding {name!r}{f'; did you mean {similar}?' if similar else ''}")
    formats.show_as(form, lambda width: write_description(meaning, width), lambda: serialize_codes([meaning]))
