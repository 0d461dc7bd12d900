"""karmada.preserveOnMove: whether a workload with preserveResourcesOnDeletion is kept in clusters that it leaves by a move."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitsched.model.time import format_time
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.run import RunResult, make_review
from gitsched.report.consequences import list_consequences
from gitsched.report.retained_copies import describe_retained_copies
from gitsched.report.summary import format_headline
from tests.scenarios.conftest import Fleet, at_hour, cluster, deployment, policy
from tests.scenarios.test_bundle_delivery import BASE, bundle
from tests.scenarios.test_bundle_delivery import policy as bundle_policy
from tests.scenarios.test_dependencies import workload
from tests.scenarios.test_incremental_plan import ThreeVariants
from tests.scenarios.test_preserved_workloads import PRESERVE, PruningTool

WEB = "default/deployment-web"
LEFT = "preserved-left"
EVENTS: dict[str, dict[str, str | None]] = {
    "another cluster": {"policy.yaml": policy("bru", more=PRESERVE)},
    "no cluster": {"policy.yaml": policy("nowhere", more=PRESERVE)},
    "a taint": {"ash.yaml": cluster("ash", "down:NoExecute")},
    "a cluster without a document": {"ash.yaml": None, "policy.yaml": policy("bru", more=PRESERVE)},
}


def settings(*karmada: str) -> str:
    limits, url = "{removed: 100, moved: 100, replicasLost: 100, replicasAdded: 100000}", "https://git.example.com/fleet.git"
    guard = f"{{fleet: {limits}, namespace: {limits}, cluster: {limits}}}"
    spec = f"{{delivery: {{source: {{url: '{url}'}}}}, karmada: {{{', '.join(karmada)}}}, guard: {guard}}}"
    return f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: a}}\nspec: {spec}\n"


def fill(fleet: Fleet, choice: str = "", **files: str) -> None:
    own = [f"preserveOnMove: {choice}"] if choice else []
    fleets = {"ash.yaml": cluster("ash"), "bru.yaml": cluster("bru"), "gitsched.yaml": settings(*own)}
    fleet.commit({**fleets, "policy.yaml": policy("ash", "bru", more=PRESERVE), "web.yaml": deployment("web"), **files})


def list_codes(run: RunResult) -> list[str]:
    return [finding.code for finding in run.plan.findings if finding.code.startswith("preserved")]


@pytest.mark.usefixtures("bugs_are_raised")
@pytest.mark.parametrize(
    ("choice", "event"),
    [
        pytest.param(choice, event, marks=() if choice == "true" or event == "another cluster" else pytest.mark.long)
        for choice in ("true", "false", "")
        for event in EVENTS
    ],
)
def test_the_setting_says_whether_a_workload_is_kept_where_it_leaves(fleet: Fleet, tmp_path: Path, choice: str, event: str) -> None:
    variants, tools = ThreeVariants(fleet, tmp_path), [PruningTool("flux"), PruningTool("argocd")]
    fill(fleet, choice)
    variants.run(0, "first")
    fleet.commit(EVENTS[event], hour=1)
    reported = []
    for hour in (1, 1.1, 1.5, 2, 20, 26, 27, 60):
        run = variants.run(hour, event)[0]
        reported += list_codes(run)
        for tool in tools:
            if any(path.startswith("clusters/ash/") for path in fleet.files("refs/heads/resident")):
                tool.follow(fleet, "ash", "refs/heads/resident")
    gone = choice != "true" and event != "no cluster"  # a workload without a cluster keeps its copy in any case
    assert [tool.names & {"web"} for tool in tools] == [set() if gone else {"web"}] * 2
    assert reported == ([LEFT] if not choice else [])
    if choice == "true":
        assert not run.plan.totals.retained
        assert "clusters/ash/default/deployment-web.yaml" not in fleet.files("refs/heads/resident")


def test_a_plan_says_that_it_is_kept_and_not_that_it_becomes_unplaced(fleet: Fleet) -> None:
    fill(fleet, "true")
    fleet.reconcile()
    fleet.commit(EVENTS["no cluster"], hour=1)
    run = fleet.reconcile(1)
    headline, (line,) = format_headline(make_review(run)), describe_retained_copies(run.plan.retained)
    assert headline.startswith("1 of 1 workload is kept in its clusters, 0 become unplaced")
    assert (
        line
        == "Deployment default/web stays in ash with 2 replicas until 2026-03-03T09:00:00Z, and is kept in the cluster after that"
    )
    assert "copy-retained" not in {finding.code for finding in run.plan.findings}
    assert run.plan.next_wakeup == at_hour(25)


@pytest.mark.parametrize("changes", [EVENTS["no cluster"], {"web.yaml": None}], ids=["no cluster", "deleted"])
def test_a_comparison_with_the_base_says_that_it_is_kept(fleet: Fleet, changes: dict[str, str | None]) -> None:
    fill(fleet, "true")
    fleet.reconcile()
    fleet.git("branch", "base")
    fleet.commit({**changes, "note.yaml": "a: 1\n"}, hour=1)
    for cached in (False, True):  # the second one starts from the state of the last run
        review = compare_plans(fleet.settings(1), "base").review
        assert format_headline(review).startswith("1 of 1 workload is kept in its clusters, 0 become unplaced"), cached
        assert list_consequences(review) == []
        assert [move.preserved for move in review.moves] == [True]


def test_the_headline_of_a_deletion(fleet: Fleet) -> None:
    fill(fleet)
    fleet.reconcile()
    fleet.commit({"web.yaml": None}, hour=1)
    assert format_headline(make_review(fleet.reconcile(1))).startswith("1 of 1 workload is kept in its clusters, 0 become unplaced")


def test_a_move_without_a_choice_names_the_setting(fleet: Fleet) -> None:
    fill(fleet)
    fleet.reconcile()
    fleet.commit(EVENTS["another cluster"], hour=1)
    (finding,) = (found for found in fleet.reconcile(1).plan.findings if found.code == LEFT)
    assert "leaves ash" in finding.message
    assert "karmada.preserveOnMove" in finding.message
    assert (finding.severity, str(finding.location)) == ("warning", "web.yaml:1:1")


def test_what_it_brought_along_is_kept_with_it(fleet: Fleet) -> None:
    more = PRESERVE + "  propagateDeps: true\n"
    conf = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: conf, namespace: default}\n"
    fill(
        fleet, "true", **{"policy.yaml": policy("ash", more=more), "web.yaml": workload("web", "configmap/conf"), "conf.yaml": conf}
    )
    fleet.reconcile()
    fleet.commit({"policy.yaml": policy("bru", more=more)}, hour=1)
    fleet.reconcile(1)
    for name in ("configmap-conf", "deployment-web"):
        annotations = fleet.load(f"clusters/ash/default/{name}.yaml")["metadata"]["annotations"]
        assert annotations["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
        assert "annotations" not in fleet.load(f"clusters/bru/default/{name}.yaml")["metadata"]


def test_a_workload_that_returns_is_no_copy_and_loses_the_annotations(fleet: Fleet, tmp_path: Path) -> None:
    variants = ThreeVariants(fleet, tmp_path)
    fill(fleet, "true", **{"policy.yaml": policy("ash", more=PRESERVE)})
    variants.run(0, "first")
    for hour, name in ((1, "bru"), (2, "ash"), (3, "bru"), (4, "ash")):
        fleet.commit({"policy.yaml": policy(name, more=PRESERVE)}, hour=hour)
        run = variants.run(hour, name)[0]
        assert {copy.cluster for copy in run.plan.retained} == {"ash" if name == "bru" else "bru"}
        fleet.commit({"api.yaml": deployment("api", hour)}, hour=hour + 0.5)
        variants.run(hour + 0.5, "another workload")


@pytest.mark.parametrize("choice", ["true", "false"])
def test_a_renamed_workload_is_a_deleted_one(fleet: Fleet, choice: str) -> None:
    fill(fleet, choice)
    fleet.reconcile()
    annotated = "  namespace: default\n  annotations: {gitsched.io/renamed-from: default/web}\n"
    fleet.commit({"web.yaml": deployment("shop").replace("  namespace: default\n", annotated)}, hour=1)
    run = fleet.reconcile(1)
    assert [(copy.workload.name, copy.preserved) for copy in run.plan.retained] == [("web", True)]
    flux = PruningTool("flux")
    for hour in (1, 26):
        fleet.reconcile(hour)
        flux.follow(fleet, "ash")
    assert flux.names >= {"web", "shop"}


SECRET = """\
apiVersion: v1
kind: Secret
metadata:
  name: db
  namespace: default
{annotations}stringData: {{password: "ENC[AES256_GCM,data:eA==,type:str]"}}
sops: {{mac: "ENC[AES256_GCM,data:bWFj,type:str]", lastmodified: "2026-01-01T00:00:00Z", version: 3.9.0}}
"""
ANNOTATIONS = """\
  annotations:
    kustomize.toolkit.fluxcd.io/prune: disabled
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
    argocd.argoproj.io/compare-options: IgnoreExtraneous
