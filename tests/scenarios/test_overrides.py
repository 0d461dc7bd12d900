"""Override policies in a real repository: the files of the output branch that an edit changes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitsched.model.explanation import Explanation
from gitsched.reconcile import Reconciler
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.report.explanation import list_overrides

from .conftest import Fleet, at_hour, cluster, policy

WEB = """\
# Odd,   but mine
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
spec:
  replicas: 5 # as many as it takes
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: registry.example.com/web:1 # pinned
"""
FILE = "default/deployment-web"
NAMES = ("first", "second", "third")


def mirror(registry: str, *clusters: str, name: str = "mirror", more: str = "") -> str:
    return (
        f"apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {{name: {name}, namespace: default}}\nspec:\n"
        f"  overrideRules:\n  - targetCluster: {{clusterNames: [{', '.join(clusters)}]}}\n    overriders:\n"
        f"      imageOverrider:\n      - {{component: Registry, operator: replace, value: {registry}}}\n{more}"
    )


UNFIT = "      plaintext:\n      - {path: /spec/strategy/type, operator: replace, value: Recreate}\n"


@pytest.fixture
def fleet(fleet: Fleet) -> Fleet:
    """Three clusters with web in all of them and an override in the second. Committed and reconciled."""
    files = {f"{name}.yaml": cluster(name) for name in NAMES}
    fleet.commit({**files, "web.yaml": WEB, "policy.yaml": policy(), "mirror.yaml": mirror("mirror.example.net", "second")})
    fleet.reconcile()
    return fleet


def blobs(fleet: Fleet, at: str = "placements") -> dict[str, str]:
    """Return the blob of the manifest of web in each cluster."""
    files = fleet.files(at)
    return {name: files[f"clusters/{name}/{FILE}.yaml"] for name in NAMES if f"clusters/{name}/{FILE}.yaml" in files}


def image(fleet: Fleet, name: str) -> str:
    (container,) = fleet.load(f"clusters/{name}/{FILE}.yaml")["spec"]["template"]["spec"]["containers"]
    return str(container["image"])


def differing(fleet: Fleet) -> list[str]:
    """Return the changed paths of the last output commit below clusters/."""
    return fleet.git("diff", "--name-only", "placements~1", "placements", "--", "clusters").splitlines()


def test_an_override_changes_one_line_in_its_clusters(fleet: Fleet) -> None:
    source = fleet.git("rev-parse", "main:web.yaml")
    assert [blobs(fleet)[name] == source for name in NAMES] == [True, False, True]
    assert fleet.read(f"clusters/second/{FILE}.yaml") == WEB.replace("registry.example.com", "mirror.example.net")


def test_plan_and_explain_say_why_a_text_cannot_be_edited(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": WEB.replace("image: ", "image: &image ") + "        args: [*image]\n"}, hour=1)
    why = (
        "written as new YAML without comments, because the text of web.yaml:2 cannot be edited in place: "
        "an anchor shares the value with other places"
    )
    changes = compare_plans(fleet.settings(1)).review.comparison.delivery.rendered
    assert {entry.clusters: entry.note for entry in changes} == {("first", "third"): "", ("second",): why}
    explanation = explain_resource(fleet.settings(1), "Deployment", "default", "web")
    assert isinstance(explanation, Explanation)
    assert list_overrides(explanation)[-1] == f"the manifest is {why}"


def test_an_edit_of_an_override_changes_only_the_files_of_its_clusters(fleet: Fleet) -> None:
    fleet.commit({"mirror.yaml": mirror("other.example.net", "second")}, hour=1)
    fleet.reconcile(1)
    assert differing(fleet) == [f"clusters/second/{FILE}.yaml"]
    assert image(fleet, "second") == "other.example.net/web:1"


def test_removing_an_override_restores_the_bytes_of_the_source(fleet: Fleet) -> None:
    fleet.commit({"mirror.yaml": None}, hour=1)
    fleet.reconcile(1)
    assert blobs(fleet) == dict.fromkeys(NAMES, fleet.git("rev-parse", "main:web.yaml"))


def test_clusters_of_the_same_rule_share_a_blob(fleet: Fleet) -> None:
    fleet.commit({"mirror.yaml": mirror("mirror.example.net", "second", "third")}, hour=1)
    fleet.reconcile(1)
    assert blobs(fleet)["second"] == blobs(fleet)["third"] != blobs(fleet)["first"]


def test_divided_replicas_without_overrides_change_only_the_number(fleet: Fleet) -> None:
    fleet.commit({"policy.yaml": policy(scheduling="Divided")}, hour=1)
    fleet.reconcile(1)
    counts = {name: fleet.load(f"clusters/{name}/{FILE}.yaml")["spec"]["replicas"] for name in NAMES}
    assert sum(counts.values()) == 5
    for name in ("first", "third"):
        text = WEB.replace("replicas: 5 #", f"replicas: {counts[name]} #")
        assert fleet.read(f"clusters/{name}/{FILE}.yaml") == text
    assert image(fleet, "second") == "mirror.example.net/web:1"


def test_an_updated_engine_decides_again_when_an_override_changes(fleet: Fleet) -> None:
    session = Reconciler(fleet.settings())
    session.run(at_hour(0))
    for hour, registry in enumerate(("a.example.net", "b.example.net", "a.example.net"), start=1):
        fleet.commit({"mirror.yaml": mirror(registry, "second", "third")}, hour=hour)
        session.run(at_hour(hour))
        assert image(fleet, "third") == f"{registry}/web:1"
        assert not fleet.reconcile(hour).changed, "a run without memory sees nothing to add"
    fleet.commit({"web.yaml": WEB.replace("web:1", "web:2")}, hour=9)
    session.run(at_hour(9))
    assert [image(fleet, name) for name in NAMES] == ["registry.example.com/web:2", "a.example.net/web:2", "a.example.net/web:2"]
    assert not fleet.reconcile(9).changed


def test_an_override_that_fails_keeps_the_present_manifest(fleet: Fleet) -> None:
    before = blobs(fleet)
    files = {"mirror.yaml": mirror("mirror.example.net", "second", more=UNFIT), "web.yaml": WEB.replace("web:1", "web:2")}
    fleet.commit(files, hour=1)
    run = fleet.reconcile(1)
    assert [(finding.code, str(finding.location)) for finding in run.plan.findings if finding.severity == "error"] == [
        ("override-failed", "mirror.yaml:11:9")
    ]
    assert blobs(fleet)["second"] == before["second"]
    assert [image(fleet, name) for name in ("first", "third")] == ["registry.example.com/web:2"] * 2
    fleet.commit({"mirror.yaml": mirror("mirror.example.net", "second")}, hour=2)
    fleet.reconcile(2)
    assert image(fleet, "second") == "mirror.example.net/web:2"


def test_an_override_that_fails_keeps_a_workload_out_of_a_new_cluster(fleet: Fleet) -> None:
    files = {"policy.yaml": policy("first,third"), "mirror.yaml": mirror("mirror.example.net", "second", more=UNFIT)}
    fleet.commit(files, hour=1)
    fleet.reconcile(1)
    assert fleet.where(FILE) == ["first", "third"]
    fleet.commit({"policy.yaml": policy("second")}, hour=2)
    fleet.reconcile(2)
    assert fleet.where(FILE) == ["first", "third"], "nothing is taken away for a move that cannot be finished"
    fleet.commit({"mirror.yaml": None}, hour=3)
    fleet.reconcile(3)
    assert fleet.where(FILE) == ["second"]


def test_deadlines_before_a_move_that_fails_take_effect_in_a_late_run(make_fleet: Callable[[str], Fleet]) -> None:
    """First fails and the copy moves to third; then third fails, and the manifest for second, the only cluster left, cannot be made."""
    tolerant = "    clusterTolerations: [{key: power, operator: Exists, tolerationSeconds: %d}]\n"
    rules = policy("first", "third", "second", more=tolerant % 1800)
    records = []
    for name, hours in (("punctual", (1, 1.5, 2, 2.5, 3)), ("late", (1, 3))):
        fleet = make_fleet(name)
        files = {f"{c}.yaml": cluster(c) for c in NAMES}
        fleet.commit(
            {**files, "web.yaml": WEB, "policy.yaml": rules, "mirror.yaml": mirror("mirror.example.net", "second", more=UNFIT)}
        )
        fleet.reconcile()
        dated = "{key: power, effect: NoExecute, timeAdded: '2026-03-02T%s:00Z'}"
        failing = {c: cluster(c) + f"  taints: [{dated % since}]\n" for c, since in (("first", "09:00"), ("third", "10:00"))}
        fleet.commit({f"{c}.yaml": text for c, text in failing.items()}, hour=1)
        for hour in hours:
            run = fleet.reconcile(hour)
        assert "stale-decision" in {finding.code for finding in run.plan.findings}
        assert fleet.binding("web-deployment")["spec"]["clusters"] == [{"name": "third", "replicas": 5}]
        records.append(fleet.files()["status/work.karmada.io/resourcebinding/default/web-deployment.yaml"])
    assert records[0] == records[1]


MISTAKES = [
    ("{path: /spec/replicas, operator: replace, value: three}", "'replicas' must be an integer, not \"three\""),
    ("{path: /spec/selector, operator: remove}", "'spec' lacks 'selector', which is required"),
    ("{path: /spec/template/spec/containers/0/env, operator: add, value: {A: b}}", "'env' must be a list, not a mapping"),
    ("{path: /spec/template/spec/containers, operator: remove}", "'spec' lacks 'containers', which is required"),
    ("{path: /spec/template/metadata/labels/app, operator: replace, value: other}", "give both the same labels"),
    ("{path: /metadata/labels, operator: add, value: {a: -b-}}", "'-b-' cannot be a label's value"),
    ("{path: /spec/template, operator: remove}", "lacks 'template', which is required"),
    ("{path: /spec, operator: replace, value: {replicas: 3}}", "lacks 'selector', which is required"),
    ("{path: /apiVersion, operator: replace, value: apps/v1beta1}", "Kubernetes 1.36 has no Deployment in apps/v1beta1"),
]


@pytest.mark.usefixtures("bugs_are_raised")
def test_an_override_that_an_api_server_refuses_is_an_error_at_its_line(fleet: Fleet, tmp_path: Path) -> None:
    before = blobs(fleet)
    harmless = "      - {path: /metadata/annotations, operator: add, value: {a: b}}\n"
    for hour, (entry, reason) in enumerate(MISTAKES, 1):
        text = mirror("mirror.example.net", "second", more=f"      plaintext:\n{harmless}      - {entry}\n{harmless}")
        fleet.commit({"mirror.yaml": text}, hour=hour)
        for run in (fleet.preview(hour), fleet.preview(hour, cache=tmp_path / f"cache-{hour}"), fleet.reconcile(hour)):
            (found,) = [finding for finding in run.plan.findings if finding.severity == "error"]
            assert (found.code, str(found.location)) == ("override-failed", "mirror.yaml:12:9"), found.message
            assert reason in found.message
        assert blobs(fleet) == before
    fleet.commit({"mirror.yaml": mirror("mirror.example.org", "second")}, hour=20)
    fleet.reconcile(20)
    assert image(fleet, "second") == "mirror.example.org/web:1"


def test_what_the_source_has_wrong_is_not_the_mistake_of_an_override(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": WEB.replace("  selector: {matchLabels: {app: web}}\n", "")}, hour=1)
    run = fleet.reconcile(1)
    assert sorted({finding.code for finding in run.plan.findings if finding.severity != "info"}) == [
        "immutable-field-changed",
        "missing-field",
    ]
    assert image(fleet, "second") == "mirror.example.net/web:1"


WIDGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, required: [size], properties: {size: {type: integer, maximum: MAXIMUM}, color: {type: string}}}
"""
WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: web, namespace: default}\nspec: {size: 3}\n"


