"""Files of Helm charts: templates are parts of their chart, and never objects of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult

from .conftest import Fleet, cluster, deployment, policy

WEB = "default/deployment-web"
FLEET = {"clusters/one.yaml": cluster("one"), "policies/all.yaml": policy("one")}
CHART = {"charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n"}
BROKEN = "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n{{- with .Values.labels }}\n  labels: {{ toYaml . }}\n{{ end }}\nspec: [\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "source", tmp_path / "cache")


def findings(run: RunResult) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.severity != "info"]


@pytest.mark.parametrize(
    ("template", "chart"),
    [
        ("charts/web/templates/web.yaml", "charts/web"),
        ("charts/web/templates/deep/er/web.yaml", "charts/web"),
        ("charts/web/crds/web.yaml", "charts/web"),
        ("charts/web/charts/db/templates/web.yaml", "charts/web/charts/db"),
        ("templates/web.yaml", "."),
    ],
)
def test_a_template_that_a_policy_selects_is_not_placed(fleet: Fleet, template: str, chart: str) -> None:
    charts = {**CHART, f"{chart}/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n"}
    fleet.commit({**FLEET, **charts, template: deployment("web"), "other.yaml": deployment("other")})
    (finding,) = findings(fleet.reconcile())
    assert (finding.severity, finding.code, str(finding.location)) == ("error", "chart-template", f"{template}:1:1")
    assert f"the Helm chart {chart}," in finding.message
    assert f"spec.path: {chart})" in finding.message
    assert (fleet.where(WEB), fleet.where("default/deployment-other")) == ([], ["one"])


def test_templates_need_not_be_valid(fleet: Fleet) -> None:
    templates = {"service.yaml": BROKEN, "name.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {}\n", "odd.yaml": "kind: [\n"}
    fleet.commit({**FLEET, **CHART, **{f"charts/web/templates/{name}": text for name, text in templates.items()}})
    assert findings(fleet.reconcile()) == []


@pytest.mark.parametrize("path", ["charts/web/web.yaml", "charts/templates/web.yaml", "templates/web.yaml"])
def test_other_files_beside_a_chart_are_objects(fleet: Fleet, path: str) -> None:
    fleet.commit({**FLEET, **CHART, path: deployment("web")})
    assert findings(fleet.reconcile()) == []
    assert fleet.where(WEB) == ["one"]


def test_a_template_that_a_kustomization_lists_is_plain_yaml(fleet: Fleet) -> None:
    listed = {"app/kustomization.yaml": "resources: [../charts/web/templates/web.yaml]\n"}
    fleet.commit({**FLEET, **CHART, **listed, "charts/web/templates/web.yaml": deployment("web")})
    assert findings(fleet.reconcile()) == []
    assert fleet.where(WEB) == ["one"]


def test_policies_in_a_chart_stay_what_they_are(fleet: Fleet) -> None:
    files = {"charts/web/templates/one.yaml": cluster("one"), "charts/web/templates/all.yaml": policy("one")}
    fleet.commit({**CHART, **files, "web.yaml": deployment("web")})
    assert findings(fleet.reconcile()) == []
    assert fleet.where(WEB) == ["one"]


def test_a_workload_keeps_its_placement_when_its_file_moves_into_a_chart(fleet: Fleet) -> None:
    fleet.commit({**FLEET, "charts/web/templates/web.yaml": deployment("web")})
    fleet.reconcile()
    before = fleet.read(f"clusters/one/{WEB}.yaml")
    fleet.commit({**CHART, "charts/web/templates/web.yaml": deployment("web", 7)}, hour=1)
    assert {finding.code for finding in findings(fleet.reconcile(1))} == {"chart-template", "stale-decision"}
    assert fleet.read(f"clusters/one/{WEB}.yaml") == before


RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: default}
spec: {interval: 1m, chart: {spec: {chart: %s, sourceRef: {kind: %s, name: flux-system}}}}
"""
TEMPLATE_FILE = {"charts/web/templates/web.yaml": deployment("web"), "other.yaml": deployment("other")}


@pytest.mark.parametrize(
    ("path", "kind", "codes"),
    [
        ("./charts/web", "GitRepository", []),
        ("charts/web/", "Bucket", []),
        ("web", "HelmRepository", ["chart-template"]),
        ("charts/other", "GitRepository", ["chart-template"]),
    ],
)
def test_a_template_of_a_chart_that_flux_renders_is_no_error(fleet: Fleet, path: str, kind: str, codes: list[str]) -> None:
    fleet.commit({**FLEET, **CHART, **TEMPLATE_FILE, "release.yaml": RELEASE % (path, kind)})
    run = fleet.reconcile()
    assert [finding.code for finding in findings(run)] == codes
    assert fleet.where("default/deployment-other") == ["one"]
    assert fleet.where(WEB) == [], "Flux makes it of the HelmRelease"


def test_a_template_is_an_error_again_without_its_release(fleet: Fleet) -> None:
    fleet.commit({**FLEET, **CHART, **TEMPLATE_FILE, "release.yaml": RELEASE % ("charts/web", "GitRepository")})
    assert findings(fleet.reconcile()) == []
    fleet.commit({"release.yaml": RELEASE % ("charts/other", "GitRepository")}, hour=1)
    assert [finding.code for finding in findings(fleet.reconcile(1))] == ["chart-template"]
    fleet.commit({"release.yaml": RELEASE % ("charts/web", "GitRepository")}, hour=2)
    assert findings(fleet.reconcile(2)) == []
