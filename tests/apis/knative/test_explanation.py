"""Results of pods in explanations: why a pod takes no new vreplicas, and its free capacity."""

from __future__ import annotations

import pytest

from tests.builders.knative import ADAPTER, UNREACHABLE, adapter, node, pod, schedule, source


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        pytest.param((node("n0", "east"), pod(0, "n0", marked=True)), "it is marked unschedulable", id="marked"),
        pytest.param((pod(0, None),), "it has no node yet", id="pending"),
        pytest.param((pod(0, "n0"),), "its Node n0 does not exist", id="missing node"),
        pytest.param((node("n0", "east", cordoned=True), pod(0, "n0")), "its node n0 is cordoned or unreachable", id="cordoned"),
        pytest.param(
            (node("n0", "east", taints=[f"{UNREACHABLE}:NoExecute"]), pod(0, "n0")),
            "its node n0 is cordoned or unreachable",
            id="unreachable",
        ),
    ],
)
def test_an_unschedulable_pod_has_a_reason(texts: tuple[str, ...], reason: str) -> None:
    (result,) = schedule(adapter(1), *texts, source("orders", 1)).explain("KafkaSource", "orders", "shop")
    assert (result.name, result.eligible, result.reason) == (f"{ADAPTER}-0", False, reason)


def test_the_statefulset_is_explained_by_the_free_capacity_of_its_pods() -> None:
    run = schedule(adapter(1), node("n0", "east"), pod(0, "n0"), source("orders", 3))
    (result,) = run.explain("StatefulSet", ADAPTER, "knative-eventing")
    assert result.scores == {"free": 1}
