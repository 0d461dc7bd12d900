"""Kubernetes' JSONPath templates, as far as a path leads to one value.

Text is taken as it is; in braces stands a path of members (.a, ['a'], with `\\.` for a dot in a name) and indices ([0], [-1]), which may
begin with $ or @. Filters, ranges, wildcards and unions, which give many values, are not known here.
"""

from __future__ import annotations

import json
import re
from typing import Any

_STEP = re.compile(
    r"""\.((?:\\.|[^\s.\[\]{}'"*@$\\])+)|\[\s*(-?\d+)\s*\]|\[\s*'((?:\\.|[^'\\])*)'\s*\]|\[\s*"((?:\\.|[^"\\])*)"\s*\]"""
)
_PIECE = re.compile(r"""\{((?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^{}'"])*)\}|[^{}]+""")
_LENGTH = 4096


def evaluate(template: str, value: Any) -> str:
    """The text that a template makes of a value. ValueError, with a reason for people, where it leads nowhere or is not understood."""
    if len(template) > _LENGTH:
        raise ValueError(f"it has more than {_LENGTH} characters")
    text, position = "", 0
    while position < len(template):
        match = _PIECE.match(template, position)
        if match is None:
            raise ValueError(f"the braces of {template!r} do not match")
        inner = match.group(1)
        text += match.group(0) if inner is None else _write(_walk(inner.strip(), value))
        position = match.end()
    return text


def _walk(path: str, value: Any) -> Any:
    rest = path[1:] if path[:1] in ("$", "@") else path
    position = len(rest) if rest == "." else 0
    while position < len(rest):
        match = _STEP.match(rest, position)
        if match is None:
            raise ValueError(f"{path!r} is no path of members and indices")
        name, index, *quoted = match.groups()
        if index is not None:
            value = _item(value, int(index), path)
        else:
            key = re.sub(r"\\(.)", r"\1", next(text for text in (name, *quoted) if text is not None))
            if not isinstance(value, dict) or key not in value:
                raise ValueError(f"there is no {key!r} where {path!r} leads")
            value = value[key]
        position = match.end()
    return value


def _item(value: Any, index: int, path: str) -> Any:
    if not isinstance(value, list) or not -len(value) <= index < len(value):
        raise ValueError(f"there is no item {index} where {path!r} leads")
    return value[index]


def _write(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
