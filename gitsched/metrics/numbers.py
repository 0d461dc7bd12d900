"""Numbers as providers write them, read strictly."""

from __future__ import annotations

import math
import re

from gitsched.metrics.failures import Invalid

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_LONGEST = 400


def read_number(value: object, metric: str) -> float:
    """A finite number: a JSON number, a boolean (1 or 0), or a text that is nothing but a decimal number. Raises Invalid."""
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST or not _NUMBER.fullmatch(text):
            raise Invalid(f"Invalid value for metric '{metric}'")
        number = float(text)
    elif isinstance(value, (int, float)):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    else:
        raise Invalid(f"Invalid value for metric '{metric}'")
    if not math.isfinite(number):
        raise Invalid(f"The value of the metric '{metric}' is not finite")
    return number
