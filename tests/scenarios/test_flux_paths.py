"""Directories that Flux Kustomizations of the repository reconcile: their objects are those that Flux would apply."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import yaml

from gitsched.build import scratch
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult
from gitsched.reconcile.review.explanation import explain_resource

from .conftest import Fleet, cluster, policy

WEB = "shop/deployment-web"
POLICY = policy("one").replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy").replace(", namespace: default}", "}")
SYNC = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "https://github.com/acme/fleet", ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 10m
  path: ./clusters/prod
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: registry.example.com/web:1.0
          env: [{name: HOST, value: "${HOST}"}]
"""


def kustomization(spec: str, name: str = "apps", path: str = "./apps") -> str:
    """Return a Flux Kustomization of this repository with more fields of its spec."""
    head = (
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
        f"metadata: {{name: {name}, namespace: flux-system}}\nspec:\n  interval: 10m\n  path: {path}\n  prune: true\n"
        "  sourceRef: {kind: GitRepository, name: flux-system}\n"
    )
    return head + textwrap.indent(textwrap.dedent(spec).strip(), "  ") + "\n"


def select(namespace: str = "shop", kind: str = "Deployment", name: str = "all", more: str = "") -> str:
    text = policy("one", name=name, kind=kind, more=more).replace("namespace: default", f"namespace: {namespace}")
    return text if kind in ("Deployment", "StatefulSet") else text.replace("apps/v1", "v1")


LAYOUT = {
    "fleet/one.yaml": cluster("one"),
    "fleet/policy.yaml": select(),
    "clusters/prod/flux-system/gotk-sync.yaml": SYNC,
    "clusters/prod/apps.yaml": kustomization("targetNamespace: shop\npostBuild: {substitute: {HOST: shop.example.com}}"),
    "apps/web/deployment.yaml": DEPLOYMENT,
}


def findings(run: RunResult) -> list[Finding]:
    return [one for one in run.plan.findings if one.severity != "info" and one.code != "namespace-missing"]


def codes(run: RunResult) -> list[str]:
    return [finding.code for finding in findings(run)]


def test_an_object_is_placed_as_flux_would_apply_it(fleet: Fleet) -> None:
    spec = """
        targetNamespace: shop
        namePrefix: eu-
        commonMetadata: {labels: {team: shop}, annotations: {owner: ops}}
        images: [{name: registry.example.com/web, newTag: "2.0"}]
        patches:
          - patch: '[{"op": "add", "path": "/spec/template/metadata/annotations", "value": {"patched": "yes"}}]'
            target: {kind: Deployment}
        postBuild: {substitute: {HOST: shop.example.com}}
    """
    fleet.commit({**LAYOUT, "clusters/prod/apps.yaml": kustomization(spec)})
    assert findings(fleet.reconcile()) == []
    assert fleet.read("clusters/one/shop/deployment-eu-web.yaml") == textwrap.dedent(
        """\
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          annotations:
            owner: ops
          labels:
            team: shop
          name: eu-web
          namespace: shop
        spec:
          replicas: 2
          selector:
            matchLabels:
              app: web
          template:
            metadata:
              annotations:
                patched: "yes"
              labels:
                app: web
            spec:
              containers:
              - env:
                - name: HOST
                  value: shop.example.com
                image: registry.example.com/web:2.0
                name: web
        """
    )


def test_files_of_a_path_that_flux_does_not_change_are_delivered_as_they_are(fleet: Fleet) -> None:
    text = "# The web server\n" + DEPLOYMENT.replace("${HOST}", "a").replace("  name: web\n", "  name: web\n  namespace: shop\n", 1)
    fleet.commit({**LAYOUT, "clusters/prod/apps.yaml": kustomization(""), "apps/web/deployment.yaml": text})
    assert findings(fleet.reconcile()) == []
    assert fleet.read("clusters/one/shop/deployment-web.yaml") == text


def test_the_kustomization_of_a_directory_is_changed_and_not_wrapped(fleet: Fleet) -> None:
    files = {
        "apps/kustomization.yaml": (
            "namespace: old\nresources: [web]\nimages: [{name: registry.example.com/web, newName: mirror/web, digest: 'sha256:ab'}]\n"
        ),
        "apps/web/kustomization.yaml": "resources: [deployment.yaml]\nconfigMapGenerator: [{name: settings, literals: ['host=${HOST}']}]\n",
    }
    spec = 'targetNamespace: shop\nimages: [{name: registry.example.com/web, newTag: "3"}]\npostBuild: {substitute: {HOST: a}}'
    maps = select(kind="ConfigMap", name="maps")
    fleet.commit({**LAYOUT, **files, "clusters/prod/apps.yaml": kustomization(spec), "fleet/maps.yaml": maps})
    assert findings(fleet.reconcile()) == []
    assert "image: mirror/web:3\n" in fleet.read("clusters/one/shop/deployment-web.yaml")
    (generated,) = [path for path in fleet.files() if path.startswith("clusters/one/shop/configmap-settings-")]
    assert fleet.load(generated)["data"] == {"host": "a"}


