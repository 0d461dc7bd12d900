"""The message of an output commit. Its trailers are ours alone: no name and no source subject can add or change one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

Cause = Literal["source", "deadline", "observation"]

SUBJECT_LIMIT = 100
LINE_LIMIT = 200
BODY_LIMIT = 50
_BLANKS = re.compile(r" {2,}")
# A source subject with [skip ci] in it must not switch off the pipelines of the output branch.
_BRACKETS = str.maketrans("[]", "()")


def one_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Untrusted text as one line of printable characters, at most `limit` of them."""
    printable = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    line = _BLANKS.sub(" ", printable).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def commit_message(
    summary: str, lines: Iterable[str], *, source: str, version: str, cause: Cause, trailers: Mapping[str, str] | None = None
) -> str:
    """Subject `place: <summary>`, the lines as a list (50 at most, then a count), and the trailers.

    `trailers` come after ours; their names are the caller's own words, never input. Ends in one newline.
    """
    subject = one_line(f"place: {summary}", SUBJECT_LIMIT).translate(_BRACKETS)
    entries = [entry for line in lines if (entry := one_line(line).translate(_BRACKETS))]
    # A list item is never a trailer, a comment, or the "---" at which Git takes a message to end.
    body = [f"- {entry}" for entry in entries[:BODY_LIMIT]]
    if len(entries) > BODY_LIMIT:
        body.append(f"- and {len(entries) - BODY_LIMIT} more")
    ours = {"Gitsched-Source": source, "Gitsched-Version": version, "Gitsched-Cause": cause, **(trailers or {})}
    tail = "\n".join(f"{name}: {one_line(value)}" for name, value in ours.items())
    return "\n\n".join(part for part in (subject, "\n".join(body), tail) if part) + "\n"
