"""gitsched help-code: explain a finding's code, from docs/findings.md."""

from __future__ import annotations

from importlib.resources import files

import click

from gitsched.cli import options, output


def read_documentation(name: str) -> str:
    """A page of docs/: in a wheel it lies in gitsched/docs, in a checkout beside the package."""
    package = files("gitsched")
    inside = package.joinpath("docs")
    return (inside if inside.is_dir() else package.joinpath("..", "docs")).joinpath(name).read_text("utf-8")


@click.command("help-code")
@click.argument("code", required=False)
@options.FORMAT
def command(code: str | None, form: str) -> None:
    """Print the cause and the cure of a finding, by the CODE in its square brackets; without one, list them all."""
    from gitsched.report.finding_codes import (
        find_description,
        read_codes,
        serialize_codes,
        suggest_codes,
        write_codes,
        write_description,
    )

    meanings = read_codes(read_documentation("findings.md"))
    if code is None:
        output.show_as(form, lambda width: write_codes(meanings, width), lambda: serialize_codes(meanings))
        return
    wanted = code.strip().strip("[]")
    meaning = find_description(meanings, wanted)
    if meaning is None:
        similar = ", ".join(suggest_codes(meanings, wanted))
        raise click.UsageError(f"there is no finding {wanted!r}{f'; did you mean {similar}?' if similar else ''}")
    output.show_as(form, lambda width: write_description(wanted, meaning, width), lambda: serialize_codes([meaning]))
