"""The values and functions of Go templates, as far as gitsched evaluates them. Source: fmt and text/template of Go, Masterminds/sprig."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

MAX_TEXT: Final = 100_000
"""Characters that one function of a template reads or writes."""

_UNSAFE_NAME = re.compile(r"[^-a-z0-9.]")
_VERB = re.compile(r"%(.)")


class TemplateError(Exception):
    """Argo CD fails at a template, and makes no Application of its ApplicationSet."""


class Integer(int):
    """A whole number of a template; those of parameters come from JSON, and are floating-point."""


def format_value(value: Any) -> str:
    """Return a value as Go's `%v` prints it, where it came from JSON: all numbers are floating-point. None is `<no value>`."""
    return "<no value>" if value is None else _print(value)


def _print(value: Any) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Integer):
        return str(int(value))
    if isinstance(value, (int, float)):
        return format_number(float(value))
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_print(value[name])}' for name in sorted(value, key=str))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_print, value))}]"
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


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, list) and isinstance(key, int) and not isinstance(key, bool):
            if not 0 <= key < len(value):
                raise TemplateError(f"the list has no entry {key}")
            value = value[key]
        elif isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        else:
            raise TemplateError("`index` is used on a value that is no list and no map")
    return value


def _is_empty(value: Any) -> bool:
    return value is None or value is False or value == 0 or value == "" or value == [] or value == {}


def is_known_pattern(pattern: Any) -> bool:
    """Return whether all verbs of a pattern of `printf` are known."""
    return isinstance(pattern, str) and all(found[1] in "sv%" for found in _VERB.finditer(pattern)) and not pattern.endswith("%")


def _format_text(pattern: str, *values: Any) -> str:
    rest = list(values)

    def replace(found: re.Match[str]) -> str:
        if found[1] == "%":
            return "%"
        if not rest:
            return f"%!{found[1]}(MISSING)"
        value = rest.pop(0)
        return f"%!s({_describe(value)})" if found[1] == "s" and not isinstance(value, (str, list, dict)) else _print(value)

    text = _VERB.sub(replace, pattern)
    return text + (f"%!(EXTRA {', '.join(_describe(value) for value in rest)})" if rest else "")


def _describe(value: Any) -> str:
    """Return a value with its type, as Go prints one that a pattern has no place for."""
    names = {bool: "bool", float: "float64", int: "float64", Integer: "int", str: "string"}
    name = names.get(type(value))
    return f"{name}={_print(value)}" if name else _print(value)


def _equals(left: Any, *others: Any) -> bool:
    kinds = {float if type(value) is int else type(value) for value in (left, *others)}
    if len(kinds) > 1 or not kinds <= {float, bool, str, Integer}:
        raise TypeError
    return left in others


def _replace(old: str, new: str, text: str) -> str:
    if (text.count(old) + 1) * len(new) > MAX_TEXT:
        raise TypeError
    return text.replace(old, new)


def _join(separator: str, values: list[Any]) -> str:
    if len(values) * len(separator) > MAX_TEXT:
        raise TypeError
    return separator.join(_print(value) for value in values if value is not None)


def measure(value: Any) -> int:
    """Return about how many characters a value has."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, (list, dict)):
        return sum(map(measure, value if isinstance(value, list) else (*value, *value.values()))) + len(value)
    return 1


def _quote(*values: Any) -> str:
    texts = [_print(value) for value in values if value is not None]
    escaped = (text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") for text in texts)
    return " ".join(f'"{text}"' for text in escaped)


def _truncate(length: int, text: str) -> str:
    return text[length:] if length < 0 else text[:length]


def _make_text(function: Callable[[str], str]) -> Callable[[Any], str]:
    def apply(value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError
        return function(value)

    return apply


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "index": _index,
    "lower": _make_text(str.lower),
    "upper": _make_text(str.upper),
    "trim": _make_text(str.strip),
    "nospace": _make_text(lambda text: "".join(text.split())),
    "normalize": _make_text(normalize_name),
    "trimPrefix": lambda prefix, text: text.removeprefix(prefix),
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
    "trimAll": lambda characters, text: text.strip(characters),
    "hasPrefix": lambda prefix, text: text.startswith(prefix),
    "hasSuffix": lambda suffix, text: text.endswith(suffix),
    "contains": lambda part, text: part in text,
    "replace": _replace,
    "trunc": _truncate,
    "splitList": lambda separator, text: text.split(separator),
    "join": _join,
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
    "default": lambda otherwise, value=None: otherwise if _is_empty(value) else value,
    "coalesce": lambda *values: next((value for value in values if not _is_empty(value)), None),
    "ternary": lambda yes, no, choice: yes if choice is True else no,
    "eq": _equals,
    "ne": lambda left, right: not _equals(left, right),
    "not": lambda value: _is_empty(value),
    "quote": _quote,
    "squote": lambda *values: " ".join(f"'{_print(value)}'" for value in values if value is not None),
    "toString": lambda value: _print(value),
    "printf": _format_text,
}
"""The functions that gitsched evaluates, by name."""
