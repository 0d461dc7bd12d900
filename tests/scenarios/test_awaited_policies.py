"""A new workload waits for a policy that selects it, has errors and was never valid, also for one that overrides; findings, explain and
status say so."""

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


OVERRIDE = """\
apiVersion: policy.karmada.io/v1alpha1
kind: %s
metadata: {name: east%s}
spec:
%s  overrideRules:
    - {targetCluster: {clusterNames: [ash]}, overriders: {%s}}
"""
SELECTED = "  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]\n"
CLUSTER, NAMESPACED = ("ClusterOverridePolicy", ""), ("OverridePolicy", ", namespace: default")
BROKEN = {
    "an operator of an image": OVERRIDE % (*CLUSTER, SELECTED, "imageOverrider: [{component: Tag, operator: set, value: v2}]"),
    "arguments that are a string": OVERRIDE
    % (*NAMESPACED, SELECTED, "argsOverrider: [{containerName: main, operator: add, value: -v}]"),
    "a label that is a number": OVERRIDE % (*CLUSTER, SELECTED, "labelsOverrider: [{operator: add, value: {tier: 1}}]"),
    "a path of a patch that is a list": OVERRIDE % (*NAMESPACED, "", "plaintext: [{operator: replace, path: [spec], value: 5}]"),
    "all objects of the fleet": OVERRIDE % (*CLUSTER, "", "annotationsOverrider: {operator: add}"),
}
LABELED = "labelsOverrider: [{operator: add, value: {tier: east}}]"


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_new_workload_waits_for_an_override_policy_that_was_never_valid(fleet: Fleet, broken: str) -> None:
    start = {"ash.yaml": cluster("ash"), "all.yaml": GENERAL, "old.yaml": deployment("old")}
    fleet.commit(start)
    fleet.reconcile()
    before = fleet.files()["clusters/ash/default/deployment-old.yaml"]
    fleet.commit({"east.yaml": broken}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"web.yaml": deployment("web")}, hour=2)
    complete = fleet.preview(2, cache=fleet.cache.with_name("empty"), state="off")
    for plan in (complete.plan, fleet.reconcile(2).plan):
        assert (plan.state_counts["placed"], plan.state_counts["pending"]) == (1, 1)
        (finding,) = [finding for finding in plan.findings if finding.code == "override-awaited"]
        assert str(finding.location) == "east.yaml:1:1"
        assert finding.message.endswith(": new workloads that it selects wait for it; correct or remove it")
    assert fleet.files()["clusters/ash/default/deployment-old.yaml"] == before, "a delivered workload stays as it is"
    found = explain_resource(fleet.settings(2), "deployment", "default", "web")
    assert "has errors and was never valid" in str(found)
    kind, scope = CLUSTER if "ClusterOverridePolicy" in broken else NAMESPACED
    fleet.commit({"east.yaml": OVERRIDE % (kind, scope, SELECTED, LABELED)}, hour=3)
    plan = fleet.reconcile(3).plan
    assert plan.state_counts["placed"] == 2
    assert "tier: east" in fleet.read("clusters/ash/default/deployment-web.yaml")


CONFIGURED = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  template:
    spec:
      containers: [{name: main, image: example.com/main, envFrom: [{configMapRef: {name: settings}}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {region: none}
"""


def test_what_a_workload_brings_along_waits_for_its_override_policy(fleet: Fleet) -> None:
    selected = "  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n"
    broken = OVERRIDE % (*CLUSTER, selected, "plaintext: [{operator: set, path: /data/region, value: east}]")
    files = {"ash.yaml": cluster("ash"), "all.yaml": f"{GENERAL}  propagateDeps: true\n", "web.yaml": CONFIGURED}
    fleet.commit({**files, "east.yaml": broken})
    plan = fleet.reconcile().plan
    assert [finding.code for finding in plan.findings if finding.code.startswith("override")] == ["override-awaited"]
    assert {path for path in fleet.files() if path.startswith("clusters/ash/default/")} == {
        "clusters/ash/default/deployment-web.yaml"
    }
    fleet.commit({"east.yaml": broken.replace("operator: set", "operator: replace")}, hour=1)
    fleet.reconcile(1)
    assert "region: east" in fleet.read("clusters/ash/default/configmap-settings.yaml")