VALUES = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: flux-system}\ndata: {HOST: %s}\n"
FROM = "targetNamespace: shop\npostBuild:\n  substituteFrom: [{kind: %s, name: vars}]\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: vars, namespace: flux-system}\nstringData: {HOST: '%s'}\n"


@pytest.mark.parametrize(
    ("spec", "files", "host"),
    [
        (FROM % "ConfigMap", {"vars.yaml": VALUES % "one"}, "one"),
        (FROM % "ConfigMap" + "  substitute: {HOST: own}", {"vars.yaml": VALUES % "one"}, "own"),
        (FROM % "Secret", {"vars.yaml": SECRET % "secret"}, "secret"),
        (FROM % "ConfigMap", {"clusters/prod/v.yaml": VALUES % "near", "clusters/dev/v.yaml": VALUES % "far"}, "near"),
        ("targetNamespace: shop\npostBuild: {substituteStrategy: Always}", {}, None),
        (FROM % "ConfigMap", {}, None),
        (FROM % "ConfigMap", {"a/vars.yaml": VALUES % "one", "b/vars.yaml": VALUES % "two"}, None),
        (FROM % "Secret", {"vars.yaml": SECRET % "ENC[AES256_GCM]" + "sops: {mac: x, version: 3.9.0}\n"}, None),
    ],
    ids=["config-map", "overruled", "secret", "nearest", "nothing", "missing", "ambiguous", "encrypted"],
)
def test_a_variable_has_the_value_that_flux_finds(fleet: Fleet, spec: str, files: dict[str, str], host: str | None) -> None:
    run_files = {**LAYOUT, **files, "clusters/prod/apps.yaml": kustomization(spec)}
    fleet.commit(run_files)
    run = fleet.reconcile()
    if host is None:
        assert codes(run) == ["flux-variable"]
        (finding,) = findings(run)
        assert "${HOST}" in finding.message
        assert finding.location is not None
        assert str(finding.location) == "apps/web/deployment.yaml:1:1"
        assert fleet.where(WEB) == []
        assert not any("${" in fleet.read(path) for path in fleet.files() if path.startswith("clusters/"))
    else:
        assert findings(run) == []
        (container,) = fleet.load("clusters/one/shop/deployment-web.yaml")["spec"]["template"]["spec"]["containers"]
        assert container["env"] == [{"name": "HOST", "value": host}]


def test_objects_may_turn_substitution_off(fleet: Fleet) -> None:
    raw = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\n"
        "  %s: {kustomize.toolkit.fluxcd.io/substitute: disabled}\ndata: {a: '${B}'}\n"
    )
    for field in ("labels", "annotations"):
        fleet.commit({**LAYOUT, "apps/map.yaml": raw % field, "fleet/maps.yaml": select(kind="ConfigMap", name="maps")})
        assert findings(fleet.reconcile()) == []
        assert fleet.load("clusters/one/shop/configmap-web.yaml")["data"] == {"a": "${B}"}


