"""ClusterScores: normalization and the AddOnPlacementScores built from them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.apis.ocm.cluster_scores import ScoreDefinition, ScoreRange, build_documents, normalize_scores
from gitsched.apis.policy_api import ScoreInput
from gitsched.model.document import Body
from gitsched.model.time import format_time
from tests.builders.ocm import addon_scores
from tests.tables import each_row


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


@pytest.mark.parametrize(("gigabytes", "score"), [(0.5, -100), (1, -100), (25.75, -50), (50.5, 0), (100, 100), (512, 100)])
def test_allocatable_memory_is_distributed_between_a_reasonable_minimum_and_maximum(gigabytes: float, score: int) -> None:
    definition = ScoreDefinition("memory", "static", {}, ScoreRange(1e9, 100e9), "High")
    assert normalize_scores({"ash": gigabytes * 1e9}, definition) == {"ash": score}


def test_equal_values_without_a_range_get_the_highest_score() -> None:
    assert normalize_scores({"ash": 5, "bru": 5}, ScoreDefinition("cpu", "static", {}, None, "Low")) == {"ash": 100, "bru": 100}


NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)


def make_definition(*scores: str, valid_for: str = "1h") -> Body:
    entries = [{"name": name, "prometheus": {}, "range": {"worst": 0, "best": 200}} for name in scores]
    return {"metadata": {"name": "default"}, "spec": {"validFor": valid_for, "scores": entries}}


def build(values: dict[str, float], previous: list[Body], *, minutes: float = 0, valid_for: str = "1h") -> list[Body]:
    """Return the documents of the score cpu; the values are the exact scores plus 100."""
    earlier = {body["metadata"]["namespace"]: body for body in previous}
    shifted = {cluster: value + 100 for cluster, value in values.items()}
    definition, now = make_definition("cpu", valid_for=valid_for), NOW + timedelta(minutes=minutes)
    return build_documents(ScoreInput(definition, frozenset({"ash", "bru"}), {"cpu": shifted}, earlier, now))


def test_clusters_without_a_score_or_with_a_dot_have_no_document() -> None:
    values = {"cpu": {"ash": 0.0, "a.b": 2.0}, "memory": {"ash": 200.0}}
    found = build_documents(
        ScoreInput(make_definition("cpu", "memory", valid_for="30m"), frozenset({"bru", "ash", "a.b"}), values, {}, NOW)
    )
    assert found == [addon_scores("ash", {"cpu": -100, "memory": 100}, valid_until="2026-03-02T08:30:00Z")]


@each_row(
    ("exact", "previous", "score"),
    [
        (72.4, None, 70),
        (72.6, None, 75),
        (72.4, 75, 75),
        (70.1, 75, 75),
        (70.0, 75, 70),
        (79.9, 75, 75),
        (80.0, 75, 80),
        (100, 98, 100),
        (-100, -97, -100),
        (250, 95, 100),
    ],
)
def test_a_score_is_a_multiple_of_the_step_and_ignores_smaller_changes(exact: float, previous: int | None, score: int) -> None:
    before = {} if previous is None else {"ash": previous}
    definition = ScoreDefinition("cpu", "prometheus", {}, ScoreRange(-100, 100), "High", step=5)
    assert normalize_scores({"ash": exact}, definition, before) == {"ash": score}


@pytest.mark.parametrize(
    ("minutes", "values", "expiries"),
    [
        (0, {"ash": 50, "bru": 20}, {"ash": 60, "bru": 60}),
        (30, {"ash": 52, "bru": 18}, {"ash": 60, "bru": 60}),
        (30.1, {"ash": 50, "bru": 20}, {"ash": 90.1, "bru": 90.1}),
        (61, {"ash": 50, "bru": 20}, {"ash": 121, "bru": 121}),
        (1, {"ash": 50, "bru": 40}, {"ash": 60, "bru": 61}),
        (31, {"ash": 50, "bru": 40}, {"ash": 91, "bru": 91}),
        (1, {"ash": 50}, {"ash": 60}),
    ],
    ids=["same time", "half of the time remains", "less remains", "expired", "a score changed", "both", "a score is missing"],
)
def test_a_document_stays_until_a_score_changes_or_less_than_half_of_its_time_remains(
    minutes: float, values: dict[str, float], expiries: dict[str, float]
) -> None:
    first = build({"ash": 50, "bru": 20}, [])
    second = build(values, first, minutes=minutes)
    found = {body["metadata"]["namespace"]: body["status"]["validUntil"] for body in second}
    assert found == {cluster: format_time(NOW + timedelta(minutes=after)) for cluster, after in expiries.items()}


@pytest.mark.parametrize(("before", "after", "kept"), [("1h", "30m", False), ("30m", "45m", True), ("1h", "forever", False)])
def test_another_valid_for_moves_the_expiry(before: str, after: str, kept: bool) -> None:
    first = build({"ash": 50}, [], valid_for=before)
    assert (build({"ash": 50}, first, valid_for=after) == first) is kept


@given(st.lists(st.floats(-150, 150), min_size=1, max_size=20), st.integers(1, 100))
def test_a_score_is_never_a_step_or_more_away_from_the_value(values: list[float], step: int) -> None:
    definition = ScoreDefinition("cpu", "prometheus", {}, ScoreRange(-100, 100), "High", step)
    scores: dict[str, int] = {}
    for value in values:
        scores = normalize_scores({"ash": value}, definition, scores)
        exact = max(-100, min(100, value))
        assert abs(scores["ash"] - exact) < max(step, 1.000001)
