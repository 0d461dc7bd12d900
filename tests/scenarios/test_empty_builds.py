"""What is said about directories that build no object, and how Flux builds a kustomization without resources."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .conftest import Fleet, cluster
from .test_argo_paths import POLICY, application
from .test_flux_paths import SYNC, kustomization
from .test_scopes_of_builds import BUNDLE

pytestmark = pytest.mark.needs("kubectl")
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a: b}\n"
DELETED = "resources: [map.yaml]\npatches: [{patch: '{$patch: delete, apiVersion: v1, kind: ConfigMap, metadata: {name: web}}'}]\n"
CHART = {
    "apps/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "apps/web/templates/map.yaml": "{{ if .Values.enabled }}\n" + MAP + "{{ end }}\n",
}
EMPTY = "kustomization.yaml is empty"
NO_OBJECT = "builds apps/web%s, which has no object: nothing is placed for it. Add an object, or remove the document"
CASES = {
    "no manifest": ({"apps/web/README.md": "Web"}, "", ""),
    "no resource": ({"apps/web/kustomization.yaml": "resources: []\n"}, "", ", buildMetadata"),
    "only its type": ({"apps/web/kustomization.yaml": "kind: Kustomization\n"}, EMPTY, ", buildMetadata"),
    "only a comment": ({"apps/web/kustomization.yaml": "---\n# To do\n"}, EMPTY, ", buildMetadata"),
    "all deleted": ({"apps/web/kustomization.yaml": DELETED, "apps/web/map.yaml": MAP}, "", ""),
}
LAYOUT = {"fleet/one.yaml": cluster("one"), "fleet/policy.yaml": POLICY.replace("apps/v1", "v1").replace("Deployment", "ConfigMap")}


CURE = {"apps/web/more.yaml": MAP, "apps/web/kustomization.yaml": "resources: [more.yaml]\n"}


def found(fleet: Fleet) -> list[tuple[str, str, str]]:
    return [
        (one.severity, one.code, f"{one.location}: {one.message}")
        for one in fleet.reconcile().plan.findings
        if one.code == "empty-build" or (one.severity != "info" and one.code != "namespace-missing")
    ]


@pytest.mark.parametrize(("files", "refused", "changes"), CASES.values(), ids=CASES)
def test_an_application_without_objects_is_a_remark_unless_kustomize_refuses_it(
    fleet: Fleet, files: dict[str, str], refused: str, changes: str
) -> None:
    fleet.commit({**LAYOUT, **files, "argo/web.yaml": application("")})
    ((severity, code, message),) = found(fleet)
    if refused:
        assert (severity, code) == ("error", "reconciled-path")
        assert f"argo/web.yaml:1:1: apps/web/{refused}, which kustomize refuses: name what it builds" in message
    else:
        assert (severity, code) == ("info", "empty-build")
        assert message == f"argo/web.yaml:1:1: Argo CD Application argocd/web {NO_OBJECT % ''}"
    fleet.commit(CURE, hour=1)
    assert found(fleet) == []
    assert "clusters/one/shop/configmap-web.yaml" in fleet.files()


@pytest.mark.parametrize(("files", "refused", "changes"), CASES.values(), ids=CASES)
def test_flux_accepts_every_directory_without_objects(fleet: Fleet, files: dict[str, str], refused: str, changes: str) -> None:
    flux = {"clusters/prod/flux-system/gotk-sync.yaml": SYNC, "clusters/prod/web.yaml": kustomization("", "web", "./apps/web")}
    fleet.commit({**LAYOUT, **files, **flux})
    text = f"clusters/prod/web.yaml:1:1: Flux Kustomization flux-system/web {NO_OBJECT}"
    assert found(fleet) == [("info", "empty-build", text % (f" ({changes[2:]})" if changes else ""))]
    fleet.commit(CURE, hour=1)
    assert found(fleet) == []
    assert "clusters/one/default/configmap-web.yaml" in fleet.files()


SET = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web, namespace: argocd}
spec:
  generators: [{list: {elements: [{env: a}, {env: b}]}}]
  template:
    metadata: {name: "{{env}}"}
    spec:
      source: {repoURL: "https://github.com/acme/fleet", path: apps/web, targetRevision: HEAD}
      destination: {server: "https://kubernetes.default.svc"}
"""


def test_applications_of_one_application_set_share_a_remark(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "apps/web/kustomization.yaml": "resources: []\n", "argo/web.yaml": SET})
    text = "Argo CD Application argocd/a builds apps/web, Argo CD Application argocd/b builds apps/web, which have no object: nothing is"
    message = f"argo/web.yaml:1:1: {text} placed for them. Add an object, or remove the document"
    assert found(fleet) == [("info", "empty-build", message)]


@pytest.mark.parametrize(
    ("files", "options"),
    [
        pytest.param({"apps/web/kustomization.yaml": "resources: []\n"}, "", id="no resource"),
        pytest.param({"apps/web/kustomization.yaml": DELETED, "apps/web/map.yaml": MAP}, "", id="all deleted"),
        pytest.param({"apps/web/a.yaml": "# To do\n"}, "", id="a comment"),
        pytest.param(CHART, ", helm: {namespace: shop}", id="a chart with nothing enabled", marks=pytest.mark.needs("helm")),
    ],
)
def test_a_bundle_without_objects_is_a_warning_at_its_path(fleet: Fleet, files: dict[str, str], options: str) -> None:
    fleet.commit({"fleet/one.yaml": cluster("one"), "fleet/web.yaml": BUNDLE % f"apps/web{options}", **files})
    text = "apps/web builds no object: clusters that have this variant get nothing of the Bundle, and lose what an earlier one has"
    assert found(fleet) == [("warning", "empty-build", f"fleet/web.yaml:4:14: {text}. Add an object, or correct the path")]
    if options:
        fleet.commit({"apps/web/templates/map.yaml": MAP}, hour=1)
    else:
        fleet.commit(CURE, hour=1)
    assert found(fleet) == []


def test_flux_annotates_the_objects_of_a_kustomization_without_resources(fleet: Fleet, tmp_path: Path) -> None:
    text = "components: [../part]\n"
    files = {
        "apps/web/kustomization.yaml": text,
        "apps/part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [map.yaml]\n",
        "apps/part/map.yaml": MAP,
    }
    flux = {"clusters/prod/flux-system/gotk-sync.yaml": SYNC, "clusters/prod/web.yaml": kustomization("", "web", "./apps/web")}
    fleet.commit({**LAYOUT, **files, **flux})
    assert found(fleet) == []
    for path, content in {**files, "apps/web/kustomization.yaml": text + "buildMetadata: [originAnnotations]\n"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    built = subprocess.run(["kubectl", "kustomize", str(tmp_path / "apps/web")], capture_output=True, text=True, check=True).stdout
    assert "config.kubernetes.io/origin" in built
    assert fleet.read("clusters/one/default/configmap-web.yaml") == built