def test_a_workload_keeps_its_placement_when_a_variable_loses_its_value(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    before = fleet.read("clusters/one/shop/deployment-web.yaml")
    fleet.commit({"clusters/prod/apps.yaml": kustomization("targetNamespace: shop\npostBuild: {substitute: {OTHER: x}}")}, hour=1)
    run = fleet.reconcile(hour=1)
    assert "flux-variable" in codes(run)
    assert fleet.where(WEB) == ["one"]
    assert fleet.read("clusters/one/shop/deployment-web.yaml") == before


def test_a_kustomization_that_another_one_patches_counts_as_it_is_after_that(fleet: Fleet) -> None:
    patch = """
        patches:
          - patch: |
              apiVersion: kustomize.toolkit.fluxcd.io/v1
              kind: Kustomization
              metadata: {name: _}
              spec: {targetNamespace: shop, postBuild: {substitute: {HOST: patched.example.com}}}
            target: {group: kustomize.toolkit.fluxcd.io, kind: Kustomization}
    """
    files = {
        "clusters/prod/apps.yaml": None,
        "clusters/prod/parent.yaml": kustomization(patch, "parent", "./tenants"),
        "tenants/kustomization.yaml": "namespace: flux-system\nresources: [ks.yaml]\n",
        "tenants/ks.yaml": kustomization("").replace(", namespace: flux-system}\nspec", "}\nspec"),
    }
    fleet.commit(LAYOUT)
    fleet.commit(files)
    assert findings(fleet.reconcile()) == []
    assert "patched.example.com" in fleet.read("clusters/one/shop/deployment-web.yaml")


def test_an_artifact_has_the_files_that_its_generator_copies(fleet: Fleet) -> None:
    generator = """\
apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: all, namespace: flux-system}
spec:
  sources: [{alias: repo, kind: GitRepository, name: flux-system}]
  artifacts:
    - name: apps
      copy: [{from: "@repo/apps/base/**", to: "@artifact/base/"}, {from: "@repo/apps/prod/**", to: "@artifact/prod/"}]
"""
    apps = kustomization("", path="./prod").replace("GitRepository, name: flux-system", "ExternalArtifact, name: apps")
    files = {
        "clusters/prod/generator.yaml": generator,
        "clusters/prod/apps.yaml": apps,
        "apps/web/deployment.yaml": None,
        "apps/base/deployment.yaml": DEPLOYMENT.replace("${HOST}", "base"),
        "apps/base/kustomization.yaml": "resources: [deployment.yaml]\n",
        "apps/prod/kustomization.yaml": "namespace: shop\nresources: [../base]\nreplicas: [{name: web, count: 5}]\n",
    }
    fleet.commit(LAYOUT)
    fleet.commit(files)
    assert findings(fleet.reconcile()) == []
    assert fleet.load("clusters/one/shop/deployment-web.yaml")["spec"]["replicas"] == 5
    found = explain_resource(fleet.settings(), "deployment", "shop", "web")
    assert isinstance(found, Explanation)
    origin = "apps/base/deployment.yaml:1, built from apps/prod, last changed by apps/prod/kustomization.yaml:3"
    assert found.title == f"Deployment.apps/shop/web  ({origin})"


def test_a_directory_that_cannot_be_built_says_why_and_is_not_placed(fleet: Fleet) -> None:
    files = {"apps/kustomization.yaml": "resources: [web/deployment.yaml, missing.yaml]\n"}
    fleet.commit({**LAYOUT, **files})
    run = fleet.reconcile()
    assert sorted(codes(run)) == ["kustomize-missing", "reconciled-path"]
    found = {finding.code: (finding.severity, str(finding.location)) for finding in findings(run)}
    assert found == {
        "kustomize-missing": ("error", "apps/kustomization.yaml:1:34"),
        "reconciled-path": ("error", "apps/web/deployment.yaml:1:1"),
    }
    assert fleet.where(WEB) == []


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ("deliveryTools: {ignore: [apps/]}", "raw"),
        ("kustomize: {ignore: [apps/]}", "raw"),
        ('deliveryTools: {repositories: ["https://github.com/acme/other"]}', "raw"),
        ("deliveryTools: {repositories: [flux-system]}", "built"),
        ("paths: [apps, fleet]", "built"),
        ("ignore: [clusters/]", "built"),
    ],
)
def test_settings_say_which_paths_are_built(fleet: Fleet, spec: str, place: str) -> None:
    settings = f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\nspec: {{source: {{{spec}}}}}\n"
    fleet.commit({**LAYOUT, "gitsched.yaml": settings, "fleet/default.yaml": select("default", name="raw")})
    fleet.reconcile()
    assert (fleet.where(WEB), fleet.where("default/deployment-web")) == ((["one"], []) if place == "built" else ([], ["one"]))


