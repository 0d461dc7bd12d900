"""gitsched help-code: what a finding means, and what to do about it."""

from __future__ import annotations

import click

from gitsched.cli import options, output


@click.command("help-code")
@click.argument("code", required=False)
@options.FORMAT
def command(code: str | None, form: str) -> None:
    """Print the cause and the cure of a finding, by the CODE in its square brackets; without one, list them all."""
    from gitsched.cli.pages import read_page
    from gitsched.report.codes import describe_codes, find_meaning, find_similar, read_codes, write_codes, write_meaning

    meanings = read_codes(read_page("findings.md"))
    if code is None:
        output.show_as(form, lambda width: write_codes(meanings, width), lambda: describe_codes(meanings))
        return
    wanted = code.strip().strip("[]")
    meaning = find_meaning(meanings, wanted)
    if meaning is None:
        similar = ", ".join(find_similar(meanings, wanted))
        raise click.UsageError(f"there is no finding {wanted!r}{f'; did you mean {similar}?' if similar else ''}")
    output.show_as(form, lambda width: write_meaning(wanted, meaning, width), lambda: describe_codes([meaning]))
