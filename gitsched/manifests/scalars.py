"""Plain scalars as sigs.k8s.io/yaml resolves them: YAML 1.1 by go-yaml v2, then JSON, then Kubernetes' own JSON numbers.

What that means where readers differ: y, yes, on (and Y, Yes, YES, ...) are booleans; 0644 and 0o644 are octal; underscores in
numbers are ignored; 1:30 and timestamps stay strings. Numbers end as apimachinery decodes JSON: a whole number that fits 64 bits is
an int however it was written (1.0, 1e3), any other number a float.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import Final

Scalar = None | bool | int | float | str

NUMERIC: Final = frozenset("+-.0123456789")
"""First characters of whatever may be a number."""

_CASES = {True: "y yes true on", False: "n no false off"}
WORDS: Final[dict[str, Scalar]] = {
    **{
        form: value for value, words in _CASES.items() for word in words.split() for form in (word, word.capitalize(), word.upper())
    },
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
"""Plain scalars that are neither strings nor numbers."""

_POINT = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", re.ASCII)
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_LONGEST = 400  # digits: no number of more digits fits a float, and Python refuses to convert very long ones


class OutOfRange(ValueError):
    """An integer too large for any number of JSON as Kubernetes decodes it."""


@lru_cache(maxsize=4096)
def resolve_number(text: str) -> Scalar:
    """The value of a plain scalar that begins with a character of NUMERIC; infinities and NaN come back as such."""
    special = _POINT.fullmatch(text)
    if special:
        return float(text.replace(".", "", 1))
    plain = text if text[0] == "." else text.replace("_", "")
    integer = _INTEGER.fullmatch(plain)
    if integer:
        sign, sixteen, two, eight, ten = integer.groups()
        digits, base = (sixteen, 16) if sixteen else (two, 2) if two else (eight, 8) if eight else (ten, 10)
        if len(digits) > _LONGEST * 4:
            raise OutOfRange(text)
        value = int(digits, base)
        return _narrow(-value if sign == "-" else value)
    if not _FLOAT.fullmatch(plain):
        return text
    number = float(plain)
    if number in (float("inf"), float("-inf")):
        return text  # Go refuses to parse it as a number, so it stays a string
    return _narrow(int(number)) if number.is_integer() and abs(number) < 1e21 else number


def _narrow(value: int) -> int | float:
    if -(2**63) <= value < 2**63:
        return value
    try:
        return float(value)
    except OverflowError:
        raise OutOfRange(str(value)[:20]) from None


def write_key(value: Scalar) -> str:
    """A resolved mapping key as the member name that sigs.k8s.io/yaml makes of it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _write_float32(value)
    return str(value)


def _write_float32(value: float) -> str:
    """Go's FormatFloat(value, 'g', -1, 32): the shortest digits that name the same 32-bit float."""
    try:
        single = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return "+Inf" if value > 0 else "-Inf"
    shortest = next((text for text in (f"{single:.{digits}e}" for digits in range(9)) if _same_single(text, single)), f"{single:e}")
    mantissa, _, exponent = shortest.partition("e")
    power = int(exponent)
    if -4 <= power < 6:
        return f"{float(shortest):.{max(0, len(mantissa.replace('-', '').replace('.', '')) - 1 - power)}f}"
    return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _same_single(text: str, single: float) -> bool:
    return bool(struct.unpack("f", struct.pack("f", float(text)))[0] == single)
