"""CEL string functions, and the named formats of Kubernetes (dns1123Label, uri, uuid ...)."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from gitsched.apis.ocm.cel.network import is_url
from gitsched.apis.ocm.cel.overloads import CostTracker, cel_function
from gitsched.apis.ocm.cel.regex import InvalidPattern, search
from gitsched.apis.ocm.cel.standard_library import format_double, to_string
from gitsched.apis.ocm.cel.types import (
    MAX_STRING_LENGTH,
    OPTIONAL_NONE,
    EvaluationError,
    OptionalValue,
    TypeValue,
    is_integer,
    is_number,
    type_name,
)
from gitsched.model.go_escapes import GO_ESCAPES
from gitsched.model.labels import is_label_key, is_label_value
from gitsched.model.time import parse_time
from gitsched.named_tuples import NamedTuple

_SURROGATE = re.compile("[\ud800-\udfff]")
_TO_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_TO_UPPER = {code + 32: code for code in _TO_LOWER}


@cel_function("string.startsWith(string): bool")
def starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


@cel_function("string.endsWith(string): bool")
def ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


@cel_function("string.contains(string): bool", metered=True)
def contains(charge: CostTracker, text: str, part: str) -> bool:
    charge(len(text) // 10)
    return part in text


@cel_function("string.charAt(int): string")
def char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise EvaluationError(f"index out of range: {at}")
    return text[at : at + 1]


@cel_function("string.indexOf(string): int", "string.indexOf(string, int): int")
def index_of(text: str, part: str, start: int = 0) -> int:
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, min(start, len(text)))


@cel_function("string.lastIndexOf(string): int", "string.lastIndexOf(string, int): int")
def last_index_of(text: str, part: str, end: int | None = None) -> int:
    if end is None:
        return text.rfind(part)
    if end < 0:
        raise EvaluationError(f"index out of range: {end}")
    if end >= len(text):
        return -1 if part else len(text)
    return text.rfind(part, 0, end + len(part))


@cel_function("list(string).join(): string", "list(string).join(string): string", metered=True)
def join(charge: CostTracker, parts: list[Any], separator: str = "") -> str:
    charge(len(parts))
    if not all(isinstance(part, str) for part in parts):
        raise EvaluationError("join requires a list of strings")
    _check_length(sum(map(len, parts)) + len(separator) * max(len(parts) - 1, 0))
    return separator.join(parts)


@cel_function("string.lowerAscii(): string")
def lower_ascii(text: str) -> str:
    return text.translate(_TO_LOWER)


@cel_function("string.upperAscii(): string")
def upper_ascii(text: str) -> str:
    return text.translate(_TO_UPPER)


@cel_function("string.replace(string, string): string", "string.replace(string, string, int): string", metered=True)
def replace(charge: CostTracker, text: str, old: str, new: str, count: int = -1) -> str:
    occurrences = text.count(old)
    charge(len(text) + occurrences)
    if len(text) + (occurrences if count < 0 else min(count, occurrences)) * len(new) > MAX_STRING_LENGTH:
        raise EvaluationError("the string is too long")
    return text.replace(old, new, count)


@cel_function("string.split(string): list(string)", "string.split(string, int): list(string)", metered=True)
def split(charge: CostTracker, text: str, separator: str, count: int = -1) -> list[str]:
    charge(len(text) // 10)
    if count == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if count < 0 or count >= len(parts) else [*parts[: count - 1], "".join(parts[count - 1 :])]
    return text.split(separator, count - 1 if count > 0 else -1)


@cel_function("string.substring(int): string", "string.substring(int, int): string")
def substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise EvaluationError(f"index out of range: {start}, {end}")
    return text[start:end]


@cel_function("string.trim(): string")
def trim(text: str) -> str:
    return text.strip()


@cel_function("string.reverse(): string")
def reverse(text: str) -> str:
    return text[::-1]


@cel_function("global strings.quote(string): string")
def quote(text: str) -> str:
    return '"' + "".join(GO_ESCAPES.get(c, c) for c in text) + '"'


@cel_function("string.find(string): string", metered=True)
def find_match(charge: CostTracker, text: str, pattern: str) -> str:
    return next(iter(_find(charge, text, pattern, 1)), "")


@cel_function("string.findAll(string): list(string)", "string.findAll(string, int): list(string)", metered=True)
def find_all_matches(charge: CostTracker, text: str, pattern: str, count: int = -1) -> list[str]:
    return _find(charge, text, pattern, count)


def _find(charge: CostTracker, text: str, pattern: str, count: int) -> list[str]:
    try:
        return search(pattern, text, charge, count)
    except InvalidPattern as problem:
        raise EvaluationError(f"invalid pattern {pattern!r}: {problem}") from None


@cel_function("string.parseJSON(): dyn", metered=True)
def parse_json(charge: CostTracker, text: str) -> Any:
    charge(len(text) // 4)
    try:
        value = json.loads(text, parse_constant=_reject_constant, parse_int=_read_double, parse_float=_read_double)
        return _replace_surrogates(value) if "\\u" in text else value
    except (ValueError, RecursionError):
        raise EvaluationError("the string is not valid JSON") from None


def _reject_constant(constant: str) -> Any:
    raise ValueError(constant)


def _read_double(text: str) -> float:
    """Parse a JSON number as Go does: to a finite double."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(text)
    return value


