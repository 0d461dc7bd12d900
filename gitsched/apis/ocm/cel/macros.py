"""Macros of CEL over lists and the keys of maps: all, exists, exists_one, filter and map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gitsched.apis.ocm.cel.types import EvaluationError, type_name

CompiledBody = Callable[[Any], Any]
"""A compiled body or filter."""
EvaluateElement = Callable[[CompiledBody, Any], Any]
"""Evaluates a body for one element and charges for it."""


def require_bool(value: Any) -> bool:
    """Return a bool; EvaluationError for any other value."""
    if value is True or value is False:
        return bool(value)
    raise EvaluationError(f"{type_name(value)} is not a bool")


def _all(values: list[Any], each: EvaluateElement, body: CompiledBody, _: CompiledBody | None) -> bool:
    """Return false if the body is false for one element, even if it fails for others."""
    return not _find_element(values, each, body, wanted=False)


def _exists(values: list[Any], each: EvaluateElement, body: CompiledBody, _: CompiledBody | None) -> bool:
    return _find_element(values, each, body, wanted=True)


def _find_element(values: list[Any], each: EvaluateElement, body: CompiledBody, *, wanted: bool) -> bool:
    failure: EvaluationError | None = None
    for value in values:
        try:
            found = require_bool(each(body, value))
        except EvaluationError as problem:
            failure = problem
            continue
        if found is wanted:
            return True
    if failure is not None:
        raise failure
    return False


def _exists_one(values: list[Any], each: EvaluateElement, body: CompiledBody, _: CompiledBody | None) -> bool:
    return sum(require_bool(each(body, value)) for value in values) == 1


def _filter(values: list[Any], each: EvaluateElement, body: CompiledBody, _: CompiledBody | None) -> list[Any]:
    return [value for value in values if require_bool(each(body, value))]


def _map(values: list[Any], each: EvaluateElement, body: CompiledBody, element_filter: CompiledBody | None) -> list[Any]:
    return [each(body, value) for value in values if element_filter is None or require_bool(each(element_filter, value))]


MACROS: dict[str, Callable[[list[Any], EvaluateElement, CompiledBody, CompiledBody | None], Any]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
}