"""


@pytest.mark.usefixtures("bugs_are_raised")
def test_a_secret_that_sops_encrypted_is_never_annotated_and_its_file_stays(fleet: Fleet, tmp_path: Path) -> None:
    variants, path = ThreeVariants(fleet, tmp_path), "clusters/ash/default/secret-db.yaml"
    text = SECRET.format(annotations="")
    fill(fleet, **{"db.yaml": text, "secrets.yaml": policy("ash", name="secrets", kind="Secret", more=PRESERVE)})
    variants.run(0, "first")
    fleet.commit({"db.yaml": None}, hour=1)
    for hour in (1, 2, 26, 60):
        run = variants.run(hour, "deleted")[0]
        assert fleet.read(path, "refs/heads/resident") == text
        assert list_codes(run) == ["preserved-encrypted"]
        fleet.commit({"web.yaml": deployment("web", int(hour))}, hour=hour + 0.1)
        run = variants.run(hour + 0.1, "another workload")[0]
        assert list_codes(run) == ["preserved-encrypted"]
        assert hour == 1 or not run.plan.complete
    fleet.commit({"db.yaml": SECRET.format(annotations=ANNOTATIONS)}, hour=61)
    assert list_codes(variants.run(61, "with annotations")[0]) == []
    fleet.commit({"db.yaml": None}, hour=62)
    assert list_codes(variants.run(62, "deleted again")[0]) == []
    variants.run(87, "over")
    assert path not in fleet.files("refs/heads/resident")


@pytest.mark.parametrize("delivery", ["manifests", "flux", "argocd"])
def test_a_bundle_that_moves_is_kept_whichever_tool_builds_it(fleet: Fleet, delivery: str) -> None:
    text = bundle_policy()["policy.yaml"] + PRESERVE
    fleet.commit({**BASE, **bundle(delivery, "{}"), "gitsched.yaml": settings("preserveOnMove: true"), "policy.yaml": text})
    fleet.reconcile()
    before = {
        path
        for path in fleet.files()
        if path.startswith(("clusters/first/shop/", "hub/argocd/first/", "clusters/first/flux-system"))
    }
    assert before
    fleet.commit({"policy.yaml": text.replace("[first, second]", "[second]")}, hour=1)
    run = fleet.reconcile(1)
    kept = {path for copy in run.plan.retained for path in copy.paths}
    assert kept
    assert all(is_annotated(fleet.load(path)) for path in kept)
    assert {path for path in before if "kustomization.yaml" not in path and "namespace" not in path} <= kept
    fleet.reconcile(26)
    assert not kept & fleet.files().keys()


def is_annotated(body: Any) -> bool:
    annotations = body["metadata"].get("annotations", {})
    pruned = "Prune=false" in annotations.get("argocd.argoproj.io/sync-options", "").split(",")
    return pruned and annotations.get("kustomize.toolkit.fluxcd.io/prune") == "disabled"


def test_what_another_workload_delivers_at_its_path_is_not_annotated(fleet: Fleet) -> None:
    """The names of kinds differ only in their case."""
    other = "apiVersion: apps/v1\nkind: deployment\nmetadata: {name: web, namespace: default}\n"
    fill(fleet, "true")
    fleet.reconcile()
    select = policy("ash", name="other", kind="deployment")
    fleet.commit({"policy.yaml": policy("bru", more=PRESERVE), "other.yaml": other, "select.yaml": select}, hour=1)
    fleet.reconcile(1)
    assert fleet.load("clusters/ash/default/deployment-web.yaml")["metadata"] == {"name": "web", "namespace": "default"}


def test_a_wave_that_waits_keeps_the_copy_that_is_left(fleet: Fleet) -> None:
    waves = """\
