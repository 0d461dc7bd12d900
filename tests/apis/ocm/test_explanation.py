"""Explanations of Placements."""

from __future__ import annotations

import gitsched
from tests.apis.ocm.chosen_clusters import NOW
from tests.builders.ocm import (
    Body,
    add_on,
    addon_scores,
    bound_global_set,
    label_predicate,
    managed_cluster,
    placement,
    taint,
)

FLEET = [
    *bound_global_set("ns"),
    managed_cluster("ash", {"disk": "ssd"}),
    managed_cluster("bru", {"disk": "ssd"}),
    managed_cluster("cph", {"disk": "hdd"}),
    managed_cluster("dub", {"disk": "ssd"}, [taint("power")]),
    managed_cluster("edi", {"disk": "ssd"}),
    *(addon_scores(name, {"cpu": 10}) for name in ("ash", "bru")),
]


def explain(number: int) -> dict[str, str]:
    body: Body = placement("p", "ns", number, [add_on("cpu", 2)], predicates=[label_predicate(disk="ssd")])
    result = gitsched.schedule([*FLEET, body], now=NOW)
    return {candidate.name: candidate.reason for candidate in result.explain("Placement", "p", "ns")}


def test_each_cluster_that_is_not_selected_has_a_reason() -> None:
    reasons = explain(1)
    assert reasons["ash"] == ""
    assert reasons["bru"] == "it has the same total score as ash, which is first by name"
    assert reasons["edi"] == "its total score is below 20, the score of ash"
    assert "predicate" in reasons["cph"]
    assert "power:NoSelect" in reasons["dub"]