def test_only_directories_with_something_that_a_policy_may_select_are_built(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    from gitsched.reconcile.builds import path_builder

    built: list[str] = []
    original = path_builder.build_closures

    def record(closures, builder, cache):  # type: ignore[no-untyped-def]
        built.extend(closure.root for closure, _ in closures)
        return original(closures, builder, cache)

    monkeypatch.setattr(path_builder, "build_closures", record)
    other = DEPLOYMENT.replace("Deployment", "StatefulSet")
    more = {"clusters/prod/db.yaml": kustomization("targetNamespace: db", "db", "./db"), "db/db.yaml": other}
    fleet.commit({**LAYOUT, **more})
    fleet.reconcile()
    assert built == ["apps"]
    fleet.commit({"fleet/db.yaml": select("db", "StatefulSet", "db")}, hour=1)
    built.clear()
    fleet.reconcile(hour=1)
    assert "db" in built
    assert fleet.where("db/statefulset-web") == ["one"]


def test_without_kustomize_nothing_of_a_changed_directory_is_placed(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.build.builder._list_candidates", list)
    fleet.commit(LAYOUT)
    run = fleet.reconcile()
    assert "reconciled-path" in codes(run)
    assert any("kustomize, which is not installed" in finding.message for finding in findings(run))
    assert fleet.where(WEB) == []


def test_built_objects_are_valid_yaml_after_substitution(fleet: Fleet) -> None:
    deployment = yaml.safe_load(DEPLOYMENT)
    deployment["spec"]["replicas"] = "${COUNT}"
    spec = "targetNamespace: shop\npostBuild: {substitute: {HOST: a, COUNT: '3'}}"
    fleet.commit({**LAYOUT, "clusters/prod/apps.yaml": kustomization(spec), "apps/web/deployment.yaml": yaml.safe_dump(deployment)})
    assert findings(fleet.reconcile()) == []
    assert fleet.load("clusters/one/shop/deployment-web.yaml")["spec"]["replicas"] == 3
    fleet.commit({"clusters/prod/apps.yaml": kustomization(spec.replace("'3'", "'{'"))}, hour=1)
    assert "flux-variable" in codes(fleet.reconcile(hour=1))


VARIANTS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  source:
    variants:
      - {path: clusters/prod, clusters: {names: [one]}}
      - {path: clusters/dev, clusters: {names: [two]}}
"""


def test_two_kustomizations_of_one_directory_are_variants_of_their_clusters(fleet: Fleet) -> None:
    spec = "targetNamespace: shop\npostBuild: {substitute: {HOST: %s.example.com}}"
    files = {
        "fleet/two.yaml": cluster("two"),
        "fleet/policy.yaml": policy("one,two").replace("namespace: default", "namespace: shop"),
        "clusters/prod/apps.yaml": kustomization(spec % "prod"),
        "clusters/dev/apps.yaml": kustomization(spec % "dev"),
        "apps/web/other.yaml": DEPLOYMENT.replace("name: web", "name: other", 1),
    }
    fleet.commit({**LAYOUT, **files})
    run = fleet.reconcile()
    assert codes(run) == ["duplicate-identity"]
    (finding,) = findings(run)
    assert "clusters/dev/apps.yaml" in finding.message
    assert "clusters/prod/apps.yaml" in finding.message
    assert "source.variants" in finding.message
    fleet.commit({"gitsched.yaml": VARIANTS}, hour=1)
    assert findings(fleet.reconcile(hour=1)) == []
    for name, host in (("one", "prod.example.com"), ("two", "dev.example.com")):
        assert host in fleet.read(f"clusters/{name}/shop/deployment-web.yaml")


def test_a_directory_that_cannot_be_built_any_more_keeps_its_objects(fleet: Fleet) -> None:
    files = {"apps/kustomization.yaml": "resources: [web]\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\n"}
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: other}\ndata: {hour: '0'}\n"
    maps = {
        "fleet/maps.yaml": select(kind="ConfigMap", name="maps"),
        "fleet/others.yaml": select("other", "ConfigMap"),
        "fleet/other.yaml": other,
        "apps/web/kustomization.yaml": "resources: [deployment.yaml]\n",
    }
    valid = fleet.commit({**LAYOUT, **files, **maps})
    assert findings(fleet.reconcile()) == []
    before = {path: fleet.read(path) for path in fleet.files() if path.startswith("clusters/one/shop/")}
    assert len(before) == 2
    for hour, text in ((1, "resources: [web, missing.yaml]\n"), (2, "resources: [web, gone.yaml]\n")):
        fleet.commit({"apps/kustomization.yaml": text, "fleet/other.yaml": other.replace("'0'", f"'{hour}'")}, hour=hour)
        run = fleet.reconcile(hour=hour)
        assert run.changed
        assert [(finding.severity, finding.code) for finding in findings(run)] == [("error", "kustomize-missing")]
        assert f"what it reconciles is that of commit {valid[:10]}" in findings(run)[0].message
        assert {path: fleet.read(path) for path in fleet.files() if path.startswith("clusters/one/shop/")} == before
    fleet.commit({"apps/kustomization.yaml": "resources: [web]\n"}, hour=3)
    assert findings(fleet.reconcile(hour=3)) == []
    assert [path for path in fleet.files() if path.startswith("clusters/one/shop/")] == ["clusters/one/shop/deployment-web.yaml"]


def test_a_mistyped_base_does_not_place_its_objects_by_themselves(fleet: Fleet) -> None:
    files: dict[str, str] = {name: text for name, text in LAYOUT.items() if name != "apps/web/deployment.yaml"}
    own = {"fleet/more.yaml": policy("one", name="more"), "base/deployment.yaml": DEPLOYMENT}
    base = {"base/kustomization.yaml": "resources: [deployment.yaml]\n", "apps/kustomization.yaml": "resources: [../base]\n"}
    fleet.commit(files | own | base)
    fleet.reconcile()
    before = fleet.files()
    fleet.commit({"apps/kustomization.yaml": "resources: [../bose]\n"}, hour=1)
    run = fleet.reconcile(1)
    assert [finding.code for finding in findings(run)] == ["kustomize-missing"]
    assert {path for path in fleet.files() if path.startswith("clusters/")} == {
        path for path in before if path.startswith("clusters/")
    }
    assert not run.plan.moves


def test_a_change_takes_effect_although_the_directory_cannot_be_built_afterwards(fleet: Fleet) -> None:
    layout = {**LAYOUT, "apps/kustomization.yaml": "resources: [web/deployment.yaml]\n"}
    fleet.commit(layout)
    assert findings(fleet.reconcile()) == []
    valid = fleet.commit({"apps/web/deployment.yaml": DEPLOYMENT.replace("replicas: 2", "replicas: 5")}, hour=1)
    fleet.commit({"apps/kustomization.yaml": "resources: [missing.yaml]\n"}, hour=1)
    run = fleet.reconcile(1)
    assert fleet.load("clusters/one/shop/deployment-web.yaml")["spec"]["replicas"] == 5
    assert f"that of commit {valid[:10]}" in findings(run)[0].message


@pytest.mark.parametrize(
    ("source", "built"), [("", []), ("postBuild: {substituteFrom: [{kind: ConfigMap, name: values}]}", ["docs"])]
)
def test_other_directories_of_an_earlier_commit_are_built_only_for_their_values(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, source: str, built: list[str]
) -> None:
    others = {
        "clusters/prod/apps.yaml": kustomization(f"targetNamespace: shop\n{source}"),
        "clusters/prod/docs.yaml": kustomization("targetNamespace: flux-system", "docs", "./docs"),
        "apps/kustomization.yaml": "resources: [web/deployment.yaml]\n",
        "docs/kustomization.yaml": "resources: [values.yaml]\ncommonLabels: {a: b}\n",
        "docs/values.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values}\ndata: {HOST: shop.example.com}\n",
    }
    fleet.commit({**LAYOUT, **others})
    fleet.reconcile()
    roots: list[str] = []
    run = scratch.run_isolated

    def record(*arguments: Any) -> Any:
        roots.append(arguments[1][-1].removeprefix("{root}/"))
        return run(*arguments)

    monkeypatch.setattr(scratch, "run_isolated", record)
    fleet.commit({"apps/kustomization.yaml": "resources: [missing.yaml]\n"}, hour=1)
    assert "kustomize-missing" in codes(fleet.reconcile(1))
    assert "clusters/one/shop/deployment-web.yaml" in fleet.files()
    assert roots == built


def test_a_kustomization_that_is_changed_by_an_unknown_build_holds_its_objects_back(fleet: Fleet) -> None:
    files = {
        "clusters/prod/flux-system/gotk-sync.yaml": "# written by the bootstrap\n",
        "clusters/prod/kustomization.yaml": "resources: [apps.yaml]\ncommonLabels: {team: shop}\n",
        "fleet/raw.yaml": select("default", name="raw"),
    }
    fleet.commit({**LAYOUT, **files})
    run = fleet.reconcile()
    assert codes(run) == ["reconciled-path"]
    assert "source.kustomize.build" in findings(run)[0].message
    assert fleet.where("default/deployment-web") == []
    settings = (
        "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {source: {kustomize: {build: [%s]}}}\n"
    )
    fleet.commit({"gitsched.yaml": settings % "clusters/prod"}, hour=1)
    run = fleet.reconcile(hour=1)
    assert findings(run) == []
    (unused,) = (one for one in run.plan.findings if one.code == "karmada-selects-nothing")
    assert (unused.severity, str(unused.location)) == ("info", "fleet/raw.yaml:8:5"), "another policy selects web in shop"
    assert fleet.where(WEB) == ["one"]


def test_the_kustomization_of_the_bootstrap_may_change_itself(fleet: Fleet) -> None:
    bootstrap = "resources: [gotk-sync.yaml]\nlabels: [{pairs: {team: ops}}]\n"
    fleet.commit({**LAYOUT, "clusters/prod/flux-system/kustomization.yaml": bootstrap})
    assert findings(fleet.reconcile()) == []
    assert fleet.where(WEB) == ["one"]


def test_a_path_that_the_repository_does_not_have_is_reported(fleet: Fleet) -> None:
    missing = {"clusters/prod/db.yaml": kustomization("", "db", "./db")}
    fleet.commit({**LAYOUT, **missing})
    run = fleet.reconcile()
    assert codes(run) == ["missing-path"]
    assert str(findings(run)[0].location) == "clusters/prod/db.yaml:6:9"
    parts = {
        "tenants/kustomization.yaml": "namePrefix: a-\nresources: [ks.yaml]\n",
        "tenants/ks.yaml": kustomization("", "x", "./x"),
    }
    fleet.commit({"clusters/prod/db.yaml": kustomization("", "db", "./apps"), **parts}, hour=1)
    assert codes(fleet.reconcile(hour=1)) == []


def test_what_a_helm_release_refers_to_comes_along(fleet: Fleet) -> None:
    release = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web}
spec:
  interval: 1h
  chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: charts}}}
  valuesFrom: [{kind: ConfigMap, name: web-values}]
"""
    files = {
        "apps/web/release.yaml": release,
        "apps/web/repository.yaml": (
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts}\n"
            "spec: {interval: 1h, url: 'https://charts.example.com'}\n"
        ),
        "apps/web/values.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-values}\ndata: {values.yaml: 'host: ${HOST}'}\n",
        "fleet/policy.yaml": select(kind="HelmRelease", more="  propagateDeps: true\n").replace(
            "apiVersion: v1, kind: HelmRelease", "apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease"
        ),
    }  # fmt: skip
    fleet.commit({**LAYOUT, **files})
    fleet.reconcile()
    names = [path.removeprefix("clusters/one/shop/") for path in fleet.files() if path.startswith("clusters/one/shop/")]
    assert names == [
        "configmap-web-values.yaml",
        "helmrelease.helm.toolkit.fluxcd.io-web.yaml",
        "helmrepository.source.toolkit.fluxcd.io-charts.yaml",
    ]
    assert fleet.load("clusters/one/shop/configmap-web-values.yaml")["data"] == {"values.yaml": "host: shop.example.com"}


def test_a_secret_that_flux_generates_from_an_encrypted_file_is_not_placed(fleet: Fleet) -> None:
    files = {
        "apps/kustomization.yaml": "resources: [web]\nsecretGenerator: [{name: token, envs: [token.env]}]\n",
        "apps/web/kustomization.yaml": "resources: [deployment.yaml]\n",
        "apps/token.env": "TOKEN=ENC[AES256_GCM,data:abc,iv:def,tag:ghi,type:str]\nsops_version=3.9.0\n",
        "fleet/secrets.yaml": select(kind="Secret", name="secrets"),
    }
    fleet.commit({**LAYOUT, **files})
    run = fleet.reconcile()
    assert codes(run) == ["reconciled-path"]
    assert "SOPS" in findings(run)[0].message
    assert str(findings(run)[0].location) == "apps/kustomization.yaml:2:1"
    assert not [path for path in fleet.files() if "secret-token" in path and path.startswith("clusters/")]


def test_a_broken_kustomization_is_not_replaced_by_an_empty_one(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "apps/kustomization.yaml": "resources: [web\n"})
    run = fleet.reconcile()
    assert sorted(codes(run)) == ["reconciled-path", "yaml-syntax"]
    assert any("apps/kustomization.yaml is not a mapping" in finding.message for finding in findings(run))


