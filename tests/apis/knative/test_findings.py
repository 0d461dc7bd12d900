"""Findings of a run about pending, placed, moved and removed vreplicas."""

from __future__ import annotations

from collections.abc import Container

import pytest

import gitsched
from tests.builders.knative import ADAPTER, MARK, adapter, node, pods, schedule, source

NODES = (node("n0", "east"), node("n1", "west"))


def messages(run: gitsched.Schedule, code: str) -> list[str]:
    return [finding.message for finding in run.findings if finding.code == code]


def test_placed_vreplicas_are_counted_by_source() -> None:
    run = schedule(adapter(2), *NODES, pods({0: "n0", 1: "n1"}), source("orders", 6))
    assert messages(run, "knative-placed") == ["placed 6 vreplicas of 1 source: shop/orders (6)"]


def test_removed_vreplicas_are_counted_by_source() -> None:
    documents = (adapter(2), *NODES, pods({0: "n0", 1: "n1"}))
    first = schedule(*documents, source("orders", 6))
    run = schedule(*documents, source("orders", 5), previous=first.documents)
    assert messages(run, "knative-removed") == ["removed 1 vreplica of 1 source: shop/orders (1)"]


def test_moves_from_a_marked_pod_are_reported_with_both_pods() -> None:
    first = schedule(adapter(2), *NODES, pods({0: "n0", 1: "n1"}), source("orders", 2))
    run = schedule(adapter(2), *NODES, pods({0: "n0", 1: "n1"}, marked={1}), source("orders", 2), previous=first.documents)
    (message,) = messages(run, "knative-moved")
    assert "from kafkasource-mt-adapter-1 (1) to kafkasource-mt-adapter-0 (1)" in message


def test_vreplicas_that_cannot_leave_a_marked_pod_are_reported() -> None:
    first = schedule(adapter(2), *NODES, pods({0: "n0", 1: "n1"}), source("orders", 8))
    run = schedule(adapter(2), *NODES, pods({0: "n0", 1: "n1"}, marked={1}), source("orders", 8), previous=first.documents)
    (message,) = messages(run, "knative-lingering")
    assert message.startswith("4 vreplicas of ")


def test_a_statefulset_without_a_cluster_is_reported() -> None:
    (message,) = messages(schedule(adapter(2), source("orders", 1)), "knative-no-cluster")
    assert "set spec.knative.cluster" in message


@pytest.mark.parametrize(
    ("marked", "consumers", "expected"),
    [
        pytest.param(
            {0},
            4,
            [
                f"{ADAPTER}-0 stays without vreplicas, because {ADAPTER}-1 has some; {ADAPTER}-0 is marked unschedulable: remove the "
                f"annotation {MARK} to use it"
            ],
            id="before a pod with vreplicas",
        ),
        pytest.param({1}, 4, [], id="the last pod"),
        pytest.param({0}, 9, [], id="pending vreplicas name the mark"),
        pytest.param((), 4, [], id="no mark"),
    ],
)
def test_a_marked_pod_that_stays_without_vreplicas_is_reported(marked: Container[int], consumers: int, expected: list[str]) -> None:
    run = schedule(
        adapter(2),
        *NODES,
        pods({0: "n0", 1: "n1"}, marked=marked),
        source("orders", consumers),
        autoscaler={"attemptScaleDown": False},
    )
    assert messages(run, "knative-unused-pods") == expected
