"""CEL standard library: operators, conversions, optionals, and the list functions of Kubernetes."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from gitsched.apis.ocm.cel.overloads import CostTracker, cel_function
from gitsched.apis.ocm.cel.regex import InvalidPattern, search
from gitsched.apis.ocm.cel.timestamps import format_duration, limit_duration, parse_go_duration, parse_timestamp
from gitsched.apis.ocm.cel.types import (
    MAX_INT,
    MAX_STRING_LENGTH,
    MAX_UINT,
    MIN_INT,
    OPTIONAL_NONE,
    EvaluationError,
    OptionalValue,
    TypeValue,
    UInt,
    check_overflow,
    equal,
    has_key,
    is_integer,
    is_number,
    less,
    type_name,
)
from gitsched.model.time import format_time


def add(charge: CostTracker, left: Any, right: Any) -> Any:
    if type(left) is type(right) and isinstance(left, (str, bytes, list)):
        charge((len(left) + len(right)) // 10)
        if len(left) + len(right) > MAX_STRING_LENGTH and not isinstance(left, list):
            raise EvaluationError("the string is too long")
        return left + right
    if isinstance(left, (datetime, timedelta)) and isinstance(right, (datetime, timedelta)):
        try:
            return limit_duration(left + right)  # type: ignore[operator]  # the sum of two timestamps is a TypeError
        except (OverflowError, TypeError):
            raise EvaluationError("timestamp overflow") from None
    return _apply_arithmetic("+", left, right)


def subtract(charge: CostTracker, left: Any, right: Any) -> Any:
    if isinstance(left, (datetime, timedelta)) and isinstance(right, (datetime, timedelta)):
        try:
            return limit_duration(left - right)  # type: ignore[operator]  # a duration minus a timestamp is a TypeError
        except (OverflowError, TypeError):
            raise EvaluationError("timestamp overflow") from None
    return _apply_arithmetic("-", left, right)


def _apply_arithmetic(sign: str, left: Any, right: Any) -> Any:
    if type(left) is not type(right) or not is_number(left):
        raise EvaluationError(f"no such overload: {type_name(left)} {sign} {type_name(right)}")
    if isinstance(left, float):
        return _FLOATS[sign](left, right)
    if sign in "/%" and not right:
        raise EvaluationError("division by zero")
    return check_overflow(_INTEGERS[sign](int(left), int(right)), isinstance(left, UInt))


def _divide_integers(left: int, right: int) -> int:
    """Divide as Go does, rounding toward zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _divide_floats(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


def _reject_modulus(left: float, right: float) -> float:
    raise EvaluationError("no such overload: double % double")


_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide_integers,
    "%": lambda a, b: a - b * _divide_integers(a, b),
}
_FLOATS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide_floats,
    "%": _reject_modulus,
}


def negate(charge: CostTracker, value: Any) -> Any:
    if not is_number(value) or isinstance(value, UInt):
        raise EvaluationError(f"no such overload: -{type_name(value)}")
    return -value if isinstance(value, float) else check_overflow(-value, False)


def is_in(charge: CostTracker, value: Any, container: Any) -> bool:
    if isinstance(container, dict):
        key = int(value) if isinstance(value, float) and value.is_integer() else value
        return isinstance(key, (str, int)) and has_key(container, key, charge)
    if isinstance(container, list):
        charge(len(container))
        return any(equal(value, entry, charge) for entry in container)
    raise EvaluationError(f"no such overload: in {type_name(container)}")


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": add,
    "-": subtract,
    "*": lambda charge, left, right: _apply_arithmetic("*", left, right),
    "/": lambda charge, left, right: _apply_arithmetic("/", left, right),
    "%": lambda charge, left, right: _apply_arithmetic("%", left, right),
    "-_": negate,
    "==": lambda charge, left, right: equal(left, right, charge),
    "!=": lambda charge, left, right: not equal(left, right, charge),
    "<": lambda charge, left, right: less(left, right),
    ">": lambda charge, left, right: less(right, left),
    "<=": lambda charge, left, right: less(left, right) or equal(left, right, charge),
    ">=": lambda charge, left, right: less(right, left) or equal(left, right, charge),
    "in": is_in,
}
"""Operators that evaluate all operands."""


@cel_function("size(string): int", "size(bytes): int", "size(list): int", "size(map): int", "size(cluster): int")
@cel_function("string.size(): int", "bytes.size(): int", "list.size(): int", "map.size(): int", "cluster.size(): int")
def size(value: Any) -> int:
    return len(value)


@cel_function("string.matches(string): bool", "matches(string, string): bool", metered=True)
def matches(charge: CostTracker, text: str, pattern: str) -> bool:
    try:
        return bool(search(pattern, text, charge, 1))
    except InvalidPattern as problem:
        raise EvaluationError(f"invalid pattern {pattern!r}: {problem}") from None


