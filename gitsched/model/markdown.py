"""Untrusted text in Markdown: it shows as it is and does nothing else, also inside a table."""

from __future__ import annotations

import re

CELL_LIMIT = 200
# In a code span nothing of this means anything, neither to Markdown nor to the forge (mentions, issue numbers, emoji).
_HARMLESS = re.compile(r"[A-Za-z0-9._/:,=+@#~ (){}-]*[A-Za-z0-9._/:,=+@#~(){}-]")
# Nothing in it is markup, an entity, math or a link, neither to GitHub's nor to GitLab's dialect.
_WORD = re.compile(r"""['"(]*[+-]?[A-Za-z0-9][A-Za-z0-9.,;:/=+%'"()-]*|[->=+/]{1,2}""")
_LINKED = re.compile(r"://|www\.|:[^:]+:|^GH-\d|^[0-9a-fA-F]{7,40}$", re.IGNORECASE)
_BACKTICKS = re.compile("`+")
_MARKUP = re.compile(r"[^A-Za-z0-9 ,=+-]")


def code(text: str, limit: int = CELL_LIMIT) -> str:
    """Text in code type, on one line, at most `limit` characters of it; "" for nothing to show."""
    shown = text[:limit]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else "\ufffd" for c in shown)
    if len(text) > limit:
        shown += "…"
    if not shown:
        return ""
    if _HARMLESS.fullmatch(shown) and shown[0] != " ":
        return f"`{shown}`"
    # A code span cannot hold every backtick, pipe and backslash in every renderer; character references can.
    return f"<code>{_MARKUP.sub(_refer, shown)}</code>"


def prose(text: str, limit: int = CELL_LIMIT) -> str:
    """A sentence on one line, at most `limit` characters of it: words that could mean anything to Markdown or a forge in code type."""
    shown = "".join(c if c.isprintable() else " " if c in "\t\r\n" else "\ufffd" for c in text[:limit])
    words = [word if _WORD.fullmatch(word) and not _LINKED.search(word) else code(word, limit) for word in shown.split()]
    return " ".join(words) + ("…" if len(text) > limit else "")


def fence(text: str, language: str = "") -> str:
    """A block of code that its text cannot close."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{language}\n{text}\n{mark}"


def _refer(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"