INSTANCE = """\
apiVersion: fluxcd.controlplane.io/v1
kind: FluxInstance
metadata: {name: flux, namespace: flux-system}
spec:
  distribution: {version: 2.x, registry: ghcr.io/fluxcd}
  sync: {kind: GitRepository, url: "https://github.com/acme/fleet.git", ref: refs/heads/main, path: clusters/prod}
"""
RESOURCE_SET = """\
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: apps, namespace: flux-system}
spec:
  inputs: [{tenant: a}]
  resources:
    - apiVersion: kustomize.toolkit.fluxcd.io/v1
      kind: Kustomization
      metadata: {name: << inputs.tenant >>}
      spec: {path: ./tenants/<< inputs.tenant >>}
"""


def test_the_sync_section_of_a_flux_instance_names_a_directory(fleet: Fleet) -> None:
    change = """{patch: '[{"op": "add", "path": "/spec/targetNamespace", "value": "shop"}]', target: {kind: Kustomization}}"""
    patch = f"resources: [apps.yaml]\npatches: [{change}]\n"
    files = {
        "clusters/prod/flux-system/gotk-sync.yaml": None,
        "instance.yaml": INSTANCE,
        "clusters/prod/kustomization.yaml": patch,
        "clusters/prod/apps.yaml": kustomization("suspend: false"),
    }
    fleet.commit(LAYOUT)
    fleet.commit(files)
    assert findings(fleet.reconcile()) == []
    assert fleet.where("shop/deployment-web") == ["one"], (
        "the Kustomization counts as the build of the directory of the cluster prints it"
    )


