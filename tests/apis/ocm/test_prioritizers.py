"""Scores for prioritizers: quantities, allocatable resources, AddOnPlacementScores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gitsched.apis.ocm.names import ADDON_SCORE, GROUP
from gitsched.apis.ocm.prioritizers import PrioritizerScores, approximate_float64
from gitsched.model.document import Document, Key
from tests.apis.ocm.chosen_clusters import list_chosen
from tests.builders.ocm import Body, addon_scores, bound_global_set, built_in, managed_cluster, placement

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)


def read_scores(*bodies: Body) -> PrioritizerScores:
    documents = [
        Document(Key(GROUP, ADDON_SCORE, body["metadata"]["namespace"], body["metadata"]["name"]), body["apiVersion"], body)
        for body in bodies
    ]
    return PrioritizerScores(documents, ("ash", "bru", "cph"), ())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        ("500m", 0.5),
        ("1.5Gi", 1.5 * 2**30),
        ("-2k", -2000.0),
        ("1e3", 1000.0),
        ("1E", 1e18),
        ("x", None),
        ("1e999", None),
    ],
)
def test_a_quantity_is_approximated_as_float64(text: str, value: float | None) -> None:
    assert approximate_float64(text) == value


def test_an_add_on_score_is_valid_up_to_and_including_valid_until() -> None:
    scores = read_scores(
        addon_scores("ash", {"cpu": 7}, valid_until="2026-03-02T08:00:00Z"),
        addon_scores("bru", {"memory": 9}),
        addon_scores("cph", {"cpu": 3}),
    )
    valid = scores.add_on("default", "cpu", NOW)
    assert (valid.expired, valid.missing, valid.next_expiry) == ((), (1,), NOW + timedelta(microseconds=1))
    expired = scores.add_on("default", "cpu", NOW + timedelta(microseconds=1))
    assert (expired.expired, expired.missing, expired.next_expiry) == (((0, NOW),), (1,), None)


@pytest.mark.parametrize(
    ("capacity", "chosen"), [({"cpu": "4"}, ["ash"]), ({}, ["bru"])], ids=["in the capacity", "not in the capacity"]
)
def test_an_allocatable_resource_counts_if_it_is_in_the_capacity(capacity: dict[str, Any], chosen: list[str]) -> None:
    large, small = managed_cluster("ash"), managed_cluster("bru")
    large["status"] = {"allocatable": {"cpu": "4"}, "capacity": capacity}
    small["status"] = {"allocatable": {"cpu": "2"}, "capacity": {"cpu": "2"}}
    prioritizers = [built_in("ResourceAllocatableCPU")]
    smallest = managed_cluster("cph")
    smallest["status"] = {"allocatable": {"cpu": "1"}, "capacity": {"cpu": "1"}}
    fleet = [*bound_global_set("ns"), large, small, smallest]
    assert list_chosen([*fleet, placement("p", "ns", 1, prioritizers)]) == chosen
