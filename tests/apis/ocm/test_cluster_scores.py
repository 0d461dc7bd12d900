"""ClusterScores: normalization and the AddOnPlacementScores built from them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gitsched.apis.ocm.cluster_scores import ScoreDefinition, ScoreRange, build_addon_scores, normalize_scores
from tests.builders.ocm import addon_scores


@pytest.mark.parametrize(
    ("score_range", "prefer", "scores"),
    [
        (ScoreRange(0, 100), "High", [-100, 0, 100]),
        (ScoreRange(100, 0), "High", [100, 0, -100]),
        (ScoreRange(50, 60), "High", [-100, -100, 100]),
        (None, "High", [-100, 0, 100]),
        (None, "Low", [100, 0, -100]),
    ],
)
def test_values_are_normalized_to_the_range(score_range: ScoreRange | None, prefer: str, scores: list[int]) -> None:
    definition = ScoreDefinition("cpu", "static", {}, score_range, prefer)
    assert list(normalize_scores({"ash": 0, "bru": 50, "cph": 100}, definition).values()) == scores


def test_equal_values_without_a_range_get_the_highest_score() -> None:
    assert normalize_scores({"ash": 5, "bru": 5}, ScoreDefinition("cpu", "static", {}, None, "Low")) == {"ash": 100, "bru": 100}


def test_clusters_without_a_score_or_with_a_dot_have_no_document() -> None:
    columns = {"cpu": {"ash": 1, "a.b": 2}, "memory": {"ash": 3}}
    until = datetime(2026, 3, 2, 8, tzinfo=UTC)
    expected = addon_scores("ash", {"cpu": 1, "memory": 3}, valid_until="2026-03-02T08:00:00Z")
    assert build_addon_scores("default", ["bru", "ash", "a.b"], columns, until) == [expected]
