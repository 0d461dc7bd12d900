"""Escape untrusted text for Markdown, also inside a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

CELL_LIMIT = 200
# None of these has a meaning in a code span, neither to Markdown nor to the forge (mentions, issue numbers, emoji).
_SAFE_CODE = re.compile(r"""[A-Za-z0-9._/:,=+@#~ (){}\[\]"'>−→-]*[A-Za-z0-9._/:,=+@#~(){}\[\]"'>−→-]""")
# None of these is markup, an entity, math or a link, in neither GitHub's nor GitLab's dialect.
_SAFE_TEXT = re.compile(r"""['"(]*[+-]?[A-Za-z0-9][A-Za-z0-9.,;:/=+%'"()-]*\??|[->=+/→−]{1,2}|%[).,;]*""")
_AUTOLINK = re.compile(r"://|www\.|:[^:]+:|^GH-\d|^[0-9a-fA-F]{7,40}$", re.IGNORECASE)
# The punctuation around a word, which no code span includes.
_PUNCTUATED = re.compile(r"""(['"(]*)(.*?)([.,;:?'")]*)""", re.DOTALL)
_TRAILER = re.compile(r"Gitsched-[A-Z][a-z]+")
_OPTION = re.compile(r"--[a-z][a-z-]*")
_MAX_SPAN = 60
"""Words of one code span."""
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
    code spans, without the punctuation around them. An object in braces, a trailer and an option are one span with what they have."""
    return _format_words(text[:limit], limit) + ("…" if len(text) > limit else "")


@lru_cache(maxsize=1 << 12)  # a comment is written again and again until it fits
def _format_words(shown: str, limit: int) -> str:
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else " " if c in "\t\r\n" else "\ufffd" for c in shown)
    return " ".join(_format_span(words, limit) for words in _list_spans(shown.split()))


def _format_span(words: Sequence[str], limit: int) -> str:
    """Format one word, or several as one code span."""
    text = " ".join(words)
    if len(words) == 1 and _is_plain(text):
        return text
    before, core, after = _split_punctuation(text)
    return f"{before}{format_code(core, limit)}{after}" if core else format_code(text, limit)


def _list_spans(words: list[str]) -> Iterator[list[str]]:
    """Yield the words of each code span, and every other word alone."""
    start = 0
    while start < len(words):
        end = start + _count_words(words[start : start + _MAX_SPAN])
        yield words[start:end]
        start = end


def _count_words(words: list[str]) -> int:
    """Return the number of words of the code span, or the word, that is first."""
    _, core, after = _split_punctuation(words[0])
    if core.startswith("{"):
        depth = 0
        for number, word in enumerate(words, 1):
            depth += word.count("{") - word.count("}")
            if depth <= 0:
                return number
        return 1
    if len(words) > 1 and _split_punctuation(words[1])[0] == "":
        is_option = not after and _OPTION.fullmatch(core) and not _OPTION.match(words[1]) and not _is_plain(words[1])
        if is_option or (after == ":" and _TRAILER.fullmatch(core)):
            return 2
    return 1


def _is_plain(word: str) -> bool:
    """Return whether a word is text to Markdown and to a forge."""
    core = _split_punctuation(word)[1]
    return bool(_SAFE_TEXT.fullmatch(word)) and not (_AUTOLINK.search(word) or _AUTOLINK.search(core))


def _split_punctuation(word: str) -> tuple[str, str, str]:
    """Return the punctuation before a word, the word, and the punctuation after it."""
    found = _PUNCTUATED.fullmatch(word)
    assert found is not None, "the expression matches every text"
    return found[1], found[2], found[3]


def format_code_block(text: str, language: str = "") -> str:
    """Format a code block whose text cannot close it."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _escape_character(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"
