"""Disaster recovery of Knative's vreplicas, D1 to D9: each failure is a commit that changes Nodes or Pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.knative import UNREACHABLE, node, pods, source

from .conftest import Fleet
from .vreplicas import VreplicaFleet

PLACED = {0: 2, 1: 2, 2: 2}
CORDONED: dict[str, Any] = {"cordoned": True}
LOST: dict[str, Any] = {"taints": (f"{UNREACHABLE}:NoExecute", f"{UNREACHABLE}:NoSchedule")}


@pytest.fixture
def events(fleet: Fleet) -> VreplicaFleet:
    events = VreplicaFleet(fleet)
    assert (events.placements(), events.replicas) == (PLACED, 6)
    return events


def test_d1_a_rescheduled_pod_keeps_its_vreplicas(events: VreplicaFleet) -> None:
    before = events.fleet.head
    events.commit({"pods.yaml": pods({o: n for o, n in events.nodes_by_ordinal.items() if o != 1})}, 1)
    assert events.fleet.head == before, "nothing to do while the pod is gone"
    events.move(2, p1="n0")
    assert events.fleet.head == before, "nor when it is back, on another node"


def test_d2_a_failed_pod_keeps_its_vreplicas_and_gets_no_new_ones(events: VreplicaFleet) -> None:
    present = {ordinal: name for ordinal, name in events.nodes_by_ordinal.items() if ordinal != 1}
    events.commit({"pods.yaml": pods(present), "sources/orders.yaml": source("orders", 8)}, 1)
    after = events.placements()
    assert after[1] == 2
    assert sum(after.values()) == 8
    assert {o: n for o, n in after.items() if PLACED.get(o, 0) > n} == {}, "nothing moved"


@pytest.mark.parametrize("trouble", [CORDONED, LOST], ids=["d3-cordoned", "d5-unreachable"])
def test_d3_d5_pods_on_unusable_nodes_keep_vreplicas_and_get_no_new_ones(events: VreplicaFleet, trouble: dict[str, Any]) -> None:
    before = events.fleet.head
    events.commit({"nodes/n1.yaml": node("n1", "east", **trouble)}, 1)
    assert events.fleet.head == before
    events.commit({"sources/orders.yaml": source("orders", 12)}, 2)
    after = events.placements()
    assert (after[1], after.get(4, 0), sum(after.values())) == (2, 0, 12)


def test_d4_a_drained_pod_is_schedulable_on_its_new_node(events: VreplicaFleet) -> None:
    before = events.fleet.head
    events.commit({"nodes/n1.yaml": node("n1", "east", cordoned=True)}, 1)
    events.move(2, p1="n0", p4="n2")
    assert events.fleet.head == before
    events.commit({"sources/orders.yaml": source("orders", 24)}, 3)
    assert events.placements() == dict.fromkeys(range(6), 4), "the recreated pods are filled up, too"


def test_d5_a_pod_that_restarts_on_another_node_has_its_vreplicas_and_takes_new_ones(events: VreplicaFleet) -> None:
    before = events.fleet.head
    events.commit({"nodes/n1.yaml": node("n1", "east", **LOST)}, 1)
    events.move(2, p1=None, p4=None)
    events.move(3, p1="n0", p4="n2")
    assert events.fleet.head == before, "the pods have the same ordinals"
    events.commit({"sources/orders.yaml": source("orders", 24)}, 4)
    assert events.placements() == dict.fromkeys(range(6), 4)


def test_d5_a_source_scaled_up_meanwhile_is_placed_again_on_running_pods_by_replace(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet, scaleUp="replace")
    events.commit({"nodes/n1.yaml": node("n1", "east", **LOST), "sources/orders.yaml": source("orders", 8)}, 1)
    assert events.placements() == {0: 4, 2: 4}


def test_d5_vreplicas_are_not_spread_over_an_unreachable_node(events: VreplicaFleet) -> None:
    events.commit(
        {"nodes/n1.yaml": node("n1", "east", taints=(f"{UNREACHABLE}:NoSchedule",)), "sources/orders.yaml": source("orders", 19)}, 1
    )
    assert sum(events.placements().values()) == 18
    assert events.replicas == 8, "one vreplica is pending, and pods come in pairs now: one for each node that is left"


def test_d6_a_source_scaled_up_during_an_outage_is_spread_over_the_remaining_pods(events: VreplicaFleet) -> None:
    events.commit(
        {"nodes/n2.yaml": node("n2", "west", taints=(f"{UNREACHABLE}:NoExecute",)), "sources/orders.yaml": source("orders", 10)}, 1
    )
    after = events.placements()
    assert {ordinal: after[ordinal] - PLACED.get(ordinal, 0) for ordinal in after} == {0: 2, 1: 2, 2: 0}


@pytest.mark.parametrize("trouble", [CORDONED, LOST], ids=["cordoned", "unreachable"])
def test_d7_nothing_moves_after_a_failed_zone_returns(events: VreplicaFleet, trouble: dict[str, Any]) -> None:
    down = {f"nodes/{name}.yaml": node(name, "east", **trouble) for name in ("n0", "n1")}
    events.commit({**down, "sources/orders.yaml": source("orders", 14)}, 1)
    assert events.placements() == {0: 2, 1: 2, 2: 4, 5: 4}, "the pods of the other zone are full"
    assert len(events.findings("knative-pending")) == 1
    assert events.replicas == 7, "one node is left to spread over, and one pod has room for what is pending"

    back = {f"nodes/{name}.yaml": node(name, "east") for name in ("n0", "n1")}
    events.commit(back, 2)
    after = events.placements()
    assert (after[2], after[5], sum(after.values())) == (4, 4, 14), "what was pending is placed, what was placed stays"
    assert events.findings("knative-moved") == []


def test_d8_pending_pods_do_not_block_other_sources(events: VreplicaFleet) -> None:
    events.nodes_by_ordinal.update({6: None, 7: None})
    events.commit(
        {
            "pods.yaml": pods(events.nodes_by_ordinal),
            "adapter.yaml": events.adapter(8),
            "sources/more.yaml": source("more", 3),
        },
        1,
    )
    assert sum(events.placements("more").values()) == 3
    assert {6, 7}.isdisjoint(events.placements("more"))


def test_d9_a_missing_node_affects_only_its_own_pods(events: VreplicaFleet) -> None:
    events.commit({"nodes/n1.yaml": None, "sources/more.yaml": source("more", 4)}, 1)
    assert events.placements() == PLACED
    assert sum(events.placements("more").values()) == 4
    assert {1, 4}.isdisjoint(events.placements("more"))
    (message,) = events.findings("knative-node-missing")
    assert "kafkasource-mt-adapter-1, kafkasource-mt-adapter-4" in message


@pytest.mark.parametrize(
    ("files", "failed"),
    [
        pytest.param({"pods.yaml": pods({0: "n0", 2: "n2"})}, "kafkasource-mt-adapter-1", id="the Pod does not exist"),
        pytest.param({"pods.yaml": pods({0: "n0", 1: None, 2: "n2"})}, "kafkasource-mt-adapter-1", id="it has no node"),
        pytest.param({"nodes/n1.yaml": None}, "kafkasource-mt-adapter-1", id="its Node does not exist"),
        pytest.param({"nodes/n1.yaml": node("n1", "east", **LOST)}, "kafkasource-mt-adapter-1", id="its node is unreachable"),
        pytest.param({"nodes/n1.yaml": node("n1", "east", **CORDONED)}, "", id="a cordoned node runs its pods"),
        pytest.param(
            {f"nodes/{name}.yaml": node(name, "east", **LOST) for name in ("n0", "n1")},
            "kafkasource-mt-adapter-0, kafkasource-mt-adapter-1",
            id="a zone fails",
        ),
    ],
)
def test_vreplicas_on_pods_that_do_not_run_are_reported(events: VreplicaFleet, files: dict[str, str | None], failed: str) -> None:
    events.fleet.commit(files, hour=1)
    findings = events.fleet.preview(1).plan.findings
    messages = [finding.message for finding in findings if finding.code == "knative-unavailable"]
    count = 2 * len(failed.split(", "))
    expected = f"{failed} do not run, and keep their vreplicas until they return; unavailable: {count} vreplicas of 1 source: "
    assert messages == ([f"{expected}shop/orders ({count})"] if failed else [])
