"""FederatedResourceQuotas with static assignments: each named cluster gets a ResourceQuota."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Fleet, cluster

QUOTA = """\
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: team, namespace: shop}
spec:
  overall: {cpu: "10", memory: 10Gi}
  staticAssignments:
    - {clusterName: first, hard: {cpu: "4", memory: 4Gi}}
    - {clusterName: second, hard: {cpu: "6"}}
"""
SETTINGS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: g}\nspec: {karmada: {quotaEnforcement: %s}}\n"
RECORD = "status/policy.karmada.io/federatedresourcequota/shop/team.yaml"


def load_quota(fleet: Fleet, name: str) -> object:
    return fleet.load(f"clusters/{name}/shop/resourcequota-team.yaml")


@pytest.mark.parametrize("enforced", ["false", "true"])
def test_each_named_cluster_gets_what_is_assigned_to_it(fleet: Fleet, tmp_path: Path, enforced: str) -> None:
    clusters = {f"{name}.yaml": cluster(name) for name in ("first", "second", "third")}
    fleet.commit({**clusters, "quota.yaml": QUOTA, "gitsched.yaml": SETTINGS % enforced})
    fleet.reconcile()
    assert load_quota(fleet, "first") == {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "shop"},
        "spec": {"hard": {"cpu": "4", "memory": "4Gi"}},
    }
    assert fleet.where("shop/resourcequota-team") == ["first", "second"]
    assert fleet.load(RECORD)["status"]["aggregatedStatus"] == [
        {"clusterName": "first", "hard": {"cpu": "4", "memory": "4Gi"}},
        {"clusterName": "second", "hard": {"cpu": "6"}},
    ]
    head = fleet.head
    assert fleet.reconcile(0.5).plan.moves == ()
    assert fleet.head == head, "nothing changes"
    edited = QUOTA.replace("clusterName: second", "clusterName: third").replace('cpu: "4"', 'cpu: "3"')
    fleet.commit({"quota.yaml": edited}, hour=1)
    empty = fleet.preview(1, cache=tmp_path).tree
    run = fleet.reconcile(1)
    assert run.tree == empty
    assert load_quota(fleet, "first")["spec"] == {"hard": {"cpu": "3", "memory": "4Gi"}}  # type: ignore[index]
    assert "third" in fleet.where("shop/resourcequota-team")
    fleet.commit({"quota.yaml": None}, hour=3)
    empty = fleet.preview(3, cache=tmp_path / "3").tree
    assert fleet.reconcile(3).tree == empty
    assert fleet.where("shop/resourcequota-team") == []
    assert RECORD not in fleet.files()


def test_an_assignment_to_a_cluster_that_does_not_exist_is_reported(fleet: Fleet) -> None:
    fleet.commit({"first.yaml": cluster("first"), "quota.yaml": QUOTA})
    found = [finding for finding in fleet.reconcile().plan.findings if finding.code == "karmada-cluster-unknown"]
    assert [finding.message for finding in found] == [
        "FederatedResourceQuota/shop/team assigns a quota to cluster second, which does not exist"
    ]
    assert [(finding.location.path, finding.location.line) for finding in found if finding.location] == [("quota.yaml", 8)]
