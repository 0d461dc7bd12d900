"""Escape untrusted text for Markdown, also inside a table."""

from __future__ import annotations

import re

CELL_LIMIT = 200
# In a code span nothing of this means anything, neither to Markdown nor to the forge (mentions, issue numbers, emoji).
_SAFE_CODE = re.compile(r"[A-Za-z0-9._/:,=+@#~ (){}-]*[A-Za-z0-9._/:,=+@#~(){}-]")
# Nothing in it is markup, an entity, math or a link, neither to GitHub's nor to GitLab's dialect.
_SAFE_TEXT = re.compile(r"""['"(]*[+-]?[A-Za-z0-9][A-Za-z0-9.,;:/=+%'"()-]*|[->=+/]{1,2}""")
_AUTOLINK = re.compile(r"://|www\.|:[^:]+:|^GH-\d|^[0-9a-fA-F]{7,40}$", re.IGNORECASE)
_BACKTICKS = re.compile("`+")
_MARKUP = re.compile(r"[^A-Za-z0-9 ,=+-]")


def format_code(text: str, limit: int = CELL_LIMIT) -> str:
    """Text in code type, on one line, at most `limit` characters of it; "" for nothing to show."""
    shown = text[:limit]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else "\ufffd" for c in shown)
    if len(text) > limit:
        shown += "…"
    if not shown:
        return ""
    if _SAFE_CODE.fullmatch(shown) and shown[0] != " ":
        return f"`{shown}`"
    # A code span cannot hold every backtick, pipe and backslash in every renderer; character references can.
    return f"<code>{_MARKUP.sub(_escape_character, shown)}</code>"


def format_text(text: str, limit: int = CELL_LIMIT) -> str:
    """A sentence on one line, at most `limit` characters of it: words that could mean anything to Markdown or a forge in code type."""
    shown = "".join(c if c.isprintable() else " " if c in "\t\r\n" else "\ufffd" for c in text[:limit])
    words = [
        word if _SAFE_TEXT.fullmatch(word) and not _AUTOLINK.search(word) else format_code(word, limit) for word in shown.split()
    ]
    return " ".join(words) + ("…" if len(text) > limit else "")


def format_code_block(text: str, language: str = "") -> str:
    """A block of code that its text cannot close."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{language}\n{text}\n{mark}"


def _escape_character(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"
