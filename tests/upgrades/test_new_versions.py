"""The first run of a new version of the program: what it writes otherwise for the same source commit comes in a commit of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gitsched import __version__
from gitsched.decide import rendered_tree
from gitsched.model.document import Document
from gitsched.model.planned_files import ExistingBlob, NewBlob, PlannedFile
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.render import cluster_directory
from gitsched.report.summary import REVIEWED_TRAILER
from tests.scenarios import test_waves
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.upgrades.recorded import describe_run

Upgrade = Callable[[Fleet], None]
LATER, CHANGE = "99.1.0", f"gitsched 99.1.0 (before: {__version__})"
SUBJECT = f"place: output rewritten for {CHANGE}"
STUBS = {f"clusters/{name}/gitsched-placement.yaml" for name in ("first", "second")}
METADATA = {"README.md", "gitsched.json", "hydrator.metadata"}
MORE = {"apps/more.yaml": deployment("more")}


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> Upgrade:
    """Return a function after which the program is a later version, which writes another ConfigMap for each cluster."""

    def change(fleet: Fleet) -> None:
        fleet.cache = fleet.cache.with_name("later")  # no version uses the state of another one
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "gitsched" and hasattr(module, "__version__"):
                monkeypatch.setattr(module, "__version__", LATER)
        write = cluster_directory.write_stub
        monkeypatch.setattr(cluster_directory, "write_stub", lambda name: NewBlob(write(name).data + b"  more: new\n"))

    return change


@pytest.fixture
def placed(fleet: Fleet) -> Fleet:
    """Twelve Deployments on two clusters, with a guard that allows no move. Reconciled."""
    files = {f"apps/{number}.yaml": deployment(f"web-{number}") for number in range(12)}
    limits = "{removed: 0, moved: 0, replicasLost: 0, replicasAdded: 0}"
    settings = f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: c}}\nspec: {{guard: {{fleet: {limits}}}}}\n"
    clusters = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second")}
    fleet.commit({**files, **clusters, "gitsched.yaml": settings, "policy.yaml": policy("first,second")})
    fleet.reconcile()
    return fleet


def subjects(fleet: Fleet, since: str | None) -> list[str]:
    return fleet.git("log", "--reverse", "--format=%s", f"{since}..placements").splitlines()


def changed(fleet: Fleet, commit: str) -> set[str]:
    return {path for path, _ in fleet.files(commit).items() ^ fleet.files(f"{commit}^").items()}


def test_files_that_a_new_version_writes_otherwise_come_before_what_the_source_changes(placed: Fleet, upgrade: Upgrade) -> None:
    old = placed.head
    upgrade(placed)
    placed.commit(MORE, hour=1)
    run = placed.reconcile(1)
    assert describe_run(placed, run)["moves"] == ["Deployment default/more: nowhere -> first:2, second:2"]
    assert not run.plan.withheld.moves
    assert subjects(placed, old) == [SUBJECT, "place: 1 workload placed (Change)"]
    assert changed(placed, "placements^") - METADATA == STUBS
    assert not changed(placed, "placements") & STUBS
    assert placed.load("gitsched.json", "placements^")["source"] == placed.git("rev-parse", "main^")
    assert placed.reconcile(2).after is None


def test_without_another_change_there_is_one_commit(placed: Fleet, upgrade: Upgrade) -> None:
    old = placed.head
    upgrade(placed)
    run = placed.reconcile(1)
    assert (run.changed, describe_run(placed, run)) == (True, {})
    assert subjects(placed, old) == [SUBJECT]
    assert changed(placed, "placements") - METADATA == STUBS
    assert placed.load("gitsched.json")["version"] == LATER


def test_a_version_that_writes_the_same_makes_no_commit(placed: Fleet, upgrade: Upgrade, monkeypatch: pytest.MonkeyPatch) -> None:
    write, old = cluster_directory.write_stub, placed.head
    upgrade(placed)
    monkeypatch.setattr(cluster_directory, "write_stub", write)
    assert placed.reconcile(1).after is None
    placed.commit(MORE, hour=1)
    placed.reconcile(2)
    assert subjects(placed, old) == ["place: 1 workload placed (Change)"]


def test_a_plan_shows_the_moves_and_one_line_about_the_rewrite(placed: Fleet, upgrade: Upgrade) -> None:
    upgrade(placed)
    placed.commit(MORE, hour=1)
    compared = compare_plans(placed.settings(1))
    assert compared.review.comparison.notes == (
        f"The output is rewritten for {CHANGE}, in a commit of its own, with which no workload moves.",
    )
    assert {Path(path).name for path in compared.delivered} == {"deployment-more.yaml"}
    with_base = compare_plans(placed.settings(1, revision="main"), "main^")
    assert {Path(path).name for path in with_base.delivered} == {"deployment-more.yaml"}
    assert with_base.review.comparison.notes == ()


def test_the_reviewed_plan_of_a_new_version_is_carried_out(placed: Fleet, upgrade: Upgrade) -> None:
    upgrade(placed)
    placed.commit(MORE, hour=1)
    digest = compare_plans(placed.settings(1)).review.comparison.digest
    placed.commit(hour=1, message=f"Merge\n\n{REVIEWED_TRAILER}: {digest}")
    run = placed.reconcile(1, require_reviewed=True)
    assert (run.refused, run.reviewed[0]) == ("", f"As reviewed: plan {digest}.")


def test_where_the_last_source_commit_is_missing_one_commit_has_everything(placed: Fleet, upgrade: Upgrade, tmp_path: Path) -> None:
    placed.commit(MORE, hour=1)
    upgrade(placed)
    clone = Fleet(tmp_path / "clone", placed.cache)
    placed.git("bundle", "create", "-q", str(tmp_path / "output"), "placements", "refs/notes/hydrator.metadata")
    clone.git("fetch", "-q", str(tmp_path / "output"), "refs/*:refs/*")
    for path in placed.git("ls-files").splitlines():
        clone.write({path: (placed.path / path).read_bytes()})
    clone.commit(hour=1)
    old = clone.head
    run = clone.reconcile(1)
    assert [str(move.key) for move in run.plan.moves] == ["Deployment.apps/default/more"]
    assert not run.plan.withheld.moves
    assert subjects(clone, old) == ["place: 1 workload placed (Change)"]
    assert changed(clone, "placements") >= STUBS


def test_a_workload_that_a_new_version_writes_otherwise_is_rolled_out_in_waves(
    fleet: Fleet, upgrade: Upgrade, monkeypatch: pytest.MonkeyPatch
) -> None:
    waves = test_waves.Waves(fleet)
    waves.commit(rollout=test_waves.rollout(test_waves.PER_GROUP))
    upgrade(fleet)
    plan_manifest = rendered_tree.plan_manifest

    def plan(document: Document, *counts: tuple[str, int]) -> PlannedFile:
        counted = plan_manifest(document, *counts)
        return NewBlob(b"# new\n") if isinstance(counted, ExistingBlob) and document.key.kind == "Deployment" else counted

    monkeypatch.setattr(rendered_tree, "plan_manifest", plan)
    waves.reconcile(1)
    assert waves.updated("new") == ["ash"], "the canary is first"
