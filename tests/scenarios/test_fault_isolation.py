"""A bug that shows on one document concerns this document alone, at whatever stage it shows."""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from gitsched.cli import main
from gitsched.model.finding import Finding
from gitsched.reconcile.review.comparison import compare_plans
from tests.builders import knative, ocm
from tests.faults import stages
from tests.search_depth import DEEP

from .conftest import Fleet, cluster, deployment, policy

BAD, GOOD = "default/deployment-bad", "default/deployment-good"
SECRET = "hunter2"


def break_function(monkeypatch: pytest.MonkeyPatch, target: str, names: str = "bad") -> list[str]:
    """Have a function fail for arguments that name the bad document; return a list that gets an entry for each failure."""
    place, _, name = target.rpartition(".")
    module, _, class_name = place.partition(":")
    owner: Any = importlib.import_module(f"gitsched.{module}")
    owner = getattr(owner, class_name) if class_name else owner
    original: Callable[..., Any] = getattr(owner, name)
    failures: list[str] = []

    def fail(*arguments: Any, **options: Any) -> Any:
        if any(f"'{names}'" in str(argument) for argument in arguments if not isinstance(argument, type)):
            failures.append(target)
            raise RuntimeError(SECRET)
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, fail)
    return failures


def list_faults(findings: Any) -> list[Finding]:
    return [finding for finding in findings if finding.code == "internal-error"]


STAGES = (
    "manifests.parser.classify_document",
    "manifests.parser.find_spans",
    "manifests.schema:SchemaValidator.validate",
    "apis.karmada.engine:KarmadaEngine.decide",
    "apis.karmada.engine.decide_binding",
    "apis.karmada.binding.binding_decision.run_passes",
    "decide.rendered_tree.plan_manifest",
)
STUBBORN = (
    "adapt_outcome",
    "list_previous_replicas",
    "ManifestCache.read",
    "render_workload",
    "strip_outcome",
    "replicas_by_cluster",
)
"""Stages that also fail for the document when it counts as broken."""


@pytest.mark.parametrize("stage", STAGES)
def test_a_bug_at_any_stage_quarantines_one_document(fleet: Fleet, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"bad.yaml": deployment("bad"), "good.yaml": deployment("good"), "policy.yaml": policy("")}
    fleet.commit({"ash.yaml": cluster("ash"), **files})
    fleet.reconcile()
    before = fleet.read(f"clusters/ash/{BAD}.yaml")
    changed = {"bad.yaml": deployment("bad", 3), "good.yaml": deployment("good", 3)}
    fleet.commit({**changed, "new.yaml": deployment("new")}, hour=1)
    failures = break_function(monkeypatch, stage)
    run = fleet.reconcile(1)
    assert failures, "the stage handles the document"
    (fault,) = list_faults(run.plan.findings)
    assert fault.severity == "error"
    assert fault.location is not None
    assert fault.location.path == "bad.yaml"
    assert SECRET not in str(run.plan.findings)
    assert fleet.read(f"clusters/ash/{BAD}.yaml") == before, "what it placed stays"
    assert fleet.load(f"clusters/ash/{GOOD}.yaml")["spec"]["replicas"] == 3
    monkeypatch.undo()
    fleet.commit({}, hour=2)
    assert not list_faults(fleet.reconcile(2).plan.findings)
    assert fleet.load(f"clusters/ash/{BAD}.yaml")["spec"]["replicas"] == 3


@pytest.mark.parametrize("stage", ["apis.karmada.state.read_previous", "reconcile.output.output_records.strip_record"])
def test_a_bug_on_a_previous_record_moves_nothing(fleet: Fleet, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"bad.yaml": deployment("bad"), "good.yaml": deployment("good"), "policy.yaml": policy("")}
    fleet.commit({"ash.yaml": cluster("ash"), **files})
    fleet.reconcile()
    before = fleet.read(f"clusters/ash/{BAD}.yaml")
    fleet.commit({"good.yaml": deployment("good", 3)}, hour=1)
    failures = break_function(monkeypatch, stage, "bad-deployment")
    run = fleet.reconcile(1, cache=fleet.cache / "other")
    assert failures
    assert all(SECRET not in str(finding) for finding in run.plan.findings)
    assert fleet.read(f"clusters/ash/{BAD}.yaml") == before
    assert fleet.load(f"clusters/ash/{GOOD}.yaml")["spec"]["replicas"] == 3


KRAKE_CLUSTER = """\
api: kubernetes
kind: Cluster
metadata: {name: ash, namespace: default}
spec: {kubeconfig: {contexts: [{name: c}], clusters: [{name: c}], users: [{name: u}]}}
status: {state: ONLINE}
"""


def application(name: str, manifest: str = "", more: str = "") -> str:
    objects = manifest or f"[{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default}}}}]"
    return (
        f"api: kubernetes\nkind: Application\nmetadata: {{name: {name}, namespace: default}}\nspec: {{manifest: {objects}}}\n{more}"
    )


