"""The page about limits has the numbers of the code, and names tests that exist."""

from __future__ import annotations

import ast
import importlib
import re
from functools import reduce
from pathlib import Path

from tests.tables import each_row

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| (?P<what>[^|]+) \| (?P<limit>[^|]+) \| (?P<beyond>[^|]+) \| "
    r"`(?P<path>[^`]+\.py)` `(?P<name>[\w.]+)` \| (?:`(?P<test>[^`]+)`)? ?\|$",
    re.MULTILINE,
)
PAGE = (ROOT / "docs" / "development" / "limits.md").read_text()
ROWS = [row.groupdict() for row in ROW.finditer(PAGE)]
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
ASSIGNMENT = re.compile(r"^([\w, ]*MAX_[\w, ]*(?:: *[\w\[\], ]+)?) *= ", re.MULTILINE)
CONSTANT = re.compile(r"_?MAX_[A-Z_]+")
UNLISTED = {line for line in (Path(__file__).parent / "unlisted_limits.txt").read_text().splitlines() if not line.startswith("#")}
"""Constants that limit no input, by the headings of the list."""
SHOWN = re.compile(r"EXAMPLES|FINDINGS|(?<!DEAD)LINES?$|LISTED|LOCATIONS|MESSAGE|NAMED|NAMES|NOTES|PROBLEMS|ROWS|SHOWN|WIDTH")
"""Words in names of limits of what a message or report names, which need not be on the page."""


def read_number(text: str) -> float:
    """Return the number and unit at the start of a limit."""
    number, unit = re.match(r"([\d,]+)(?: (\w+))?", text).groups()  # type: ignore[union-attr]
    return int(number.replace(",", "")) * UNITS.get(unit, 1)


def test_every_row_is_understood() -> None:
    assert len(ROWS) == len(re.findall(r"^\| .*`[a-z_/]+\.py`", PAGE, re.MULTILINE)) > 200
    assert [row["what"] for row in ROWS if row["test"] is None] == []


def list_constants() -> set[str]:
    """Return the file and name of every constant of the code that is a limit by its name."""
    found = set()
    for path in sorted((ROOT / "gitsched").rglob("*.py")):
        for targets in ASSIGNMENT.findall(path.read_text()):
            names = (name.split(":")[0].strip() for name in targets.split(","))
            found |= {
                f"{path.relative_to(ROOT / 'gitsched')} {name}"
                for name in names
                if CONSTANT.fullmatch(name) and not SHOWN.search(name)
            }
    return found


def test_every_limit_of_the_code_is_on_the_page() -> None:
    listed = {f"{row['path']} {row['name']}" for row in ROWS}
    constants = list_constants()
    assert len(constants) > 150
    listed = {name for name in listed if not SHOWN.search(name)}
    assert sorted(constants - listed - UNLISTED) == [], "a new limit belongs on docs/development/limits.md"
    assert sorted(UNLISTED & listed | UNLISTED - constants) == [], "remove these from the list"


@each_row("row", ROWS)
def test_a_limit_is_that_of_the_code(row: dict[str, str]) -> None:
    module = importlib.import_module("gitsched." + row["path"].removesuffix(".py").replace("/", "."))
    assert reduce(getattr, row["name"].split("."), module) == read_number(row["limit"])


@each_row("test", sorted({row["test"] for row in ROWS if row["test"]}))
def test_a_named_test_exists(test: str) -> None:
    path, _, name = test.partition("::")
    functions = {node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.FunctionDef)}
    assert name in functions, "each row names a test function"
