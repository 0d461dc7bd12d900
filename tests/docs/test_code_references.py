"""Pages that name files and definitions of the code name ones that exist, and a search for the given word finds them."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.tables import each_row

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gitsched"
ROW = re.compile(r"^\| (?P<question>[^|]+) \| `(?P<path>[^`]+)` \| (?:`(?P<name>[^`]+)`)? ?\| (?P<word>[^|]+) \|$", re.MULTILINE)
ROWS = [match.groupdict() for match in ROW.finditer((ROOT / "docs" / "development" / "where.md").read_text(encoding="utf-8"))]
OUTPUT = {"status/"}
"""Directories of the output branch, which look like packages."""
PATH = re.compile(r"`((?:gitsched/|tests/)?[a-z_]+/(?:[a-z_]+/)*(?:[a-z_]+\.py)?)`")


@cache
def list_names(path: Path) -> set[str]:
    """Return the names that a module defines at its top level."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def test_the_documentation_answers_at_least_thirty_questions() -> None:
    text = (ROOT / "docs" / "development" / "where.md").read_text(encoding="utf-8")
    assert len(ROWS) == len(re.findall(r"^\| .*\?.* \|$", text, re.MULTILINE)) >= 30
    assert len({row["question"] for row in ROWS}) == len(ROWS)


@each_row("row", ROWS)
def test_every_answer_names_a_definition_that_a_search_finds(row: dict[str, str]) -> None:
    path = PACKAGE / row["path"]
    assert path.is_file()
    assert row["name"] is None or row["name"] in list_names(path)
    assert row["word"].lower() in path.read_text(encoding="utf-8").lower()


@pytest.mark.parametrize("page", ["docs/development/architecture.md", "CONTRIBUTING.md"])
def test_every_code_path_in_the_documentation_exists(page: str) -> None:
    named = set(PATH.findall((ROOT / page).read_text(encoding="utf-8")))
    assert {path for path in named if not (PACKAGE / path).exists() and not (ROOT / path).exists()} - OUTPUT == set()


def test_every_annotation_of_the_program_is_documented() -> None:
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    code = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    named = set(re.findall(r'"(gitsched\.io/(?!v1)[a-z-]+)"', code)) - {
        "gitsched.io/edited"
    }  # of a document that is only explained
    assert len(named) > 30
    assert sorted(name for name in named if not re.search(rf"{re.escape(name)}\b(?!-)", pages)) == []
