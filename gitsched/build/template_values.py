"""The functions of Go templates about numbers, lists, maps, JSON and YAML. Source: text/template of Go and Masterminds/sprig."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from gitsched.build.go_functions import Integer, NotEvaluatedError, OwnMap, TemplateError, TextMap, is_empty, is_number, print_value
from gitsched.build.template_texts import get_kind
from gitsched.manifests.kustomization import parse_values

MAX_ENTRIES: Final = 10_000
"""Entries of a list that a function makes."""


def index_value(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, list) and isinstance(key, Integer):
            if not 0 <= key < len(value):
                raise TemplateError(f"the list has no entry {key}")
            value = value[key]
        elif isinstance(value, dict) and isinstance(key, str):
            value = value.get(key, "" if isinstance(value, TextMap) else None)
        else:
            raise TemplateError("`index` is used on a value that is no list and no map")
    return value


def compare_values(left: Any, right: Any) -> bool:
    if any(isinstance(value, (dict, list)) for value in (left, right)):
        raise TypeError
    if left is None or right is None:
        return left is right
    if get_kind(left) != get_kind(right):
        raise TypeError
    return bool(left == right)


def equals_any(left: Any, *others: Any) -> bool:
    if not others:
        raise TypeError
    found = [compare_values(left, other) for other in others]  # each one has to be comparable
    return any(found)


def is_less(left: Any, right: Any) -> bool:
    if get_kind(left) != get_kind(right) or get_kind(left) not in ("string", "float64", "int"):
        raise TypeError
    return bool(left < right)


def name_kind(value: Any) -> str:
    if isinstance(value, Integer):
        raise NotEvaluatedError("the kind of a whole number")
    return get_kind(value)


def to_integer(value: Any) -> int:
    """Return a value as a whole number. Source: spf13/cast."""
    if isinstance(value, str):
        text = re.sub(r"\.0*$", "", value) if re.fullmatch(r"[+-]?\d+\.0*", value) else value
        if re.fullmatch(r"[+-]?(?:0|[1-9]\d{0,17})", text):
            return int(text)
        if re.fullmatch(r"[+-]?[\d_]+[xXobOB]?[\da-fA-F_]*", text):
            raise NotEvaluatedError(f"the number {value}")
        return 0
    return int(value) if isinstance(value, (int, float)) else 0


def to_float(value: Any) -> float:
    if isinstance(value, str):
        return float(value) if re.fullmatch(r"[+-]?\d{1,300}(?:\.\d{1,300})?", value) else 0.0
    return float(value) if isinstance(value, (int, float)) else 0.0


def wrap_integer(value: int) -> Integer:
    """Return a number of 64 bits."""
    return Integer((value + 2**63) % 2**64 - 2**63)


def multiply(first: Any, *others: Any) -> Integer:
    product = to_integer(first)
    for other in others:
        product = wrap_integer(product * to_integer(other))
    return Integer(product)


def divide(left: Any, right: Any) -> Integer:
    dividend, divisor = to_integer(left), to_integer(right)
    if divisor == 0:
        raise ValueError
    quotient = abs(dividend) // abs(divisor)
    return wrap_integer(quotient if (dividend < 0) == (divisor < 0) else -quotient)


def count_numbers(start: int, stop: int, step: int) -> list[Integer]:
    if step == 0 or (start < stop) != (step > 0):
        return []
    if abs(stop - start) // abs(step) > MAX_ENTRIES:
        raise TemplateError(f"gitsched makes lists of at most {MAX_ENTRIES:,} entries")
    return [Integer(number) for number in range(start, stop, step)]


def write_sequence(*numbers: Any) -> str:
    if not 1 <= len(numbers) <= 3:
        return ""
    start = numbers[0] if len(numbers) > 1 else 1
    stop = numbers[-1]
    step = numbers[1] if len(numbers) == 3 else (1 if stop >= start else -1)
    if len(numbers) == 3 and step == 0:
        return ""
    return " ".join(map(str, count_numbers(start, stop + (1 if step > 0 else -1), step)))


def make_dict(*values: Any) -> OwnMap:
    padded = [*values, *([""] if len(values) % 2 else [])]
    return OwnMap({print_value(name): value for name, value in zip(padded[::2], padded[1::2], strict=True)})


def change_map(value: Any, name: str, new: Any) -> Any:
    if not isinstance(value, OwnMap):
        raise NotEvaluatedError("`set` of a map that the template does not make")
    value[name] = new
    return value


def remove_key(value: Any, name: str) -> Any:
    if not isinstance(value, OwnMap):
        raise NotEvaluatedError("`unset` of a map that the template does not make")
    value.pop(name, None)
    return value


def merge_maps(*maps: Any) -> OwnMap:
    """Return a map with the values of others where it has none, or an empty one."""
    merged = OwnMap(maps[0] or {})
    for other in maps[1:]:
        for name, value in (other or {}).items():
            before = merged.get(name)
            if isinstance(before, dict) and isinstance(value, dict):
                merged[name] = merge_maps(before, value)
            elif is_empty(before):
                merged[name] = value
    return merged


def dig_value(*values: Any) -> Any:
    *names, default, found = values
    if not names or not isinstance(found, dict):
        raise TypeError
    for name in names:
        if not isinstance(found, dict) or isinstance(found, TextMap) or not isinstance(name, str):
            raise TypeError
        if name not in found:
            return default
        found = found[name]
    return found


def _is_same(left: Any, right: Any) -> bool:
    """Return whether values are deeply equal, with equal types."""
    if get_kind(left) != get_kind(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_is_same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_is_same(value, right[name]) for name, value in left.items())
    return bool(left == right)


def has_value(needle: Any, values: Any) -> bool:
    if values is not None and not isinstance(values, list):
        raise TypeError
    return any(_is_same(needle, value) for value in values or ())


def list_unique(values: list[Any]) -> list[Any]:
    if len(values) > 1_000:
        raise NotEvaluatedError("`uniq` of more than 1,000 entries")
    found: list[Any] = []
    for value in values:
        if not has_value(value, found):
            found.append(value)
    return found


def slice_list(values: list[Any], *bounds: Any) -> list[Any]:
    start, end = [*map(to_integer, bounds), *(0, len(values))[len(bounds) :]][:2]
    if not 0 <= start <= end <= len(values):
        raise ValueError
    return values[start:end]


def chunk_list(size: int, values: list[Any]) -> list[Any]:
    if size <= 0:
        raise ValueError
    return [values[index : index + size] for index in range(0, len(values), size)]


def measure_length(value: Any) -> Integer:
    if isinstance(value, str):
        return Integer(len(value.encode()))
    if not isinstance(value, (list, dict)):
        raise TypeError
    return Integer(len(value))


def convert_value(value: Any) -> Any:
    """Return a value as JSON of Go writes its numbers."""
    if isinstance(value, dict):
        return {str(name): convert_value(value[name]) for name in sorted(value, key=lambda name: str(name).encode())}
    if isinstance(value, list):
        return [convert_value(each) for each in value]
    if is_number(value) and not isinstance(value, Integer):
        if value and not 1e-6 <= abs(value) < 1e21:
            raise NotEvaluatedError(f"the number {value}")
        return int(value) if value == int(value) else float(value)
    return value


def write_json(value: Any, *, escape: bool = True, indent: int | None = None) -> str:
    text = json.dumps(convert_value(value), ensure_ascii=False, indent=indent, separators=(",", ":" if indent is None else ": "))
    for character in "<>&" if escape else "":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def read_json(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def read_json_or_fail(text: str) -> Any:
    found = read_json(text)
    if found is None and text.strip() != "null":
        raise ValueError
    return found


def read_yaml(text: str, kind: type[Any]) -> Any:
    values = parse_values(text.encode("utf-8", "surrogatepass"))
    if not text.strip() or (values and values[0] is None):
        return kind()
    if not values or not isinstance(values[0], kind):
        raise TypeError
    return OwnMap(values[0]) if kind is dict else values[0]
