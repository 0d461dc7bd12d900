"""The pages about commands match the options, exit codes and JSON keys of the program."""

from __future__ import annotations

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import click
import pytest

from gitsched.apis.schemas import load_field_table
from gitsched.cli import COMMANDS, cli, exit_codes
from gitsched.model.explanation import Explanation
from gitsched.report.explanation import serialize_explanation
from gitsched.report.review import Review
from gitsched.report.serialization import serialize_findings, serialize_review
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text()


def load(name: str) -> Any:
    """Return a module of .ci/, with which the site is built."""
    spec = spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


command_pages, field_tables = load("command_pages"), load("api_field_tables")


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


def sections() -> dict[str, str]:
    return dict(re.findall(r"^## gitsched ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


@each_row("verb", list(COMMANDS))
def test_the_site_has_a_page_for_each_command_with_its_options(verb: str) -> None:
    text = command_pages.write_page(verb, PAGE)
    assert re.match(rf"# gitsched {verb}\n\n\w", text)
    assert flags(verb) <= set(re.findall(r"(?<=[` ])--?[a-zA-Z][\w-]*", text))
    parts = [sentence for name, section in sections().items() if name.split()[0] == verb for sentence in section.split("\n\n")]
    assert [part for part in parts if command_pages.lead_up(part.strip()) not in text] == []


def test_sections_about_commands_name_existing_ones_and_their_options() -> None:
    for verb, text in sections().items():
        assert flags(verb) or verb == "version"
        assert set(re.findall(r"`(--[\w-]+)", text)) <= flags(verb) | {
            option for name in COMMANDS if f"gitsched {name}" in text for option in flags(name)
        }


def test_the_first_page_of_the_commands_links_each_of_them_and_repeats_no_section() -> None:
    index = command_pages.write_index(PAGE)
    assert [verb for verb in COMMANDS if f"(commands/{verb}.md)" not in index] == []
    assert "## gitsched" not in index
    assert "## Exit codes" in index


@pytest.mark.parametrize(
    ("link", "moved"),
    [
        ("[plan](cli.md#gitsched-plan)", "[plan](commands/plan.md)"),
        ("[krake](../cli.md#gitsched-export-krake)", "[krake](../commands/export.md#gitsched-export-krake)"),
        ("[a code](cli.md#gitsched-help-code)", "[a code](commands/help-code.md)"),
        ("[codes](cli.md#exit-codes)", "[codes](cli.md#exit-codes)"),
    ],
)
def test_links_to_a_section_lead_to_the_page_of_the_command(link: str, moved: str) -> None:
    assert command_pages.move_links(link) == moved


def test_the_tables_of_fields_name_each_kind_and_each_field_with_a_row() -> None:
    tables = field_tables.write_tables()
    for api in field_tables.TITLES:
        for entry in load_field_table(api):
            assert f"### {', '.join(entry.kinds)} (" in tables
            assert all(f"`{path}`" in tables for row in entry.rows for path in row.fields if path)


def test_exit_codes_in_the_documentation_equal_those_of_the_program() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == exit_codes.MEANINGS


@each_row("page", ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_commands_in_the_documentation_use_existing_options(page: str) -> None:
    shown = re.findall(r"gitsched ([\w-]+)((?: [^`\n#;|]+)?)", (ROOT / page).read_text())
    for verb, rest in shown:
        if verb in COMMANDS:
            assert set(re.findall(r"(?<= )(--?[a-z][\w-]*)", rest)) <= flags(verb) | {"--help"}, (verb, rest)


def test_every_json_key_is_documented() -> None:
    text = (ROOT / "docs" / "development" / "json.md").read_text()
    for value in (serialize_review(Review("", "")), serialize_findings([]), serialize_explanation(Explanation(""))):
        json.dumps(value)
        for member in value.keys() - {"apiVersion", "kind"}:
            assert f"`{member}`" in text, member
