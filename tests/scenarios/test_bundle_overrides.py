"""Override policies and propagateDeps reach the objects of Bundles."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.model.explanation import Explanation
from gitsched.reconcile.review.explanation import explain_resource

from .conftest import Fleet, cluster

WEB = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: "registry.example.com/web:1", envFrom: [{configMapRef: {name: outside}}, {configMapRef: {name: inside}}]}
"""
INSIDE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: shop}\ndata: {a: b}\n"
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: bundles, namespace: shop}
spec:
  propagateDeps: %s
  resourceSelectors: [{apiVersion: gitsched.io/v1alpha1, kind: Bundle}]
  placement:
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
"""
LAYOUT = {
    "clusters/one.yaml": cluster("one"),
    "clusters/two.yaml": cluster("two"),
    "app/web.yaml": WEB,
    "app/inside.yaml": INSIDE,
    "app/kustomization.yaml": "resources: [web.yaml, inside.yaml]\n",
    "outside.yaml": INSIDE.replace("inside", "outside"),
    "bundle.yaml": "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: shop, namespace: shop}\nspec: {path: app}\n",
    "policy.yaml": POLICY % "false",
}
OVERRIDE = """\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: mirror, namespace: shop}
spec:
  resourceSelectors: [%s]
  overrideRules:
    - targetCluster: {clusterNames: [two]}
      overriders: %s
