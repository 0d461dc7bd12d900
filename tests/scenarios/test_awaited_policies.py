"""A new workload waits for a policy that selects it, has errors and was never valid; findings, explain and status say so."""

from __future__ import annotations

import pytest

from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_status import read_fleet_status

from .conftest import Fleet, cluster, deployment

GENERAL = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: general}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [ash]}}
"""
OWN = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: own, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {%s}
"""
ERRORS = {
    "a string": "clusterAffinity: {clusterNames: ash}",
    "two ways": "clusterAffinity: {clusterNames: [ash]}, clusterAffinities: [{affinityName: one, clusterNames: [ash]}]",
    "one name twice": "clusterAffinities: [{affinityName: one, clusterNames: [ash]}, {affinityName: one, clusterNames: [bru]}]",
    "an unknown field": "clusterAffinity: {clusterNames: [ash], exlude: [bru]}",
}


@pytest.mark.parametrize("more", [{"all.yaml": GENERAL}, {}], ids=["beside a general policy", "alone"])
@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_a_workload_waits_for_its_policy(fleet: Fleet, error: str, more: dict[str, str | bytes | None]) -> None:
    fleet.commit({"ash.yaml": cluster("ash"), "own.yaml": OWN % error, "web.yaml": deployment("web"), **more})
    plan = fleet.reconcile().plan
    assert plan.state_counts["pending"] == 1
    assert not plan.unclaimed
    (finding,) = [finding for finding in plan.findings if finding.code == "policy-awaited"]
    assert str(finding.location) == "web.yaml:1:1"
    assert "PropagationPolicy/default/own" in finding.message
    found = explain_resource(fleet.settings(), "deployment", "default", "web")
    assert (found.policy, found.policy_reason) == ("PropagationPolicy/default/own", "it has errors and was never valid")
    assert not read_fleet_status(fleet.settings()).unclaimed
    fleet.commit({"own.yaml": OWN % "clusterAffinity: {clusterNames: [ash]}"}, hour=1)
    plan = fleet.reconcile(1).plan
    assert plan.state_counts["placed"] == 1
    assert "policy-awaited" not in {finding.code for finding in plan.findings}
