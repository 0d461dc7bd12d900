"""docs/findings.md documents exactly the codes that gitsched can report."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from pathlib import Path

from gitsched.decide.variants.kustomized_parts import PART_CODES
from gitsched.report.finding_codes import read_codes
from tests.cli.finding_codes import find_codes, find_codes_in

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


TEXT = PAGE.read_text()


def documented() -> set[str]:
    return {description.code for description in read_codes(TEXT)}


def test_every_code_is_documented_with_cause_and_fix() -> None:
    found = documented()
    missing = {code for code in find_codes() if not any(fnmatchcase(known, code) for known in found)}
    assert not missing


def test_every_documented_code_exists() -> None:
    codes = find_codes() | PART_CODES
    assert not {known for known in documented() if not any(fnmatchcase(known, code) for code in codes)}


def test_every_code_has_one_section_of_at_most_ten_lines() -> None:
    sections = re.findall(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert [code for code, _ in sections] == [description.code for description in read_codes(TEXT)]
    assert len(sections) == len(documented())
    assert [code for code, text in sections if text.count("\n") > 10] == []


def test_codes_are_found_in_every_form_of_call() -> None:
    tree = ast.parse(
        """
NAMED = "by-name"
TABLE = {"x": ("by-table", 1)}
class Finding(NamedTuple):
    severity: str
    code: str
def error(code, message): ...
def go(self, word):
    code, rest = TABLE[word]
    Finding("error", "by-class")
    Finding("error", code=NAMED)
    self.error("by-function" if word else "by-choice", "by-message")
    error(f"by-{word}", "")
"""
    )
    found = find_codes_in([tree])
    assert found == {"by-name", "by-table", "by-class", "by-function", "by-choice", "by-*"}