def test_a_flux_instance_counts_as_the_build_of_a_directory_prints_it(fleet: Fleet) -> None:
    change = """{patch: '[{"op": "add", "path": "/spec/targetNamespace", "value": "shop"}]', target: {kind: Kustomization}}"""
    move = """{patch: '[{"op": "replace", "path": "/spec/sync/path", "value": "clusters/eu"}]', target: {kind: FluxInstance}}"""
    instance = INSTANCE.replace("sync: {kind", "sync: {name: eu, kind").replace("path: clusters/prod", "path: clusters/base")
    fleet.commit(LAYOUT)
    fleet.commit(
        {
            "clusters/prod/apps.yaml": None,
            "clusters/prod/instance.yaml": instance,
            "clusters/prod/kustomization.yaml": f"resources: [flux-system/gotk-sync.yaml, instance.yaml]\npatches: [{move}]\n",
            "clusters/eu/kustomization.yaml": f"resources: [apps.yaml]\npatches: [{change}]\n",
            "clusters/eu/apps.yaml": kustomization("suspend: false"),
        }
    )
    assert findings(fleet.reconcile()) == []
    assert fleet.where("shop/deployment-web") == ["one"]


def test_patches_that_a_build_adds_to_a_flux_instance_are_reported(fleet: Fleet) -> None:
    value = '{"patches": [{"patch": "x", "target": {"kind": "Kustomization"}}]}'
    add = f'[{{"op": "add", "path": "/spec/kustomize", "value": {value}}}]'
    patch = f"patches: [{{patch: '{add}', target: {{kind: FluxInstance}}}}]\n"
    fleet.commit(
        {
            **LAYOUT,
            "clusters/prod/instance.yaml": INSTANCE.replace("sync: {kind", "sync: {name: eu, kind").replace(
                "clusters/prod", "clusters/eu"
            ),
            "clusters/eu/apps.yaml": kustomization("suspend: false", name="eu"),
            "clusters/prod/kustomization.yaml": "resources: [flux-system/gotk-sync.yaml, apps.yaml, instance.yaml]\n" + patch,
        }
    )
    found = [str(finding.location) for finding in findings(fleet.reconcile()) if finding.code == "unread-document"]
    assert found == ["clusters/prod/instance.yaml:1:1"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"{INSTANCE}  kustomize: {{patches: [{{patch: x, target: {{kind: Kustomization}}}}]}}\n", "spec.kustomize.patches"),
        (f"{INSTANCE}  kustomize: {{patches: [{{patch: x, target: {{kind: Deployment}}}}]}}\n", ""),
        (f"{INSTANCE}  kustomize: {{patches: [{{patch: '- path: /spec/verify', target: {{kind: GitRepository}}}}]}}\n", ""),
        (f"{INSTANCE}  kustomize: {{patches: [{{patch: '- path: /spec/ref', target: {{kind: GitRepository}}}}]}}\n", "patches"),
        (RESOURCE_SET, "does not read its templates"),
    ],
)
def test_what_flux_operator_does_and_gitsched_does_not_read_is_reported(fleet: Fleet, text: str, part: str) -> None:
    fleet.commit({**LAYOUT, "operator.yaml": text})
    found = [finding for finding in findings(fleet.reconcile()) if finding.code == "unread-document"]
    assert [(str(finding.location), part in finding.message) for finding in found] == (
        [("operator.yaml:1:1", True)] if part else []
    )


