"""Bundles of directories that Flux or Argo CD reconciles: each variant is what the tool would build."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gitsched.reconcile import Reconciler

from .conftest import Fleet, cluster
from .test_flux_paths import DEPLOYMENT, SYNC, VARIANTS, codes, findings, kustomization

pytestmark = pytest.mark.needs("kubectl")
WEB = "clusters/{0}/shop/deployment-web.yaml"
BUNDLE = """\
apiVersion: gitsched.io/v1alpha1
kind: Bundle
metadata: {name: web, namespace: shop}
spec: {path: apps%s}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: bundles, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: gitsched.io/v1alpha1, kind: Bundle}]
  placement: {}
"""
RESOURCES = "resources: [web/deployment.yaml]\n"
LAYOUT = {
    "fleet/one.yaml": cluster("one"),
    "fleet/two.yaml": cluster("two"),
    "fleet/bundle.yaml": BUNDLE % "",
    "clusters/prod/flux-system/gotk-sync.yaml": SYNC,
    "apps/web/deployment.yaml": DEPLOYMENT,
    "apps/kustomization.yaml": RESOURCES,
}
PATCH = """\
patches:
  - {patch: '[{"op": "replace", "path": "/spec/replicas", "value": 5}]', target: {kind: Deployment}}
"""
OPTIONS = "targetNamespace: shop\nimages: [{name: registry.example.com/web, newTag: '2'}]\n" + PATCH
HOST = "postBuild: {substitute: {HOST: %s}}\n"


def test_a_bundle_is_what_kubectl_builds_with_the_options_of_the_flux_kustomization(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit({**LAYOUT, "clusters/prod/apps.yaml": kustomization(OPTIONS + HOST % "a.example.com")})
    assert findings(fleet.reconcile()) == []
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "deployment.yaml").write_text(DEPLOYMENT)
    head = "resources: [deployment.yaml]\nnamespace: shop\nimages: [{name: registry.example.com/web, newTag: '2'}]\n"
    (overlay / "kustomization.yaml").write_text(head + PATCH)
    built = subprocess.run(["kubectl", "kustomize", str(overlay)], capture_output=True, text=True, check=True).stdout
    expected = built.replace("${HOST}", "a.example.com")
    assert [fleet.read(WEB.format(name)) for name in ("one", "two")] == [expected, expected]


def test_files_without_a_kustomization_are_built_as_flux_builds_them(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "clusters/prod/apps.yaml": kustomization("namePrefix: eu-\n" + OPTIONS + HOST % "a")})
    fleet.commit({"apps/kustomization.yaml": None})
    assert findings(fleet.reconcile()) == []
    assert fleet.load("clusters/one/shop/deployment-eu-web.yaml")["spec"]["replicas"] == 5


@pytest.mark.parametrize(
    ("values", "host"),
    [("", "map.example.com"), (", values: {HOST: cluster.name}", "one"), (", values: {OTHER: a}", "map.example.com")],
)
def test_values_of_the_bundle_overrule_those_of_the_kustomization(fleet: Fleet, values: str, host: str) -> None:
    source = "targetNamespace: shop\npostBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}\n"
    data = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: flux-system}\ndata: {HOST: map.example.com}\n"
    files = {"clusters/prod/apps.yaml": kustomization(source), "vars.yaml": data, "fleet/bundle.yaml": BUNDLE % values}
    fleet.commit({**LAYOUT, **files})
    assert findings(fleet.reconcile()) == []
    assert f"value: {host}\n" in fleet.read(WEB.format("one"))


def test_a_change_of_a_value_reaches_the_clusters_with_the_next_commit(fleet: Fleet) -> None:
    data = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: flux-system}\ndata: {HOST: %s}\n"
    spec = "targetNamespace: shop\npostBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}\n"
    many = {f"other/{number}.yaml": data.replace("vars", f"other-{number}") % "x" for number in range(8)}
    fleet.commit({**LAYOUT, **many, "clusters/prod/apps.yaml": kustomization(spec), "vars.yaml": data % "before"})
    resident = Reconciler(fleet.settings())
    resident.run(fleet.settings(0).now)
    assert "value: before\n" in fleet.read(WEB.format("one"))
    fleet.commit({"vars.yaml": data % "after"}, hour=1)
    resident.run(fleet.settings(1).now)
    assert "value: after\n" in fleet.read(WEB.format("one"))
    fleet.commit({"clusters/prod/apps.yaml": kustomization(spec + PATCH)}, hour=2)
    resident.run(fleet.settings(2).now)
    assert fleet.load(WEB.format("one"))["spec"]["replicas"] == 5


def test_a_variable_without_a_value_is_an_error_and_clusters_keep_what_they_have(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "clusters/prod/apps.yaml": kustomization(OPTIONS + HOST % "a")})
    fleet.reconcile()
    before = fleet.read(WEB.format("one"))
    fleet.commit({"clusters/prod/apps.yaml": kustomization(OPTIONS + "postBuild: {substitute: {OTHER: a}}")}, hour=1)
    run = fleet.reconcile(hour=1)
    (finding,) = [finding for finding in findings(run) if finding.severity == "error"]
    assert (finding.code, str(finding.location)) == ("flux-variable", "apps/web/deployment.yaml:1:1")
    assert "${HOST}" in finding.message
    assert fleet.read(WEB.format("one")) == before


def test_several_kustomizations_of_one_directory_are_chosen_by_the_variants_of_the_source(fleet: Fleet) -> None:
    files = {
        "clusters/prod/apps.yaml": kustomization(OPTIONS + HOST % "prod.example.com"),
        "clusters/dev/apps.yaml": kustomization("targetNamespace: shop\n" + HOST % "dev.example.com"),
    }
    fleet.commit({**LAYOUT, **files})
    run = fleet.reconcile()
    (finding,) = [finding for finding in findings(run) if finding.severity == "error"]
    assert (finding.code, str(finding.location)) == ("reconciled-path", "fleet/bundle.yaml:4:14")
    assert "flux-system/apps (clusters/dev/apps.yaml)" in finding.message
    assert "flux-system/apps (clusters/prod/apps.yaml)" in finding.message
    assert "source.variants" in finding.message
    assert [path for path in fleet.files() if path.endswith("deployment-web.yaml")] == []
    fleet.commit({"gitsched.yaml": VARIANTS}, hour=1)
    assert findings(fleet.reconcile(hour=1)) == []
    found = {name: fleet.load(WEB.format(name))["spec"] for name in ("one", "two")}
    assert {name: spec["replicas"] for name, spec in found.items()} == {"one": 5, "two": 2}
    assert "prod.example.com" in fleet.read(WEB.format("one"))
    assert "dev.example.com" in fleet.read(WEB.format("two"))


def test_kustomizations_that_differ_in_values_of_the_bundle_need_no_choice(fleet: Fleet) -> None:
    files = {f"clusters/{name}/apps.yaml": kustomization(OPTIONS + HOST % name) for name in ("prod", "dev")}
    fleet.commit({**LAYOUT, **files, "fleet/bundle.yaml": BUNDLE % ", values: {HOST: cluster.name}"})
    assert findings(fleet.reconcile()) == []
    assert "value: two\n" in fleet.read(WEB.format("two"))
    assert fleet.load(WEB.format("two"))["spec"]["replicas"] == 5


def test_a_kustomization_that_another_one_patches_builds_the_bundle_as_it_is_after_that(fleet: Fleet) -> None:
    patch = """
        patches:
          - patch: |
              apiVersion: kustomize.toolkit.fluxcd.io/v1
              kind: Kustomization
              metadata: {name: _}
              spec: {targetNamespace: shop, namePrefix: "", postBuild: {substitute: {HOST: patched.example.com}}}
            target: {group: kustomize.toolkit.fluxcd.io, kind: Kustomization}
    """
    files = {
        "clusters/prod/parent.yaml": kustomization(patch, "parent", "./tenants"),
        "tenants/kustomization.yaml": "namespace: flux-system\nresources: [ks.yaml]\n",
        "tenants/ks.yaml": kustomization("namePrefix: a-").replace(", namespace: flux-system}\nspec", "}\nspec"),
    }
    fleet.commit({**LAYOUT, **files})
    assert findings(fleet.reconcile()) == []
    assert "patched.example.com" in fleet.read(WEB.format("one"))
    fleet.commit({"clusters/prod/parent.yaml": None}, hour=1)
    run = fleet.reconcile(hour=1)
    (finding,) = [finding for finding in findings(run) if finding.severity == "error"]
    assert finding.code == "reconciled-path"
    assert "name the directory of that kustomization in source.kustomize.build" in finding.message
    assert "patched.example.com" in fleet.read(WEB.format("one"))


@pytest.mark.parametrize("delivery", ["flux", "argocd"])
def test_a_delivery_that_lacks_the_options_of_the_kustomization_is_an_error(fleet: Fleet, delivery: str) -> None:
    url = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {delivery: {source: {url: 'https://a.example.com/b'}}}\n"
    files = {
        "clusters/prod/apps.yaml": kustomization(OPTIONS + HOST % "a"),
        "fleet/bundle.yaml": BUNDLE % f", delivery: {delivery}",
    }
    fleet.commit({**LAYOUT, **files, "gitsched.yaml": url})
    run = fleet.reconcile()
    assert "reconciled-path" in codes(run)
    assert not any(path.startswith(("clusters/one/", "hub/")) and "apps" in fleet.read(path) for path in fleet.files())


def test_a_directory_inside_of_a_bundle_that_a_tool_changes_is_an_error(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "clusters/prod/apps.yaml": kustomization("targetNamespace: shop", "web", "./apps/web")})
    (finding,) = [finding for finding in findings(fleet.reconcile()) if finding.severity == "error"]
    assert finding.code == "reconciled-path"
    assert "Flux Kustomization flux-system/web builds apps/web (targetNamespace shop)" in finding.message
    assert "name apps/web as the path" in finding.message


def test_options_that_change_nothing_leave_the_bundle_as_it_is(fleet: Fleet) -> None:
    files = {
        "apps/kustomization.yaml": RESOURCES + "namespace: shop\n",
        "apps/web/deployment.yaml": DEPLOYMENT.replace("${HOST}", "a"),
        "clusters/prod/apps.yaml": kustomization("targetNamespace: shop"),
        "clusters/dev/apps.yaml": kustomization("targetNamespace: shop\nsuspend: true"),
    }
    fleet.commit({**LAYOUT, **files})
    assert findings(fleet.reconcile()) == []
    assert "namespace: shop" in fleet.read(WEB.format("one"))


APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  source: {repoURL: "https://git.example.com/acme/fleet.git", path: %s, %s}
  destination: {name: one, namespace: shop}
"""


