"""Quantities as the float that Go's AsApproximateFloat64 makes of them, to the last bit: scores compare these."""

from __future__ import annotations

import math
import re
from functools import lru_cache

_TEXT = re.compile(r"([+-]?)0*(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,18})|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?)", re.ASCII)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DIGITS, _NANO = 18, -9
_LARGEST = (1 << 63) - 1


@lru_cache(maxsize=1 << 12)
def approximate(text: str) -> float | None:
    """A quantity as float64; None for what is no quantity, or beyond all floats.

    Short numbers are an integer times a power of ten. Others (fractions of binary units, many digits) go through a decimal that is
    rounded up to the nano, and so have their nanos multiplied by 1e-9, with the error that this has.
    """
    match = _TEXT.fullmatch(text)
    if match is None or not any(character.isdigit() for character in text.partition("e")[0].partition("E")[0]):
        return None
    sign, whole, fraction, power, suffix = match.groups()
    whole, fraction = whole or "0", fraction or ""
    binary = _BINARY.get(suffix or "")
    exponent = int(power) if power else _DECIMAL.get(suffix or "", 0)
    if abs(exponent) > 400:
        return None
    digits = int(whole + fraction)
    scale = exponent - len(fraction)
    if binary is None:
        short = len(whole) + len(fraction) <= _DIGITS and scale >= _NANO
    else:
        digits <<= binary
        short = not fraction and 15 - len(whole) - int(binary * 3 / 10) - 1 >= 0 and digits <= _LARGEST
    if not short and digits:
        shift = scale - _NANO
        digits, scale = (digits * 10**shift if shift >= 0 else -(-digits // 10**-shift)), _NANO
        if binary is not None and digits > _LARGEST * 10**9:
            digits, scale = _LARGEST, 0
    try:
        value = float(digits) * float(f"1e{scale}") if scale else float(digits)
    except OverflowError:
        return None
    if not math.isfinite(value):
        return None
    return -value if sign == "-" else value
