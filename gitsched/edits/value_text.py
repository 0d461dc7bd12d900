"""Write a value as YAML text that fits its place: the style of the value before, and the indentation of the document."""

from __future__ import annotations

import re
from typing import Any

from gitsched.named_tuples import NamedTuple
from gitsched.render.yaml import dump, is_printable, quote, quote_always

_FLOW_PLAIN = re.compile(r"[A-Za-z0-9_./$@%+=~;()<>\\ -]+")
"""Plain scalars without an indicator of the flow style."""


class TextStyle(NamedTuple):
    """How a document is written: the columns by which members of a mapping and entries of a list are indented below their key, and
    the line end."""

    member_indent: int
    entry_indent: int
    line_end: str


class BlockText(NamedTuple):
    """A value in block style: `head` follows its key on the same line, "" for none; `lines` follow with their indentation."""

    head: str
    lines: list[str]


def write_flow(value: Any, *, json_style: bool) -> str:
    """Return a value on one line as a part of a flow collection; in the style of JSON, every string is in double quotes."""
    if isinstance(value, str):
        return _write_flow_string(value, json_style=json_style)
    if isinstance(value, dict):
        members = (
            f"{_write_flow_string(name, json_style=json_style)}: {write_flow(member, json_style=json_style)}"
            for name, member in value.items()
        )
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(write_flow(entry, json_style=json_style) for entry in value) + "]"
    return dump(value).rstrip("\n")


def _write_flow_string(text: str, *, json_style: bool) -> str:
    plain = not json_style and _FLOW_PLAIN.fullmatch(text)
    return quote(text) if plain else quote_always(text)


def write_scalar(value: Any, style: str | None) -> str:
    """Return a scalar on one line, in the quotes that the scalar before it has (`style`)."""
    if not isinstance(value, str):
        return dump(value).rstrip("\n")
    if style == '"':
        return quote_always(value)
    if style == "'" and "\n" not in value and is_printable(value):
        return "'" + value.replace("'", "''") + "'"
    return quote(value)


def write_block(value: Any, column: int, style: TextStyle) -> BlockText:
    """Return a value below a key, or below the dash of an entry, in this column."""
    if isinstance(value, dict) and value:
        return BlockText("", write_lines(value, column + style.member_indent, style))
    if isinstance(value, list) and value:
        return BlockText("", write_lines(value, column + style.entry_indent, style))
    if isinstance(value, str) and "\n" in value:
        return write_literal(value, column + style.member_indent)
    return BlockText(dump(value).rstrip("\n"), [])


def write_literal(text: str, column: int) -> BlockText:
    """Return a text of several lines as literal block whose lines begin in this column, or in double quotes if no block preserves it."""
    head, *lines = dump(text).removesuffix("\n").split("\n")
    return BlockText(head, [" " * column + line[2:] if line else "" for line in lines])


def write_lines(value: dict[str, Any] | list[Any], column: int, style: TextStyle) -> list[str]:
    """Return the lines of a block mapping whose keys are in this column, or of a block sequence whose dashes are."""
    return _indent_lines(dump(value, style.entry_indent), column)


def has_lines(value: Any) -> bool:
    """Return whether a value has a text of several lines."""
    if isinstance(value, dict):
        return any(has_lines(member) for member in value.values())
    if isinstance(value, list):
        return any(has_lines(entry) for entry in value)
    return isinstance(value, str) and "\n" in value


def _indent_lines(text: str, column: int) -> list[str]:
    return [" " * column + line if line else "" for line in text.removesuffix("\n").split("\n")]
