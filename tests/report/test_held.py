"""Where held workloads go when they are released."""

from __future__ import annotations

import pytest

from gitsched.model.document import Key
from gitsched.model.holds import HeldPlacement
from gitsched.report.held import describe_hold, describe_hold_place

KEY = Key("apps", "StatefulSet", "shop", "db")


@pytest.mark.parametrize(
    ("wanted", "lost", "then"),
    [
        ({"two": 2}, ("one",), "goes to two 2"),
        ({}, ("one",), "goes to where that run places it"),
        ({}, (), "becomes unplaced: no other cluster fits"),
    ],
)
def test_a_held_workload_becomes_unplaced_only_where_no_cluster_fits(
    wanted: dict[str, int | None], lost: tuple[str, ...], then: str
) -> None:
    held = HeldPlacement({"one": 2}, wanted, "one has no Cluster document", ("claim template data (1Gi)",), ("one",), lost)
    place = then.removeprefix("goes to ") + " without its data" if then.startswith("goes") else "it becomes unplaced"
    assert describe_hold_place(KEY, held)[1].startswith(f"  when released: {place}; save or copy the data, then ")
    assert describe_hold(held).endswith(f"when released, it {then}")
