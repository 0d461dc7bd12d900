"""Namespaces of Kubernetes and of delivery tools are neither added to a cluster nor removed."""

from __future__ import annotations

import pytest
import yaml

from .conftest import Fleet, cluster

TOOLS = ("argocd", "flux-system", "openshift-gitops")
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {team: platform}}\n"
SAFE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}\n"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf, namespace: %s}\n"
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors: [{apiVersion: v1, kind: %s}]
"""
SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec: {output: {protectedNamespaces: [%s]}}
"""
PATH = "clusters/ash/_/namespace-{}.yaml"
BASE = {"clusters.yaml": cluster("ash"), "policy.yaml": POLICY % "ConfigMap"}


def delivered(fleet: Fleet) -> set[str]:
    """Return the Namespaces of the cluster, which its kustomization lists."""
    paths = {path.removeprefix("clusters/ash/") for path in fleet.files() if path.startswith("clusters/ash/_/namespace-")}
    listed = set(fleet.load("clusters/ash/kustomization.yaml")["resources"])
    assert paths == {path for path in listed if path.startswith("_/namespace-")}
    return {path.removeprefix("_/namespace-").removesuffix(".yaml") for path in paths}


@pytest.mark.parametrize("declared", [False, True], ids=["without a document", "with a document that no policy selects"])
def test_a_protected_namespace_in_use_is_not_added(fleet: Fleet, declared: bool) -> None:
    names = ("shop", "kube-system", *TOOLS)
    files = {f"{name}.yaml": MAP % name + ("---\n" + NAMESPACE % name if declared else "") for name in names}
    fleet.commit({**BASE, **files})
    run = fleet.reconcile()
    assert delivered(fleet) == {"shop"}
    assert {finding.code for finding in run.plan.findings} <= {"cluster-apis-assumed", "cluster-room-assumed"}


def test_settings_name_the_namespaces_of_delivery_tools(fleet: Fleet) -> None:
    files = {f"{name}.yaml": MAP % name for name in ("shop", "kube-system", "gitops", *TOOLS)}
    fleet.commit({**BASE, **files, "gitsched.yaml": SETTINGS % "gitops, argocd"})
    fleet.reconcile()
    assert delivered(fleet) == {"shop", "flux-system", "openshift-gitops"}


def test_a_policy_delivers_a_protected_namespace_only_if_nothing_prunes_it(fleet: Fleet) -> None:
    fleet.commit({**BASE, "policy.yaml": POLICY % "Namespace", "a.yaml": NAMESPACE % "flux-system", "b.yaml": SAFE % "argocd"})
    for hour in (0, 1):
        run = fleet.reconcile(hour)
        assert delivered(fleet) == {"argocd"}
        (finding,) = [finding for finding in run.plan.findings if finding.code == "namespace-protected"]
        assert (finding.severity, str(finding.location)) == ("warning", "a.yaml:1:1")
        assert "Namespace flux-system is not delivered" in finding.message
    assert fleet.read(PATH.format("argocd")) == SAFE % "argocd"
    assert "status/work.karmada.io/clusterresourcebinding/_/flux-system-namespace.yaml" in fleet.files(), "Karmada binds it"


def test_a_delivered_protected_namespace_is_never_removed(fleet: Fleet) -> None:
    """Not even one that an earlier version added, or one whose policy and document are gone."""
    fleet.commit({**BASE, "policy.yaml": POLICY % "Namespace", "a.yaml": SAFE % "argocd", "b.yaml": NAMESPACE % "shop"})
    fleet.reconcile(0)
    fleet.commit({"policy.yaml": POLICY % "ConfigMap", "b.yaml": None, "c.yaml": MAP % "data"}, hour=1)
    fleet.reconcile(1)
    assert delivered(fleet) == {"argocd", "data"}
    fleet.commit({"a.yaml": None, "c.yaml": None}, hour=2)
    for hour in (2, 3):
        fleet.reconcile(hour)
        assert delivered(fleet) == {"argocd"}
    kept = yaml.safe_load(fleet.read(PATH.format("argocd")))
    assert kept["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
    fleet.commit({"gitsched.yaml": SETTINGS % ""}, hour=4)
    fleet.reconcile(4)
    assert delivered(fleet) == set(), "without protection it is a Namespace like any other"


def test_a_bare_namespace_of_an_earlier_version_stays_with_annotations(fleet: Fleet) -> None:
    fleet.commit({**BASE, "conf.yaml": MAP % "flux-system", "gitsched.yaml": SETTINGS % ""})
    fleet.reconcile(0)
    assert delivered(fleet) == {"flux-system"}
    fleet.commit({"gitsched.yaml": None, "conf.yaml": None, "web.yaml": MAP % "shop"}, hour=1)
    fleet.reconcile(1)
    assert delivered(fleet) == {"flux-system", "shop"}
    fleet.commit({"web.yaml": MAP % "shop" + "data: {a: b}\n"}, hour=2)
    fleet.reconcile(2)
    assert delivered(fleet) == {"flux-system", "shop"}


def test_a_delivered_protected_namespace_that_two_documents_define_differently_stays_as_it_is(fleet: Fleet) -> None:
    fleet.commit({**BASE, "policy.yaml": POLICY % "Namespace", "a.yaml": SAFE % "argocd"})
    fleet.reconcile()
    before = fleet.read(PATH.format("argocd"))
    fleet.commit({"policy.yaml": POLICY % "ConfigMap", "b.yaml": NAMESPACE % "argocd"}, hour=1)
    for hour in (1, 2):
        run = fleet.reconcile(hour)
        assert fleet.read(PATH.format("argocd")) == before
        (finding,) = [finding for finding in run.plan.findings if finding.code == "duplicate-identity"]
        assert (finding.severity, str(finding.location)) == ("error", "a.yaml:1:1")
