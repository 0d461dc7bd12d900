"""One line of a `.sourceignore` file as a regular expression that never goes back on what it found.

A `*` between two texts may end at the first place where the next text fits: whatever a later place allows, that one allows, too. The same
holds for `**` and directories. So all but the last of each are atomic, and no pattern takes longer than its length times that of the path.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SLASH: Final = "/"
_STAR: Final = "*"
_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class Rule(NamedTuple):
    """`pattern` is for the whole path below the file's directory; `directories`: it speaks of nothing else."""

    pattern: re.Pattern[str]
    excludes: bool
    directories: bool


def read_rule(line: str) -> Rule | None:
    """The rule of a line, by gitignore's syntax; None for a comment, a blank line, and what git takes for no pattern either."""
    text = line.removesuffix("\r")
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#"):
        return None
    excludes = not text.startswith("!")
    text = text if excludes else text[1:]
    directories = text.endswith("/")
    text = text.removesuffix("/")
    tokens = _split(text)
    if not tokens:
        return None
    anywhere = "/" not in text
    if text.startswith("/"):
        tokens = tokens[1:]
    pattern = _write(tokens, anywhere)
    return None if pattern is None else Rule(re.compile(pattern, re.DOTALL), excludes, directories)


def _split(text: str) -> list[str] | None:
    """Slashes, stars (a run of two and more stays one token), and expressions for one character each; None where one is not closed."""
    tokens: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "*":
            end = at
            while end < len(text) and text[end] == "*":
                end += 1
            tokens.append(_STAR if end - at == 1 else _STAR * 2)
            at = end
        elif char == "[":
            found = _read_set(text, at + 1)
            if found is None:
                return None
            tokens.append(found[0])
            at = found[1]
        else:
            if char == "\\":
                at += 1
                if at == len(text):
                    return None
            tokens.append("[^/]" if char == "?" else _SLASH if text[at] == "/" else re.escape(text[at]))
            at += 1
    return tokens


def _read_set(text: str, at: int) -> tuple[str, int] | None:
    """A set of characters, from behind its opening bracket, and where the text goes on; None where it is none."""
    negated = text[at : at + 1] in ("!", "^")
    start = at = at + negated
    parts: list[str] = []
    while at < len(text) and (text[at] != "]" or at == start):
        if text.startswith("[:", at):
            end = text.find(":]", at + 2)
            if end >= 0:
                if text[at + 2 : end] not in _CLASSES:
                    return None
                parts.append(_CLASSES[text[at + 2 : end]])
                at = end + 2
                continue
        first, at = _read_member(text, at)
        last = first
        if text.startswith("-", at) and text[at + 1 : at + 2] not in ("", "]"):
            last, at = _read_member(text, at + 1)
        if not first or not last:
            return None
        # Of a range that goes backwards git takes the first.
        parts.append(f"{_escape(first)}-{_escape(last)}" if first <= last else _escape(first))
    if at >= len(text):
        return None
    found = "".join(parts)
    if negated:
        return (f"[^/{found}]", at + 1)
    return (f"(?!/)[{found}]" if found else "(?!)", at + 1)


def _read_member(text: str, at: int) -> tuple[str, int]:
    at += text.startswith("\\", at)
    return text[at : at + 1], at + 1


def _escape(char: str) -> str:
    return f"\\{char}" if char in "\\]^-[&~|" else char


def _write(tokens: list[str], anywhere: bool) -> str | None:
    """The expression for a path: groups of segments, between which any directories may be."""
    groups: list[list[str]] = [[], []] if anywhere else [[]]
    segment: list[str] = []
    segments = [segment]
    for token in tokens:
        if token == _SLASH:
            segments.append(segment := [])
        else:
            segment.append(token)
    for position, entry in enumerate(segments):
        deep = entry == [_STAR * 2] and len(segments) > 1
        if not entry:
            return None  # two slashes in a row: no path has them
        if not deep:
            groups[-1].append(_write_segment(entry))
        elif groups[-1] or position == 0:
            groups.append([])
    first, *others = ("/".join(group) for group in groups)
    if not others:
        return first
    start = f"{first}/" if first else ""
    *middle, last = others
    passed = "".join(f"(?>(?:[^/]+/)*?{group}/)" for group in middle if group)
    return start + passed + (f"(?:[^/]+/)*{last}" if last else ".+")


def _write_segment(tokens: list[str]) -> str:
    """The expression for one name."""
    if len(tokens) == 1 and tokens[0][0] == _STAR:
        return "[^/]+"
    pieces: list[list[str]] = [[]]
    for token in tokens:
        if token[0] == _STAR:
            pieces.append([])
        else:
            pieces[-1].append(token)
    first, *others = ("".join(piece) for piece in pieces)
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle if piece) + f"[^/]*{last}"
