"""Functions over texts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from gitsched.apis.ocm.cel.operators import format_double, to_string
from gitsched.apis.ocm.cel.regex import BadPattern, Pattern, compile_pattern, search
from gitsched.apis.ocm.cel.registry import Spend, function
from gitsched.apis.ocm.cel.values import Failed, is_integer, is_number, type_name

_LONGEST = 100_000
"""Characters that a text may grow to."""
_QUOTED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"'}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code + 32: code for code in _LOWER}


@function("string.startsWith(string): bool")
def starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


@function("string.endsWith(string): bool")
def ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


@function("string.contains(string): bool", metered=True)
def contains(spend: Spend, text: str, part: str) -> bool:
    spend(len(text) // 10)
    return part in text


@function("string.charAt(int): string")
def char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise Failed(f"index out of range: {at}")
    return text[at : at + 1]


@function("string.indexOf(string): int", "string.indexOf(string, int): int")
def index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise Failed(f"index out of range: {start}")
    return text.find(part, start)


@function("string.lastIndexOf(string): int", "string.lastIndexOf(string, int): int")
def last_index_of(text: str, part: str, end: int | None = None) -> int:
    if end is None:
        return text.rfind(part)
    if not 0 <= end <= len(text):
        raise Failed(f"index out of range: {end}")
    return text.rfind(part, 0, end + len(part))


@function("list(string).join(): string", "list(string).join(string): string", metered=True)
def join(spend: Spend, parts: list[Any], separator: str = "") -> str:
    spend(len(parts))
    if not all(isinstance(part, str) for part in parts):
        raise Failed("join takes a list of strings")
    return _limit(separator.join(parts))


@function("string.lowerAscii(): string")
def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


@function("string.upperAscii(): string")
def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


@function("string.replace(string, string): string", "string.replace(string, string, int): string", metered=True)
def replace(spend: Spend, text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old)
    spend(len(text) + found)
    if len(text) + (found if count < 0 else min(count, found)) * len(new) > _LONGEST:
        raise Failed("the text grows too long")
    return text.replace(old, new, count)


@function("string.split(string): list(string)", "string.split(string, int): list(string)", metered=True)
def split(spend: Spend, text: str, separator: str, count: int = -1) -> list[str]:
    spend(len(text) // 10)
    if count == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if count < 0 or count >= len(parts) else [*parts[: count - 1], "".join(parts[count - 1 :])]
    return text.split(separator, count - 1 if count > 0 else -1)


@function("string.substring(int): string", "string.substring(int, int): string")
def substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise Failed(f"index out of range: {start}, {end}")
    return text[start:end]


@function("string.trim(): string")
def trim(text: str) -> str:
    return text.strip()


@function("string.reverse(): string")
def reverse(text: str) -> str:
    return text[::-1]


@function("global strings.quote(string): string")
def quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(c, c) for c in text) + '"'


@function("string.find(string): string", metered=True)
def find(spend: Spend, text: str, pattern: str) -> str:
    match = search(_compile(pattern), text, spend)
    return "" if match is None else text[match[0] : match[1]]


@function("string.findAll(string): list(string)", "string.findAll(string, int): list(string)", metered=True)
def find_all(spend: Spend, text: str, pattern: str, count: int = -1) -> list[str]:
    compiled = _compile(pattern)
    found: list[str] = []
    at, last = 0, -1
    while at <= len(text) and (count < 0 or len(found) < count):
        match = search(compiled, text, spend, at)
        if match is None:
            break
        if match[1] > match[0] or match[0] != last:  # an empty match right behind another one is none
            found.append(text[match[0] : match[1]])
        last = match[1]
        at = match[1] if match[1] > match[0] else match[1] + 1
    return found


def _compile(pattern: str) -> Pattern:
    try:
        return compile_pattern(pattern)
    except BadPattern as problem:
        raise Failed(f"the pattern {pattern!r}: {problem}") from None


@function("string.parseJSON(): dyn", metered=True)
def parse_json(spend: Spend, text: str) -> Any:
    spend(len(text) // 4)
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise Failed("the text is no JSON") from None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


@function("string.format(list): string", metered=True)
def format_text(spend: Spend, text: str, values: list[Any]) -> str:
    """%s, %d, %f, %e, %x, %X, %o, %b and %%, with a precision for %f and %e."""
    written: list[str] = []
    at = used = 0
    while at < len(text):
        spend(1)
        if text[at] != "%":
            end = text.find("%", at)
            end = len(text) if end < 0 else end
            written.append(text[at:end])
            at = end
            continue
        at += 1
        start = at
        while at < len(text) and text[at] in ".0123456789":
            at += 1
        if at >= len(text):
            raise Failed("the format ends in the middle of a directive")
        precision, verb = text[start:at], text[at]
        at += 1
        if verb == "%" and not precision:
            written.append("%")
            continue
        if used >= len(values):
            raise Failed("the format has more directives than values")
        written.append(_format(verb, precision, values[used]))
        used += 1
    return _limit("".join(written))


def _format(verb: str, precision: str, value: Any) -> str:
    if precision and not (precision[0] == "." and precision[1:].isdecimal() and len(precision) < 4 and verb in "fe"):
        raise Failed(f"the precision {precision!r} means nothing")
    if verb == "d" and isinstance(value, float):
        return format(Decimal(repr(value)).normalize(), "f") if math.isfinite(value) else format_double(value)
    if verb in "fe" and is_number(value):
        return f"{float(value):{precision or '.6'}{verb}}"
    if verb == "s":
        return _say(value)
    if verb in "xX" and isinstance(value, (str, bytes)):
        digits = (value.encode() if isinstance(value, str) else value).hex()
        return digits.upper() if verb == "X" else digits
    if verb == "b" and isinstance(value, bool):
        return str(int(value))
    writer = _INTEGERS.get(verb)
    if writer is None or not is_integer(value):
        raise Failed(f"%{verb} does not take {type_name(value)}")
    return writer(int(value))


_INTEGERS: dict[str, Callable[[int], str]] = {
    "d": str,
    "x": "{:x}".format,
    "X": "{:X}".format,
    "o": "{:o}".format,
    "b": "{:b}".format,
}


def _say(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_say, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{_say(key)}: {_say(entry)}" for key, entry in value.items())) + "}"
    if value is None:
        return "null"
    if isinstance(value, float):
        return format_double(value)
    try:
        return to_string(value)
    except (TypeError, ValueError):
        raise Failed(f"%s does not take {type_name(value)}") from None


def _limit(text: str) -> str:
    if len(text) > _LONGEST:
        raise Failed("the text grows too long")
    return text
