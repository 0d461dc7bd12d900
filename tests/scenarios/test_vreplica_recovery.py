"""Disaster recovery of Knative's vreplicas, D1 to D9: each failure is a commit that changes Nodes or Pods."""

from __future__ import annotations

import pytest

from .conftest import Fleet
from .vreplicas import UNREACHABLE, Stage, node, pods, source

PLACED = {0: 2, 1: 2, 2: 2}
CORDONED = {"cordoned": True}
LOST = {"taints": (f"{UNREACHABLE}:NoExecute", f"{UNREACHABLE}:NoSchedule")}


@pytest.fixture
def stage(fleet: Fleet) -> Stage:
    stage = Stage(fleet)
    assert (stage.placements(), stage.replicas) == (PLACED, 6)
    return stage


def test_d1_a_pod_that_fails_and_comes_back_elsewhere_keeps_its_vreplicas(stage: Stage) -> None:
    before = stage.fleet.head
    stage.commit({"pods.yaml": pods({o: n for o, n in stage.where.items() if o != 1})}, 1)
    assert stage.fleet.head == before, "nothing to do while the pod is gone"
    stage.move(2, p1="n0")
    assert stage.fleet.head == before, "nor when it is back, on another node"


def test_d2_while_a_pod_is_gone_its_vreplicas_stay_and_new_ones_go_to_others(stage: Stage) -> None:
    present = {ordinal: name for ordinal, name in stage.where.items() if ordinal != 1}
    stage.commit({"pods.yaml": pods(present), "sources/orders.yaml": source("orders", 8)}, 1)
    after = stage.placements()
    assert after[1] == 2
    assert sum(after.values()) == 8
    assert {o: n for o, n in after.items() if PLACED.get(o, 0) > n} == {}, "nothing moved"


@pytest.mark.parametrize("trouble", [CORDONED, LOST], ids=["d3-cordoned", "d5-unreachable"])
def test_d3_d5_what_is_on_a_node_that_takes_nothing_stays_and_nothing_new_comes(stage: Stage, trouble: dict[str, object]) -> None:
    before = stage.fleet.head
    stage.commit({"nodes/n1.yaml": node("n1", "east", **trouble)}, 1)
    assert stage.fleet.head == before
    stage.commit({"sources/orders.yaml": source("orders", 12)}, 2)
    after = stage.placements()
    assert (after[1], after.get(4, 0), sum(after.values())) == (2, 0, 12)


def test_d4_a_drained_pod_is_as_good_as_before_while_its_old_node_is_still_cordoned(stage: Stage) -> None:
    before = stage.fleet.head
    stage.commit({"nodes/n1.yaml": node("n1", "east", cordoned=True)}, 1)
    stage.move(2, p1="n0", p4="n2")
    assert stage.fleet.head == before
    stage.commit({"sources/orders.yaml": source("orders", 24)}, 3)
    assert stage.placements() == dict.fromkeys(range(6), 4), "the recreated pods are filled up, too"


def test_d5_an_unreachable_node_is_no_domain_to_spread_over(stage: Stage) -> None:
    stage.commit(
        {"nodes/n1.yaml": node("n1", "east", taints=(f"{UNREACHABLE}:NoSchedule",)), "sources/orders.yaml": source("orders", 19)}, 1
    )
    assert sum(stage.placements().values()) == 18
    assert stage.replicas == 8, "one vreplica is pending, and pods come in pairs now: one for each node that is left"


def test_d6_a_source_scaled_up_during_the_outage_is_spread_over_the_pods_that_are_left(stage: Stage) -> None:
    stage.commit(
        {"nodes/n2.yaml": node("n2", "west", taints=(f"{UNREACHABLE}:NoExecute",)), "sources/orders.yaml": source("orders", 10)}, 1
    )
    after = stage.placements()
    assert {ordinal: after[ordinal] - PLACED.get(ordinal, 0) for ordinal in after} == {0: 2, 1: 2, 2: 0}


def test_d7_after_a_zone_failed_and_returned_nothing_moves_by_itself(stage: Stage) -> None:
    down = {f"nodes/{name}.yaml": node(name, "east", cordoned=True) for name in ("n0", "n1")}
    stage.commit({**down, "sources/orders.yaml": source("orders", 14)}, 1)
    assert stage.placements() == {0: 2, 1: 2, 2: 4, 5: 4}, "the pods of the other zone are full"
    assert len(stage.findings("knative-pending")) == 1
    assert stage.replicas == 7, "one node is left to spread over, and one pod has room for what is pending"

    back = {f"nodes/{name}.yaml": node(name, "east") for name in ("n0", "n1")}
    stage.commit(back, 2)
    after = stage.placements()
    assert (after[2], after[5], sum(after.values())) == (4, 4, 14), "what was pending is placed, what was placed stays"
    assert stage.findings("knative-moved") == []


def test_d8_pods_that_stay_pending_block_nobody(stage: Stage) -> None:
    stage.where.update({6: None, 7: None})
    stage.commit({"pods.yaml": pods(stage.where), "adapter.yaml": stage.adapter(8), "sources/more.yaml": source("more", 3)}, 1)
    assert sum(stage.placements("more").values()) == 3
    assert {6, 7}.isdisjoint(stage.placements("more"))


def test_d9_a_node_that_is_missing_concerns_its_own_pods_alone(stage: Stage) -> None:
    stage.commit({"nodes/n1.yaml": None, "sources/more.yaml": source("more", 4)}, 1)
    assert stage.placements() == PLACED
    assert sum(stage.placements("more").values()) == 4
    assert {1, 4}.isdisjoint(stage.placements("more"))
    (message,) = stage.findings("knative-node-missing")
    assert "kafkasource-mt-adapter-1, kafkasource-mt-adapter-4" in message
