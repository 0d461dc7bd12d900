"""Files that kustomize builds: what it changes is not placed as it is in the source."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult

from .conftest import Fleet, cluster, deployment, policy

WEB = "default/deployment-web"
BASE = "resources: [web.yaml]\n"
OVERLAY = "resources: [../../base]\nnamespace: shop\nimages: [{name: web, newTag: '2'}]\n"
SETTINGS = (
    "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  source: {kustomize: {ignore: [%s]}}\n"
)
FLEET = {"clusters/one.yaml": cluster("one"), "policies/all.yaml": policy("one")}
LAYOUT = {**FLEET, "base/web.yaml": deployment("web"), "base/kustomization.yaml": BASE}


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "source", tmp_path / "cache")


def findings(run: RunResult) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.severity != "info"]


def test_a_base_that_an_overlay_changes_is_not_placed_and_the_finding_says_what_changes_it(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "overlays/prod/kustomization.yaml": OVERLAY, "other.yaml": deployment("other")})
    run = fleet.reconcile()
    (finding,) = findings(run)
    assert (finding.severity, finding.code, str(finding.location)) == ("error", "kustomized", "base/web.yaml:1:1")
    assert finding.resource == ("Deployment", "default", "web")
    assert "overlays/prod/kustomization.yaml (namespace shop)" in finding.message
    assert (fleet.where(WEB), fleet.where("default/deployment-other")) == ([], ["one"])


def test_a_kustomization_that_only_lists_resources_changes_nothing(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "overlays/prod/kustomization.yaml": "resources: [../../base]\n"})
    assert findings(fleet.reconcile()) == []
    assert fleet.where(WEB) == ["one"]
    fleet.commit({"base/web.yaml": deployment("web", 5)}, hour=1)
    fleet.reconcile(1)
    assert fleet.load(f"clusters/one/{WEB}.yaml")["spec"]["replicas"] == 5


def test_a_part_that_no_policy_selects_is_a_warning(fleet: Fleet) -> None:
    layout = {**LAYOUT, "overlays/prod/kustomization.yaml": OVERLAY, "policies/all.yaml": policy("one", kind="Service")}
    fleet.commit(layout)
    assert [(one.severity, one.code) for one in findings(fleet.reconcile())] == [("warning", "kustomize-unbuilt")]


def test_a_workload_that_was_placed_keeps_its_placement_when_an_overlay_begins_to_change_it(fleet: Fleet) -> None:
    fleet.commit(LAYOUT)
    fleet.reconcile()
    before = fleet.read(f"clusters/one/{WEB}.yaml")
    fleet.commit({"overlays/prod/kustomization.yaml": OVERLAY, "base/web.yaml": deployment("web", 7)}, hour=1)
    assert {finding.code for finding in findings(fleet.reconcile(1))} == {"kustomized", "stale-decision"}
    assert fleet.read(f"clusters/one/{WEB}.yaml") == before
    fleet.commit({"overlays/prod/kustomization.yaml": None}, hour=2)
    assert findings(fleet.reconcile(2)) == []
    assert fleet.load(f"clusters/one/{WEB}.yaml")["spec"]["replicas"] == 7


@pytest.mark.parametrize("pattern", ["base", "base/", "/base/*.yaml", "overlays/"])
def test_a_setting_makes_the_files_objects_as_they_are(fleet: Fleet, pattern: str) -> None:
    fleet.commit({**LAYOUT, "overlays/prod/kustomization.yaml": OVERLAY, "gitsched.yaml": SETTINGS % pattern})
    assert findings(fleet.reconcile()) == []
    assert fleet.where(WEB) == ["one"]


@pytest.mark.parametrize("hidden", [{".sourceignore": "overlays/\n"}, {}], ids=[".sourceignore", "source.paths"])
def test_an_overlay_counts_also_where_it_is_not_read(fleet: Fleet, hidden: dict[str, str]) -> None:
    fleet.commit({**LAYOUT, "overlays/prod/kustomization.yaml": OVERLAY, **hidden})
    paths = () if hidden else ("base", "clusters", "policies")
    assert [finding.code for finding in findings(fleet.reconcile(paths=paths))] == ["kustomized"]
    assert fleet.where(WEB) == []


def test_policies_and_clusters_stay_what_they_are_in_a_kustomization(fleet: Fleet) -> None:
    listed = "resources: [clusters/one.yaml, policies/all.yaml, gitsched.yaml, web.yaml]\ncommonLabels: {team: a}\n"
    fleet.commit({**FLEET, "gitsched.yaml": SETTINGS % "web.yaml", "web.yaml": deployment("web"), "kustomization.yaml": listed})
    assert findings(fleet.reconcile()) == []
    assert fleet.where(WEB) == ["one"]


PARTS = {
    "a patch": ("patches: [{path: part.yaml, target: {kind: Deployment}}]", deployment("_")),
    "a patch that names its object": ("patches: [{path: part.yaml}]", deployment("web", 9)),
    "a patch without metadata": (
        "patches: [{path: part.yaml, target: {kind: Deployment}}]",
        "apiVersion: apps/v1\nkind: Deployment\n",
    ),
    "a JSON patch": ("patches: [{path: part.yaml, target: {kind: Deployment}}]", "- {op: remove, path: /spec/replicas}\n"),
    "a replacement": ("replacements: [{path: part.yaml}]", "source: {kind: ConfigMap}\ntargets: []\n"),
    "a file of a ConfigMap": ("configMapGenerator: [{name: a, files: [part.yaml]}]", deployment("web", 9)),
    "values of a chart": ("helmCharts: [{name: a, valuesFile: part.yaml}]", "kind: Deployment\nmetadata: {name: web}\n"),
    "a generator": ("generators: [part.yaml]", "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\n"),
    "a broken patch": ("patches: [{path: part.yaml}]", "apiVersion: v1\nkind: Service\n  name: [\n"),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_a_file_that_a_kustomization_reads_is_no_object_and_no_error(fleet: Fleet, part: tuple[str, str]) -> None:
    fields, text = part
    fleet.commit({**FLEET, "app/kustomization.yaml": f"{fields}\n", "app/part.yaml": text, "web.yaml": deployment("web")})
    assert findings(fleet.reconcile()) == []
    assert fleet.load(f"clusters/one/{WEB}.yaml")["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(deployment("_"), id="placeholder as name"),
        pytest.param(
            deployment("web").replace("  name: web\n", "  name: web\n  annotations: {keep: 1440}\n"), id="number in annotations"
        ),
        pytest.param(deployment("web", namespace="REPLACED"), id="placeholder as namespace"),
    ],
)
@pytest.mark.parametrize("fields", ["", "namespace: shop\n"], ids=["listed", "changed"])
def test_what_kustomize_corrects_is_no_error_in_a_resource(fleet: Fleet, text: str, fields: str) -> None:
    services = {"policies/all.yaml": policy("one", kind="Service")}
    fleet.commit({**LAYOUT, **services, "base/kustomization.yaml": BASE + fields, "base/web.yaml": text})
    assert {one.code for one in findings(fleet.reconcile())} == {"kustomize-unbuilt"}


def test_a_syntax_error_in_a_resource_stays_an_error(fleet: Fleet) -> None:
    fleet.commit(
        {**LAYOUT, "base/kustomization.yaml": BASE + "namespace: shop\n", "base/web.yaml": deployment("web") + "  oops: [\n"}
    )
    assert [(finding.severity, finding.code) for finding in findings(fleet.reconcile())] == [("error", "yaml-syntax")]


def test_a_custom_resource_definition_in_a_kustomization_still_declares_its_scope(fleet: Fleet) -> None:
    crd = (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: wells.example.com}\n"
        "spec: {group: example.com, names: {kind: Well}, scope: Namespaced}\n"
    )
    well = "apiVersion: example.com/v1\nkind: Well\nmetadata: {name: deep}\n"
    rule = policy("one", kind="Well").replace("apiVersion: apps/v1", "apiVersion: example.com/v1")
    fleet.commit(
        {
            **FLEET,
            "policies/all.yaml": rule,
            "crds/crd.yaml": crd,
            "crds/kustomization.yaml": "resources: [crd.yaml]\ncommonLabels: {a: b}\n",
            "well.yaml": well,
        }
    )
    fleet.reconcile()
    assert fleet.where("default/well.example.com-deep") == ["one"]


def test_paths_that_lead_out_of_the_repository_are_findings(fleet: Fleet) -> None:
    fleet.commit({**LAYOUT, "base/kustomization.yaml": "resources:\n- web.yaml\n- ../../../etc\n"})
    (finding,) = findings(fleet.reconcile())
    assert (finding.severity, finding.code, str(finding.location)) == ("warning", "kustomize-escape", "base/kustomization.yaml:3:3")


def test_an_edit_of_a_part_in_a_resident_process_gives_the_same_plan_as_a_new_one(fleet: Fleet, tmp_path: Path) -> None:
    """The image of the second version is one that the overlay changes."""
    overlay = "resources: [../../base]\nimages: [{name: web, newTag: '2'}]\n"
    plain = deployment("web") + "  template: {spec: {containers: [{name: web, image: nginx}]}}\n"
    fleet.commit({**LAYOUT, "base/web.yaml": plain, "overlays/prod/kustomization.yaml": overlay})
    fleet.reconcile()
    assert fleet.where(WEB) == ["one"]
    fleet.commit({"base/web.yaml": plain.replace("nginx", "web:1")}, hour=1)
    incremental = fleet.reconcile(1)
    assert "kustomized" in {finding.code for finding in findings(incremental)}
    fresh = fleet.preview(1, cache=tmp_path / "fresh")
    assert (fresh.changed, fresh.plan.findings) == (False, incremental.plan.findings)


POLICY_GENERATOR = """apiVersion: policy.open-cluster-management.io/v1
kind: PolicyGenerator
metadata: {name: hardening}
policyDefaults: {namespace: policies, placement: {placementPath: input/placement.yaml}}
policies: [{name: backups, manifests: [{path: manifests/}, {path: single.yaml}]}]
"""


@pytest.mark.parametrize("file", ["gen/manifests/web.yaml", "gen/manifests/deep/web.yaml", "gen/single.yaml"])
def test_a_file_that_a_plug_in_of_another_program_reads_is_a_part(fleet: Fleet, file: str) -> None:
    generator = {"gen/kustomization.yaml": "generators: [./generator.yaml]\n", "gen/generator.yaml": POLICY_GENERATOR}
    fleet.commit({**FLEET, **generator, file: deployment("web"), "manifests/web.yaml": deployment("other")})
    (finding,) = findings(fleet.reconcile())
    assert (finding.code, str(finding.location)) == ("kustomized", f"{file}:1:1")
    assert "gen/generator.yaml (PolicyGenerator)" in finding.message
    assert (fleet.where(WEB), fleet.where("default/deployment-other")) == ([], ["one"])


def test_what_a_plug_in_of_another_program_reads_need_not_be_objects(fleet: Fleet) -> None:
    generator = {"gen/kustomization.yaml": "generators: [./generator.yaml]\n", "gen/generator.yaml": POLICY_GENERATOR}
    incomplete = "apiVersion: v1\nkind: Pod\nmetadata: {labels: {app: backup}}\nstatus: {phase: Running}\n"
    fleet.commit({**FLEET, **generator, "gen/manifests/pod.yaml": incomplete, "gen/single.yaml": "kind: [\n"})
    assert findings(fleet.reconcile()) == []


def test_the_files_of_a_built_in_plug_in_are_inputs(fleet: Fleet) -> None:
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 9}\n"
    transformer = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: patch}\npath: patch.yaml\n"
    root = {"app/kustomization.yaml": "resources: [web.yaml]\ntransformers: [t.yaml]\n", "app/t.yaml": transformer}
    fleet.commit({**FLEET, **root, "app/patch.yaml": patch, "app/web.yaml": deployment("web")})
    (finding,) = findings(fleet.reconcile())
    assert (finding.code, str(finding.location)) == ("kustomized", "app/web.yaml:1:1")


@pytest.mark.parametrize(
    ("change", "warned"),
    [
        ("namespace: shop\n", True),
        ("namePrefix: eu-\n", True),
        ("patches: [{target: {kind: PropagationPolicy}, patch: '[{op: add, path: /spec/priority, value: 1}]'}]\n", True),
        ("commonLabels: {team: a}\n", False),
        ("images: [{name: web, newTag: '2'}]\n", False),
    ],
)
def test_a_policy_that_a_kustomization_changes_is_a_warning(fleet: Fleet, change: str, warned: bool) -> None:
    more = {"policies/more.yaml": policy("one", name="more", kind="Service")}
    kustomization = f"resources: [all.yaml, more.yaml]\n{change}"
    fleet.commit({**FLEET, **more, "policies/kustomization.yaml": kustomization, "web.yaml": deployment("web")})
    found = findings(fleet.reconcile())
    assert [(finding.code, str(finding.location)) for finding in found] == [("policy-kustomized", "policies/all.yaml:1:1")] * warned
    assert all("policies/kustomization.yaml" in finding.message and "more" in finding.message for finding in found)
    assert fleet.where(WEB) == ["one"]


def test_files_that_a_kustomization_names_and_the_commit_lacks_are_a_note(fleet: Fleet) -> None:
    remote = "https://example.com/a//b?ref=v1"
    prod = f"resources: [../../base, gone, {remote}, web.yaml]\npatches: [{{path: gone.yaml}}]\n"
    fleet.commit({**LAYOUT, "overlays/prod/kustomization.yaml": prod})
    for hour in (0, 1):
        (found,) = [finding for finding in fleet.reconcile(hour).plan.findings if finding.code == "kustomize-missing"]
        assert (found.severity, str(found.location)) == ("info", "overlays/prod/kustomization.yaml:1:25")
        assert "names gone, where this commit has no kustomization, nor 2 others that it names" in found.message
    fleet.commit({"overlays/prod/gone.yaml": "a: b\n", "overlays/prod/gone/kustomization.yaml": BASE}, hour=2)
    places = [str(finding.location) for finding in fleet.reconcile(2).plan.findings if finding.code == "kustomize-missing"]
    assert sorted(places) == ["overlays/prod/gone/kustomization.yaml:1:13", "overlays/prod/kustomization.yaml:1:64"]
    fleet.commit({"gitsched.yaml": SETTINGS % "overlays/"}, hour=3)
    assert "kustomize-missing" not in {finding.code for finding in fleet.reconcile(3).plan.findings}
