"""Disaster recovery from commits of conditions: the primary fails, the backup takes over, the primary recovers, the backup fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gitsched.cli.init import command as init
from tests.builders.ocm import add_on, addon_scores, bound_global_set, managed_cluster, placement, to_yaml

from .conftest import Fleet, cluster, deployment

MINUTE = 1 / 60
WEB = "shop/deployment-web"
OFF = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
"""


def karmada_cluster(name: str, ownership: str, ready: str) -> str:
    text = cluster(name).replace("metadata:\n", f"metadata:\n  labels: {{ownership: {ownership}}}\n")
    return f'{text}status:\n  conditions:\n  - {{type: Ready, status: "{ready}"}}\n'


def commit_karmada(fleet: Fleet, hour: float, primary: str, backup: str, files: dict[str, Any] | None = None) -> None:
    """Commit the conditions of both clusters and reconcile, also when graceful evictions have ended."""
    clusters = (karmada_cluster("primary", "private", primary), karmada_cluster("backup", "cloud", backup))
    fleet.commit({"fleet/clusters.yaml": "---\n".join(clusters), **(files or {})}, hour=hour)
    fleet.reconcile(hour)
    fleet.reconcile(hour + 10 * MINUTE)


def codes(run: Any) -> list[str]:
    return sorted({finding.code for finding in run.plan.findings if finding.severity != "info"})


def initialise(path: Path) -> None:
    assert CliRunner().invoke(init, [str(path)], standalone_mode=False).return_value == 0


@pytest.mark.parametrize("condition", ["False", "Unknown"])
def test_a_repository_made_by_init_survives_the_loss_of_either_group(fleet: Fleet, condition: str) -> None:
    initialise(fleet.path)
    commit_karmada(fleet, 0, "True", "True")
    assert fleet.where(WEB) == ["primary"]
    commit_karmada(fleet, 1, condition, "True")
    assert fleet.where(WEB) == ["backup"]
    commit_karmada(fleet, 2, "True", "True")
    assert fleet.where(WEB) == ["backup"], "nothing returns by itself"
    commit_karmada(fleet, 3, "True", condition)
    assert (fleet.where(WEB), codes(fleet.reconcile(4))) == (["primary"], [])
    commit_karmada(fleet, 5, condition, condition)
    assert (fleet.where(WEB), codes(fleet.reconcile(5.5))) == ([], ["copy-retained", "unschedulable"])
    assert fleet.delivered(WEB) == ["primary"], "the last copy stays until there is another one"
    commit_karmada(fleet, 6, "True", condition)
    assert fleet.where(WEB) == ["primary"]


def test_the_old_copy_stays_until_the_new_one_has_had_time_to_start(fleet: Fleet) -> None:
    initialise(fleet.path)
    commit_karmada(fleet, 0, "True", "True")
    clusters = karmada_cluster("primary", "private", "False"), karmada_cluster("backup", "cloud", "True")
    fleet.commit({"fleet/clusters.yaml": "---\n".join(clusters)}, hour=1)
    fleet.reconcile(1)
    assert fleet.delivered(WEB) == ["backup", "primary"]
    fleet.reconcile(1 + 10 * MINUTE)
    assert fleet.where(WEB) == ["backup"]


def test_without_the_settings_nothing_moves_and_findings_say_what_to_set(fleet: Fleet) -> None:
    initialise(fleet.path)
    commit_karmada(fleet, 0, "True", "True", {"shop.yaml": deployment("shop", namespace="shop"), "gitsched.yaml": OFF})
    commit_karmada(fleet, 1, "False", "True")
    run = fleet.reconcile(2)
    assert (fleet.where(WEB), codes(run)) == (["primary"], ["cluster-failover-off"])
    (finding,) = (finding for finding in run.plan.findings if finding.code == "cluster-failover-off")
    assert str(finding.location).startswith("fleet/clusters.yaml:")
    assert "set spec.karmada.failover: cluster" in finding.message


def test_a_condition_moves_the_workload_of_a_placement_and_back(fleet: Fleet) -> None:
    """User story 3 of the proposal for extensible scheduling; the hub reports the cluster, and nobody writes a taint."""

    def primary(status: str, since: str) -> str:
        condition = {"type": "ManagedClusterConditionAvailable", "status": status, "lastTransitionTime": since}
        return to_yaml({**managed_cluster("primary"), "status": {"conditions": [condition]}})

    toleration = {"key": "cluster.open-cluster-management.io/unreachable", "operator": "Exists", "tolerationSeconds": 300}
    scores = [addon_scores("primary", {"workload": 100}), addon_scores("backup", {"workload": 0})]
    dr = placement("dr", "shop", 1, [add_on("workload")], tolerations=[toleration])
    web = deployment("web", namespace="shop").replace(
        "  namespace: shop\n", "  namespace: shop\n  annotations: {cluster.open-cluster-management.io/placement: dr}\n"
    )
    files = {"fleet.yaml": to_yaml(*bound_global_set("shop"), managed_cluster("backup"), *scores, dr), "web.yaml": web}
    fleet.commit({**files, "primary.yaml": primary("True", "2026-03-02T07:00:00Z")})
    assert codes(fleet.reconcile()) == []
    assert fleet.where(WEB) == ["primary"]
    fleet.commit({"primary.yaml": primary("Unknown", "2026-03-02T08:58:00Z")}, hour=1)
    assert fleet.reconcile(1).plan.next_wakeup is not None
    assert fleet.where(WEB) == ["primary"], "tolerated for five minutes"
    fleet.reconcile(1 + 3 * MINUTE)
    assert fleet.where(WEB) == ["backup"]
    record = fleet.load("status/cluster.open-cluster-management.io/managedcluster/_/primary.yaml")
    assert '"timeAdded":"2026-03-02T08:58:00Z"' in record["metadata"]["annotations"]["gitsched.io/taints-added"]
    fleet.commit({"primary.yaml": primary("False", "2026-03-02T09:30:00Z")}, hour=1.5)
    fleet.reconcile(1.5)
    assert fleet.where(WEB) == ["backup"]
    fleet.commit({"primary.yaml": primary("True", "2026-03-02T10:00:00Z")}, hour=2)
    fleet.reconcile(2)
    assert fleet.where(WEB) == ["primary"]
    assert "status/cluster.open-cluster-management.io/managedcluster/_/primary.yaml" not in fleet.files()
