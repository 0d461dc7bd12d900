"""Results of pods in explanations: why a pod takes no new vreplicas, and its free capacity."""

from __future__ import annotations

import pytest

from tests.builders.knative import ADAPTER, UNREACHABLE, adapter, node, placements, pod, schedule, source


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


SKEW_POLICY = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: config-scheduler, namespace: knative-eventing}
data:
  predicates: '[{"Name": "PodFitsResources"}, {"Name": "EvenPodSpread", "Args": "{\\"MaxSkew\\": 1}"}]'
  priorities: '[{"Name": "LowestOrdinalPriority", "Weight": 1}]'
"""
UNEVEN = source("orders", 3).replace(
    "spec:", f"status: {{placements: [{{podName: {ADAPTER}-0, vreplicas: 2}}, {{podName: {ADAPTER}-1, vreplicas: 1}}]}}\nspec:"
)


@pytest.mark.parametrize(("mode", "eligible"), [("soft", True), ("strict", False)])
def test_a_pod_that_only_even_spread_rejects_is_eligible_unless_the_mode_is_strict(mode: str, eligible: bool) -> None:
    run = schedule(
        adapter(2), node("n0", "east"), pod(0, "n0"), pod(1, "n0"), SKEW_POLICY, UNEVEN, evenPodSpread=mode, cluster="events"
    )
    first, second = run.explain("KafkaSource", "orders", "shop")
    assert (second.eligible, second.reason) == (True, "")
    assert first.eligible is eligible
    assert first.reason.startswith("EvenPodSpread: the skew between the pods would be too large")
    assert ("used only for vreplicas that no other pod can take" in first.reason) is eligible
    assert bool(first.scores) is eligible


@pytest.mark.parametrize(("mode", "placed"), [("soft", 5), ("strict", 3)])
def test_a_strict_spread_leaves_vreplicas_pending(mode: str, placed: int) -> None:
    """Pod 1 has room for one vreplica only, because another source fills it."""
    full = source("full", 3).replace("spec:", f"status: {{placements: [{{podName: {ADAPTER}-1, vreplicas: 3}}]}}\nspec:")
    texts = (adapter(2), node("n0", "east"), pod(0, "n0"), pod(1, "n0"), SKEW_POLICY, full, source("orders", 5))
    run = schedule(*texts, evenPodSpread=mode, cluster="events")
    assert sum(placements(run.documents, "orders").values()) == placed
