"""Numbers of replicas that are hard to add up or to divide."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.kinds.kind import Component, Replicas
from gitsched.kinds.replicas import MAX_REPLICAS, divide_component, read_replicas

HEAD = Component(path="spec.head", default=1)
GROUPS = Component(path="spec.groups[]", replicas="count", default=0)
RULE = Replicas(components=(HEAD, GROUPS), revised=1)


def groups(*counts: Any) -> dict[str, Any]:
    return {"spec": {"head": {}, "groups": [{"count": count} for count in counts]}}


@pytest.mark.parametrize(
    ("counts", "total"),
    [((2, 3), 6), ((), 1), ((MAX_REPLICAS, 5), MAX_REPLICAS), ((2, "3"), None), ((2, True), None), ((2, -1), None)],
)
def test_the_replicas_of_components_are_added_up_to_the_largest_number(counts: tuple[Any, ...], total: int | None) -> None:
    found = read_replicas(groups(*counts), RULE)
    assert (found and found.replicas) == total


@pytest.mark.parametrize(
    ("counts", "replicas", "parts"),
    [
        ((2, 2), 5, (2, 2)),
        ((1, 1), 4, (2, 1)),  # 1.5 is rounded up, the last one gets the rest
        ((3, 1), 5, (3, 1)),
        ((0, 0, 0), 6, (2, 2, 1)),
        ((1, 1, 1, 1), 3, (1, 1, 0, 0)),  # each half is rounded up, and none gets less than nothing
        ((5, 1), 1, (0, 0)),
        ((5, 1), 0, (0, 0)),
    ],
)
def test_entries_get_what_the_other_components_leave(counts: tuple[int, ...], replicas: int, parts: tuple[int, ...]) -> None:
    expected = tuple((f"spec.groups.{index}.count", part) for index, part in enumerate(parts))
    assert divide_component(groups(*counts), RULE, replicas) == expected
    assert divide_component(groups(*counts), RULE._replace(revised=None), replicas) == ()


QUOTIENT = Replicas(components=(Component(path="spec", quotient=(("spec", "slots"), ("spec", "perNode")), default=7),))


@pytest.mark.parametrize(
    ("slots", "per_node", "total"),
    [(6, 2, 3), (7, 2, 4), ("7", "2", 4), ("\u0667", 2, 7), ("9999999999", 2, 7), (7, 0, 7), (7, None, 7), (0, 2, 0)],
)
def test_a_quotient_is_rounded_up_and_needs_two_numbers(slots: Any, per_node: Any, total: int) -> None:
    found = read_replicas({"spec": {"slots": slots, "perNode": per_node}}, QUOTIENT)
    assert found is not None
    assert found.replicas == total
