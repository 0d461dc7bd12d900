"""Break ties between equal candidates."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gitsched.schedule.tie_breaking import go_sort_descending
from tests.tables import each_row

RECORDED = json.loads(Path(__file__).with_name("go_sort.json").read_text(encoding="utf-8"))


@each_row("recorded", RECORDED)
def test_equal_weights_have_the_order_of_gos_sort(recorded: dict[str, list[int]]) -> None:
    assert go_sort_descending(recorded["weights"]) == recorded["order"]


def test_the_recorded_orders_are_not_those_of_a_stable_sort() -> None:
    stable = [sorted(range(len(r["weights"])), key=lambda i, r=r: -r["weights"][i]) for r in RECORDED]
    assert sum(order != r["order"] for order, r in zip(stable, RECORDED, strict=True)) > len(RECORDED) // 2


@given(st.lists(st.integers(0, 5), max_size=300))
def test_the_result_is_sorted(weights: list[int]) -> None:
    order = go_sort_descending(weights)
    assert sorted(order) == list(range(len(weights)))
    assert [weights[position] for position in order] == sorted(weights, reverse=True)


@given(st.lists(st.integers(0, 3), max_size=12))
def test_up_to_twelve_elements_keep_their_order(weights: list[int]) -> None:
    assert go_sort_descending(weights) == sorted(range(len(weights)), key=lambda position: -weights[position])


def test_a_sorted_sequence_keeps_its_order() -> None:
    weights = sorted([i % 4 for i in range(60)], reverse=True)
    assert go_sort_descending(weights) == list(range(60))
