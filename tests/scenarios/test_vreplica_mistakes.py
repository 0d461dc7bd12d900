"""Invalid settings, policies and StatefulSets keep vreplicas and pods."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gitsched.reconcile.review.explanation import explain_resource
from tests.builders.knative import ADAPTER, MARK, NAMESPACE, RENDERED, node, pods, settings, source

from .conftest import Fleet
from .vreplicas import VreplicaFleet


def policy(predicates: str, priorities: str = "[]") -> str:
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config-scheduler, namespace: {NAMESPACE}}}\n"
    return f"{head}data:\n  predicates: '{predicates}'\n  priorities: '{priorities}'\n"


FITS = '{"Name": "PodFitsResources"}'
MISTAKES: Mapping[str, Mapping[str, str | None]] = {
    "no capacity": {"gitsched.yaml": settings(cluster="events").replace("    capacity: 4\n", "")},
    "no capacity, and no policy": {
        "gitsched.yaml": settings(cluster="events").replace("    capacity: 4\n", ""),
        "policy.yaml": None,
    },
    "no such StatefulSet": {"gitsched.yaml": settings(cluster="events", statefulSet="other")},
    "a StatefulSet there twice": {"again.yaml": VreplicaFleet.adapter(7)},
    "a policy there twice": {"again.yaml": policy("[]")},
}


@pytest.mark.parametrize("files", MISTAKES.values(), ids=MISTAKES)
def test_invalid_settings_keep_pods_and_placements(fleet: Fleet, files: Mapping[str, str | None]) -> None:
    events = VreplicaFleet(fleet)
    events.commit({"sources/busy.yaml": source("busy", 20), "policy.yaml": policy(f"[{FITS}]")}, 0.5)
    before = {path: fleet.read(path) for path in fleet.files() if path.startswith(("clusters/", "status/"))}
    assert events.replicas > 6
    events.commit({**files, "sources/more.yaml": source("more", 3)}, 1)
    after = {path: fleet.read(path) for path in fleet.files() if path.startswith(("clusters/", "status/"))}
    assert after == before
    assert [entry for entry in fleet.load("gitsched.json")["findings"] if entry["severity"] in ("error", "warning")]
    corrected = {"gitsched.yaml": settings(cluster="events"), "policy.yaml": policy(f"[{FITS}]"), "again.yaml": None}
    events.commit({path: corrected[path] for path in files}, 2)
    assert any("shop/more" in message for message in events.findings("knative-pending")), (
        "scheduling continues when the error is corrected"
    )


def test_invalid_settings_keep_marks(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet, autoscaler="{refreshPeriodSeconds: 3600}")
    events.commit({"sources/full.yaml": source("full", 9)}, 0.1)
    events.commit({"sources/orders.yaml": source("orders", 3)}, 0.2)
    fleet.reconcile(1.2)
    assert events.marked() == {3, 4, 5}
    events.commit({"again.yaml": events.adapter(6)}, 1.3)
    assert (events.marked(), events.replicas) == ({3, 4, 5}, 6)


def test_a_deleted_statefulset_is_removed(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet)
    events.commit({"adapter.yaml": None}, 1)
    assert RENDERED not in fleet.files()
    assert len(events.findings("knative-adapter")) == 1


@pytest.mark.parametrize(
    ("marked", "pods_text"),
    [
        ([0], f"kafkasource-mt-adapter-0 is marked unschedulable: remove the annotation {MARK} to use it"),
        (range(6), f"and 1 more are marked unschedulable: remove the annotation {MARK} to use them"),
    ],
)
def test_pending_vreplicas_name_the_pods_that_are_marked(fleet: Fleet, marked: list[int], pods_text: str) -> None:
    events = VreplicaFleet(fleet)
    events.commit(
        {"pods.yaml": pods(events.nodes_by_ordinal, marked=list(marked)), "sources/orders.yaml": source("orders", 500)}, 1
    )
    (message,) = events.findings("knative-pending")
    assert message.endswith(pods_text)
    assert events.findings("knative-unused-pods") == []


@pytest.mark.parametrize(
    ("marked", "cordoned", "replicas"),
    [
        pytest.param([0], False, 9, id="first"),
        pytest.param([3], False, 9, id="middle"),
        pytest.param([5], False, 9, id="last"),
        pytest.param([3, 4, 5], False, 12, id="the last three"),
        pytest.param(range(6), False, 15, id="all"),
        pytest.param([6, 7, 8], False, 12, id="pods beyond the replicas"),
        pytest.param([], True, 10, id="last on a cordoned node"),
    ],
)
def test_pods_that_take_no_vreplicas_come_on_top_of_those_needed(
    fleet: Fleet, marked: list[int], cordoned: bool, replicas: int
) -> None:
    events = VreplicaFleet(fleet)
    events.nodes_by_ordinal.update({ordinal: f"n{ordinal % (2 if cordoned else 3)}" for ordinal in range(6, 15)})
    present = {ordinal: name for ordinal, name in events.nodes_by_ordinal.items() if ordinal < 6 or ordinal in marked}
    nodes = {"nodes/n2.yaml": node("n2", "west", cordoned=cordoned)}
    events.commit({**nodes, "pods.yaml": pods(present, marked=list(marked)), "sources/busy.yaml": source("busy", 24)}, 1)
    assert events.replicas == replicas
    assert events.findings("knative-pending")
    events.commit({"pods.yaml": pods(events.nodes_by_ordinal, marked=list(marked))}, 2)
    assert events.findings("knative-pending") == [], "the new pods take what was pending"
    assert sum(events.placements("busy").values()) == 24


def test_only_as_many_pods_as_help_are_requested(fleet: Fleet) -> None:
    limit = '{"Name": "NoMaxResourceCount", "Args": "{\\"NumPartitions\\": 8}"}'
    events = VreplicaFleet(fleet)
    events.commit({"policy.yaml": policy(f"[{FITS}, {limit}]"), "sources/orders.yaml": source("orders", 100)}, 1)
    assert sum(events.placements().values()) == 24
    assert events.replicas == 8, "two more pods are all that the source may be on"
    (message,) = events.findings("knative-pending")
    assert message.endswith("are pending: no existing pod can take them, and new pods can take only 8")
    events.nodes_by_ordinal.update({6: "n0", 7: "n1"})
    events.move(2)
    assert (sum(events.placements().values()), events.replicas) == (32, 8)
    (message,) = events.findings("knative-pending")
    assert message.endswith("new pods cannot take them either")


def test_kept_placements_are_explained(fleet: Fleet) -> None:
    events = VreplicaFleet(fleet)
    events.commit(MISTAKES["no capacity"], 1)
    resources = [("KafkaSource", "shop", "orders"), ("StatefulSet", NAMESPACE, ADAPTER)]
    explanations = [explain_resource(fleet.settings(1), *resource) for resource in resources]
    assert all("knative.capacity is not set" in explanation.policy_reason for explanation in explanations)
    assert [[(share.cluster, share.replicas) for share in explanation.result] for explanation in explanations] == [
        [(f"{ADAPTER}-0", 2), (f"{ADAPTER}-1", 2), (f"{ADAPTER}-2", 2)],
        [("events", 6)],
    ]
