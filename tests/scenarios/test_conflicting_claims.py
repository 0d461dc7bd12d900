"""A workload with both a policy and a Placement annotation keeps its placement, and a finding reports the conflict."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenarios.conftest import cluster, policy
from tests.scenarios.test_rollouts import PLACEMENT, SETS, managed

CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: default, annotations: {cluster.open-cluster-management.io/placement: shop/everywhere}}
"""
KARMADA = {"karmada/cluster.yaml": cluster("bru"), "karmada/policy.yaml": policy(kind="ConfigMap")}
OCM = {"ocm/sets.yaml": SETS, "ocm/placement.yaml": PLACEMENT, "ocm/cluster.yaml": managed("ash", "canary")}


@pytest.mark.parametrize(
    ("first", "then", "place"),
    [(KARMADA, OCM, "bru"), (OCM, KARMADA, "ash"), ({**OCM, **KARMADA}, {}, "bru")],
    ids=["karmada", "ocm", "both"],
)
def test_the_api_that_placed_a_workload_keeps_it(fleet: Any, first: dict[str, str], then: dict[str, str], place: str) -> None:
    fleet.commit({"web.yaml": CONFIG, **first})
    fleet.reconcile()
    fleet.commit(then, hour=1)
    run = fleet.reconcile(hour=1)
    assert fleet.where("default/configmap-web") == [place]
    assert [finding.resource for finding in run.plan.findings if finding.code == "two-claims"] == [("ConfigMap", "default", "web")]
    head = fleet.head
    fleet.reconcile(hour=2)
    assert fleet.head == head


def test_the_other_api_places_the_workload_when_the_first_claim_ends(fleet: Any) -> None:
    fleet.commit({"web.yaml": CONFIG, **OCM})
    fleet.reconcile()
    fleet.commit(KARMADA, hour=1)
    fleet.reconcile(hour=1)
    fleet.commit(
        {"web.yaml": CONFIG.replace(", annotations: {cluster.open-cluster-management.io/placement: shop/everywhere}", "")}, hour=2
    )
    run = fleet.reconcile(hour=2)
    assert fleet.where("default/configmap-web") == ["bru"]
    assert "two-claims" not in {finding.code for finding in run.plan.findings}