apiVersion: gitsched.io/v1alpha1
kind: Rollout
metadata: {name: waves}
spec:
  groupStrategy: {decisionGroups: [{groupName: one, groupClusterSelector: {labelSelector: {matchLabels: {stage: one}}}}]}
  rolloutStrategy: {type: ProgressivePerGroup}
"""
    fill(fleet, "true", **{"policy.yaml": policy("ash", more=PRESERVE), "waves.yaml": waves})
    fleet.reconcile()
    moved = deployment("web").replace("replicas: 2", "replicas: 2\n  minReadySeconds: 5")
    fleet.commit({"policy.yaml": policy("bru", more=PRESERVE), "web.yaml": moved}, hour=1)
    flux = PruningTool("flux")
    for hour in (1, 2, 26, 50):
        fleet.reconcile(hour)
        flux.follow(fleet, "ash")
    assert "web" in flux.names
    assert not fleet.delivered(WEB).count("ash")


def test_a_tenant_that_leaves_a_cluster_keeps_what_its_policy_preserves(fleet: Fleet) -> None:
    tenant = (
        "apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {name: shop}\n"
        "spec: {paths: [shop], namespaces: [shop], clusters: {names: [%s]}}\n"
    )
    more = {
        f"shop/{name}": text.replace("namespace: default", "namespace: shop")
        for name, text in (
            ("web.yaml", deployment("web")),
            ("policy.yaml", policy("", more=PRESERVE)),
        )
    }
    fill(fleet, "true", **{"tenant.yaml": tenant % "ash, bru", **more})
    fleet.reconcile()
    assert fleet.delivered("shop/deployment-web") == ["ash", "bru"]
    fleet.commit({"tenant.yaml": tenant % "bru"}, hour=1)
    flux = PruningTool("flux")
    for hour in (1, 2, 26):
        fleet.reconcile(hour)
        flux.follow(fleet, "ash")
        assert "web" in flux.names
    assert fleet.delivered("shop/deployment-web") == ["bru"]


def report(name: str, commit: str, hour: float) -> str:
    return (
        f"apiVersion: gitsched.io/v1alpha1\nkind: ClusterReport\nmetadata: {{name: {name}}}\n"
        f'spec: {{appliedCommit: "{commit}", health: Healthy, since: "{format_time(at_hour(hour))}"}}\n'
    )


@pytest.mark.usefixtures("bugs_are_raised")
def test_the_file_goes_when_the_cluster_has_reported_that_it_has_applied_it(fleet: Fleet, tmp_path: Path) -> None:
    variants = ThreeVariants(fleet, tmp_path)
    fill(fleet, "true")
    variants.run(0, "first")
    before = fleet.git("rev-parse", "refs/heads/resident")
    fleet.commit({**EVENTS["another cluster"], "ash-report.yaml": report("ash", before, 0.5)}, hour=1)
    variants.run(1, "moved")
    annotated = fleet.git("rev-parse", "refs/heads/resident")
    (copy,) = variants.run(30, "reported only what was before")[0].plan.totals.retained
    assert copy.until == at_hour(49), "for as long again"
    fleet.commit({"web.yaml": deployment("web", 3)}, hour=31)
    variants.run(31, "another change")
    fleet.commit({"ash-report.yaml": report("ash", annotated, 32)}, hour=32)
    run = variants.run(32.5, "applied")[0]
    assert [copy.until for copy in run.plan.ended] == [at_hour(32)]
    assert not run.plan.totals.retained
    assert "clusters/ash/default/deployment-web.yaml" not in fleet.files("refs/heads/resident")


def test_a_report_about_an_unknown_commit_says_nothing(fleet: Fleet) -> None:
    fill(fleet, "true", **{"ash-report.yaml": report("ash", "1" * 40, 0.5)})
    fleet.reconcile()
    fleet.commit(EVENTS["another cluster"], hour=1)
    (copy,) = fleet.reconcile(1).plan.retained
    assert copy.until == at_hour(25)
    assert not fleet.reconcile(26).plan.retained
