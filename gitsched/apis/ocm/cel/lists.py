"""Functions over lists, as Kubernetes offers them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from gitsched.apis.ocm.cel.operators import add
from gitsched.apis.ocm.cel.registry import Spend, function
from gitsched.apis.ocm.cel.values import Failed, equal, less

_NUMBERS = ("int", "uint", "double")
_ORDERED = (*_NUMBERS, "bool", "string", "bytes", "timestamp", "duration")


@function(*(f"list({kind}).isSorted(): bool" for kind in _ORDERED), metered=True)
def is_sorted(spend: Spend, values: list[Any]) -> bool:
    spend(len(values))
    return not any(less(after, before) for before, after in pairwise(values))


@function(*(f"list({kind}).sum(): {kind}" for kind in (*_NUMBERS, "duration")), metered=True)
def total(spend: Spend, values: list[Any]) -> Any:
    spend(len(values))
    if not values:
        return 0
    result = values[0]
    for value in values[1:]:
        result = add(spend, result, value)
    return result


@function(*(f"list({kind}).min(): {kind}" for kind in _ORDERED), metered=True)
def least(spend: Spend, values: list[Any]) -> Any:
    return _extreme(spend, values, greatest=False)


@function(*(f"list({kind}).max(): {kind}" for kind in _ORDERED), metered=True)
def greatest(spend: Spend, values: list[Any]) -> Any:
    return _extreme(spend, values, greatest=True)


def _extreme(spend: Spend, values: list[Any], *, greatest: bool) -> Any:
    spend(len(values))
    if not values:
        raise Failed("min and max need a list with entries")
    best = values[0]
    for value in values[1:]:
        if less(best, value) if greatest else less(value, best):
            best = value
    return best


@function("list(T).indexOf(T): int", metered=True)
def index_of(spend: Spend, values: list[Any], wanted: Any) -> int:
    spend(len(values))
    return next((at for at, value in enumerate(values) if equal(value, wanted)), -1)


@function("list(T).lastIndexOf(T): int", metered=True)
def last_index_of(spend: Spend, values: list[Any], wanted: Any) -> int:
    spend(len(values))
    return next((at for at in range(len(values) - 1, -1, -1) if equal(values[at], wanted)), -1)
