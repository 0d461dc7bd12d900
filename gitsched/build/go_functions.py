"""The values of Go templates, and how Go prints them. Source: fmt and text/template of Go."""

from __future__ import annotations

import re
from typing import Any, Final

MAX_TEXT: Final = 100_000
"""Characters that one function of a template reads or writes."""

_UNSAFE_NAME = re.compile(r"[^-a-z0-9.]")


class TemplateError(Exception):
    """Argo CD fails at a template, and makes no Application of its ApplicationSet."""


class NotEvaluatedError(Exception):
    """gitsched does not evaluate an expression; the text says what of it."""


class LoopSignal(Exception):
    """A `break` or `continue` ends one run of a range, which has written `text`."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(kind)
        self.kind, self.text = kind, text


class TextMap(dict[str, str]):
    """A map whose values are texts: one that it does not have is an empty text for `index`."""


class OwnMap(dict[str, Any]):
    """A map that the template makes, which it may change."""


class Integer(int):
    """A whole number of a template; those of parameters come from JSON, and are floating-point."""


def format_value(value: Any) -> str:
    """Return a value as Go's `%v` prints it, where it came from JSON: all numbers are floating-point. None is `<no value>`."""
    return "<no value>" if value is None else print_value(value)


def print_value(value: Any) -> str:
    """Return a value as `%v` prints it inside of another one."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Integer):
        return str(int(value))
    if isinstance(value, (int, float)):
        return format_number(float(value))
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{print_value(value[name])}' for name in sorted(value, key=str))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(print_value, value))}]"
    return str(value)


def format_number(value: float) -> str:
    """Return a number as Go's `%v` prints a float64."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"inf": "+Inf", "-inf": "-Inf"}.get(str(value), "NaN")
    sign, digits, exponent = _split_number(value)
    if value == 0:
        return f"{sign}0"
    if exponent < -4 or exponent >= 6:
        mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}{f'.{fraction}' if fraction else ''}"


def _split_number(value: float) -> tuple[str, str, int]:
    """Return the sign, the shortest digits and the decimal exponent of a number."""
    text = repr(abs(value))
    mantissa, _, power = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole) - 1 if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0"))) - 1
    return "-" if str(value).startswith("-") else "", digits.rstrip("0") or "0", leading + int(power or 0)


def normalize_name(name: str) -> str:
    """Return a name as Argo CD makes it valid for an object."""
    return _UNSAFE_NAME.sub("-", name.lower())[:253].strip("-.")


def is_empty(value: Any) -> bool:
    """Return whether a value counts as false in a condition."""
    return value is None or value is False or value == "" or value == [] or value == {} or (is_number(value) and value == 0)


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def measure(value: Any) -> int:
    """Return about how many characters a value has."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, (list, dict)):
        return sum(map(measure, value if isinstance(value, list) else (*value, *value.values()))) + len(value)
    return 1
