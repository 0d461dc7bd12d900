"""docs/development/faults.md: every fault has a test, and the tests that the table names exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.tables import each_row

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)::(?P<name>test_\w+)`")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in (ROOT / "docs" / "development" / "faults.md").read_text(encoding="utf-8").splitlines()
    if re.match(r"\| \d", line)
]


@cache
def list_tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_the_faults_are_numbered() -> None:
    assert [row[0] for row in ROWS] == [str(number) for number in range(1, len(ROWS) + 1)]
    assert len(ROWS) >= 34


@each_row("row", ROWS)
def test_a_fault_has_an_effect_and_tests_that_exist(row: list[str]) -> None:
    _, fault, effect, tests = row
    assert fault
    assert effect
    named = TEST.findall(tests)
    assert named
    assert ", ".join(f"`{path}::{name}`" for path, name in named) == tests
    assert [name for path, name in named if name not in list_tests(ROOT / path)] == []