def ocm_files(count: int) -> dict[str, str]:
    """Return two Placements with the ConfigMaps that follow them."""
    shared = ocm.to_yaml(ocm.managed_cluster("ash"), ocm.managed_cluster("bru"), *ocm.bound_global_set("default"))
    files = {"fleet.yaml": shared}
    for name in ("bad", "good"):
        files[f"{name}.yaml"] = ocm.to_yaml(ocm.placement(name, "default", numberOfClusters=count))
        files[f"map-{name}.yaml"] = ocm.to_yaml(ocm.placed_config_map(f"map-{name}", "default", name))
    return files


def knative_files(consumers: int) -> dict[str, str]:
    sources = {f"{name}.yaml": knative.source(name, consumers) for name in ("bad", "good")}
    return {"gitsched.yaml": knative.settings(), "a.yaml": knative.adapter(2), "n.yaml": knative.node("n", "z"), **sources}


APIS = {
    "policies of Karmada": (
        "apis.karmada.state.parse_policy",
        lambda n: {
            "ash.yaml": cluster("ash"),
            "bru.yaml": cluster("bru"),
            "bad.yaml": policy("ash" if n == 1 else "bru", name="bad", more="  priority: 1\n")
            .replace("apps/v1,", "v1,")
            .replace("Deployment", "Secret"),
            "good.yaml": policy("ash" if n == 1 else "bru", name="good"),
            "web.yaml": deployment("web"),
        },
    ),
    "Placements of Open Cluster Management": ("apis.ocm.engine.parse_placement", ocm_files),
    "Applications of Krake": (
        "apis.krake.engine.make_application_record",
        lambda n: {"ash.yaml": KRAKE_CLUSTER, **{f"{x}.yaml": application(x, more=f"# {n}\n") for x in ("bad", "good")}},
    ),
    "sources of Knative": ("apis.knative.documents.read_desired_vreplicas", knative_files),
}


