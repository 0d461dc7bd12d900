"""Text for a terminal: aligned columns, wrapped paragraphs, escaped control characters and CI commands."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

COLUMN_GAP = "  "
# GitHub's runner obeys a line that begins with two colons, after blanks, and `##[` anywhere; Azure's and TeamCity's know words for it.
_CI_COMMAND = re.compile(r"^[^\S\n]*(?=::)|##(?=(?:vso|teamcity)?\[)", re.MULTILINE | re.IGNORECASE)


def escape_unprintable(text: str) -> str:
    """The text on one line, with control and other unprintable characters escaped: a manifest must not drive a terminal."""
    return "".join(c if c.isprintable() else "\\n" if c == "\n" else c.encode("unicode_escape").decode() for c in text)


def escape_ci_commands(text: str) -> str:
    """The text with a backslash in what the runner of a pipeline would take for a command to itself: manifests give it none."""
    return _CI_COMMAND.sub(r"\g<0>\\", text)


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """The lines of one paragraph; words that are too long for a line are not broken, so that paths can still be copied."""
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
    """Rows of equally many cells as lines, every column as wide as its widest cell."""
    cells = [[escape_unprintable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [COLUMN_GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def fits_width(lines: Sequence[str], width: int) -> bool:
    """Whether no line is longer than the width."""
    return all(len(line) <= width for line in lines)


def format_count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 workload", "2 workloads"."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"
