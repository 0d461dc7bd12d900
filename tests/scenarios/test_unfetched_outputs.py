"""A clone and its origin may have different output branches: one lacks it, both have own commits. Plan, status and a run say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.cli import main
from gitsched.model.errors import Permanent
from gitsched.model.finding import OUTPUT_NOT_FETCHED
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.report.fleet_status import serialize_fleet_status, write_fleet_status
from gitsched.report.text import summarize_plan

from .conftest import Fleet, cluster, deployment, execute


def clone_single_branch(origin: str, path: Path) -> None:
    execute("clone", "-q", "--single-branch", "--branch=main", origin, str(path), at=path.parent)


def check_out_shallow(origin: str, path: Path) -> None:
    """Do what actions/checkout does."""
    execute("init", "-q", str(path), at=path.parent)
    execute("remote", "add", "origin", origin, at=path)
    execute("fetch", "-q", "--depth=1", "origin", "+refs/heads/main:refs/remotes/origin/main", at=path)
    execute("checkout", "-q", "-B", "main", "origin/main", at=path)


def clone_bare(origin: str, path: Path) -> None:
    execute("clone", "-q", "--bare", "--single-branch", "--branch=main", origin, str(path), at=path.parent)


def clone_excluding(origin: str, path: Path) -> None:
    clone_single_branch(origin, path)
    for refspec in ("+refs/heads/*:refs/remotes/origin/*", "^refs/heads/placements"):
        execute("config", "--add", "remote.origin.fetch", refspec, at=path)


def check_out_commit(origin: str, path: Path) -> None:
    """Do what the runners of GitLab do for a job without GIT_DEPTH."""
    execute("init", "-q", str(path), at=path.parent)
    execute("remote", "add", "origin", origin, at=path)
    execute("fetch", "-q", "origin", "+refs/heads/main:refs/remotes/origin/main", at=path)
    execute("checkout", "-q", "--detach", "origin/main", at=path)


def check_out_two(origin: str, path: Path) -> None:
    clone_single_branch(origin, path)
    execute("remote", "set-branches", "--add", "origin", "next", at=path)


CLONES = {
    "one branch": (clone_single_branch, "fetches only main"),
    "two branches": (check_out_two, "fetches only main, next"),
    "shallow": (check_out_shallow, "is shallow"),
    "bare": (clone_bare, "fetches no branches by itself"),
    "without the branch": (clone_excluding, "does not fetch placements"),
    "a commit": (check_out_commit, "has a detached HEAD and no origin/HEAD, as in CI"),
}


@pytest.mark.parametrize(("clone", "why"), CLONES.values(), ids=CLONES)
def test_a_clone_without_the_output_branch_is_described(pair: Fleet, tmp_path: Path, clone: object, why: str) -> None:
    pair.reconcile()
    assert callable(clone)
    clone(f"file://{pair.path}", tmp_path / "clone")
    settings = pair.settings()._replace(location=str(tmp_path / "clone"), cache=tmp_path / "other")
    review = compare_plans(settings).review
    (finding,) = [finding for finding in review.findings if finding.code == OUTPUT_NOT_FETCHED]
    assert f"this clone of origin {why}" in finding.message
    assert "--fetch origin" in finding.message
    assert summarize_plan(review).startswith("The output branch was not fetched, so that everything counts as new: ")
    assert why in write_fleet_status(read_fleet_status(settings))
    fetched = compare_plans(settings._replace(push="origin")).review
    assert OUTPUT_NOT_FETCHED not in {finding.code for finding in fetched.findings}
    assert summarize_plan(fetched).startswith("No changes: ")


def test_the_branch_of_another_remote_than_origin_is_named(pair: Fleet, tmp_path: Path) -> None:
    pair.reconcile()
    execute("clone", "-q", "--origin=upstream", str(pair.path), str(tmp_path / "clone"), at=tmp_path)
    settings = Fleet(tmp_path / "clone", tmp_path / "other").settings()
    (finding,) = [finding for finding in compare_plans(settings).review.findings if finding.code == OUTPUT_NOT_FETCHED]
    assert finding.message.startswith(
        "the remote upstream has the output branch placements, and only that of origin counts by itself"
    )
    assert "--fetch upstream" in finding.message
    assert summarize_plan(compare_plans(settings._replace(push="upstream")).review).startswith("No changes: ")


@pytest.mark.parametrize(
    "command",
    ["explain deploy web", "simulate --lose cluster/first", "drain first", "rebalance deploy/web", "tidy", "freeze incident"],
)
def test_commands_without_findings_warn_as_well(
    pair: Fleet, tmp_path: Path, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    pair.reconcile()
    clone_single_branch(f"file://{pair.path}", tmp_path / "clone")
    main([*command.split(), "-C", str(tmp_path / "clone"), "--cache-dir", str(tmp_path / "other")])
    assert capfd.readouterr().err.count("this clone of origin fetches only main") == 1


def test_a_whole_clone_of_a_source_without_output_makes_a_first_placement(pair: Fleet, tmp_path: Path) -> None:
    execute("clone", "-q", str(pair.path), str(tmp_path / "clone"), at=tmp_path)
    review = compare_plans(Fleet(tmp_path / "clone", tmp_path / "other").settings()).review
    assert OUTPUT_NOT_FETCHED not in {finding.code for finding in review.findings}
    assert summarize_plan(review).startswith("First placement: ")


@pytest.fixture
def moved(pair: Fleet, tmp_path: Path) -> Fleet:
    """A clone with the workload in `second`, where it stays though `first` is free again, beside an origin without an output branch."""
    pair.reconcile()
    for hour, taint in enumerate((["gone:NoExecute"], []), 1):
        pair.commit({"clusters/first.yaml": cluster("first", *taint)}, hour=hour)
        pair.reconcile(hour)
    execute("init", "-q", "--bare", str(tmp_path / "origin.git"), at=tmp_path)
    execute("config", "uploadpack.allowFilter", "true", at=tmp_path / "origin.git")
    pair.git("remote", "add", "origin", f"file://{tmp_path}/origin.git")
    pair.git("push", "-q", "origin", "main")
    return pair


@pytest.mark.parametrize("replicas", [2, 3], ids=["nothing changes", "the workload scales"])
def test_a_branch_that_only_the_clone_has_is_continued_on_origin(moved: Fleet, tmp_path: Path, replicas: int) -> None:
    before = moved.head
    moved.commit({"apps/web.yaml": deployment("web", replicas)}, hour=3)
    assert summarize_plan(compare_plans(moved.settings(3, push="origin")).review).startswith(
        ("No changes: ", "1 of 1 workload scales, 0 ")
    )
    moved.reconcile(3, push="origin")
    assert moved.where("default/deployment-web") == ["second"]
    assert before in moved.git("rev-list", "placements").split()
    assert moved.git("ls-remote", "origin", "refs/heads/placements").split()[0] == moved.head
    execute("clone", "-q", "--branch=main", f"file://{tmp_path}/origin.git", str(tmp_path / "runner"), at=tmp_path)
    runner = Fleet(tmp_path / "runner", tmp_path / "other")
    assert runner.reconcile(4, push="origin").before == moved.head, "a clone without the branch continues that of origin"


def test_a_partial_clone_does_not_begin_a_second_history(moved: Fleet, tmp_path: Path) -> None:
    clone = tmp_path / "partial"
    execute("clone", "-q", "--filter=blob:none", "--branch=main", f"file://{tmp_path}/origin.git", str(clone), at=tmp_path)
    execute("fetch", "-q", str(moved.path), "placements:placements", at=clone)
    partial = Fleet(clone, tmp_path / "other")
    with pytest.raises(Permanent, match="run git push origin placements there first"):
        partial.reconcile(3, push="origin")
    execute("push", "-q", "origin", "placements", at=clone)
    partial.reconcile(3, push="origin")
    assert moved.git("ls-remote", "origin", "refs/heads/placements").split()[0] == moved.head


def test_status_says_that_the_clone_and_origin_have_different_commits(moved: Fleet) -> None:
    moved.reconcile(3, push="origin")
    assert "different commits" not in write_fleet_status(read_fleet_status(moved.settings(3)))
    other = moved.git("commit-tree", "-m", "other", "-p", "placements~1", "placements^{tree}")
    moved.git("branch", "-f", "placements", other)
    for push in (None, "origin"):
        status = read_fleet_status(moved.settings(3, push=push))
        lines = write_fleet_status(status)
        assert serialize_fleet_status(status)["diverges"]
        assert "placements and origin/placements have different commits" in lines
        assert "git branch -f placements origin/placements" in lines
    moved.git("branch", "-f", "placements", "origin/placements")
    assert "different commits" not in write_fleet_status(read_fleet_status(moved.settings(3)))