@cel_function("type(dyn): type")
def to_type(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


@cel_function("dyn(dyn): dyn")
def to_dyn(value: Any) -> Any:
    return value


@cel_function("bool(bool): bool", "bool(string): bool")
def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise EvaluationError("not a bool")


@cel_function("bytes(string): bytes", "bytes(bytes): bytes")
def to_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


@cel_function("double(double): double", "double(int): double", "double(uint): double", "double(string): double")
def to_double(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise EvaluationError("not a number") from None


@cel_function(
    "int(int): int", "int(uint): int", "int(double): int", "int(string): int", "int(timestamp): int", "int(duration): int"
)
def to_int(value: Any) -> int:
    if isinstance(value, datetime):
        return math.floor(value.timestamp())
    if isinstance(value, timedelta):
        return (value.days * 86_400 + value.seconds) * 10**9 + value.microseconds * 1000
    return _to_integer(value, MIN_INT, MAX_INT)


@cel_function("uint(int): uint", "uint(uint): uint", "uint(double): uint", "uint(string): uint")
def to_uint(value: Any) -> UInt:
    return UInt(_to_integer(value, 0, MAX_UINT))


def _to_integer(value: Any, minimum: int, maximum: int) -> int:
    if isinstance(value, float) and not ((minimum < value or value == minimum == 0) and value < float(maximum)):
        raise EvaluationError("not an integer")
    try:
        number = int(value) if not isinstance(value, str) or value.removeprefix("-").removeprefix("+").isdecimal() else None
    except ValueError:
        number = None
    if number is None or not minimum <= number <= maximum:
        raise EvaluationError("not an integer")
    return number


@cel_function(
    "string(string): string", "string(int): string", "string(uint): string", "string(double): string", "string(bool): string"
)
@cel_function("string(bytes): string", "string(timestamp): string", "string(duration): string")
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
                raise EvaluationError("the bytes are not valid UTF-8") from None
        case datetime():
            return format_time(value)
        case timedelta():
            return format_duration(value)
    return str(int(value))


def format_double(value: float) -> str:
    """Return the shortest string that parses to the same number, in Go's format: 1e+06, not 1000000."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
    exponent = len(digits) + int(power) - 1
    text = "".join(map(str, digits))
    if -4 <= exponent < 6:
        return f"{value:.{max(0, -int(power))}f}"
    rest = f".{text[1:]}" if len(text) > 1 else ""
    return f"{'-' if sign else ''}{text[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


@cel_function("timestamp(string): timestamp", "timestamp(timestamp): timestamp", "timestamp(int): timestamp")
def to_timestamp(value: Any) -> datetime:
    return parse_timestamp(value)


@cel_function("duration(string): duration", "duration(duration): duration")
def to_duration(value: Any) -> timedelta:
    return parse_go_duration(value)


@cel_function("global optional.none(): optional")
def optional_none() -> OptionalValue:
    return OPTIONAL_NONE


@cel_function("global optional.of(T): optional(T)")
def optional_of(value: Any) -> OptionalValue:
    return OptionalValue(True, value)


@cel_function("global optional.ofNonZeroValue(T): optional(T)")
def optional_of_non_zero(value: Any) -> OptionalValue:
    empty = value is None or (isinstance(value, (str, bytes, list, dict, float)) and not value) or value is False
    return OPTIONAL_NONE if empty or (is_integer(value) and value == 0) else OptionalValue(True, value)


@cel_function("optional.hasValue(): bool")
def optional_has_value(value: OptionalValue) -> bool:
    return value.present


@cel_function("optional(T).value(): T")
def optional_value(value: OptionalValue) -> Any:
    if not value.present:
        raise EvaluationError("optional.none() dereference")
    return value.value


@cel_function("optional(T).or(optional(T)): optional(T)")
def optional_or(value: OptionalValue, other: OptionalValue) -> OptionalValue:
    return value if value.present else other


@cel_function("optional(T).orValue(T): T")
def optional_or_value(value: OptionalValue, other: Any) -> Any:
    return value.value if value.present else other


_NUMBER_TYPES = ("int", "uint", "double")
_ORDERED_TYPES = (*_NUMBER_TYPES, "bool", "string", "bytes", "timestamp", "duration")


@cel_function(*(f"list({kind}).isSorted(): bool" for kind in _ORDERED_TYPES), metered=True)
def list_is_sorted(charge: CostTracker, values: list[Any]) -> bool:
    charge(len(values))
    return not any(less(after, before) for before, after in pairwise(values))


@cel_function(*(f"list({kind}).sum(): {kind}" for kind in (*_NUMBER_TYPES, "duration")), metered=True)
def list_sum(charge: CostTracker, values: list[Any]) -> Any:
    charge(len(values))
    if not values:
        return 0
    result = values[0]
    for value in values[1:]:
        result = add(charge, result, value)
    return result


@cel_function(*(f"list({kind}).min(): {kind}" for kind in _ORDERED_TYPES), metered=True)
def list_min(charge: CostTracker, values: list[Any]) -> Any:
    return _list_extreme(charge, values, greatest=False)


@cel_function(*(f"list({kind}).max(): {kind}" for kind in _ORDERED_TYPES), metered=True)
def list_max(charge: CostTracker, values: list[Any]) -> Any:
    return _list_extreme(charge, values, greatest=True)


def _list_extreme(charge: CostTracker, values: list[Any], *, greatest: bool) -> Any:
    charge(len(values))
    if not values:
        raise EvaluationError("min and max require a list with elements")
    best = values[0]
    for value in values[1:]:
        if less(best, value) if greatest else less(value, best):
            best = value
    return best


@cel_function("list(T).indexOf(T): int", metered=True)
def list_index_of(charge: CostTracker, values: list[Any], wanted: Any) -> int:
    charge(len(values))
    return next((at for at, value in enumerate(values) if equal(value, wanted, charge)), -1)


@cel_function("list(T).lastIndexOf(T): int", metered=True)
def list_last_index_of(charge: CostTracker, values: list[Any], wanted: Any) -> int:
    charge(len(values))
    return next((at for at in range(len(values) - 1, -1, -1) if equal(values[at], wanted, charge)), -1)