def _replace_surrogates(value: Any) -> Any:
    """Replace each unpaired surrogate with U+FFFD, as Go does."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace_surrogates(entry) for entry in value]
    if isinstance(value, dict):
        return {_replace_surrogates(name): _replace_surrogates(entry) for name, entry in value.items()}
    return value


_PRECISION = re.compile(r"\.[0-9]{1,2}")


@cel_function("string.format(list): string", metered=True)
def format_string(charge: CostTracker, text: str, values: list[Any]) -> str:
    """Format %s, %d, %f, %e, %x, %X, %o, %b and %%, with a precision for %f and %e."""
    parts: list[str] = []
    at = used = length = 0
    while at < len(text):
        charge(1)
        if text[at] != "%":
            end = text.find("%", at)
            end = len(text) if end < 0 else end
            parts.append(text[at:end])
            at = end
            continue
        at += 1
        start = at
        while at < len(text) and text[at] in ".0123456789":
            at += 1
        if at >= len(text):
            raise EvaluationError("incomplete directive at the end of the format")
        precision, verb = text[start:at], text[at]
        at += 1
        if verb == "%" and not precision:
            parts.append("%")
            continue
        if used >= len(values):
            raise EvaluationError("the format has more directives than values")
        parts.append(_format_directive(verb, precision, values[used], charge))
        used += 1
        length += len(parts[-1])
        _check_length(length)
    _check_length(sum(map(len, parts)))
    return "".join(parts)


def _format_directive(verb: str, precision: str, value: Any, charge: CostTracker) -> str:
    if precision and not (verb in "fe" and _PRECISION.fullmatch(precision)):
        raise EvaluationError(f"invalid precision {precision!r}")
    if verb == "s" or (verb in "def" and isinstance(value, float) and not math.isfinite(value)):
        return _format_value(value, charge)
    if verb == "d" and isinstance(value, float):
        return format(Decimal(repr(value)).normalize(), "f")
    if verb in "fe" and is_number(value):
        return f"{float(value):{precision or '.6'}{verb}}"
    if verb in "xX" and isinstance(value, (str, bytes)):
        return _write_hex(value, is_upper=verb == "X")
    if verb == "b" and isinstance(value, bool):
        return str(int(value))
    writer = _INTEGER_VERBS.get(verb)
    if writer is None or not is_integer(value):
        raise EvaluationError(f"%{verb} does not accept {type_name(value)}")
    return writer(int(value))


def _write_hex(value: str | bytes, *, is_upper: bool) -> str:
    digits = (value.encode() if isinstance(value, str) else value).hex()
    return digits.upper() if is_upper else digits


def _format_collection(value: list[Any] | dict[Any, Any], charge: CostTracker) -> str:
    parts: list[str] = []
    length = 0
    for member in value:
        text = _format_value(member, charge)
        parts.append(f"{text}: {_format_value(value[member], charge)}" if isinstance(value, dict) else text)
        length += len(parts[-1])
        _check_length(length)
    return "{" + ", ".join(sorted(parts)) + "}" if isinstance(value, dict) else f"[{', '.join(parts)}]"


_INTEGER_VERBS: dict[str, Callable[[int], str]] = {
    "d": str,
    "x": "{:x}".format,
    "X": "{:X}".format,
    "o": "{:o}".format,
    "b": "{:b}".format,
}


def _format_value(value: Any, charge: CostTracker) -> str:
    """Return a value as %s has it. Charge for each element, because one list may be an element of another many times."""
    charge(1)
    if isinstance(value, list | dict):
        return _format_collection(value, charge)
    if isinstance(value, str | bytes):
        charge(len(value) // 10)
    if value is None:
        return "null"
    if isinstance(value, float):
        return format_double(value).replace("+Inf", "Infinity").replace("-Inf", "-Infinity")
    if isinstance(value, TypeValue):
        return value.name
    try:
        return to_string(value)
    except (TypeError, ValueError):
        raise EvaluationError(f"%s does not accept {type_name(value)}") from None


def _check_length(length: int) -> None:
    if length > MAX_STRING_LENGTH:
        raise EvaluationError("the string is too long")


_DNS1123_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_DNS1035_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_DNS1123_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}", re.ASCII)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


class StringFormat(NamedTuple):
    """A named format of Kubernetes."""

    name: str

    @property
    def type(self) -> str:
        return "format"


def _pattern_test(pattern: re.Pattern[str], max_length: int) -> Callable[[str], bool]:
    return lambda text: len(text) <= max_length and bool(pattern.fullmatch(text))


def _prefix_test(is_valid: Callable[[str], bool]) -> Callable[[str], bool]:
    """Return a test for name prefixes as in generateName, which may end with a dash."""
    return lambda text: is_valid(text[:-1] + "a" if text.endswith("-") else text)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


_is_dns1123_label, _is_dns1035_label, _is_dns1123_subdomain = (
    _pattern_test(_DNS1123_LABEL, 63),
    _pattern_test(_DNS1035_LABEL, 63),
    _pattern_test(_DNS1123_SUBDOMAIN, 253),
)
_FORMATS: dict[str, Callable[[str], bool]] = {
    "dns1123Label": _is_dns1123_label,
    "dns1123Subdomain": _is_dns1123_subdomain,
    "dns1035Label": _is_dns1035_label,
    "qualifiedName": is_label_key,
    "labelValue": is_label_value,
    "dns1123LabelPrefix": _prefix_test(_is_dns1123_label),
    "dns1123SubdomainPrefix": _prefix_test(_is_dns1123_subdomain),
    "dns1035LabelPrefix": _prefix_test(_is_dns1035_label),
    "uri": is_url,
    "uuid": _pattern_test(_UUID, 36),
    "byte": _is_base64,
    "date": lambda text: bool(_DATE.fullmatch(text)) and parse_time(f"{text}T00:00:00Z") is not None,
    "datetime": lambda text: parse_time(text) is not None,
}


def _register_format(name: str) -> None:
    cel_function(f"global format.{name}(): format")(lambda: StringFormat(name))


for _name in _FORMATS:
    _register_format(_name)


@cel_function("global format.named(string): optional")
def named_format(name: str) -> OptionalValue:
    return OptionalValue(True, StringFormat(name)) if name in _FORMATS else OPTIONAL_NONE


@cel_function("format.validate(string): optional")
def validate_format(value: StringFormat, text: str) -> OptionalValue:
    """Return the errors of a string in this format, optional.none() if it is valid."""
    return OPTIONAL_NONE if _FORMATS[value.name](text) else OptionalValue(True, [f"the string is not a valid {value.name}"])