def test_a_bundle_is_built_as_an_application_builds_it(fleet: Fleet) -> None:
    options = "kustomize: {images: ['registry.example.com/web:3'], replicas: [{name: web, count: 7}]}"
    text = DEPLOYMENT.replace("${HOST}", "a")
    fleet.commit({**LAYOUT, "argocd/web.yaml": APPLICATION % ("apps", options), "apps/web/deployment.yaml": text})
    assert findings(fleet.reconcile()) == []
    found = fleet.load(WEB.format("one"))
    assert (found["metadata"]["namespace"], found["spec"]["replicas"]) == ("shop", 7)
    assert "image: registry.example.com/web:3\n" in fleet.read(WEB.format("one"))


@pytest.mark.needs("helm")
def test_a_chart_needs_the_values_that_the_application_sets(fleet: Fleet) -> None:
    chart = {
        "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "chart/values.yaml": "tag: '1'\n",
        "chart/templates/map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {tag: '{{ .Values.tag }}'}\n",
        "argocd/web.yaml": APPLICATION % ("chart", "helm: {parameters: [{name: tag, value: '2'}]}"),
        "fleet/bundle.yaml": BUNDLE.replace("path: apps%s", "path: chart, helm: {namespace: shop}"),
    }
    fleet.commit({**LAYOUT, **chart})
    (finding,) = [finding for finding in findings(fleet.reconcile()) if finding.severity == "error"]
    assert finding.code == "reconciled-path"
    assert "with tag, which spec.helm lacks" in finding.message
    fleet.commit(
        {"fleet/bundle.yaml": BUNDLE.replace("path: apps%s", "path: chart, helm: {namespace: shop, values: {tag: '5'}}")}, hour=1
    )
    assert findings(fleet.reconcile(hour=1)) == []
    assert fleet.load("clusters/one/shop/configmap-web.yaml")["data"] == {"tag": "5"}