@pytest.mark.parametrize(
    "spec",
    [
        "postBuild: {substitute: {HOST: 71111111117}}",
        "postBuild: {substitute: {HOST: 1.10, OTHER: a}}",
        "postBuild: {substitute: {HOST: yes}}",
        "targetNamespace: shop\ncommonMetadata: {labels: {rev: 12}}",
        "targetNamespace: shop\ncommonMetadata: {annotations: {rev: true}}",
        "targetNamespace: 2024",
        "targetNamespace: shop\nnamePrefix: 1",
    ],
)
def test_nothing_is_placed_of_a_kustomization_that_no_api_server_accepts(fleet: Fleet, spec: str) -> None:
    valid = LAYOUT["apps/web/deployment.yaml"].replace("name: web\n", "name: web\n  namespace: shop\n", 1)
    fleet.commit({**LAYOUT, "clusters/prod/apps.yaml": kustomization(spec), "apps/web/deployment.yaml": valid})
    run = fleet.reconcile()
    assert [path for path in fleet.files() if path.startswith("clusters/one/shop/")] == []
    assert {"wrong-type", "reconciled-path"} == {finding.code for finding in findings(run) if finding.severity == "error"}
    fleet.commit({"clusters/prod/apps.yaml": LAYOUT["clusters/prod/apps.yaml"]}, hour=1)
    assert findings(fleet.reconcile(hour=1)) == []
    fleet.commit({"clusters/prod/apps.yaml": kustomization(spec)}, hour=2)
    fleet.reconcile(hour=2)  # its last valid version counts
    assert "value: shop.example.com" in fleet.read("clusters/one/shop/deployment-web.yaml")


@pytest.mark.parametrize(
    ("name", "written", "value", "code"),
    [
        pytest.param("ids", "${ACCT}", "0999991", "wrong-type", id="a number"),
        pytest.param("ids", "1${ACCT}", "2", "wrong-type", id="a part of a number"),
        pytest.param("ids", "${ACCT:=42}", "", "wrong-type", id="a default"),
        pytest.param("ids", "${ACCT}", "2026-01-01", "ambiguous-value", id="a date"),
        pytest.param("ids", "${ACCT}", "[a]", "wrong-type", id="a list"),
        pytest.param("ids", "${ACCT}", "*.example.com", "flux-variable", id="no YAML"),
        pytest.param("${ACCT}", "${ACCT}", "12", "flux-variable", id="the name"),
    ],
)
def test_the_advice_for_a_text_that_its_variable_makes_another_value_is_that_of_flux(
    fleet: Fleet, name: str, written: str, value: str, code: str
) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: shop\ndata:\n  id: %s\n"
    variables = f"postBuild: {{substitute: {{ACCT: '{value}'%s}}}}"
    maps = {
        "fleet/maps.yaml": select(kind="ConfigMap", name="maps"),
        "apps/web/deployment.yaml": text % (f'"{name}"', f'"{written}"'),
    }
    fleet.commit({**LAYOUT, **maps, "clusters/prod/apps.yaml": kustomization(variables % "")})
    (finding,) = findings(fleet.reconcile())
    cured = f"${{quote}}{written}${{quote}}"
    assert (finding.code, f"write {cured}, and set quote: '\"'" in finding.message) == (code, True)
    apps = kustomization(variables % ", quote: '\"'")
    quoted_name = name if name == "ids" else f"${{quote}}{name}${{quote}}"
    fleet.commit({"apps/web/deployment.yaml": text % (quoted_name, cured), "clusters/prod/apps.yaml": apps}, hour=1)
    assert findings(fleet.reconcile(hour=1)) == []
    if name == "ids":
        expected = written.replace("${ACCT}", value).replace("${ACCT:=42}", "42")
        assert fleet.load("clusters/one/shop/configmap-ids.yaml")["data"] == {"id": expected}


ARTIFACT = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, url: "oci://registry.example.com/acme/fleet", ref: {tag: main}}
"""
GENERATOR = """\
---
apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: parts, namespace: flux-system}
spec:
  sources: [{alias: repo, kind: OCIRepository, name: flux-system}]
  artifacts: [{name: web, copy: [{from: "@repo/%s", to: "@artifact/%s"}]}]
