"""Explanations of Placements."""

from __future__ import annotations

import gitsched
from gitsched.decide.workload_explanation import explain_workload
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


def list_time_limits(*scores: Body) -> list[tuple[str, ...]]:
    """Return the rows of the table of times, for clusters without labels."""
    clusters = [managed_cluster(body["metadata"]["namespace"]) for body in scores]
    body = placement("p", "ns", 1, [add_on("cpu")])
    result = gitsched.schedule([*bound_global_set("ns"), *clusters, *scores, body], now=NOW)
    (document,) = (d for d in result.decisions.catalog.api_documents_by_key.values() if d.key.kind == "Placement")
    explanation = explain_workload(result.decisions, document)
    assert explanation is not None
    return [row for table in explanation.tables for row in table.rows]


def test_the_list_of_times_is_bounded() -> None:
    same = [addon_scores(f"c{number}", {"cpu": 1}, valid_until="2030-01-01T00:00:00Z") for number in range(7)]
    assert list_time_limits(*same) == [("2030-01-01T00:00:00Z", "c0, c1, c2, c3, c4 and 2 more", "the score default/cpu expires")]
    different = [addon_scores(f"c{number}", {"cpu": 1}, valid_until=f"2030-01-01T00:{number}:00Z") for number in range(10, 33)]
    rows = list_time_limits(*different)
    assert (len(rows), rows[0][0], rows[-1]) == (21, "2030-01-01T00:10:00Z", ("later", "", "3 more"))
    assert list_time_limits(addon_scores("c0", {"cpu": 1})) == []