def test_the_destination_namespace_changes_nothing_if_the_kustomization_has_one(fleet: Fleet) -> None:
    text = DEPLOYMENT.replace("${HOST}", "a")
    two = (APPLICATION % ("apps", "")).replace("namespace: shop", "namespace: other").replace("name: web", "name: two")
    files = {"argocd/web.yaml": APPLICATION % ("apps", ""), "argocd/two.yaml": two, "apps/web/deployment.yaml": text}
    fleet.commit({**LAYOUT, **files, "apps/kustomization.yaml": RESOURCES + "namespace: shop\n"})
    assert findings(fleet.reconcile()) == []
    assert "namespace: shop" in fleet.read(WEB.format("two"))
    fleet.commit({"apps/kustomization.yaml": RESOURCES}, hour=1)
    (finding,) = [finding for finding in findings(fleet.reconcile(hour=1)) if finding.severity == "error"]
    assert "with different options (destination)" in finding.message


SOURCE = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: other, namespace: flux-system}
spec: {interval: 1m, url: "%s", ref: {branch: %s}}
---
"""
FOREIGN = {
    "another URL": ("https://github.com/other/name", "main"),
    "another branch": ("https://github.com/acme/fleet", "tenant"),
}


@pytest.mark.parametrize(("url", "branch"), FOREIGN.values(), ids=FOREIGN)
def test_options_of_a_kustomization_with_another_source_are_a_finding_with_its_cure(fleet: Fleet, url: str, branch: str) -> None:
    fleet.git("remote", "add", "origin", "https://github.com/acme/fleet")
    text = SOURCE % (url, branch) + kustomization(OPTIONS).replace("name: flux-system}\n", "name: other}\n")
    fleet.commit({**LAYOUT, "clusters/prod/apps.yaml": text})
    (finding,) = findings(fleet.reconcile())
    assert (finding.severity, finding.code, str(finding.location)) == ("warning", "foreign-source", "clusters/prod/apps.yaml:6:1")
    assert f"GitRepository flux-system/other ({url}, branch {branch})" in finding.message
    assert "targetNamespace" in finding.message
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {source: {deliveryTools: {%s}}}\n"
    fleet.commit({"gitsched.yaml": settings % "repositories: [other]"}, hour=1)
    assert findings(fleet.reconcile(1)) == []
    assert fleet.load(WEB.format("one"))["spec"]["replicas"] == 5
    fleet.commit({"gitsched.yaml": settings % "ignore: [clusters/prod/apps.yaml]"}, hour=2)
    assert findings(fleet.reconcile(2)) == []


def test_options_of_an_application_with_another_source_are_a_finding(fleet: Fleet) -> None:
    fleet.git("remote", "add", "origin", "https://github.com/acme/fleet")
    application = (
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: apps, namespace: argocd}\nspec:\n"
        "  source: {repoURL: 'https://github.com/other/name', path: apps, kustomize: {namePrefix: eu-}}\n"
    )
    fleet.commit({**LAYOUT, "clusters/prod/apps.yaml": application})
    assert [(finding.code, finding.location and finding.location.path) for finding in findings(fleet.reconcile())] == [
        ("foreign-source", "clusters/prod/apps.yaml")
    ]