def override_widgets(entry: str) -> str:
    start = mirror("m", "second", name="widgets").partition("      imageOverrider:")[0]
    selected = start.replace("spec:\n", "spec:\n  resourceSelectors: [{apiVersion: example.com/v1, kind: Widget}]\n", 1)
    return f"{selected}      plaintext:\n      - {entry}\n"


@pytest.mark.usefixtures("bugs_are_raised")
def test_overridden_custom_resources_are_checked_against_their_definition(fleet: Fleet, tmp_path: Path) -> None:
    resize = "{path: /spec/size, operator: replace, value: 5}"
    policies = policy().replace("  placement:", "  - {apiVersion: example.com/v1, kind: Widget}\n  placement:")
    files = {"policy.yaml": policies, "crd.yaml": WIDGETS.replace("MAXIMUM", "9"), "widget.yaml": WIDGET}
    fleet.commit({**files, "overrides.yaml": override_widgets(resize)}, hour=1)
    fleet.reconcile(1)
    widget = "clusters/second/default/widget.example.com-web.yaml"
    assert "size: 5" in fleet.read(widget)
    for hour, (changed, code, reason) in enumerate(
        [
            (
                {"overrides.yaml": override_widgets("{path: /spec/size, operator: replace, value: '5'}")},
                "override-failed",
                "an integer",
            ),
            ({"overrides.yaml": override_widgets("{path: /spec/size, operator: remove}")}, "override-failed", "'size'"),
            ({"overrides.yaml": override_widgets("{path: /spec/colour, operator: add, value: red}")}, "unknown-field", "'color'"),
            ({"overrides.yaml": override_widgets(resize), "crd.yaml": WIDGETS.replace("MAXIMUM", "4")}, "override-failed", "4"),
        ],
        2,
    ):
        fleet.commit(changed, hour=hour)
        for run in (fleet.preview(hour), fleet.preview(hour, cache=tmp_path / f"cache-{hour}"), fleet.reconcile(hour)):
            (found,) = [finding for finding in run.plan.findings if finding.code in ("override-failed", "unknown-field")]
            assert (found.code, str(found.location)) == (code, "overrides.yaml:10:9"), found.message
            assert reason in found.message
        kept = "size: 5" in fleet.read(widget)
        assert kept == (code == "override-failed"), "the cluster keeps what it had"
        fleet.commit({"overrides.yaml": override_widgets(resize), **files}, hour=hour)
        fleet.reconcile(hour)


