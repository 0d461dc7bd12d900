"""gitsched help-code: print the cause and fix of a finding code from docs/findings.md."""

from __future__ import annotations

import click

from gitsched.cli import options, output


@click.command(
    "help-code",
    epilog=options.show_examples(
        ("One finding", "help-code unknown-field"),
        ("All findings", "help-code"),
    ),
)
@click.argument("code", required=False, shell_complete=options.complete_with("codes"))
@options.FORMAT
def command(code: str | None, form: str) -> None:
    """Print the cause and the fix of a finding by the CODE in its square brackets. Without CODE, list all codes."""
    from gitsched.report.finding_codes import (
        find_description,
        read_codes,
        serialize_codes,
        suggest_codes,
        write_codes,
        write_description,
    )

    meanings = read_codes(output.read_documentation("findings.md"))
    if code is None:
        output.show_as(form, lambda width: write_codes(meanings, width), lambda: serialize_codes(meanings))
        return
    name = code.strip().strip("[]")
    meaning = find_description(meanings, name)
    if meaning is None:
        similar = ", ".join(suggest_codes(meanings, name))
        raise click.UsageError(f"there is no finding {name!r}{f'; did you mean {similar}?' if similar else ''}")
    output.show_as(form, lambda width: write_description(name, meaning, width), lambda: serialize_codes([meaning]))
