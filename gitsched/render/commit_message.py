"""The message of a commit on the output branch, with untrusted text on single lines that Git does not interpret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

CommitCause = Literal["source", "facts", "deadline", "observation", "upgrade"]

SUBJECT_LIMIT = 100
LINE_LIMIT = 200
BODY_LIMIT = 50
_BLANKS = re.compile(r" {2,}")
# [skip ci] in the subject of a source commit must not disable the pipelines of the output branch.
_BRACKETS = str.maketrans("[]", "()")


def format_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Return untrusted text as one line of at most `limit` printable characters."""
    printable = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    line = _BLANKS.sub(" ", printable).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


SOURCE_TRAILER = "Gitsched-Source"
"""The source commit of an output commit."""


def write_commit_message(
    summary: str,
    lines: Iterable[str],
    *,
    source: str,
    version: str,
    cause: CommitCause,
    trailers: Mapping[str, str] | None = None,
    fixed_subject: str = "",
) -> str:
    """Return the subject `place: <summary>`, a list of the lines (at most 50, then a count), and the trailers.

    With a `fixed_subject`, this is the first line, and the summary is the first one of the list.
    `trailers` follow the standard trailers; their names are constants of the caller, never input. The text ends in one newline.
    """
    fixed_subject = format_line(fixed_subject, SUBJECT_LIMIT).translate(_BRACKETS)
    subject = fixed_subject or format_line(f"place: {summary}", SUBJECT_LIMIT).translate(_BRACKETS)
    entries = [
        entry for line in ((summary, *lines) if fixed_subject else lines) if (entry := format_line(line).translate(_BRACKETS))
    ]
    # A list item cannot be mistaken for a trailer, a comment, or the "---" at which Git ends a message.
    body = [f"- {entry}" for entry in entries[:BODY_LIMIT]]
    if len(entries) > BODY_LIMIT:
        body.append(f"- and {len(entries) - BODY_LIMIT} more")
    all_trailers = {SOURCE_TRAILER: source, "Gitsched-Version": version, "Gitsched-Cause": cause, **(trailers or {})}
    tail = "\n".join(f"{name}: {format_line(value)}" for name, value in all_trailers.items())
    return "\n\n".join(part for part in (subject, "\n".join(body), tail) if part) + "\n"
