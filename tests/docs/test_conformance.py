"""docs/development/conformance.md: every row has a known state, and the tests that it names exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.tables import each_row

ROOT = Path(__file__).parents[2]
HEADER = "| # | statement | state | shown by |"
TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>test_\w+)`")
STATE = re.compile(r"(?P<state>holds|differs|needs a live cluster)(?:: (?P<text>.+))?")


class Row(NamedTuple):
    """One statement of a design document. `section` is the heading above its table."""

    section: str
    number: str
    statement: str
    state: str
    tests: str


def read_rows() -> list[Row]:
    rows: list[Row] = []
    section, inside = "", False
    for line in (ROOT / "docs" / "development" / "conformance.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section, inside = line[3:], False
        elif line == HEADER:
            inside = True
        elif inside and line.startswith("|") and not line.startswith("|---"):
            cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            rows.append(Row(section, *cells))
    return rows


@cache
def list_tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


ROWS = read_rows()


def test_the_rows_of_a_document_are_numbered_in_their_order() -> None:
    for section in {row.section for row in ROWS}:
        numbers = [row.number for row in ROWS if row.section == section]
        assert numbers == [str(number) for number in range(1, len(numbers) + 1)]


@each_row("row", ROWS)
def test_a_row_says_what_holds_and_names_a_test_that_exists(row: Row) -> None:
    state = STATE.fullmatch(row.state)
    assert state, row.state
    assert state["state"] == "holds" or state["text"], "a difference has a reason"
    named = TEST.findall(row.tests)
    assert ", ".join(f"`{path}::{name}`" for path, name in named) == row.tests
    assert named or state["state"] == "needs a live cluster"
    for path, name in named:
        assert name in list_tests(ROOT / path)
