"""Names of clusters in few words: consecutively numbered ones as a range."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gitsched.model.finding import format_names

RANGES_SHOWN = 6
"""The number of names and ranges that are listed; the others are counted."""
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})", re.DOTALL)


def format_ranges(names: Iterable[str]) -> str:
    """Return names with at least three consecutively numbered ones as a range: "c000–c002, west"; "" without names."""
    runs: list[list[str]] = []
    for name in sorted(names, key=_split_number):
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    texts = [text for run in runs for text in ([f"{run[0]}–{run[-1]}"] if len(run) > 2 else run)]  # an en dash
    return format_names(texts, RANGES_SHOWN)


def _split_number(name: str) -> tuple[str, int, int, str]:
    """Return the text before the number at the end of a name, the digits and the value of the number, and the name."""
    match = _NUMBERED.fullmatch(name)
    return (match[1], len(match[2]), int(match[2]), name) if match else (name, 0, 0, name)


def _follows(earlier: str, later: str) -> bool:
    """Return whether two names differ by one in the number at their end, as in c9 and c10, or c09 and c10."""
    (text, digits, number, _), (other, other_digits, other_number, _) = _split_number(earlier), _split_number(later)
    if not (digits and other_digits and text == other and other_number == number + 1):
        return False
    return digits == other_digits or len(str(other_number)) == other_digits
