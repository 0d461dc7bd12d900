"""Find a scalar in YAML text by its lines, without a parser: for documents in plain block style, which most manifests are.

libyaml takes about ten times as long. Whatever is not certain (quotes over several lines, tabs, anchors, flow collections on the way) is
left to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gitsched.edits.value_text import write_scalar
from gitsched.model.planned_files import TextEdit
from gitsched.named_tuples import NamedTuple
from gitsched.render.yaml import quote

Path = tuple[str | int, ...]

_UNCERTAIN = re.compile("[\t\r\x85\u2028\u2029]")
_OPENING = re.compile(r"[\"'\[{]")
_CLOSED = r"""(?:"[^"\\]*"|'[^']*'|\[[^\[\]{}"'#]*\]|\{[^\[\]{}"'#]*\})"""
_CLOSED_LINE = re.compile(
    rf"""[ ]*(?:-[ ]+)*(?:(?:[\w./-]+|"[^"\\]*"|'[^']*'):[ ]+)?(?:{_CLOSED}|[\w./-][^"'\[\]{{}}:#]*)?[ ]*(?:[ ]#.*)?""", re.ASCII
)
"""A line on which every quote and bracket that it opens is closed."""
_VALUE = re.compile(r"""([ ]+)("[^"\\]*"|'[^']*'|[^\s"'#&*!|>%@`\[\]{},?-][^\s#]*)(?:[ ]+(#.*)?)?""")


class _Change(NamedTuple):
    path: Path
    before: Any
    after: Any


def list_scalar_edits(text: str, before: Any, after: Any) -> list[TextEdit] | None:
    """Return the edits of a document of which only scalars change; None if more changes, or if the text leaves a doubt."""
    changes = _list_changes((), before, after)
    if changes is None or ("&" in text and "*" in text) or _UNCERTAIN.search(text):
        return None
    lines = text.split("\n")
    edits = []
    for change in changes:
        span = _find_scalar(lines, change)
        if span is None:
            return None
        start, end = span
        style = text[start] if text[start] in "\"'" else None
        edits.append(TextEdit(start, end, write_scalar(change.after, style)))
    return sorted(edits)


def _list_changes(path: Path, before: Any, after: Any) -> list[_Change] | None:
    """Return the scalars that change; None if members or entries are added or removed, or a value of another type is a collection."""
    if before is after:
        return []
    found: list[_Change] = []
    parts: Iterator[tuple[str | int, Any, Any]]
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        parts = ((name, value, after[name]) for name, value in before.items())
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        parts = ((index, value, after[index]) for index, value in enumerate(before))
    elif isinstance(before, dict | list) or isinstance(after, dict | list) or (isinstance(after, str) and "\n" in after):
        return None
    else:
        same = type(before) is type(after) and before == after
        return [] if same else [_Change(path, before, after)]
    for step, value, changed in parts:
        if value is not changed:
            inner = _list_changes((*path, step), value, changed)
            if inner is None:
                return None
            found += inner
    return found


def _find_scalar(lines: list[str], change: _Change) -> tuple[int, int] | None:
    """Return the extent of a scalar in the text of these lines; None if it is not certain."""
    number = _skip_comments(lines, 0)
    if number is None:
        return None
    line = lines[number]
    column = len(line) - len(line.lstrip(" "))
    for depth, step in enumerate(change.path):
        found = _find_key(lines, number, line, column, step) if isinstance(step, str) else _find_entry(lines, number, column, step)
        if found is None:
            return None
        number, line, after = found
        if depth + 1 == len(change.path):
            return _read_value(lines, number, line, after, column, change.before)
        if isinstance(step, int):  # a mapping that begins on the line of its dash
            start = after + len(line[after:]) - len(line[after:].lstrip(" "))
            if start == after or isinstance(change.path[depth + 1], int):
                return None
            column, line = start, " " * start + line[start:]
            continue
        rest = line[after:].strip(" ")
        below = _skip_comments(lines, number + 1)
        if (rest and not rest.startswith("#")) or below is None:
            return None
        number, line = below, lines[below]
        inner = len(line) - len(line.lstrip(" "))
        if inner < column or (inner == column and not line.startswith("- ", inner)):
            return None
        column = inner
    return None


def _skip_comments(lines: list[str], number: int) -> int | None:
    """Return the number of the first line from `number` on that is neither blank nor a comment."""
    while number < len(lines):
        text = lines[number].lstrip(" ")
        if text and text[0] != "#":
            return number
        number += 1
    return None


def _find_key(lines: list[str], number: int, line: str, column: int, name: str) -> tuple[int, str, int] | None:
    """Return the line of a key in a column with its number, and the offset behind its colon. `line` stands for the first line."""
    if quote(name) != name:
        return None
    key = f"{name}:"
    while True:
        text = line.lstrip(" ")
        if text and text[0] != "#":
            indent = len(line) - len(text)
            if indent < column:
                return None
            if indent == column and text.startswith(key) and (len(text) == len(key) or text[len(key)] == " "):
                return number, line, column + len(key)
            if _OPENING.search(line) and not _CLOSED_LINE.fullmatch(line):
                return None
        number += 1
        if number == len(lines):
            return None
        line = lines[number]


def _find_entry(lines: list[str], number: int, column: int, index: int) -> tuple[int, str, int] | None:
    """Return the line of an entry whose dash is in a column with its number, and the offset behind its dash."""
    count = 0
    while number < len(lines):
        line = lines[number]
        text = line.lstrip(" ")
        if text and text[0] != "#":
            indent = len(line) - len(text)
            if indent < column or (indent == column and not text.startswith("- ")):
                return None
            if indent == column:
                if count == index:
                    return number, line, column + 1
                count += 1
            if _OPENING.search(line) and not _CLOSED_LINE.fullmatch(line):
                return None
        number += 1
    return None


def _read_value(lines: list[str], number: int, line: str, after: int, column: int, before: Any) -> tuple[int, int] | None:
    """Return the extent of the scalar behind a key or dash if it has this value; `column` is that of the key or dash."""
    value = _VALUE.fullmatch(line, after)
    if value is None:
        return None
    text = value[2]
    if text[0] in "\"'":
        same = before == text[1:-1]
    elif isinstance(before, str):
        same = before == text and quote(text) == text
    else:
        same = type(before) is int and 0 <= before < 1 << 31 and str(before) == text
    below = _skip_comments(lines, number + 1) if value[3] is None else None
    if not same or (below is not None and _is_deeper(lines[below], column)):  # a scalar may continue on the next line
        return None
    start = sum(map(len, lines[:number])) + number
    return start + value.start(2), start + value.end(2)


def _is_deeper(line: str, column: int) -> bool:
    return len(line) - len(line.lstrip(" ")) > column
