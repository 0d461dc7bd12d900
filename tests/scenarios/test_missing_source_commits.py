"""The source commit of the last run is missing: it was amended and collected as garbage, or the record names something else.

What the output branch knows counts, and nothing is removed because a file cannot be compared.
"""

from __future__ import annotations

import json

import pytest

from gitsched.model.finding import Finding
from gitsched.reconcile import RunResult

from .conftest import Fleet, deployment
from .test_stateful import make_files

WEB, POLICY = "default/deployment-web", "policies/all.yaml"
TEXT = {POLICY: "a: b\n"}


def find(run: RunResult, code: str) -> list[Finding]:
    return [finding for finding in run.plan.findings if finding.code == code]


def amend(fleet: Fleet, files: dict[str, str | None], hour: float, message: str = "Amended") -> None:
    """Replace the newest commit, and remove the old one from the repository."""
    fleet.write(files)
    fleet.git("add", "-A")
    date = f"{fleet.settings(hour).now.timestamp():.0f} +0000"
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    fleet.git("commit", "-q", "--amend", "--allow-empty", "-m", message, environment=dates)
    fleet.git("reflog", "expire", "--expire=now", "--all")
    fleet.git("gc", "-q", "--prune=now")


def forge(fleet: Fleet, source: str) -> None:
    """Let the output branch name something else as the source of the last run."""
    record = fleet.read("gitsched.json").replace(fleet.load("gitsched.json")["source"], source)
    blob = fleet.git("hash-object", "-w", "--stdin", data=record.encode())
    entries = [line for line in fleet.git("ls-tree", "placements").splitlines() if not line.endswith("\tgitsched.json")]
    tree = fleet.git("mktree", data="\n".join([*entries, f"100644 blob {blob}\tgitsched.json\n"]).encode())
    fleet.git("update-ref", "refs/heads/placements", fleet.git("commit-tree", "-m", "Forged", tree))


@pytest.fixture
def placed(pair: Fleet) -> Fleet:
    pair.reconcile()
    return pair


def test_nothing_is_removed_while_the_last_run_is_not_known(placed: Fleet) -> None:
    amend(placed, {**TEXT, "apps/new.yaml": deployment("new")}, 1)
    for hour in (1, 2):
        run = placed.reconcile(hour)
        (warning,) = find(run, "history-incomplete")
        assert (warning.severity, str(warning.location)) == ("warning", f"{POLICY}:1:1")
        (error,) = find(run, "changes-withheld")
        assert "it is not known which documents the last run had" in error.message
        assert find(run, "placements-frozen") == []
        assert placed.where(WEB) == ["first"]
        placed.commit({"note.txt": str(hour)}, hour=hour)
    assert placed.load("gitsched.json")["guard"]["unverified"] == [POLICY]


@pytest.mark.parametrize(
    ("cure", "clusters"),
    [
        ({POLICY: "git"}, ["first"]),
        ({POLICY: None}, []),
        ({POLICY: ""}, []),
        ({}, []),
    ],
    ids=["restore the file", "delete it", "empty it", "allow the changes"],
)
def test_what_the_finding_advises_ends_it(placed: Fleet, cure: dict[str, str | None], clusters: list[str]) -> None:
    text = (placed.path / POLICY).read_text()
    amend(placed, {**TEXT}, 1)
    run = placed.reconcile(1)
    allow = "" if cure else f"\n\nGitsched-Allow: {run.plan.withheld.digest}"
    placed.commit({path: text if new == "git" else new for path, new in cure.items()}, hour=2, message=f"Cure{allow}")
    for hour in (2, 3):
        run = placed.reconcile(hour)
        assert placed.where(WEB) == clusters
    assert {finding.code for finding in run.plan.findings}.isdisjoint({"history-incomplete", "changes-withheld"})
    assert "guard" not in placed.load("gitsched.json")


def test_the_documents_of_an_earlier_run_count(placed: Fleet) -> None:
    placed.commit({"apps/web.yaml": deployment("web", 3)}, hour=1)
    placed.reconcile(1)
    placed.git("notes", "--ref=refs/notes/hydrator.metadata", "remove", "placements")
    amend(placed, TEXT, 2)
    run = placed.reconcile(2)
    assert [str(finding.location) for finding in find(run, "no-longer-manifest")] == [f"{POLICY}:1:1"]
    (warning,) = find(run, "history-incomplete")
    assert f"commit {placed.git('rev-parse', 'HEAD~1')[:10]} of an earlier run counts in its place" in warning.message
    assert (placed.where(WEB), run.plan.withheld.moves) == (["first"], ())
    placed.commit({"note.txt": "x"}, hour=3)
    assert find(placed.reconcile(3), "no-longer-manifest"), "it stays as it was until the file is restored or deleted"


def test_the_commit_that_a_note_names_counts(placed: Fleet) -> None:
    """The last run changed nothing, so only the note has its commit."""
    placed.commit({"note.txt": "x"}, hour=1)
    placed.reconcile(1)
    forge_source = "0" * 40
    note = placed.git("notes", "--ref=refs/notes/hydrator.metadata", "show", "placements")
    forge(placed, forge_source)
    placed.git("notes", "--ref=refs/notes/hydrator.metadata", "add", "-f", "-m", note, "placements")
    placed.commit(TEXT, hour=2)
    run = placed.reconcile(2)
    assert (len(find(run, "no-longer-manifest")), placed.where(WEB)) == (1, ["first"])


@pytest.mark.parametrize(
    "source", ["0" * 40, "", "main:policies/all.yaml", "main^{tree}"], ids=["none", "empty", "a blob", "a tree"]
)
def test_a_record_that_names_no_commit_removes_nothing(placed: Fleet, source: str) -> None:
    forge(placed, placed.git("rev-parse", source) if ":" in source or "^" in source else source)
    placed.commit(TEXT, hour=1)
    run = placed.reconcile(1)
    assert (len(find(run, "changes-withheld")), placed.where(WEB)) == (1, ["first"])


def test_a_deleted_file_is_meant(placed: Fleet) -> None:
    amend(placed, {POLICY: None}, 1)
    run = placed.reconcile(1)
    assert (find(run, "history-incomplete"), find(run, "changes-withheld"), placed.where(WEB)) == ([], [], [])


def test_a_file_that_kustomize_reads_is_no_reason(placed: Fleet) -> None:
    amend(placed, {"k/kustomization.yaml": "patches: [{path: p.yaml, target: {kind: X}}]\n", "k/p.yaml": "[]\n", POLICY: None}, 1)
    run = placed.reconcile(1)
    assert (find(run, "history-incomplete"), placed.where(WEB)) == ([], [])


def test_a_trailer_from_before_the_last_run_does_not_count_again(fleet: Fleet) -> None:
    files = {**{f"clusters/{name}.yaml": f"cluster {name}" for name in ("ash", "bay")}, "policy.yaml": "policy ash bay"}
    fleet.commit(make_files({**files, "db.yaml": "statefulset db"}), message="Start\n\nGitsched-Release: shop/db")
    fleet.commit({"note.txt": "x"}, hour=1)
    fleet.reconcile(1)
    amend(fleet, make_files({"clusters/ash.yaml": "cluster ash drain"}), 2)
    run = fleet.reconcile(2)
    assert [key.name for key in run.plan.totals.held] == ["db"]
    fleet.commit(hour=3, message="Move\n\nGitsched-Release: shop/db")
    assert not fleet.reconcile(3).plan.totals.held
    assert json.loads(fleet.read("gitsched.json"))["source"] == fleet.git("rev-parse", "HEAD")
