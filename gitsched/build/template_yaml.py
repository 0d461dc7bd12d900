"""The YAML that the function toYaml of Go templates writes. Source: sigs.k8s.io/yaml and its copy of go-yaml v2."""

from __future__ import annotations

import json
import re
from functools import cmp_to_key
from typing import Any, Final

from gitsched.build.go_functions import NotEvaluatedError
from gitsched.manifests.plain_scalars import NUMBER_START, resolve_number
from gitsched.manifests.printed_scalars import is_timestamp

_WORDS = "null Null NULL y Y yes Yes YES true True TRUE on On ON n N no No NO false False FALSE off Off OFF"
_NO_TEXTS: Final = frozenset(
    (*_WORDS.split(), "~", *(f"{sign}.{name}" for sign in ("", "+", "-") for name in ("inf", "Inf", "INF")))
)
"""Plain scalars that are no texts, besides numbers, times and NaN."""
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_NOT_PLAIN = re.compile(r"[#,\[\]{}&*!|>'\"%@`]|[-?:](?: |\Z)|---|\.\.\.| ")
"""Beginnings of a text that cannot be a plain scalar."""
_ENDS_PLAIN = re.compile(r":(?: |\Z)| #| \Z")
_NOT_PRINTED = re.compile("[^\n -~\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
"""Characters that only a text in double quotes may have."""
_BREAK = re.compile("[\x85\u2028\u2029]")
"""Ends of lines that few texts have."""
_DIGITS = re.compile(r"[0-9]*")
_WIDTH = 80
"""Columns after which Go divides a text at a blank."""
_KEY_LENGTH = 128
"""Characters of a key that is written without `? `."""
_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\0": "\\0",
    "\a": "\\a",
    "\b": "\\b",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    "\xa0": "\\_",
    "\ufeff": "\\uFEFF",
    "\t": "\\t",
    "\n": "\\n",
}


def write_yaml(value: Any, depth: int = 0) -> str:
    """Return a JSON-like value as YAML with the lines of Go's. Raises NotEvaluatedError for rare texts."""
    start = "  " * depth
    if isinstance(value, dict) and value:
        keys = sorted(map(str, value), key=cmp_to_key(_compare_keys))
        return "\n".join(_write_member(f"{start}{_write_key(key)}:", value[key], depth) for key in keys)
    if isinstance(value, list) and value:
        return "\n".join(f"{start}- {write_yaml(each, depth + 1).lstrip(' ')}" for each in value)
    return _check_width(start + _write_scalar(value, max(depth, 1)), value)


def _write_member(start: str, value: Any, depth: int) -> str:
    if isinstance(value, (dict, list)) and value:
        return f"{start}\n{write_yaml(value, depth + (not isinstance(value, list)))}"
    return _check_width(f"{start} {_write_scalar(value, depth + 1)}", value)


def _check_width(line: str, value: Any) -> str:
    """Return a line. Raises NotEvaluatedError for one that Go divides."""
    if len(line) > _WIDTH and "\n" not in line and isinstance(value, str) and " " in value:
        raise NotEvaluatedError("a text that is divided into lines")
    return line


def _compare_keys(first: str, second: str) -> int:
    """Compare keys: letters follow other characters, and numbers count by their value."""
    position = next((index for index, (one, other) in enumerate(zip(first, second, strict=False)) if one != other), -1)
    if position < 0:
        return len(first) - len(second)
    one, other = first[position], second[position]
    if one.isalpha() or other.isalpha():
        return ord(one) - ord(other) if one.isalpha() and other.isalpha() else 1 if one.isalpha() else -1
    before = re.search(r"\d*\Z", first[:position])
    leading = "1" if "0" in (one, other) and before and before[0].strip("0") else ""
    digits = [leading + _DIGITS.match(text, position)[0] for text in (first, second)]  # type: ignore[index]  # it always matches
    numbers = [int(text or "0") for text in digits]
    return numbers[0] - numbers[1] or len(digits[0]) - len(digits[1]) or ord(one) - ord(other)


def _write_key(name: str) -> str:
    if "\n" in name or len(name) > _KEY_LENGTH:
        raise NotEvaluatedError("a key of several lines, or a long one")
    return _write_scalar(name, 0)


def _write_scalar(value: Any, depth: int) -> str:
    """Return a scalar; the lines of a text that has several are at `depth`."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if _BREAK.search(value):
        raise NotEvaluatedError("a text with the end of a line that is not a newline")
    if _NOT_PRINTED.search(value):
        return _quote(value)
    if "\n" in value:
        return _quote(value) if re.search(r" (?:\n|\Z)", value) else _write_lines(value, depth)
    if not value or value in _NO_TEXTS or _is_number(value) or _BASE_60.fullmatch(value) or is_timestamp(value):
        return _quote(value)
    if _NOT_PLAIN.match(value) or _ENDS_PLAIN.search(value):
        return "'" + value.replace("'", "''") + "'"
    return value


def _is_number(text: str) -> bool:
    return text[0] in NUMBER_START and (text in (".nan", ".NaN", ".NAN") or not isinstance(resolve_number(text), str))


def _write_lines(text: str, depth: int) -> str:
    """Return a text of several lines as a literal block."""
    hint = "2" if text[0] in " \n" else ""
    kept = "" if text.endswith("\n") else "-"
    kept = "+" if text.endswith("\n\n") or text == "\n" else kept
    lines = text.removesuffix("\n").split("\n")
    return f"|{hint}{kept}" + "".join(f"\n{'  ' * depth}{line}" if line else "\n" for line in lines)


def _quote(text: str) -> str:
    return '"' + "".join(_escape(character) for character in text) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if not _NOT_PRINTED.match(character):
        return character
    code = ord(character)
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
