"""docs/cli.md matches the options, exit codes and JSON keys of the program."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from gitsched.cli import COMMANDS, cli, exit_codes
from gitsched.cli.export import CONSUMERS
from gitsched.model.explanation import Explanation
from gitsched.report.review import Review
from gitsched.report.serialization import serialize_explanation, serialize_findings, serialize_review
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text()


def flags(verb: str) -> set[str]:
    """Return the options of a command, or of all commands of a group."""
    command: click.Command | None = cli
    for word in verb.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    if isinstance(command, click.Group):
        return {flag for name in command.list_commands(click.Context(command)) for flag in flags(f"{verb} {name}")}
    return {flag for option in command.params if isinstance(option, click.Option) for flag in option.opts}


def mentioned(text: str) -> set[str]:
    cells = re.findall(r"^\| (.+?) \|", text.replace("\\|", "/"), re.MULTILINE)
    return {flag for cell in cells for flag in re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", cell)}


def sections() -> dict[str, str]:
    return dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def shared(verb: str) -> set[str]:
    """Return the options of a command in the first section: the line before each table lists its commands."""
    found: set[str] = set()
    for verbs, table in re.findall(
        r"^[A-Z][^|\n]*: ((?:`[\w-]+`(?:, )?)+)\.\n\n((?:\|.*\n)+)", sections()["Options of several commands"], re.MULTILINE
    ):
        for row in table.splitlines()[2:]:
            if f"`{verb.split()[0]}`" in verbs or f"`{verb.split()[0]}`" in row:
                found |= mentioned(row)
    return found


@each_row(
    "verb",
    [
        *(verb for verb in COMMANDS if verb not in ("export", "apply")),
        *(f"export {form}" for form in CONSUMERS),
        "apply knative",
    ],
)
def test_options_in_the_documentation_equal_those_of_the_commands(verb: str) -> None:
    documented = shared(verb) | mentioned(sections()[f"gitsched {verb}"])
    # Options in which `schedule` and `watch` differ from the tables.
    documented -= {"watch": {"-o", "--output", "--release-cluster"}}.get(verb, set())
    extra = {"schedule": {"--now", "--log-format"}}.get(verb, set())
    assert flags(verb) == documented | extra


def test_every_command_has_a_section_and_a_line_in_the_table() -> None:
    table = PAGE.partition("\n## ")[0]
    for verb in COMMANDS:
        assert f"gitsched {verb}" in sections()
        assert f"`gitsched {verb}" in table or verb == "version"


@pytest.mark.parametrize("page", ["docs/ci.md", "docs/cli.md"])
def test_exit_codes_in_the_documentation_equal_those_of_the_program(page: str) -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", (ROOT / page).read_text(), re.MULTILINE)
    assert {int(code) for code, _ in rows} | ({130, 143} if page == "docs/ci.md" else set()) == exit_codes.MEANINGS.keys()
    if page == "docs/cli.md":
        assert {int(code): meaning for code, meaning in rows} == exit_codes.MEANINGS


@each_row("page", ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_commands_in_the_documentation_use_existing_options(page: str) -> None:
    shown = re.findall(r"gitsched ([\w-]+)((?: [^`\n#;|]+)?)", (ROOT / page).read_text())
    for verb, rest in shown:
        if verb in COMMANDS:
            assert set(re.findall(r"(?<= )(--?[a-z][\w-]*)", rest)) <= flags(verb) | {"--help"}, (verb, rest)


def test_every_json_key_is_documented() -> None:
    text = sections()["JSON"]
    for value in (serialize_review(Review("", "")), serialize_findings([]), serialize_explanation(Explanation(""))):
        json.dumps(value)
        for member in value.keys() - {"apiVersion", "kind"}:
            assert f"`{member}`" in text, member
