"""Cause and fix of each finding code, read from docs/findings.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, NamedTuple

from gitsched.report.terminal import wrap

_SECTION = re.compile(r"## (.+)")
_ROW = re.compile(r"\| (`[^|]+`) \| ([^|]+) \| ([^|]+) \|")
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


class CodeDescription(NamedTuple):
    """One row of the page: the codes that share it (`*` stands for any text), under which heading, and its two sentences, in Markdown."""

    codes: tuple[str, ...]
    section: str
    cause: str
    fix: str


@lru_cache(maxsize=2)
def read_codes(page: str) -> tuple[CodeDescription, ...]:
    """The rows of docs/findings.md in their order."""
    return tuple(_read_rows(page))


def find_description(meanings: Sequence[CodeDescription], code: str) -> CodeDescription | None:
    """The row of a code as findings give it."""
    return next((meaning for meaning in meanings if any(fnmatchcase(code, known) for known in meaning.codes)), None)


def suggest_codes(meanings: Sequence[CodeDescription], code: str) -> list[str]:
    """Codes that may have been meant, the nearest first; else those that hold the text."""
    known = [name for meaning in meanings for name in meaning.codes]
    return get_close_matches(code.lower(), known, n=3) or [name for name in known if code and code.lower() in name][:5]


def write_description(code: str, meaning: CodeDescription, width: int) -> str:
    """A code with its cause and cure, for a terminal."""
    lines = [f"{code} ({meaning.section})", "", *wrap(f"Cause: {strip_markup(meaning.cause)}.", width)]
    return "\n".join([*lines, *wrap(f"Cure: {strip_markup(meaning.fix)}.", width)]) + "\n"


def write_codes(meanings: Sequence[CodeDescription], width: int) -> str:
    """Every code under its heading."""
    sections: dict[str, list[str]] = {}
    for meaning in meanings:
        sections.setdefault(meaning.section, []).extend(meaning.codes)
    blocks = ["\n".join([f"{section}:", *wrap("  ".join(codes), width, "  ")]) for section, codes in sections.items()]
    return "\n\n".join([*blocks, "`gitsched help-code CODE` has the cause and the cure of each."]) + "\n"


def serialize_codes(meanings: Sequence[CodeDescription]) -> dict[str, Any]:
    """Rows of the page as plain data: `kind: Codes` of docs/cli.md."""
    rows = [
        {"codes": list(row.codes), "section": row.section, "cause": strip_markup(row.cause), "cure": strip_markup(row.fix)}
        for row in meanings
    ]
    return {"apiVersion": "gitsched.io/v1alpha1", "kind": "Codes", "items": rows}


def strip_markup(text: str) -> str:
    """A sentence of the page without its markup; of a link, its text and where it leads."""
    return _LINK.sub(lambda match: f"{match[1]} (docs/{match[2]})", text).replace("`", "")


def _read_rows(page: str) -> Iterator[CodeDescription]:
    section = ""
    for line in page.splitlines():
        if heading := _SECTION.fullmatch(line):
            section = heading[1]
        elif row := _ROW.fullmatch(line):
            yield CodeDescription(tuple(_CODE.findall(row[1])), section, row[2], row[3])
