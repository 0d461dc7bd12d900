"""Values of expressions: which types there are, when two are equal, and which is less.

Integers are Python's, within 64 bits; a `bool` is never taken for one. Maps and lists are those of the document. What Python has no
type for is here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

MAX_INT, MIN_INT, MAX_UINT = (1 << 63) - 1, -(1 << 63), (1 << 64) - 1


class Failed(Exception):
    """An evaluation that has no value: the expression does not hold. Never leaves this package."""


class Spent(Exception):
    """An evaluation that took more steps than it may. Never leaves this package."""


class UInt(int):
    """An unsigned integer."""

    __slots__ = ()


class Optional(NamedTuple):
    """A value that may be missing."""

    present: bool
    value: Any = None


class TypeValue(NamedTuple):
    """What type(x) gives."""

    name: str


NONE = Optional(False)


def type_name(value: Any) -> str:
    """The type of a value by its name in the language."""
    match value:
        case None:
            return "null_type"
        case bool():
            return "bool"
        case UInt():
            return "uint"
        case int():
            return "int"
        case float():
            return "double"
        case str():
            return "string"
        case bytes():
            return "bytes"
        case Optional():
            return "optional_type"
        case TypeValue():
            return "type"
        case datetime():
            return "google.protobuf.Timestamp"
        case timedelta():
            return "google.protobuf.Duration"
        case dict():
            return "map"
        case list():
            return "list"
    return str(getattr(value, "type", type(value).__name__))


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """Numbers by value, lists and maps by their parts; values of different types are never equal."""
    if is_number(left) and is_number(right):
        return bool(left == right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(key in right and equal(value, right[key]) for key, value in left.items())
    if isinstance(left, Optional) and isinstance(right, Optional):
        return left.present == right.present and equal(left.value, right.value)
    return type(left) is type(right) and bool(left == right)


def less(left: Any, right: Any) -> bool:
    """The order of numbers, texts, bytes, booleans, moments and durations."""
    ordered = is_number(left) and is_number(right)
    if not ordered and not (type(left) is type(right) and isinstance(left, (str, bytes, bool, datetime, timedelta))):
        raise Failed(f"{type_name(left)} and {type_name(right)} have no order")
    return bool(left < right)


def whole(value: Any) -> int:
    """A number that is an integer: what list indices and counts may be."""
    if is_integer(value):
        return int(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    raise Failed(f"{type_name(value)} is no integer")


def find(container: Any, index: Any) -> Any:
    """An entry of a list or map; Failed where there is none."""
    if isinstance(container, Mapping):
        key = int(index) if isinstance(index, float) and index.is_integer() else index
        if isinstance(key, (str, int, bool)) and key in container:
            return container[key]
        raise Failed(f"no such key: {index}")
    if isinstance(container, Sequence) and not isinstance(container, (str, bytes, tuple)):
        at = whole(index)
        if 0 <= at < len(container):
            return container[at]
        raise Failed(f"index out of bounds: {at}")
    raise Failed(f"{type_name(container)} has no entries")


def bounded(number: int, unsigned: bool) -> int:
    """An integer that has the size of its type; Failed where it has not."""
    if unsigned:
        if 0 <= number <= MAX_UINT:
            return UInt(number)
    elif MIN_INT <= number <= MAX_INT:
        return number
    raise Failed("integer overflow")
