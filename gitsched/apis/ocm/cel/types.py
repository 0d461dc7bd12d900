"""CEL values and types: errors, equality and ordering of values, names and parameters of types."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from gitsched.named_tuples import NamedTuple

MAX_INT, MIN_INT, MAX_UINT = (1 << 63) - 1, -(1 << 63), (1 << 64) - 1


MAX_STRING_LENGTH = 100_000
"""The most characters of a string that an operator or a function returns."""


class EvaluationError(Exception):
    """A runtime error: the expression does not match. Not raised outside this package."""


class CostLimitExceeded(Exception):
    """An evaluation that exceeds its cost limit. Not raised outside this package."""


class UInt(int):
    """An unsigned integer."""

    __slots__ = ()


class OptionalValue(NamedTuple):
    """A value that may be missing."""

    present: bool
    value: Any = None


class TypeValue(NamedTuple):
    """A type as a value, the result of type(x)."""

    name: str


OPTIONAL_NONE = OptionalValue(False)


def type_name(value: Any) -> str:
    """Return the CEL name of the type of a value."""
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
        case OptionalValue():
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
    kind = str(getattr(value, "type", type(value).__name__))
    return _LIBRARY_TYPES.get(kind, kind)


_LIBRARY_TYPES = {
    "ip": "net.IP",
    "cidr": "net.CIDR",
    "url": "kubernetes.URL",
    "quantity": "kubernetes.Quantity",
    "semver": "kubernetes.Semver",
    "format": "kubernetes.NamedFormat",
}


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def equal(left: Any, right: Any, charge: Callable[[int], None]) -> bool:
    """Compare as CEL does: numbers by value, lists and maps by element; values of different types are not equal.

    Charge for each element, because one list may be an element of another many times.
    """
    if is_number(left) and is_number(right):
        left, right = _align(left, right)
        return bool(left == right)
    if isinstance(left, list) and isinstance(right, list):
        charge(3 * min(len(left), len(right)))
        return len(left) == len(right) and all(equal(*pair, charge) for pair in zip(left, right, strict=True))
    if isinstance(left, dict) and isinstance(right, dict):
        charge(3 * min(len(left), len(right)))
        return len(left) == len(right) and all(
            has_key(right, key, charge) and equal(value, right[key], charge) for key, value in left.items()
        )
    if isinstance(left, OptionalValue) and isinstance(right, OptionalValue):
        return left.present == right.present and equal(left.value, right.value, charge)
    return type(left) is type(right) and bool(left == right)


def less(left: Any, right: Any) -> bool:
    """Order numbers, strings, bytes, bools, timestamps and durations; EvaluationError for other types."""
    ordered = is_number(left) and is_number(right)
    if not ordered and not (type(left) is type(right) and isinstance(left, (str, bytes, bool, datetime, timedelta))):
        raise EvaluationError(f"{type_name(left)} and {type_name(right)} are not comparable")
    if ordered:
        left, right = _align(left, right)
        if math.isnan(left) or math.isnan(right):
            raise EvaluationError("NaN is not comparable")
    return bool(left < right)


def _align(left: Any, right: Any) -> tuple[Any, Any]:
    """Convert two numbers for comparison as cel-go does: if one is a double, both are."""
    if isinstance(left, float) or isinstance(right, float):
        try:
            return float(left), float(right)
        except OverflowError:  # an integer in a document that is larger than any CEL type
            return left, right
    return left, right


def has_key(container: Mapping[Any, Any], key: Any, charge: Callable[[int], None]) -> bool:
    """Report whether a map has this key; unlike in Python, true and 1 are different keys."""
    if key not in container:
        return False
    if isinstance(key, str) or key not in (0, 1):
        return True
    charge(len(container) // 10)
    return any(entry == key and isinstance(entry, bool) == isinstance(key, bool) for entry in container)


def to_index(value: Any) -> int:
    """Convert a number to a list index; EvaluationError if it is not an integer."""
    if is_integer(value):
        return int(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    raise EvaluationError(f"{type_name(value)} is not an integer")


def get_element(container: Any, index: Any, charge: Callable[[int], None]) -> Any:
    """Return an element of a list or map; EvaluationError if it does not exist."""
    if isinstance(container, Mapping):
        key = int(index) if isinstance(index, float) and index.is_integer() else index
        if isinstance(key, (str, int)) and has_key(container, key, charge):
            return container[key]
        raise EvaluationError(f"no such key: {index}")
    if isinstance(container, Sequence) and not isinstance(container, (str, bytes, tuple)):
        at = to_index(index)
        if 0 <= at < len(container):
            return container[at]
        raise EvaluationError(f"index out of bounds: {at}")
    raise EvaluationError(f"{type_name(container)} cannot be indexed")


def check_overflow(number: int, unsigned: bool) -> int:
    """Return the integer if it fits into 64 bits; EvaluationError if not."""
    if unsigned:
        if 0 <= number <= MAX_UINT:
            return UInt(number)
    elif MIN_INT <= number <= MAX_INT:
        return number
    raise EvaluationError("integer overflow")


DYN = "dyn"
TYPE_PARAMETER = "T"
"""The type parameter in signatures: any type, the same in the whole signature."""


def base_type(kind: str) -> str:
    """Return the type without type arguments."""
    return kind.partition("(")[0]


def list_type(entries: Iterable[str]) -> str:
    """Return the list type of these element types."""
    return f"list({join_types(entries)})"


def map_type(keys: Iterable[str], values: Iterable[str]) -> str:
    return f"map({join_types(keys)}, {join_types(values)})"


def element_type(kind: str) -> str:
    """Return the type of a list element, map value or optional value."""
    parts = _type_arguments(kind)
    return parts[-1] if parts else DYN


def key_type(kind: str) -> str:
    """Return the type of a map key or list index."""
    if base_type(kind) == "list":
        return "int"
    parts = _type_arguments(kind)
    return parts[0] if len(parts) == 2 else "string" if kind == "cluster" else DYN


def iteration_type(kind: str) -> str:
    """Return the type that a macro iterates over: the elements of a list, the keys of a map."""
    return element_type(kind) if base_type(kind) == "list" else key_type(kind)


def join_types(kinds: Iterable[str]) -> str:
    """Return the common type of these types, `dyn` if they differ or there are none."""
    distinct = list(dict.fromkeys(kinds))
    first = distinct[0] if distinct else DYN
    return first if all(is_assignable(first, kind) for kind in distinct[1:]) else DYN


def result_type(kinds: Sequence[str], parameters: Sequence[str], result: str) -> str | None:
    """Return the result type of an overload for these argument types; None if it does not accept them."""
    bound = _bind_type_parameter(kinds, parameters)
    fitting = all(is_assignable(kind, _substitute(parameter, bound)) for kind, parameter in zip(kinds, parameters, strict=True))
    return _substitute(result, bound) if fitting else None


def _bind_type_parameter(kinds: Sequence[str], parameters: Sequence[str]) -> str:
    """Return the type of T in a signature; an argument such as list(T) takes precedence over T."""
    parts = (
        element_type(kind) for kind, parameter in zip(kinds, parameters, strict=True) if parameter.endswith(f"({TYPE_PARAMETER})")
    )
    direct = (kind for kind, parameter in zip(kinds, parameters, strict=True) if parameter == TYPE_PARAMETER)
    return next((kind for kind in (*parts, *direct) if kind != DYN), DYN)


def _substitute(kind: str, bound: str) -> str:
    return bound if kind == TYPE_PARAMETER else kind.replace(f"({TYPE_PARAMETER})", f"({bound})")


def is_assignable(one: str, other: str) -> bool:
    """Report whether one type is assignable to the other; a cluster is a map."""
    if DYN in (one, other):
        return True
    if one == "cluster" and base_type(other) == "map":
        return True
    if base_type(one) != base_type(other):
        return False
    return all(map(is_assignable, ours, theirs)) if (ours := _type_arguments(one)) and (theirs := _type_arguments(other)) else True


def _type_arguments(kind: str) -> list[str]:
    inner = kind.partition("(")[2].removesuffix(")")
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(inner):
        depth += (character == "(") - (character == ")")
        if character == "," and not depth:
            parts.append(inner[begin:at].strip())
            begin = at + 1
    return [*parts, inner[begin:].strip()] if inner else []
