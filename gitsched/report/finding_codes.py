"""Cause and fix of each finding code, read from docs/findings.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from gitsched.named_tuples import NamedTuple
from gitsched.report.lines import wrap

_SECTION = re.compile(r"^## (.+)\n", re.MULTILINE)
_CODE = re.compile(r"^### ([a-z0-9-]+)\n\n(.+(?:\n.+)*)\n(?:\n(?!#)(.+(?:\n.+)*)\n)?", re.MULTILINE)
_FIX = "Correct what the message names."
"""What to do about a code whose section has only a cause."""
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


class CodeDescription(NamedTuple):
    """One code of docs/findings.md, the section that it is in, and its cause and fix as sentences in Markdown."""

    code: str
    section: str
    cause: str
    fix: str


@lru_cache(maxsize=2)
def read_codes(page: str) -> tuple[CodeDescription, ...]:
    """Return the codes of docs/findings.md in order."""
    return tuple(_read_sections(page))


def find_description(meanings: Sequence[CodeDescription], code: str) -> CodeDescription | None:
    """Return the description of a finding's code; None if the code is unknown."""
    return next((meaning for meaning in meanings if meaning.code == code), None)


def suggest_codes(meanings: Sequence[CodeDescription], code: str) -> list[str]:
    """Return similar codes, the most similar first; if there are none, codes that contain the text."""
    codes = [meaning.code for meaning in meanings]
    return get_close_matches(code.lower(), codes, n=3) or [name for name in codes if code and code.lower() in name][:5]


def write_description(meaning: CodeDescription, width: int) -> str:
    """Return a code with its cause and fix, for a terminal."""
    lines = [f"{meaning.code} ({meaning.section})", "", *wrap(f"Cause: {strip_markup(meaning.cause)}", width)]
    return "\n".join([*lines, *wrap(f"Fix: {strip_markup(meaning.fix)}", width)]) + "\n"


def write_codes(meanings: Sequence[CodeDescription], width: int) -> str:
    """Return all codes under their headings."""
    sections: dict[str, list[str]] = {}
    for meaning in meanings:
        sections.setdefault(meaning.section, []).append(meaning.code)
    blocks = ["\n".join([f"{section}:", *wrap("  ".join(codes), width, "  ")]) for section, codes in sections.items()]
    return "\n\n".join([*blocks, "Use `gitsched help-code CODE` for the cause and the fix of a code."]) + "\n"


def serialize_codes(meanings: Sequence[CodeDescription]) -> dict[str, Any]:
    """Return codes as plain data: `kind: Codes` of docs/development/json.md."""
    items = [
        {
            "codes": [meaning.code],
            "section": meaning.section,
            "cause": strip_markup(meaning.cause),
            "cure": strip_markup(meaning.fix),
        }
        for meaning in meanings
    ]
    return {"apiVersion": "gitsched.io/v1alpha1", "kind": "Codes", "items": items}


def strip_markup(text: str) -> str:
    """Remove Markdown from a sentence; a link becomes its text and its target."""
    return _LINK.sub(lambda match: f"{match[1]} (docs/{match[2]})", text).replace("`", "")


def _read_sections(page: str) -> Iterator[CodeDescription]:
    _, *parts = _SECTION.split(page + "\n")
    for section, text in zip(parts[::2], parts[1::2], strict=True):
        for code, cause, fix in _CODE.findall(text):
            yield CodeDescription(code, section, cause.replace("\n", " "), fix.replace("\n", " ") or _FIX)
