"""A mistake in what decides about vreplicas moves nothing and takes nothing away."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from gitsched.reconcile.explanation import explain_resource

from .conftest import Fleet
from .vreplicas import ADAPTER, NAMESPACE, RENDERED, Stage, settings, source


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
    "a StatefulSet there twice": {"again.yaml": Stage.adapter(6)},
    "a policy there twice": {"again.yaml": policy("[]")},
}


@pytest.mark.parametrize("files", MISTAKES.values(), ids=MISTAKES)
def test_pods_and_vreplicas_are_left_as_they_were(fleet: Fleet, files: Mapping[str, str | None]) -> None:
    stage = Stage(fleet)
    stage.commit({"sources/busy.yaml": source("busy", 20), "policy.yaml": policy(f"[{FITS}]")}, 0.5)
    before = {path: fleet.read(path) for path in fleet.files() if path.startswith(("clusters/", "status/"))}
    assert stage.replicas > 6
    stage.commit({**files, "sources/more.yaml": source("more", 3)}, 1)
    after = {path: fleet.read(path) for path in fleet.files() if path.startswith(("clusters/", "status/"))}
    assert after == before
    assert [entry for entry in fleet.load("gitsched.json")["findings"] if entry["severity"] in ("error", "warning")]
    mended = {"gitsched.yaml": settings(cluster="events"), "policy.yaml": policy(f"[{FITS}]"), "again.yaml": None}
    stage.commit({path: mended[path] for path in files}, 2)
    assert any("shop/more" in message for message in stage.findings("knative-pending")), "it goes on when the mistake is mended"


def test_marks_outlast_a_mistake(fleet: Fleet) -> None:
    stage = Stage(fleet, autoscaler="{refreshPeriodSeconds: 3600}")
    stage.commit({"sources/full.yaml": source("full", 9)}, 0.1)
    stage.commit({"sources/orders.yaml": source("orders", 3)}, 0.2)
    fleet.reconcile(1.2)
    assert stage.marked() == {3, 4, 5}
    stage.commit({"again.yaml": stage.adapter(6)}, 1.3)
    assert (stage.marked(), stage.replicas) == ({3, 4, 5}, 6)


def test_a_statefulset_that_is_deleted_is_gone(fleet: Fleet) -> None:
    stage = Stage(fleet)
    stage.commit({"adapter.yaml": None}, 1)
    assert RENDERED not in fleet.files()
    assert len(stage.findings("knative-adapter")) == 1


def test_pods_are_asked_for_only_as_far_as_they_help(fleet: Fleet) -> None:
    limit = '{"Name": "NoMaxResourceCount", "Args": "{\\"NumPartitions\\": 8}"}'
    stage = Stage(fleet)
    stage.commit({"policy.yaml": policy(f"[{FITS}, {limit}]"), "sources/orders.yaml": source("orders", 100)}, 1)
    assert sum(stage.placements().values()) == 24
    assert stage.replicas == 8, "two more pods are all that the source may be on"
    (message,) = stage.findings("knative-pending")
    assert message.endswith("are pending: no existing pod can take them, and new pods can take only 8")
    stage.where.update({6: "n0", 7: "n1"})
    stage.move(2)
    assert (sum(stage.placements().values()), stage.replicas) == (32, 8)
    (message,) = stage.findings("knative-pending")
    assert message.endswith("new pods cannot take them either")


def test_what_is_left_as_it_was_is_explained(fleet: Fleet) -> None:
    stage = Stage(fleet)
    stage.commit(MISTAKES["no capacity"], 1)
    asked = [("KafkaSource", "shop", "orders"), ("StatefulSet", NAMESPACE, ADAPTER)]
    told = [explain_resource(fleet.settings(1), *resource) for resource in asked]
    assert all("knative.capacity is not set" in explanation.policy_reason for explanation in told)
    assert [[(share.cluster, share.replicas) for share in explanation.result] for explanation in told] == [
        [(f"{ADAPTER}-0", 2), (f"{ADAPTER}-1", 2), (f"{ADAPTER}-2", 2)],
        [("events", 6)],
    ]
