"""Decision groups, PlacementDecisions, and the status of a Placement."""

from __future__ import annotations

import pytest

import gitsched
from tests.apis.ocm.chosen_clusters import NOW
from tests.builders.ocm import Body, bound_global_set, managed_cluster, placement


def list_groups(strategy: Body, stages: list[str]) -> list[tuple[str, list[str]]]:
    clusters = [managed_cluster(f"c{at:03}", {"stage": stage}) for at, stage in enumerate(stages)]
    body = placement("p", "ns", decisionStrategy={"groupStrategy": strategy})
    result = gitsched.schedule([*bound_global_set("ns"), *clusters, body], now=NOW)
    (status,) = (document["status"] for document in result.documents if document["kind"] == "Placement")
    return [(group["decisionGroupName"], group["decisions"]) for group in status["decisionGroups"]]


def names(*numbers: int) -> list[str]:
    return [f"p-decision-{number}" for number in numbers]


@pytest.mark.parametrize(
    ("strategy", "groups"),
    [
        ({}, [("", names(1))]),
        ({"clustersPerDecisionGroup": 3}, [("", names(1)), ("", names(2))]),
        ({"clustersPerDecisionGroup": "25%"}, [("", names(1)), ("", names(2)), ("", names(3))]),
        (
            {
                "decisionGroups": [
                    {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"stage": "a"}}}}
                ]
            },
            [("canary", names(1)), ("", names(2))],
        ),
    ],
)
def test_clusters_are_divided_into_decision_groups(strategy: Body, groups: list[tuple[str, list[str]]]) -> None:
    assert list_groups(strategy, ["a", "a", "b", "b", "b"]) == groups


def test_a_placement_decision_has_at_most_100_clusters() -> None:
    assert list_groups({}, ["a"] * 201) == [("", names(1, 2, 3))]


def test_a_placement_without_clusters_has_one_empty_group() -> None:
    assert list_groups({}, []) == [("", names(1))]
