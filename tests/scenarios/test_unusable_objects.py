"""An object that no API server accepts keeps its last valid version, whichever way the commit is planned."""

from __future__ import annotations

import pytest

from .conftest import UNGUARDED, Fleet, cluster, deployment, policy

CHANGES = {
    # what takes the place of what, and the code of the error
    "other letters": ("kind: Deployment", "kind: DEPLOYMENT", "unknown-kind"),
    "an unknown version": ("apps/v1", "apps/v11", "unknown-version"),
    "a removed version": ("apps/v1", "apps/v1beta1", "removed-version"),
    "a removed group": ("apps/v1", "extensions/v1beta1", "removed-version"),
    "a misspelled group": ("apps/v1", "aps/v1", "unknown-kind"),
    "a misspelled spec": ("\nspec:", "\nspce:", "missing-field"),
    "an empty spec": ("\nspec:", "\nspec: {}\nstatus:", "missing-field"),
    "a spec of another type": ("\nspec:", "\nspec: [1]\nstatus:", "wrong-type"),
    "a misspelled template": ("\nspec:", "\nspec:\n  tempalte: {}", "missing-field"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_an_object_that_no_api_server_accepts_keeps_its_last_valid_version(fleet: Fleet, change: str) -> None:
    fixed = {"gitsched.yaml": UNGUARDED, "ash.yaml": cluster("ash"), "policy.yaml": policy("")}
    fleet.commit({**fixed, "bad.yaml": deployment("bad"), "good.yaml": deployment("good")})
    fleet.reconcile()
    before = fleet.read("clusters/ash/default/deployment-bad.yaml")
    old, new, code = CHANGES[change]
    fleet.commit({"bad.yaml": deployment("bad", 3).replace(old, new, 1), "good.yaml": deployment("good", 3)}, hour=1)
    complete = fleet.preview(1, cache=fleet.cache / "empty")
    run = fleet.reconcile(1)
    assert run.tree == complete.tree
    assert code in {finding.code for finding in run.plan.findings if finding.severity == "error"}
    assert fleet.read("clusters/ash/default/deployment-bad.yaml") == before
    assert fleet.load("clusters/ash/default/deployment-good.yaml")["spec"]["replicas"] == 3


INNER = """\
apiVersion: work.open-cluster-management.io/v1alpha1
kind: ManifestWorkReplicaSet
metadata: {name: set, namespace: default}
spec:
  placementRefs: [{name: place}]
  manifestWorkTemplate:
    workload:
      manifests:
      - {apiVersion: gitsched.io/v1alpha1, kind: Bundle, metadata: {name: inner}, spec: %s}
"""


@pytest.mark.parametrize(
    "spec", ["{variants: [{clusters: {matchLabels: [{}]}}]}", "{variants: [{clusters: {names: [ash]}}]}", "[]", "{}", "{path: [.]}"]
)
def test_a_wrong_bundle_inside_of_a_workload_takes_no_files_of_others(fleet: Fleet, spec: str) -> None:
    files = {"gitsched.yaml": UNGUARDED, "ash.yaml": cluster("ash"), "policy.yaml": policy(""), "good.yaml": deployment("good")}
    fleet.commit(files)
    fleet.reconcile()
    fleet.commit({"set.yaml": INNER % spec, "good.yaml": deployment("good", 3)}, hour=1)
    run = fleet.reconcile(1)
    errors = {finding.location.path for finding in run.plan.findings if finding.severity == "error" and finding.location}
    assert errors == {"set.yaml"}
    assert "internal-error" not in {finding.code for finding in run.plan.findings}
    assert fleet.load("clusters/ash/default/deployment-good.yaml")["spec"]["replicas"] == 3


def test_a_cluster_of_cluster_api_is_named_as_what_it_is(fleet: Fleet) -> None:
    text = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: ash, namespace: default}\nspec: {paused: false}\n"
    fleet.commit({"ash.yaml": cluster("ash"), "capi.yaml": text})
    (found,) = [finding for finding in fleet.reconcile().plan.findings if finding.code == "unknown-kind"]
    assert (found.severity, str(found.location)) == ("info", "capi.yaml:1:13")
    assert "Cluster API says how a cluster is created" in found.message
    assert "cluster.karmada.io/v1alpha1" in found.message
