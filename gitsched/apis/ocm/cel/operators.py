"""Operators, conversions and the functions that every environment of the language has."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from gitsched.apis.ocm.cel.moments import format_duration, format_moment, parse_duration_text, parse_moment
from gitsched.apis.ocm.cel.regex import BadPattern, compile_pattern, search
from gitsched.apis.ocm.cel.registry import Spend, function
from gitsched.apis.ocm.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NONE,
    Failed,
    Optional,
    TypeValue,
    UInt,
    bounded,
    equal,
    is_integer,
    is_number,
    less,
    type_name,
)


def add(spend: Spend, left: Any, right: Any) -> Any:
    if type(left) is type(right) and isinstance(left, (str, bytes, list)):
        spend((len(left) + len(right)) // 10)
        return left + right
    if isinstance(left, (datetime, timedelta)) and isinstance(right, (datetime, timedelta)):
        try:
            return left + right  # type: ignore[operator]  # two moments have no sum, which is a TypeError
        except (OverflowError, TypeError):
            raise Failed("no such moment") from None
    return _calculate("+", left, right)


def subtract(spend: Spend, left: Any, right: Any) -> Any:
    if isinstance(left, (datetime, timedelta)) and isinstance(right, (datetime, timedelta)):
        try:
            return left - right  # type: ignore[operator]  # a duration has no moment to be taken from
        except (OverflowError, TypeError):
            raise Failed("no such moment") from None
    return _calculate("-", left, right)


def _calculate(sign: str, left: Any, right: Any) -> Any:
    if type(left) is not type(right) or not is_number(left):
        raise Failed(f"{sign} does not take {type_name(left)} and {type_name(right)}")
    if isinstance(left, float):
        return _FLOATS[sign](left, right)
    if sign in "/%" and not right:
        raise Failed("division by zero")
    return bounded(_INTEGERS[sign](int(left), int(right)), isinstance(left, UInt))


def _divide(left: int, right: int) -> int:
    """Toward zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _divide_floats(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


def _no_remainder(left: float, right: float) -> float:
    raise Failed("% does not take doubles")


_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": lambda a, b: a - b * _divide(a, b),
}
_FLOATS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide_floats,
    "%": _no_remainder,
}


def negate(spend: Spend, value: Any) -> Any:
    if not is_number(value) or isinstance(value, UInt):
        raise Failed(f"- does not take {type_name(value)}")
    return -value if isinstance(value, float) else bounded(-value, False)


def is_in(spend: Spend, value: Any, container: Any) -> bool:
    if isinstance(container, dict):
        key = int(value) if isinstance(value, float) and value.is_integer() else value
        return isinstance(key, (str, int)) and key in container
    if isinstance(container, list):
        spend(len(container))
        return any(equal(value, entry) for entry in container)
    raise Failed(f"in does not take {type_name(container)}")


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": add,
    "-": subtract,
    "*": lambda spend, left, right: _calculate("*", left, right),
    "/": lambda spend, left, right: _calculate("/", left, right),
    "%": lambda spend, left, right: _calculate("%", left, right),
    "-_": negate,
    "==": lambda spend, left, right: equal(left, right),
    "!=": lambda spend, left, right: not equal(left, right),
    "<": lambda spend, left, right: less(left, right),
    ">": lambda spend, left, right: less(right, left),
    "<=": lambda spend, left, right: less(left, right) or equal(left, right),
    ">=": lambda spend, left, right: less(right, left) or equal(left, right),
    "in": is_in,
}
"""What is not evaluated lazily."""


@function("size(string): int", "size(bytes): int", "size(list): int", "size(map): int", "size(cluster): int")
@function("string.size(): int", "bytes.size(): int", "list.size(): int", "map.size(): int", "cluster.size(): int")
def size(value: Any) -> int:
    return len(value)


@function("string.matches(string): bool", "matches(string, string): bool", metered=True)
def matches(spend: Spend, text: str, pattern: str) -> bool:
    try:
        return search(compile_pattern(pattern), text, spend) is not None
    except BadPattern as problem:
        raise Failed(f"the pattern {pattern!r}: {problem}") from None


@function("type(dyn): type")
def type_function(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


@function("dyn(dyn): dyn")
def dyn(value: Any) -> Any:
    return value


@function("bool(bool): bool", "bool(string): bool")
def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise Failed("no boolean")


@function("bytes(string): bytes", "bytes(bytes): bytes")
def to_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


@function("double(double): double", "double(int): double", "double(uint): double", "double(string): double")
def to_double(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise Failed("no number") from None


@function("int(int): int", "int(uint): int", "int(double): int", "int(string): int", "int(timestamp): int", "int(duration): int")
def to_int(value: Any) -> int:
    if isinstance(value, datetime):
        return math.floor(value.timestamp())
    if isinstance(value, timedelta):
        return (value.days * 86_400 + value.seconds) * 10**9 + value.microseconds * 1000
    return _to_integer(value, MIN_INT, MAX_INT)


@function("uint(int): uint", "uint(uint): uint", "uint(double): uint", "uint(string): uint")
def to_uint(value: Any) -> UInt:
    return UInt(_to_integer(value, 0, MAX_UINT))


def _to_integer(value: Any, least: int, most: int) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise Failed("no integer")
    try:
        number = int(value) if not isinstance(value, str) or value.removeprefix("-").removeprefix("+").isdecimal() else None
    except ValueError:
        number = None
    if number is None or not least <= number <= most:
        raise Failed("no integer")
    return number


@function("string(string): string", "string(int): string", "string(uint): string", "string(double): string", "string(bool): string")
@function("string(bytes): string", "string(timestamp): string", "string(duration): string")
def to_string(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return format_double(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise Failed("the bytes are no text") from None
        case datetime():
            return format_moment(value)
        case timedelta():
            return format_duration(value)
    return str(int(value))


def format_double(value: float) -> str:
    """The shortest text that reads back as the same number, in Go's form: 1e+06 and not 1000000."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
    exponent = len(digits) + int(power) - 1
    text = "".join(map(str, digits))
    if -4 <= exponent < 6:
        return f"{value:.{max(0, -int(power))}f}"
    rest = f".{text[1:]}" if len(text) > 1 else ""
    return f"{'-' if sign else ''}{text[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


@function("timestamp(string): timestamp", "timestamp(timestamp): timestamp", "timestamp(int): timestamp")
def to_timestamp(value: Any) -> datetime:
    return parse_moment(value)


@function("duration(string): duration", "duration(duration): duration")
def to_duration(value: Any) -> timedelta:
    return parse_duration_text(value)


@function("global optional.none(): optional")
def optional_none() -> Optional:
    return NONE


@function("global optional.of(T): optional(T)")
def optional_of(value: Any) -> Optional:
    return Optional(True, value)


@function("global optional.ofNonZeroValue(T): optional(T)")
def optional_of_non_zero(value: Any) -> Optional:
    empty = value is None or (isinstance(value, (str, bytes, list, dict, float)) and not value) or value is False
    return NONE if empty or (is_integer(value) and value == 0) else Optional(True, value)


@function("optional.hasValue(): bool")
def has_value(value: Optional) -> bool:
    return value.present


@function("optional(T).value(): T")
def value_of(value: Optional) -> Any:
    if not value.present:
        raise Failed("optional.none() dereference")
    return value.value


@function("optional(T).or(optional(T)): optional(T)")
def either(value: Optional, other: Optional) -> Optional:
    return value if value.present else other


@function("optional(T).orValue(T): T")
def or_value(value: Optional, other: Any) -> Any:
    return value.value if value.present else other