def test_a_field_that_an_override_adds_and_no_version_knows_is_a_warning_at_its_line(fleet: Fleet) -> None:
    entry = "      plaintext:\n      - {path: /spec/replica, operator: add, value: 3}\n"
    fleet.commit({"mirror.yaml": mirror("mirror.example.net", "second", more=entry)}, hour=1)
    (found,) = [finding for finding in fleet.reconcile(1).plan.findings if finding.severity != "info"]
    assert (found.severity, found.code, str(found.location)) == ("warning", "unknown-field", "mirror.yaml:11:9")
    assert found.resource == ("OverridePolicy", "default", "mirror")
    assert "Deployment.apps/default/web in second: plaintext[0]: spec.replica: the field 'replica'" in found.message
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {source: {strict: true}}\n"
    fleet.commit({"gitsched.yaml": settings}, hour=2)
    (found,) = [finding for finding in fleet.reconcile(2).plan.findings if finding.code == "override-failed"]
    assert str(found.location) == "mirror.yaml:11:9"


def test_an_override_of_a_field_that_must_not_change_is_reported_at_its_line(fleet: Fleet, tmp_path: Path) -> None:
    entries = (
        "      plaintext:\n      - {path: /spec/selector/matchLabels, operator: add, value: {app: web, a: b}}\n"
        "      - {path: /spec/template/metadata/labels/a, operator: add, value: b}\n"
    )
    fleet.commit({"mirror.yaml": mirror("mirror.example.net", "second", more=entries)}, hour=1)
    for run in (fleet.preview(1), fleet.preview(1, cache=tmp_path / "cache"), fleet.reconcile(1)):
        (found,) = [finding for finding in run.plan.findings if finding.severity != "info"]
        assert (found.code, str(found.location)) == ("immutable-field-changed", "mirror.yaml:11:9")
        assert found.message.startswith("an override of Deployment.apps/default/web changes spec.selector in second, which")


