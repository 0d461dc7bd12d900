"""Rollout strategies, the recorded rollout, and reports of clusters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gitsched.apis.ocm.rollout import (
    NO_PREVIOUS_ROLLOUT,
    ROLLOUT_ANNOTATION,
    format_rollout,
    read_previous_rollout,
    waits_for_reports,
)
from gitsched.model.document import Key
from gitsched.schedule.rollout import (
    FAILURE,
    SUCCESS,
    ClusterRevision,
    RolloutGroup,
    RolloutProgress,
    RolloutReport,
    RolloutStrategy,
    advance_rollout,
    parse_rollout_strategy,
)
from tests.builders.ocm import Body

NOW = datetime(2026, 3, 2, 8, tzinfo=UTC)
GROUPS = (RolloutGroup("canary", 0, ("ash", "bru")), RolloutGroup("", 1, ("cph", "dub")))
MINUTE = timedelta(minutes=1)


def advance(
    strategy: RolloutStrategy, reports: dict[str, str] | None = None, now: datetime = NOW, previous: RolloutProgress | None = None
) -> RolloutProgress:
    latest = {name: RolloutReport(state, NOW) for name, state in (reports or {}).items()}
    return advance_rollout(strategy, GROUPS, "new", previous.revisions if previous else {}, latest, now)


def updated(progress: RolloutProgress) -> str:
    return " ".join(sorted(name for name, applied in progress.revisions.items() if applied.revision == "new"))


@pytest.mark.parametrize(
    ("strategy", "failed", "is_complete"),
    [
        (RolloutStrategy("Progressive", max_failures="25%"), "dub", True),
        (RolloutStrategy("Progressive", max_failures=1), "cph dub", False),
        (RolloutStrategy("Progressive", max_failures=4, mandatory_groups=("canary",)), "ash", False),
        (RolloutStrategy("ProgressivePerGroup", max_failures=1), "ash", True),
        (RolloutStrategy("ProgressivePerGroup", max_failures=1), "ash dub", False),
    ],
)
def test_a_rollout_is_complete_with_no_more_failures_than_allowed(
    strategy: RolloutStrategy, failed: str, is_complete: bool
) -> None:
    everywhere = advance(RolloutStrategy())
    reports = {name: FAILURE if name in failed.split() else SUCCESS for group in GROUPS for name in group.clusters}
    assert advance(strategy, reports, previous=everywhere).is_complete is is_complete
    assert not advance(strategy, {"ash": SUCCESS}, previous=everywhere).is_complete, "the others have not reported"


@pytest.mark.parametrize(
    ("strategy", "clusters"),
    [
        (RolloutStrategy(), "ash bru cph dub"),
        (RolloutStrategy("Progressive", 1), "ash"),
        (RolloutStrategy("Progressive", "75%"), "ash bru cph"),
        (RolloutStrategy("Progressive", None), "ash bru cph dub"),
        (RolloutStrategy("Progressive", 3, mandatory_groups=("canary",)), "ash bru"),
        (RolloutStrategy("ProgressivePerGroup"), "ash bru"),
        (RolloutStrategy("ProgressivePerGroup", mandatory_groups=(1,)), "cph dub"),
    ],
)
def test_the_first_step_of_a_strategy(strategy: RolloutStrategy, clusters: str) -> None:
    assert updated(advance(strategy)) == clusters


@pytest.mark.parametrize(
    ("reports", "max_failures", "clusters"),
    [
        ({"ash": SUCCESS}, 0, "ash bru"),
        ({"ash": SUCCESS, "bru": SUCCESS}, 0, "ash bru cph dub"),
        ({"ash": SUCCESS, "bru": FAILURE}, 0, "ash bru"),
        ({"ash": SUCCESS, "bru": FAILURE}, 1, "ash bru cph dub"),
        ({"ash": SUCCESS, "bru": FAILURE}, "25%", "ash bru cph dub"),
    ],
)
def test_the_next_group_needs_reports_and_at_most_max_failures(
    reports: dict[str, str], max_failures: object, clusters: str
) -> None:
    assert updated(advance(RolloutStrategy("ProgressivePerGroup", max_failures=max_failures), reports)) == clusters


def test_success_counts_after_the_minimum_time() -> None:
    strategy = RolloutStrategy("ProgressivePerGroup", min_success_time=MINUTE)
    reports = {"ash": SUCCESS, "bru": SUCCESS}
    waiting = advance(strategy, reports)
    assert (updated(waiting), waiting.wakeup) == ("ash bru", NOW + MINUTE)
    assert updated(advance(strategy, reports, NOW + MINUTE, waiting)) == "ash bru cph dub"


def test_a_cluster_without_report_fails_at_the_progress_deadline() -> None:
    strategy = RolloutStrategy("ProgressivePerGroup", progress_deadline=MINUTE)
    waiting = advance(strategy)
    assert (waiting.failed, waiting.wakeup) == (frozenset(), NOW + MINUTE)
    assert advance(strategy, now=NOW + MINUTE, previous=waiting).failed == {"ash", "bru"}


def test_a_strategy_is_parsed_with_the_defaults_of_its_type() -> None:
    settings: Body = {
        "maxFailures": "10%",
        "minSuccessTime": "5m",
        "progressDeadline": "1h",
        "mandatoryDecisionGroups": [{"groupName": "a"}, {"groupIndex": 0}],
    }
    written: Body = {"type": "Progressive", "progressive": settings}
    expected = RolloutStrategy("Progressive", "50%", "10%", 5 * MINUTE, 60 * MINUTE, ("a", 0))
    assert parse_rollout_strategy(written, "50%") == expected
    assert parse_rollout_strategy({"type": "Progressive", "progressive": {"progressDeadline": "None"}}, 2).progress_deadline is None
    assert parse_rollout_strategy({}, "50%") == RolloutStrategy()


def test_a_recorded_rollout_is_read_back() -> None:
    revisions = {"ash": ClusterRevision("a", NOW), "bru": ClusterRevision("b", NOW), "cph": ClusterRevision("a", NOW)}
    objects = (Key("", "ConfigMap", "web", "settings"),)
    for lost in ({}, {"dub": NOW}):
        record = {"metadata": {"annotations": {ROLLOUT_ANNOTATION: format_rollout(revisions, objects, lost)}}}
        assert read_previous_rollout(record) == (revisions, objects, lost)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"steps": [1], "objects": []}', '{"steps": [], "objects": [["a"]]}'])
def test_an_invalid_record_is_ignored(text: str) -> None:
    assert read_previous_rollout({"metadata": {"annotations": {ROLLOUT_ANNOTATION: text}}}) == NO_PREVIOUS_ROLLOUT


@pytest.mark.parametrize(("kind", "waits"), [(None, False), ("All", False), ("Progressive", True), ("ProgressivePerGroup", True)])
def test_only_progressive_rollouts_wait_for_reports(kind: str | None, waits: bool) -> None:
    strategy = {"rolloutStrategy": {"type": kind}} if kind else {}
    assert waits_for_reports({"spec": {"placementRefs": [{"name": "p", **strategy}, "invalid"]}}) is waits
    assert not waits_for_reports({"spec": {"placementRefs": "invalid"}})
