"""CEL values and types: errors, equality and ordering of values, names and parameters of types."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

MAX_INT, MIN_INT, MAX_UINT = (1 << 63) - 1, -(1 << 63), (1 << 64) - 1


class EvaluationError(Exception):
    """An evaluation that has no value: the expression does not hold. Never leaves this package."""


class CostLimitExceeded(Exception):
    """An evaluation that took more steps than it may. Never leaves this package."""


class UInt(int):
    """An unsigned integer."""

    __slots__ = ()


class OptionalValue(NamedTuple):
    """A value that may be missing."""

    present: bool
    value: Any = None


class TypeValue(NamedTuple):
    """What type(x) gives."""

    name: str


OPTIONAL_NONE = OptionalValue(False)


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


def equal(left: Any, right: Any) -> bool:
    """Numbers by value, lists and maps by their parts; values of different types are never equal."""
    if is_number(left) and is_number(right):
        left, right = _align(left, right)
        return bool(left == right)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(has_key(right, key) and equal(value, right[key]) for key, value in left.items())
    if isinstance(left, OptionalValue) and isinstance(right, OptionalValue):
        return left.present == right.present and equal(left.value, right.value)
    return type(left) is type(right) and bool(left == right)


def less(left: Any, right: Any) -> bool:
    """The order of numbers, texts, bytes, booleans, moments and durations."""
    ordered = is_number(left) and is_number(right)
    if not ordered and not (type(left) is type(right) and isinstance(left, (str, bytes, bool, datetime, timedelta))):
        raise EvaluationError(f"{type_name(left)} and {type_name(right)} have no order")
    if ordered:
        left, right = _align(left, right)
        if math.isnan(left) or math.isnan(right):
            raise EvaluationError("NaN has no order")
    return bool(left < right)


def _align(left: Any, right: Any) -> tuple[Any, Any]:
    """Two numbers as cel-go compares them: an integer that meets a double becomes one, however large it is."""
    if isinstance(left, float) or isinstance(right, float):
        try:
            return float(left), float(right)
        except OverflowError:  # an integer of a document that no type of the language holds
            return left, right
    return left, right


def has_key(container: Mapping[Any, Any], key: Any) -> bool:
    """Whether a map has this key. Python takes True for 1, the language does not."""
    if key not in container:
        return False
    return isinstance(key, str) or any(entry == key and isinstance(entry, bool) == isinstance(key, bool) for entry in container)


def to_index(value: Any) -> int:
    """A number that is an integer: what list indices and counts may be."""
    if is_integer(value):
        return int(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    raise EvaluationError(f"{type_name(value)} is no integer")


def get_element(container: Any, index: Any) -> Any:
    """An entry of a list or map; Failed where there is none."""
    if isinstance(container, Mapping):
        key = int(index) if isinstance(index, float) and index.is_integer() else index
        if isinstance(key, (str, int)) and has_key(container, key):
            return container[key]
        raise EvaluationError(f"no such key: {index}")
    if isinstance(container, Sequence) and not isinstance(container, (str, bytes, tuple)):
        at = to_index(index)
        if 0 <= at < len(container):
            return container[at]
        raise EvaluationError(f"index out of bounds: {at}")
    raise EvaluationError(f"{type_name(container)} has no entries")


def check_overflow(number: int, unsigned: bool) -> int:
    """An integer that has the size of its type; Failed where it has not."""
    if unsigned:
        if 0 <= number <= MAX_UINT:
            return UInt(number)
    elif MIN_INT <= number <= MAX_INT:
        return number
    raise EvaluationError("integer overflow")


DYN = "dyn"
TYPE_PARAMETER = "T"
"""In a signature: any type, the same one wherever it stands."""


def base_type(kind: str) -> str:
    """The type without its parts."""
    return kind.partition("(")[0]


def list_type(entries: Iterable[str]) -> str:
    """A list of what its entries have in common."""
    return f"list({join_types(entries)})"


def map_type(keys: Iterable[str], values: Iterable[str]) -> str:
    return f"map({join_types(keys)}, {join_types(values)})"


def element_type(kind: str) -> str:
    """What a list has in it, what a map gives for a key, what an optional holds."""
    parts = _type_arguments(kind)
    return parts[-1] if parts else DYN


def key_type(kind: str) -> str:
    """What stands for an entry: the key of a map, the index of a list. Of a loop, use `passed`."""
    if base_type(kind) == "list":
        return "int"
    parts = _type_arguments(kind)
    return parts[0] if len(parts) == 2 else "string" if kind == "cluster" else DYN


def iteration_type(kind: str) -> str:
    """What a loop over it passes by: the entries of a list, the keys of a map."""
    return element_type(kind) if base_type(kind) == "list" else key_type(kind)


def join_types(kinds: Iterable[str]) -> str:
    """The one type of all of these, `dyn` where they differ or there are none."""
    known = list(dict.fromkeys(kinds))
    first = known[0] if known else DYN
    return first if all(is_assignable(first, kind) for kind in known[1:]) else DYN


def result_type(kinds: Sequence[str], wanted: Sequence[str], result: str) -> str | None:
    """What a function that wants and gives these gives for arguments of such types; None if it does not take them."""
    bound = _bind_type_parameter(kinds, wanted)
    fitting = all(is_assignable(kind, _substitute(want, bound)) for kind, want in zip(kinds, wanted, strict=True))
    return _substitute(result, bound) if fitting else None


def _bind_type_parameter(kinds: Sequence[str], wanted: Sequence[str]) -> str:
    """What T of a signature stands for; a part of an argument tells before a whole one."""
    parts = (element_type(kind) for kind, want in zip(kinds, wanted, strict=True) if want.endswith(f"({TYPE_PARAMETER})"))
    whole = (kind for kind, want in zip(kinds, wanted, strict=True) if want == TYPE_PARAMETER)
    return next((kind for kind in (*parts, *whole) if kind != DYN), DYN)


def _substitute(kind: str, bound: str) -> str:
    return bound if kind == TYPE_PARAMETER else kind.replace(f"({TYPE_PARAMETER})", f"({bound})")


def is_assignable(one: str, other: str) -> bool:
    """Whether a value of one type may be of the other: a cluster is a map, too."""
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
