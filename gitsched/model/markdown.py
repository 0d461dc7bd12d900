"""Escape untrusted text for Markdown, also inside a table."""

from __future__ import annotations

import re
from functools import lru_cache

CELL_LIMIT = 200
# None of these has a meaning in a code span, neither to Markdown nor to the forge (mentions, issue numbers, emoji).
_SAFE_CODE = re.compile(r"""[A-Za-z0-9._/:,=+@#~ (){}\[\]"'>−→-]*[A-Za-z0-9._/:,=+@#~(){}\[\]"'>−→-]""")
# None of these is markup, an entity, math or a link, in neither GitHub's nor GitLab's dialect.
_SAFE_TEXT = re.compile(r"""['"(]*[+-]?[A-Za-z0-9][A-Za-z0-9.,;:/=+%'"()-]*\??|[->=+/→−]{1,2}|%[).,;]*""")
_AUTOLINK = re.compile(r"://|www\.|:[^:]+:|^GH-\d|^[0-9a-fA-F]{7,40}$", re.IGNORECASE)
_BACKTICKS = re.compile("`+")
_MARKUP = re.compile(r"[^A-Za-z0-9 ,=+−→-]")


def format_code(text: str, limit: int = CELL_LIMIT) -> str:
    """Format text as a code span on one line, with at most `limit` characters; "" for empty text."""
    shown = text[:limit]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else "\ufffd" for c in shown)
    if len(text) > limit:
        shown += "…"
    if not shown:
        return ""
    if _SAFE_CODE.fullmatch(shown) and shown[0] != " ":
        return f"`{shown}`"
    # Not every renderer accepts backticks, pipes and backslashes in a code span; character references always work.
    return f"<code>{_MARKUP.sub(_escape_character, shown)}</code>"


def format_code_cells(*texts: str) -> str:
    """Format the first cells of a table row as code spans, up to the bar before the next cell."""
    return f"| {' | '.join(map(format_code, texts))} |"


def format_text(text: str, limit: int = CELL_LIMIT) -> str:
    """Format a sentence on one line, with at most `limit` characters; words that have a meaning in Markdown or to a forge become
    code spans."""
    return _format_words(text[:limit], limit) + ("…" if len(text) > limit else "")


@lru_cache(maxsize=1 << 12)  # a comment is written again and again until it fits
def _format_words(shown: str, limit: int) -> str:
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else " " if c in "\t\r\n" else "\ufffd" for c in shown)
    words = [
        word if _SAFE_TEXT.fullmatch(word) and not _AUTOLINK.search(word) else format_code(word, limit) for word in shown.split()
    ]
    return " ".join(words)


def format_code_block(text: str, language: str = "") -> str:
    """Format a code block whose text cannot close it."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _escape_character(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"
