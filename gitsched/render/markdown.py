"""Untrusted text in Markdown: it shows as it is and does nothing else, also inside a table."""

from __future__ import annotations

import re

CELL_LIMIT = 200
# In a code span nothing of this means anything, neither to Markdown nor to the forge (mentions, issue numbers, emoji).
_HARMLESS = re.compile(r"[A-Za-z0-9._/:,=+@#~ ()-]*[A-Za-z0-9._/:,=+@#~()-]")
_MARKUP = re.compile(r"[^A-Za-z0-9 ,=+-]")


def code(text: str, limit: int = CELL_LIMIT) -> str:
    """Text in code type, on one line, at most `limit` characters of it; "" for nothing to show."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in text[:limit])
    if len(text) > limit:
        shown += "…"
    if not shown:
        return ""
    if _HARMLESS.fullmatch(shown) and shown[0] != " ":
        return f"`{shown}`"
    # A code span cannot hold every backtick, pipe and backslash in every renderer; character references can.
    return f"<code>{_MARKUP.sub(_refer, shown)}</code>"


def _refer(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"
