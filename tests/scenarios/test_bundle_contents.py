"""What Bundles have: workloads without replicas, and more objects than gitsched reads."""

from __future__ import annotations

import pytest

from gitsched.reconcile import RunResult

from .conftest import Fleet, cluster, deployment, policy

BUNDLE = "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: %s, namespace: default}\nspec: {path: %s}\n"
ALL = (
    "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: all, namespace: default}\nspec:\n"
    "  resourceSelectors: [{apiVersion: gitsched.io/v1alpha1, kind: Bundle}]\n"
    "  placement: {clusterAffinity: {clusterNames: [one]}}\n"
)
REQUESTS = "      containers: [{name: web, image: web, resources: {requests: {cpu: 100m}}}]\n"


def codes(run: RunResult) -> set[tuple[str, str]]:
    return {(finding.severity, finding.code) for finding in run.plan.findings if not finding.code.endswith("-assumed")}


def without_replicas(name: str) -> str:
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, namespace: default}}\nspec:\n  replicas: 0\n"
        f"  selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n{REQUESTS}"
    )


def test_a_bundle_whose_only_workload_has_no_replicas_is_delivered(fleet: Fleet) -> None:
    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web, namespace: default}\n"
    app = {"app/web.yaml": without_replicas("web"), "app/account.yaml": account, "all.yaml": ALL, "b.yaml": BUNDLE % ("b", "app")}
    fleet.commit({**app, "clusters/one.yaml": cluster("one")})
    assert codes(fleet.reconcile()) == set()
    assert fleet.read("clusters/one/default/deployment-web.yaml") == without_replicas("web")
    assert fleet.read("clusters/one/default/serviceaccount-web.yaml") == account


def test_a_workload_without_replicas_that_goes_nowhere_has_a_note(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": without_replicas("web"), "all.yaml": policy("one"), "clusters/one.yaml": cluster("one")})
    assert codes(fleet.reconcile()) == {("info", "no-replicas")}
    setting = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\n"
    fleet.commit({"gitsched.yaml": f"{setting}spec: {{karmada: {{enableEmptyWorkloadPropagation: true}}}}\n"}, hour=1)
    assert codes(fleet.reconcile(1)) == set()
    assert fleet.where("default/deployment-web") == ["one"]


def test_bundles_with_more_objects_than_the_limit_are_an_error(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.reconcile.bundles.bundle_variants.MAX_OBJECTS", 1)
    bundles = {f"{name}.yaml": BUNDLE % (name, name) for name in "abcd"}
    apps = {f"{name}/{kind}.yaml": deployment(f"{name}-{kind}") for name in "abcd" for kind in "xy"}
    fleet.commit({**bundles, **apps, "all.yaml": ALL, "clusters/one.yaml": cluster("one")})
    run = fleet.reconcile()
    assert [finding.code for finding in run.plan.findings if finding.severity == "error"] == ["bundle-limit"]
    assert fleet.where("default/deployment-a-x") == ["one"]
    assert fleet.where("default/deployment-d-x") == []


def test_a_directory_is_read_once_for_all_bundles_and_clusters(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.reconcile.bundles.bundle_variants.MAX_OBJECTS", 3)
    bundles = {f"{name}.yaml": BUNDLE % (name, "app") for name in "ab"}
    clusters = {f"clusters/{name}.yaml": cluster(name) for name in ("one", "two", "three", "four")}
    fleet.commit({**bundles, **clusters, "app/p.yaml": deployment("p"), "app/q.yaml": deployment("q"), "all.yaml": ALL})
    assert codes(fleet.reconcile()) == set()
    assert fleet.where("default/deployment-p") == ["one"]
