"""The steps that input of twice the size needs are at most a little more than twice as many."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.doubling import DIMENSIONS, compute_exponent, count_calls


def measure_growth(prepare: Callable[[int], Callable[[], object]], size: int) -> float:
    prepare(8)()  # imports and caches
    return compute_exponent(count_calls(prepare(size)), count_calls(prepare(2 * size)))


@pytest.mark.parametrize("name", DIMENSIONS)
def test_steps_grow_at_most_linearly(name: str) -> None:
    prepare, size = DIMENSIONS[name]
    assert 0 <= measure_growth(prepare, size // 5) < 1.1


def test_quadratic_work_is_found() -> None:
    def prepare(size: int) -> Callable[[], object]:
        return lambda: [str.upper("a") and compute_exponent(1, 2) for _ in range(size) for _ in range(size)]

    assert measure_growth(prepare, 50) > 1.9
