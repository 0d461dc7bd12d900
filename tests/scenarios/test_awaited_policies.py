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


LISTED = "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]"
MAPPING = "resourceSelectors: {apiVersion: apps/v1, kind: Deployment, name: web}"
VALID = OWN % "clusterAffinity: {clusterNames: [ash]}"


def test_a_mapping_in_place_of_the_selectors_is_an_error_with_its_cure_and_selects_as_it_is_meant(fleet: Fleet) -> None:
    source = {"ash.yaml": cluster("ash"), "all.yaml": GENERAL, "web.yaml": deployment("web"), "other.yaml": deployment("other")}
    fleet.commit({**source, "own.yaml": VALID.replace(LISTED, MAPPING)})
    plan = fleet.reconcile().plan
    assert (plan.state_counts["pending"], plan.state_counts["placed"]) == (1, 1)  # the other one goes where the general policy says
    (error,) = [finding for finding in plan.findings if finding.severity == "error"]
    assert (error.code, str(error.location)) == ("wrong-type", "own.yaml:5:3")
    assert error.message == "'resourceSelectors' must be a list, not a mapping; make it an entry of a list, with \"- \" before it"


@pytest.mark.parametrize(
    ("own", "is_named"),
    [
        (VALID.replace(LISTED, MAPPING), False),
        (VALID.replace(LISTED, MAPPING).replace("name: own", "name: new"), True),
        (VALID.replace("ash", "5").replace("name: own", "name: new"), True),
    ],
    ids=["with its name", "with a new name", "with a new name and another error"],
)
def test_a_placed_workload_stays_where_it_is_while_its_policy_has_an_error(fleet: Fleet, own: str, is_named: bool) -> None:
    fleet.commit({"ash.yaml": cluster("ash"), "bru.yaml": cluster("bru"), "own.yaml": VALID, "web.yaml": deployment("web")})
    fleet.reconcile()
    before = fleet.files()["clusters/ash/default/deployment-web.yaml"]
    fleet.commit({"own.yaml": own, "all.yaml": GENERAL.replace("ash", "bru")}, hour=1)
    plan = fleet.reconcile(1).plan
    assert fleet.files()["clusters/ash/default/deployment-web.yaml"] == before
    assert "clusters/bru/default/deployment-web.yaml" not in fleet.files()
    assert [one.severity for one in plan.findings if one.code == "wrong-type"] == ["error"]
    assert any("PropagationPolicy.policy.karmada.io/default/new is broken" in one.message for one in plan.findings) is is_named