"""
SELECTOR = "{apiVersion: apps/v1, kind: Deployment, name: web}"
IMAGE = "{imageOverrider: [{component: Registry, operator: replace, value: mirror.example.com}]}"
PATH = "clusters/{}/shop/deployment-web.yaml"


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "source", tmp_path / "cache")


def codes(fleet: Fleet, hour: float = 0) -> list[str]:
    return [finding.code for finding in fleet.preview(hour).plan.findings if finding.severity != "info"]


def read_image(fleet: Fleet, name: str) -> str:
    return str(fleet.load(PATH.format(name))["spec"]["template"]["spec"]["containers"][0]["image"])


def test_an_override_changes_an_object_of_a_bundle_as_it_changes_the_object_alone(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit({**LAYOUT, "override.yaml": OVERRIDE % (SELECTOR, IMAGE)})
    fleet.reconcile()
    assert [read_image(fleet, name) for name in ("one", "two")] == ["registry.example.com/web:1", "mirror.example.com/web:1"]
    assert [fleet.load(PATH.format(name))["spec"]["replicas"] for name in ("one", "two")] == [2, 2], "replicas are divided as well"
    alone = Fleet(tmp_path / "alone", tmp_path / "cache")
    policy = LAYOUT["policy.yaml"].replace("gitsched.io/v1alpha1, kind: Bundle", "apps/v1, kind: Deployment")
    files = {**LAYOUT, "override.yaml": OVERRIDE % (SELECTOR, IMAGE), "policy.yaml": policy}
    alone.commit({name: text for name, text in files.items() if name != "bundle.yaml"})
    alone.reconcile()
    assert alone.load(PATH.format("two")) == fleet.load(PATH.format("two"))
    assert not fleet.reconcile().changed, "a second run has nothing to do"
    explanation = explain_resource(fleet.settings(), "bundle", "shop", "shop")
    assert isinstance(explanation, Explanation)
    assert [(entry.policy, entry.clusters) for entry in explanation.overrides] == [("OverridePolicy/shop/mirror", ("two",))]


def test_an_override_that_cannot_be_applied_keeps_what_the_cluster_has(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    before = fleet.files()
    broken = "{plaintext: [{path: /spec/missing/field, operator: replace, value: x}]}"
    fleet.commit({"override.yaml": OVERRIDE % (SELECTOR, broken), "app/web.yaml": WEB.replace("web:1", "web:2")}, hour=1)
    assert "override-failed" in codes(fleet, 1)
    fleet.reconcile(1)
    assert read_image(fleet, "one") == "registry.example.com/web:2"
    assert fleet.files()[PATH.format("two")] == before[PATH.format("two")]


@pytest.mark.parametrize(
    ("selector", "more", "message"),
    [
        ("{apiVersion: gitsched.io/v1alpha1, kind: Bundle}", "", "have it select these"),
        (SELECTOR, ", delivery: flux", "because flux builds them"),
        (SELECTOR, "", None),
        ("{apiVersion: apps/v1, kind: Deployment, name: other}", ", delivery: flux", None),
    ],
)
def test_what_override_policies_do_not_change_is_reported(fleet: Fleet, selector: str, more: str, message: str | None) -> None:
    bundle = LAYOUT["bundle.yaml"].replace("path: app", f"path: app{more}")
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {delivery: {source: {url: https://x.org/y}}}\n"
    fleet.commit({**LAYOUT, "bundle.yaml": bundle, "gitsched.yaml": settings, "override.yaml": OVERRIDE % (selector, IMAGE)})
    found = [finding.message for finding in fleet.preview().plan.findings if finding.code == "bundle-override"]
    assert [message in text for text in found if message] == ([True] if message else [])
    assert bool(found) == bool(message)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (SELECTOR, ""),
        ("{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: web}}}", ""),
        (
            SELECTOR.replace("web", "wbe"),
            "namespace shop has no Deployment wbe; did you mean web? If what it selected was removed, delete the policy",
        ),
    ],
)
def test_an_override_that_selects_objects_of_bundles_selects_something(fleet: Fleet, selector: str, message: str) -> None:
    fleet.commit({**LAYOUT, "override.yaml": OVERRIDE % (selector, IMAGE)})
    found = [one.message.partition(": ")[2] for one in fleet.preview().plan.findings if one.code == "karmada-selects-nothing"]
    assert found == ([message] if message else [])


def test_propagate_deps_brings_along_what_the_objects_of_a_bundle_refer_to(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    assert codes(fleet) == ["reference-not-delivered"]
    (finding,) = (finding for finding in fleet.preview().plan.findings if finding.code == "reference-not-delivered")
    assert "set spec.propagateDeps: true in PropagationPolicy/shop/bundles" in finding.message
    fleet.reconcile()
    assert fleet.where("shop/configmap-outside") == []
    fleet.commit({"policy.yaml": POLICY % "true"}, hour=1)
    assert codes(fleet, 1) == []
    fleet.reconcile(1)
    assert fleet.where("shop/configmap-outside") == ["one", "two"]
    assert fleet.where("shop/configmap-inside") == ["one", "two"]
    fleet.commit({"app/web.yaml": WEB.replace("name: outside", "name: inside")}, hour=2)
    fleet.reconcile(2)
    assert fleet.where("shop/configmap-outside") == [], "no object refers to it any more"


SOPS = "sops: {mac: 'ENC[AES256_GCM,data:bWFj,type:str]', lastmodified: '2026-01-01T00:00:00Z', version: 3.9.0}\n"
ENCRYPTED = (
    "apiVersion: v1\nkind: Secret\nmetadata: {name: inside, namespace: shop}\nstringData: {a: 'ENC[AES256_GCM,data:YQ,type:str]'}\n"
)
LABEL = "{labelsOverrider: [{operator: add, value: {zone: b}}]}"


def test_objects_that_sops_encrypted_are_not_changed_by_overrides(fleet: Fleet) -> None:
    override = OVERRIDE % ("{apiVersion: v1, kind: Secret, name: inside}", LABEL)
    fleet.commit({**LAYOUT, "app/inside.yaml": ENCRYPTED + SOPS, "override.yaml": override})
    run = fleet.reconcile()
    found = [finding for finding in run.plan.findings if finding.code == "sops-unchanged"]
    assert [(finding.severity, str(finding.location)) for finding in found] == [("warning", "app/inside.yaml:1:1")]
    assert "apply in two;" in found[0].message
    one, two = (fleet.read(f"clusters/{name}/shop/secret-inside.yaml") for name in ("one", "two"))
    assert one == two
    assert "zone" not in two


def test_a_workload_that_sops_encrypted_keeps_its_replicas_in_a_bundle(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "app/web.yaml": WEB + SOPS})
    run = fleet.reconcile()
    assert [finding.code for finding in run.plan.findings if finding.code == "sops-unchanged"] == ["sops-unchanged"]
    assert [fleet.load(PATH.format(name))["spec"]["replicas"] for name in ("one", "two")] == [4, 4]


def test_a_new_bundle_waits_for_an_override_policy_of_its_objects_that_was_never_valid(fleet: Fleet) -> None:
    valid = OVERRIDE % (SELECTOR, IMAGE)
    fleet.commit({**LAYOUT, "override.yaml": valid.replace("operator: replace", "operator: set")})
    plan = fleet.reconcile().plan
    assert [str(one.location) for one in plan.findings if one.code == "override-awaited"] == ["override.yaml:1:1"]
    assert not [path for path in fleet.files() if path.endswith("deployment-web.yaml")]
    fleet.commit({"override.yaml": valid}, hour=1)
    fleet.reconcile(1)
    assert "mirror.example.com" in fleet.read(PATH.format("two"))
