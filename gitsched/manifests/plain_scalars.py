"""Resolve plain scalars of YAML as sigs.k8s.io/yaml does: words and numbers. Needs no parser, so that checks of cached files load none."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from gitsched.manifests.printed_scalars import Scalar

NON_STRING_KEY: Final = "non-string-key"
"""Code of findings about keys that are not read as strings."""
NUMBER_START: Final = frozenset("+-.0123456789")
"""First characters of scalars that can be numbers."""

_BOOLEANS = {True: "y yes true on", False: "n no false off"}
RESERVED_SCALARS: Final[dict[str, Scalar]] = {
    **{
        form: value
        for value, words in _BOOLEANS.items()
        for word in words.split()
        for form in (word, word.capitalize(), word.upper())
    },
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
"""Plain scalars that are neither strings nor numbers."""

_SPECIAL_FLOAT = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII)
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_UNDERSCORES_BETWEEN_DIGITS = re.compile(r"(?:[^_]|(?<=\d)_(?=\d))*", re.ASCII)
_MAX_DIGITS = 400  # no number with more digits fits a float, and Python refuses to convert very long ones


class NumberOutOfRange(ValueError):
    """An integer that no JSON number of Kubernetes can represent."""


@lru_cache(maxsize=4096)
def resolve_number(text: str) -> Scalar:
    """Return the value of a plain scalar that begins with a character of NUMBER_START; infinities and NaN are returned as floats."""
    special = _SPECIAL_FLOAT.fullmatch(text)
    if special:
        return float(text.replace(".", "", 1))
    plain = text.replace("_", "")
    integer = _INTEGER.fullmatch(plain)
    if integer:
        sign, hexadecimal, binary, octal, decimal = integer.groups()
        digits, base = (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (octal, 8) if octal else (decimal, 10)
        if len(digits) > _MAX_DIGITS:
            raise NumberOutOfRange(text)
        value = int(digits, base) * (-1 if sign == "-" else 1)
        if base != 10 and not -(2**63) <= value < (2**63 if sign else 2**64):
            return float(plain) if octal and plain.lstrip("+-").isdigit() else text  # as Go's parsers fall back
        return _fit_int64(value)
    if not _FLOAT.fullmatch(plain):
        return text
    if text[0] == "." and not _UNDERSCORES_BETWEEN_DIGITS.fullmatch(text):
        return text
    number = float(plain)
    if number in (float("inf"), float("-inf")):
        return text  # Go does not parse it as a number, so it stays a string
    return _fit_int64(int(number)) if number.is_integer() and abs(number) < 1e21 else number


def _fit_int64(value: int) -> int | float:
    if -(2**63) <= value < 2**63:
        return value
    try:
        return float(value)
    except OverflowError:
        raise NumberOutOfRange(str(value)[:20]) from None