def test_a_new_workload_is_placed_where_its_manifest_can_be_made(fleet: Fleet) -> None:
    other = WEB.replace("name: web", "name: other")
    fleet.commit({"other.yaml": other, "mirror.yaml": mirror("mirror.example.net", "second", more=UNFIT)}, hour=1)
    fleet.reconcile(1)
    assert fleet.where("default/deployment-other") == ["first", "third"]
    assert fleet.where(FILE) == list(NAMES)


def test_a_duplicate_definition_of_an_override_keeps_its_effect(fleet: Fleet) -> None:
    fleet.commit({"copy.yaml": mirror("copy.example.net", "third")}, hour=1)
    run = fleet.reconcile(1)
    assert "duplicate-identity" in {finding.code for finding in run.plan.findings}
    assert run.after is None, "the effective definition is ambiguous, so nothing changes"
    fleet.commit({"copy.yaml": None}, hour=2)
    assert fleet.reconcile(2).after is None


def test_an_invalid_override_keeps_its_last_valid_version(fleet: Fleet) -> None:
    fleet.commit({"mirror.yaml": mirror("mirror.example.net", "second").replace("replace", "exchange")}, hour=1)
    run = fleet.reconcile(1)
    assert "value-not-allowed" in {finding.code for finding in run.plan.findings}
    assert image(fleet, "second") == "mirror.example.net/web:1"
    fleet.commit({"web.yaml": WEB.replace("web:1", "web:2")}, hour=2)
    fleet.reconcile(2)
    assert image(fleet, "second") == "mirror.example.net/web:2"


@pytest.mark.needs("kubectl")
def test_kustomize_builds_an_overridden_directory(fleet: Fleet, tmp_path: Path) -> None:
    tree = fleet.checkout(tmp_path / "tree")
    done = subprocess.run(["kubectl", "kustomize", str(tree / "clusters" / "second")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "image: mirror.example.net/web:1" in done.stdout