@pytest.mark.parametrize("api", APIS)
def test_a_bug_in_an_api_quarantines_one_of_its_documents(fleet: Fleet, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, make_files = APIS[api]
    fleet.commit(make_files(1))
    first = fleet.reconcile()
    assert first.after is not None
    fleet.commit(make_files(2), hour=1)
    failures = break_function(monkeypatch, target)
    run = fleet.reconcile(1)
    assert failures
    (fault,) = list_faults(run.plan.findings)
    assert fault.location is not None
    assert fault.location.path == "bad.yaml"


@pytest.mark.parametrize(
    "second", ["5", "false", "[{metadata: [1]}]", pytest.param("true}\nstatus: [1]\nx: {", id="a status that is a list")]
)
def test_two_bad_edits_of_an_application_in_a_row_keep_it_where_it_is(fleet: Fleet, second: str) -> None:
    fleet.commit({"ash.yaml": KRAKE_CLUSTER, "web.yaml": application("web"), "api.yaml": application("api")})
    fleet.reconcile()
    for hour, manifest in ((1, "true"), (2, second)):
        fleet.commit({"web.yaml": application("web", manifest)}, hour=hour)
        run = fleet.reconcile(hour)
        assert any(finding.severity == "error" for finding in run.plan.findings)
        assert fleet.delivered("default/configmap-web") == ["default.ash"]


REPORTS = (
    ("report.serialization._serialize_move", "json"),
    ("report.markdown_moves._write_entry", "markdown"),
    ("report.text._move_blocks", "text"),
    ("report.junit._write_workload_case", "junit"),
    ("reconcile.review.explanation.explain_workload", "html"),
)


@pytest.mark.parametrize(("stage", "form"), REPORTS)
def test_a_bug_in_a_report_leaves_out_one_entry(
    fleet: Fleet, stage: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {f"{name}.yaml": deployment(name) for name in ("bad", "good")}
    fleet.commit({"ash.yaml": cluster("ash"), **files, "policy.yaml": policy("")})
    failures = break_function(monkeypatch, stage)
    report = tmp_path / "report"
    options = ["-o", form] if form in ("json", "markdown", "text", "html") else ["--report", f"{form}={report}"]
    code = main(["plan", "-C", str(fleet.path), *options])
    text = capsys.readouterr().out if "-o" in options else report.read_text()
    assert failures
    assert code == 1
    assert "internal-error" in text
    assert "good" in text
    assert SECRET not in text


def test_the_exit_code_says_that_there_is_an_error_and_not_a_bug_of_the_run(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet.commit({"ash.yaml": cluster("ash"), "bad.yaml": deployment("bad"), "policy.yaml": policy("")})
    break_function(monkeypatch, "apis.karmada.engine:KarmadaEngine.decide")
    for command in ("plan", "reconcile"):
        assert main([command, "-C", str(fleet.path)]) == 1
        assert "[internal-error]" in capsys.readouterr().out
    monkeypatch.setattr("gitsched.reconcile.pipeline.fetch", lambda _: 1 / 0)
    assert main(["reconcile", "-C", str(fleet.path)]) == 3


@pytest.mark.parametrize("manifest", ["5", "true", "[5]", "{a: 1}", "[{metadata: [1]}]"])
def test_the_comparison_of_a_broken_application_keeps_what_it_placed(fleet: Fleet, manifest: str) -> None:
    """The search for the causes of moves decides single documents, broken ones too."""
    scheduled = "status: {scheduled_to: {api: kubernetes, kind: Cluster, name: ash, namespace: default}}\n"
    fleet.commit({"ash.yaml": KRAKE_CLUSTER, "bad.yaml": application("bad", more=scheduled)})
    fleet.reconcile()
    fleet.commit({"bad.yaml": application("bad", manifest, scheduled)}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"ash.yaml": None}, hour=2)
    for base in (None, "main~1"):
        compared = compare_plans(fleet.settings(2, observations="recorded", revision="main"), base)
        assert not list_faults(compared.review.findings)
        assert [finding.code for finding in compared.review.findings if finding.severity == "error"]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> stages.Scene:
    return stages.Scene("karmada", tmp_path_factory.mktemp("stages"))


def choose(scene: stages.Scene, command: str, names: Collection[str]) -> list[stages.Stage]:
    """Return the stages with these names, and a sample of the others; all of them in a search."""
    found = scene.list_stages(command)
    others = [stage for stage in found if not any(stage.name.endswith(name) for name in names)]
    assert len(others) > 30, "the stages are found"
    return [stage for stage in found if stage not in others] + random.Random(command).sample(others, 2 if not DEEP else len(others))


@pytest.mark.search
def test_no_stage_of_a_run_stops_others_because_of_one_document(scene: stages.Scene) -> None:
    """`make faults` tries every function that a run calls with the document, for each API and command."""
    chosen = choose(scene, "reconcile", STUBBORN)
    assert {stage.name.partition(".")[0] for stage in chosen} >= {name.partition(".")[0] for name in STUBBORN[:-1]}
    for stage in chosen:
        assert not scene.check("reconcile", stage), stage


@pytest.mark.parametrize(
    ("command", "name"), [("plan", "describe_reason"), ("explain", "explain_workload"), ("simulate", "lost_replicas")]
)
def test_a_bug_in_an_answer_is_a_finding_with_an_id(scene: stages.Scene, command: str, name: str) -> None:
    for stage in [stage for stage in scene.list_stages(command) if stage.name.endswith(name)][:1]:
        assert not scene.check(command, stage), stage


def test_the_search_for_causes_ends_with_a_finding(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet.commit({"ash.yaml": cluster("ash"), "bad.yaml": deployment("bad"), "policy.yaml": policy("")})
    fleet.reconcile()
    fleet.commit({"bad.yaml": deployment("bad", 3)}, hour=1)
    monkeypatch.setattr("gitsched.reconcile.review.comparison.find_causes", lambda *_: 1 / 0)
    assert main(["plan", "-C", str(fleet.path)]) == 1
    printed = capsys.readouterr().out
    assert "[internal-error]" in printed
    assert "ash 2 -> 3" in printed.replace("  ", " ") or "ash 3" in printed


def test_after_too_many_bugs_of_a_plan_documents_are_searched_among_the_files(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet.commit({"ash.yaml": cluster("ash"), "bad.yaml": deployment("bad"), "policy.yaml": policy("")})
    break_function(monkeypatch, "apis.karmada.engine:KarmadaEngine.decide")
    monkeypatch.setattr("gitsched.decide.fault_isolation.MAX_FAULTS", 0)
    assert main(["plan", "-C", str(fleet.path)]) == 1
    assert "bad.yaml:1:1: error: internal error" in capsys.readouterr().out.replace("\n", " ")


def test_a_bug_in_describing_what_changed_costs_the_description_alone(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.commit({"ash.yaml": cluster("ash"), "good.yaml": deployment("good"), "policy.yaml": policy("")})

    def fail(_: object) -> str:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("gitsched.decide.commit_metadata._format_replicas", fail)
    run = fleet.reconcile()
    (fault,) = list_faults(run.plan.findings)
    assert "while the commit message was written" in fault.message
    assert f"clusters/ash/{GOOD}.yaml" in fleet.files()
    message = fleet.git("log", "-1", "--format=%B", "placements")
    assert message.startswith("place: what changed is not described\n")
    assert f"Gitsched-Source: {fleet.git('rev-parse', 'main').strip()}" in message
    assert SECRET not in message
    assert fleet.reconcile(1).after is None, "the next run has nothing to do"
