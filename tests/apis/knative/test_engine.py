"""The engine over one snapshot: placements, kept placements, and the findings and explanations of a run."""

from __future__ import annotations

import pytest

from tests.builders.knative import adapter, node, placements, pods, schedule, source

FLEET = (adapter(2), node("n0", "east"), node("n1", "west"), pods({0: "n0", 1: "n1"}))


def test_vreplicas_are_spread_over_the_pods() -> None:
    assert placements(schedule(*FLEET, source("orders", 6)).documents, "orders") == {0: 3, 1: 3}


def test_a_second_run_keeps_all_placements() -> None:
    first = schedule(*FLEET, source("orders", 6))
    second = schedule(*FLEET, source("orders", 6), previous=first.documents)
    assert second.documents == first.documents


def test_only_new_vreplicas_of_a_growing_source_are_placed() -> None:
    first = schedule(*FLEET, source("orders", 1))
    before = placements(first.documents, "orders")
    after = placements(schedule(*FLEET, source("orders", 3), previous=first.documents).documents, "orders")
    assert sum(after.values()) == 3
    assert all(after[ordinal] >= number for ordinal, number in before.items())


def test_without_a_capacity_nothing_is_scheduled() -> None:
    run = schedule(*FLEET, source("orders", 1), capacity=None, cluster="events")
    assert [finding.code for finding in run.findings] == ["knative-capacity"]
    assert not any(body["kind"] == "KafkaSource" for body in run.documents)


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        ((*FLEET, source("orders", 9)), "knative-pending"),
        ((adapter(1), pods({0: "gone"})), "knative-node-missing"),
        ((source("orders", 1),), "knative-adapter"),
    ],
)
def test_problems_are_reported(texts: tuple[str, ...], code: str) -> None:
    assert code in {finding.code for finding in schedule(*texts).findings}


def test_explain_has_a_result_for_each_pod() -> None:
    results = schedule(*FLEET, source("orders", 8)).explain("KafkaSource", "orders", "shop")
    assert [(result.eligible, result.reason) for result in results] == [(False, "PodFitsResources: the pod is full")] * 2