"""


@pytest.mark.parametrize(
    ("path", "generator", "settings", "expected"),
    [
        ("./apps/web", "", "", True),
        ("./web", "", "", False),
        ("./web", "", "{roots: [kubernetes/apps]}", True),
        ("./apps/web", "", "{roots: [other]}", True),
        ("./apps/web", GENERATOR % ("apps/**", "apps/"), "", True),
        ("./", GENERATOR % ("apps/web/**", ""), "", True),
        ("./", GENERATOR % ("web/**", ""), "", False),
        ("./apps/web", GENERATOR % ("**", ""), "", True),
    ],
)
def test_an_artifact_may_be_of_a_directory_of_the_repository(
    fleet: Fleet, path: str, generator: str, settings: str, expected: bool
) -> None:
    text = kustomization("targetNamespace: shop\npostBuild: {substitute: {HOST: a}}", path=path)
    source = "kind: ExternalArtifact, name: web" if generator else "kind: OCIRepository, name: flux-system"
    files = {
        "fleet/one.yaml": cluster("one"),
        "fleet/policy.yaml": POLICY,
        "kubernetes/clusters/prod/apps.yaml": text.replace("kind: GitRepository, name: flux-system", source),
        "kubernetes/clusters/prod/source.yaml": ARTIFACT + generator,
        "kubernetes/apps/web/deployment.yaml": DEPLOYMENT,
    }
    if settings:
        head = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n"
        files["gitsched.yaml"] = f"{head}  source: {{deliveryTools: {settings}}}\n"
    fleet.commit(files)
    run = fleet.reconcile()
    placed = [name for name in fleet.files() if name.startswith("clusters/one/") and "/deployment-" in name]
    if expected:
        assert (placed, findings(run)) == (["clusters/one/shop/deployment-web.yaml"], [])
    elif "web/**" in generator:
        assert any("source.deliveryTools.roots" in finding.message for finding in findings(run))
    else:
        assert (placed, "reconciled-path" in codes(run)) == ([], True)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("name: parts", "name: other"), ""),
        (("to: ", "exclude: [x], to: "), "with options that gitsched does not know"),
        (("name: web", 'name: "{part}"'), "no ArtifactGenerator of this repository makes the artifact web"),
        (("kind: ArtifactGenerator", "kind: Other"), "no ArtifactGenerator of this repository makes the artifact web"),
    ],
)
def test_what_an_unknown_artifact_has_is_not_placed_as_files_have_it(fleet: Fleet, change: tuple[str, str], reason: str) -> None:
    text = kustomization("targetNamespace: shop\npostBuild: {substitute: {HOST: a}}", path="./apps/web")
    files = {
        "fleet/one.yaml": cluster("one"),
        "fleet/policy.yaml": POLICY,
        "clusters/prod/apps.yaml": text.replace("kind: GitRepository, name: flux-system", "kind: ExternalArtifact, name: web"),
        "clusters/prod/source.yaml": ARTIFACT + (GENERATOR % ("**", "")).replace(*change),
        "apps/web/deployment.yaml": DEPLOYMENT,
    }
    fleet.commit(files)
    run = fleet.reconcile()
    assert (fleet.where(WEB), fleet.where("default/deployment-web")) == ([] if reason else ["one"], [])
    assert [reason in finding.message for finding in findings(run)] == ([True, True] if reason else [])


def test_fields_that_change_what_is_delivered_and_are_not_read_are_findings(fleet: Fleet) -> None:
    spec = "targetNamespace: shop\npostBuild: {substitute: {HOST: a}}\nignore: [{paths: [/spec/replicas]}]"
    sync = SYNC.replace("ref: {branch: main}", "ref: {branch: main}, sparseCheckout: [apps]")
    fleet.commit({**LAYOUT, "clusters/prod/apps.yaml": kustomization(spec), "clusters/prod/flux-system/gotk-sync.yaml": sync})
    found = sorted(finding.message.split(",")[0] for finding in findings(fleet.reconcile()))
    assert found == [
        "GitRepository flux-system/flux-system sets sparseCheckout in spec",
        "Kustomization flux-system/apps sets ignore in spec",
    ]


@pytest.mark.parametrize(("included", "expected"), [("/apps/web", ["one"]), ("/apps/db", [])])
def test_a_source_may_include_one_directory_of_an_excluded_one(fleet: Fleet, included: str, expected: list[str]) -> None:
    text = f'"/*\\n!/clusters\\n!{included}\\n"'
    sync = SYNC.replace("ref: {branch: main}", f"ref: {{branch: main}}, ignore: {text}")
    fleet.commit({**LAYOUT, "clusters/prod/flux-system/gotk-sync.yaml": sync})
    fleet.reconcile()
    assert fleet.where(WEB) == expected


def test_files_that_the_source_ignores_are_not_built(fleet: Fleet) -> None:
    sync = SYNC.replace("ref: {branch: main}", "ref: {branch: main}, ignore: '/apps/db*'")
    other = {"apps/db.yaml": DEPLOYMENT.replace("name: web", "name: db", 1)}
    fleet.commit({**LAYOUT, **other, "clusters/prod/flux-system/gotk-sync.yaml": sync})
    assert findings(fleet.reconcile()) == []
    placed = [path for path in fleet.files() if path.startswith("clusters/") and "/shop/deployment-" in path]
    assert placed == ["clusters/one/shop/deployment-web.yaml"]
