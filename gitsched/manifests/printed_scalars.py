"""How the parsers of Go print scalars that are no strings: as keys of JSON, and as timestamps."""

from __future__ import annotations

import re
import struct
from datetime import date
from functools import lru_cache

Scalar = None | bool | int | float | str


def format_key(value: Scalar) -> str:
    """Format a resolved mapping key as the member name that sigs.k8s.io/yaml makes of it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _format_float32(value)
    return str(value)


def _format_float32(value: float) -> str:
    """Format like Go's FormatFloat(value, 'g', -1, 32): the shortest digits that identify the same 32-bit float."""
    try:
        single = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return "+Inf" if value > 0 else "-Inf"
    shortest = next(
        (text for text in (f"{single:.{digits}e}" for digits in range(9)) if _is_same_float32(text, single)), f"{single:e}"
    )
    mantissa, _, exponent = shortest.partition("e")
    power = int(exponent)
    if -4 <= power < 6:
        return f"{float(shortest):.{max(0, len(mantissa.replace('-', '').replace('.', '')) - 1 - power)}f}"
    return f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _is_same_float32(text: str, single: float) -> bool:
    return bool(struct.unpack("f", struct.pack("f", float(text)))[0] == single)


_TIMESTAMP = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:(?:[Tt]|( +))(\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,]\d+)?(?(4)|(?:Z|[+-]\d\d:\d\d)))?", re.ASCII
)
_PRINTED_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{0,8}[1-9])?(?:Z|[+-](?!00:00)(?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII
)


@lru_cache(maxsize=1024)
def is_timestamp(text: str) -> bool:
    """Return whether kyaml takes a plain scalar for a timestamp."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return False
    year, month, day, _, hour, minute, second = found.groups("0")
    try:
        date(int(year) or 4, int(month), int(day))
    except ValueError:
        return False
    return int(hour) < 24 and int(minute) < 60 and int(second) < 60


def is_reprinted_timestamp(text: str) -> bool:
    """Return whether kyaml takes a plain scalar for a timestamp and prints it in another form, such as a date as 00:00 UTC."""
    return is_timestamp(text) and not _PRINTED_TIMESTAMP.fullmatch(text)
