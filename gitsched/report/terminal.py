"""Text for a terminal: aligned columns, wrapped paragraphs, escaped control characters and CI commands."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

COLUMN_GAP = "  "
# GitHub runs commands in lines that start with two colons (after blanks) and after `##[` anywhere; Azure uses `##vso[`, TeamCity
# `##teamcity[`.
_CI_COMMAND = re.compile(r"^[^\S\n]*(?=::)|##(?=(?:vso|teamcity)?\[)", re.MULTILINE | re.IGNORECASE)


def escape_unprintable(text: str) -> str:
    """Return the text on one line with unprintable characters escaped, so that a manifest cannot send terminal control sequences."""
    return "".join(c if c.isprintable() else "\\n" if c == "\n" else c.encode("unicode_escape").decode() for c in text)


def escape_ci_commands(text: str) -> str:
    """Insert a backslash into text that a CI runner would execute as a command, since the text may come from a manifest."""
    return _CI_COMMAND.sub(r"\g<0>\\", text)


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Wrap one paragraph. Words longer than a line are not broken, so that paths can be copied."""
    lines = textwrap.wrap(
        escape_unprintable(text),
        max(width, len(indent) + 20),
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [indent.rstrip()]


def format_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as aligned lines; each column is as wide as its widest cell."""
    cells = [[escape_unprintable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [COLUMN_GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def fits_width(lines: Sequence[str], width: int) -> bool:
    """Return whether all lines fit into the width."""
    return all(len(line) <= width for line in lines)


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: "1 workload", "2 workloads"."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"
