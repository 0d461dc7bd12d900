"""Cause and fix of each finding code, read from docs/findings.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, NamedTuple

from gitsched.report.lines import wrap

_SECTION = re.compile(r"## (.+)")
_ROW = re.compile(r"\| (`[^|]+`) \| ([^|]+) \| ([^|]+) \|")
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


class CodeDescription(NamedTuple):
    """One row of docs/findings.md: its codes (`*` matches any text), the heading above it, and the cause and fix in Markdown."""

    codes: tuple[str, ...]
    section: str
    cause: str
    fix: str


@lru_cache(maxsize=2)
def read_codes(page: str) -> tuple[CodeDescription, ...]:
    """Return the rows of docs/findings.md in order."""
    return tuple(_read_rows(page))


def find_description(meanings: Sequence[CodeDescription], code: str) -> CodeDescription | None:
    """Return the row of a finding's code; None if the code is unknown."""
    return next((meaning for meaning in meanings if any(fnmatchcase(code, pattern) for pattern in meaning.codes)), None)


def suggest_codes(meanings: Sequence[CodeDescription], code: str) -> list[str]:
    """Return similar codes, the most similar first; if there are none, codes that contain the text."""
    codes = [name for meaning in meanings for name in meaning.codes]
    return get_close_matches(code.lower(), codes, n=3) or [name for name in codes if code and code.lower() in name][:5]


def write_description(code: str, meaning: CodeDescription, width: int) -> str:
    """Return a code with its cause and fix, for a terminal."""
    lines = [f"{code} ({meaning.section})", "", *wrap(f"Cause: {strip_markup(meaning.cause)}.", width)]
    return "\n".join([*lines, *wrap(f"Fix: {strip_markup(meaning.fix)}.", width)]) + "\n"


def write_codes(meanings: Sequence[CodeDescription], width: int) -> str:
    """Return all codes under their headings."""
    sections: dict[str, list[str]] = {}
    for meaning in meanings:
        sections.setdefault(meaning.section, []).extend(meaning.codes)
    blocks = ["\n".join([f"{section}:", *wrap("  ".join(codes), width, "  ")]) for section, codes in sections.items()]
    return "\n\n".join([*blocks, "Use `gitsched help-code CODE` for the cause and the fix of a code."]) + "\n"


def serialize_codes(meanings: Sequence[CodeDescription]) -> dict[str, Any]:
    """Return rows as plain data: `kind: Codes` of docs/cli.md."""
    rows = [
        {"codes": list(row.codes), "section": row.section, "cause": strip_markup(row.cause), "cure": strip_markup(row.fix)}
        for row in meanings
    ]
    return {"apiVersion": "gitsched.io/v1alpha1", "kind": "Codes", "items": rows}


def strip_markup(text: str) -> str:
    """Remove Markdown from a sentence; a link becomes its text and its target."""
    return _LINK.sub(lambda match: f"{match[1]} (docs/{match[2]})", text).replace("`", "")


def _read_rows(page: str) -> Iterator[CodeDescription]:
    section = ""
    for line in page.splitlines():
        if heading := _SECTION.fullmatch(line):
            section = heading[1]
        elif row := _ROW.fullmatch(line):
            yield CodeDescription(tuple(_CODE.findall(row[1])), section, row[2], row[3])
