"""Where held workloads go when they are released."""

from __future__ import annotations

import pytest

from gitsched.model.document import Key
from gitsched.model.holds import HeldPlacement
from gitsched.report.held import describe_hold, describe_hold_place

KEY = Key("apps", "StatefulSet", "shop", "db")


@pytest.mark.parametrize(
    ("wanted", "lost", "where"),
    [
        ({"two": 2}, ("one",), "two 2"),
        ({}, ("one",), "where that run places it"),
        ({}, (), "nowhere"),
    ],
)
def test_nowhere_is_reported_only_where_no_cluster_fits(wanted: dict[str, int | None], lost: tuple[str, ...], where: str) -> None:
    held = HeldPlacement({"one": 2}, wanted, "one has no Cluster document", ("claim template data (1Gi)",), ("one",), lost)
    assert describe_hold_place(KEY, held)[1].startswith(f"  when released: {where} without its data; save or copy the data, then ")
    assert describe_hold(held).endswith(f"when released, it goes to {where}")
