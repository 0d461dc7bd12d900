"""Findings and explanations of built objects name the file of the base, and the overlay or patch that changes the object last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitsched.model.explanation import Explanation
from gitsched.reconcile.builds.last_changes import LastChanges
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.report.explanation import serialize_explanation
from gitsched.report.sarif import write_sarif
from gitsched.report.serialization import serialize_findings

from .conftest import Fleet, cluster, deployment

SETTINGS = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  source: {kustomize: {build: [prod]}}\n"
)
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {clusterAffinity: {clusterNames: [absent]}}
"""
PATCHES = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: other}
spec: {replicas: 3}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {replicas: 3}
"""
BASE = {
    "gitsched.yaml": SETTINGS,
    "clusters/one.yaml": cluster("one"),
    "policies/all.yaml": POLICY,
    "base/kustomization.yaml": "resources: [web.yaml, other.yaml]\n",
    "base/web.yaml": "# comment\n" + deployment("web"),
    "base/other.yaml": deployment("other"),
    "prod/patches.yaml": PATCHES,
    "prod/json.yaml": "- {op: replace, path: /spec/replicas, value: 4}\n",
    "stage/kustomization.yaml": "resources: [../base]\npatches:\n- path: ../prod/patches.yaml\n",
    "component/kustomization.yaml": "kind: Component\npatches: [{path: ../prod/patches.yaml}]\n",
}
ROOTS = {
    "a patch file without target, the second document": (
        "resources: [../base]\npatches: [{path: patches.yaml}]\n",
        "prod/patches.yaml:6",
    ),
    "patchesStrategicMerge": ("resources: [../base]\npatchesStrategicMerge: [patches.yaml]\n", "prod/patches.yaml:6"),
    "a JSON patch with a target": (
        "resources: [../base]\npatches: [{path: json.yaml, target: {kind: Deployment, name: we.}}]\n",
        "prod/json.yaml:1",
    ),
    "a patch in the kustomization": (
        "resources: [../base]\npatches:\n- patch: |-\n    - {op: remove, path: /spec/replicas}\n  target: {kind: Deployment}\n",
        "prod/kustomization.yaml:3",
    ),
    "patchesJson6902": (
        "resources: [../base]\npatchesJson6902: [{path: json.yaml, target: {version: v1, group: apps, kind: Deployment, name: web}}]\n",
        "prod/json.yaml:1",
    ),
    "a patch of another object": (
        "resources: [../base]\npatches: [{path: json.yaml, target: {kind: Deployment, name: other}}]\n",
        "",
    ),
    "a patch before the namespace": (
        "namespace: shop\nresources: [../base]\npatches: [{path: patches.yaml}]\n",
        "prod/patches.yaml:6",
    ),
    "only a namespace": ("resources: [../base]\nnamespace: shop\n", "prod/kustomization.yaml:2"),
    "replicas of the root after a patch of an overlay": (
        "resources: [../stage]\nreplicas: [{name: web, count: 5}]\n",
        "prod/kustomization.yaml:2",
    ),
    "a patch of an overlay below the root": ("resources: [../stage]\nnamePrefix: a-\n", "prod/patches.yaml:6"),
    "a patch of a component": ("resources: [../base]\ncomponents: [../component]\n", "prod/patches.yaml:6"),
    "nothing": ("resources: [../base]\n", ""),
}


@pytest.mark.parametrize(("kustomization", "changed_by"), ROOTS.values(), ids=ROOTS)
def test_findings_and_explain_name_the_base_and_the_last_change(fleet: Fleet, kustomization: str, changed_by: str) -> None:
    fleet.commit({**BASE, "prod/kustomization.yaml": kustomization})
    found = [finding for finding in fleet.reconcile().plan.findings if finding.code == "unschedulable" and finding.resource]
    (finding,) = [finding for finding in found if finding.resource is not None and finding.resource[2].endswith("web")]
    assert finding.location is not None
    assert (str(finding.location), finding.location.changed_by) == ("base/web.yaml:2:1", changed_by)
    suffix = f" (last changed by {changed_by}) [unschedulable]" if changed_by else "[unschedulable]"
    assert str(finding).endswith(suffix)
    location = serialize_findings([finding])["findings"][0]["location"]
    assert location.get("changedBy", "") == changed_by
    assert changed_by in json.loads(write_sarif([finding], (), "1"))["runs"][0]["results"][0]["message"]["text"]
    assert finding.resource is not None
    explained = explain_resource(fleet.settings(), *finding.resource)
    assert isinstance(explained, Explanation)
    assert explained.origin is not None
    assert explained.origin.changed_by == changed_by
    assert serialize_explanation(explained).get("changedBy", "") == changed_by
    assert explained.title.endswith(f"built from prod{', last changed by ' if changed_by else ''}{changed_by})")


def test_what_earlier_runs_found_about_the_same_files_changes_no_finding(fleet: Fleet, tmp_path: Path) -> None:
    """Each commit is planned with the cache of all earlier ones, and with an empty cache."""
    patch = "resources: [../base]\npatches: [{path: patches.yaml}]\n"
    commits: list[dict[str, str | None]] = [
        {**BASE, "prod/kustomization.yaml": patch},
        {"prod/patches.yaml": f"# moves all lines\n{PATCHES}"},
        {"base/web.yaml": "# moves\n# all lines\n" + deployment("web")},
        {"base/web.yaml": deployment("web") + "---\n" + deployment("other"), "base/kustomization.yaml": "resources: [web.yaml]\n"},
        {"prod/kustomization.yaml": f"namePrefix: a-\n{patch}"},
        {"prod/kustomization.yaml": "resources: [absent]\n"},
        {"prod/kustomization.yaml": patch, "prod/patches.yaml": PATCHES},
        {"gitsched.yaml": SETTINGS.replace("[prod]", "[prod, stage]"), "stage/kustomization.yaml": "resources: [../base]\n"},
        {"stage/kustomization.yaml": "resources: [../base]\nnamespace: shop\n"},
        {name: text for name, text in BASE.items() if name.startswith("base/")},
    ]
    located = set()
    for number, files in enumerate(commits):
        fleet.commit(files, hour=number)
        warm = fleet.preview(number)
        cold = fleet.preview(number, cache=tmp_path / f"cache-{number}")
        assert (warm.plan.findings, warm.tree) == (cold.plan.findings, cold.tree), f"commit {number}"
        located |= {(finding.location, finding.location.changed_by) for finding in warm.plan.findings if finding.location}
        fleet.reconcile(number)
    assert len(located) > len(commits), "most commits move objects or patches"


def test_objects_of_unchanged_roots_are_located_once(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.commit({**BASE, "prod/kustomization.yaml": "resources: [../base]\n"})
    first = fleet.preview().plan.findings
    monkeypatch.setattr(LastChanges, "find", None)
    fleet.commit({"readme.yaml": ""}, hour=1)
    assert fleet.preview(1).plan.findings == first


def test_the_cause_of_a_move_names_the_base_and_the_patch(fleet: Fleet) -> None:
    kustomization = "resources: [../base]\npatches: [{path: patches.yaml}]\n"
    placed = POLICY.replace("[absent]", "[one]")
    fleet.commit({**BASE, "prod/kustomization.yaml": kustomization, "policies/all.yaml": placed})
    fleet.reconcile()
    fleet.commit(
        {
            "prod/patches.yaml": PATCHES.replace(
                "metadata: {name: web}\nspec: {replicas: 3}", "metadata: {name: web}\nspec: {replicas: 5}"
            )
        },
        hour=1,
    )
    (move,) = compare_plans(fleet.settings(1)).review.moves
    assert [str(cause) for cause in move.causes] == [
        "Deployment/default/web: spec.replicas 3 -> 5 (base/web.yaml:2, last changed by prod/patches.yaml:6)"
    ]
