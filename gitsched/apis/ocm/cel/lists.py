"""Functions over lists, as Kubernetes offers them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from gitsched.apis.ocm.cel.operators import add
from gitsched.apis.ocm.cel.registry import Spend, function
from gitsched.apis.ocm.cel.values import Failed, equal, less


@function("list.isSorted(): bool", metered=True)
def is_sorted(spend: Spend, values: list[Any]) -> bool:
    spend(len(values))
    return not any(less(after, before) for before, after in pairwise(values))


@function("list.sum(): dyn", metered=True)
def total(spend: Spend, values: list[Any]) -> Any:
    spend(len(values))
    if not values:
        return 0
    result = values[0]
    for value in values[1:]:
        result = add(spend, result, value)
    return result


@function("list.min(): dyn", metered=True)
def least(spend: Spend, values: list[Any]) -> Any:
    return _extreme(spend, values, greatest=False)


@function("list.max(): dyn", metered=True)
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


@function("list.indexOf(dyn): int", metered=True)
def index_of(spend: Spend, values: list[Any], wanted: Any) -> int:
    spend(len(values))
    return next((at for at, value in enumerate(values) if equal(value, wanted)), -1)


@function("list.lastIndexOf(dyn): int", metered=True)
def last_index_of(spend: Spend, values: list[Any], wanted: Any) -> int:
    spend(len(values))
    return next((at for at in range(len(values) - 1, -1, -1) if equal(values[at], wanted)), -1)
