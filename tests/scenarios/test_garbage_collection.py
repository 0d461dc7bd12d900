"""`git gc --prune=now` beside a run: the output branch stays complete, whatever git removes that no ref led to when it started."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitsched.cli import main
from gitsched.git import output as git_output
from gitsched.reconcile.output import output_commit

from .conftest import Fleet, deployment

MANY = 60
"""Workloads whose objects are written as one pack."""
COUNTS = pytest.mark.parametrize("count", [2, MANY], ids=["loose", "pack"])


@pytest.fixture
def before(pair: Fleet) -> set[Path]:
    """Reconcile once, commit nothing yet, and return the files of all objects."""
    pair.reconcile()
    return list_object_files(pair)


def list_object_files(fleet: Fleet) -> set[Path]:
    return {path for path in (fleet.path / ".git/objects").rglob("*") if path.is_file()}


def add_workloads(fleet: Fleet, count: int) -> set[Path]:
    fleet.commit({f"apps/app-{number}.yaml": deployment(f"app-{number}") for number in range(count)}, hour=1)
    return list_object_files(fleet)


def remove(files: set[Path]) -> None:
    for path in files:
        path.unlink()


def assert_complete(fleet: Fleet, count: int) -> None:
    fleet.git("fsck", "--strict", "--no-dangling")
    assert f"clusters/first/default/deployment-app-{count - 1}.yaml" in fleet.files()


@COUNTS
def test_objects_that_are_removed_before_the_branch_moves_are_written_again(
    pair: Fleet, before: set[Path], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert before
    known = add_workloads(pair, count)
    write_commit = output_commit.commit_output

    def write_and_lose(*arguments: Any) -> str:
        commit = write_commit(*arguments)
        remove(list_object_files(pair) - known)
        return commit

    monkeypatch.setattr(output_commit, "commit_output", write_and_lose)
    assert pair.reconcile(1).after is not None
    assert_complete(pair, count)


@COUNTS
@pytest.mark.parametrize("pushed", [False, True], ids=["local", "push"])
def test_objects_that_are_removed_while_the_branch_moves_are_written_again(
    pair: Fleet, before: set[Path], count: int, pushed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert before
    remote = tmp_path / "remote.git"
    pair.git("clone", "-q", "--bare", ".", str(remote))
    known = add_workloads(pair, count)
    move = git_output.update_refs
    lost: list[Path] = []

    def move_and_lose(*arguments: Any) -> None:
        move(*arguments)
        lost.extend(list_object_files(pair) - known)
        remove(set(lost))

    monkeypatch.setattr(git_output, "update_refs", move_and_lose)
    assert pair.reconcile(1, push=str(remote) if pushed else None).after is not None
    assert lost
    assert_complete(pair, count)


@COUNTS
def test_what_a_running_collection_still_may_remove_is_kept_in_a_new_pack(pair: Fleet, before: set[Path], count: int) -> None:
    """It removes loose objects, and the packs that it found when it started."""
    assert before
    known = add_workloads(pair, count)
    (pair.path / ".git/gc.pid").write_text("1 host\n")
    found: set[Path] = set()

    def look(_: object) -> None:
        found.update(list_object_files(pair) - known)

    run_with(look, pair)
    loose = {path for path in list_object_files(pair) - known if path.parent.name != "pack"}
    remove(loose | {path for path in found if path.parent.name == "pack"})
    (pair.path / ".git/gc.pid").unlink()
    assert_complete(pair, count)


def run_with(look: Callable[[object], None], fleet: Fleet) -> None:
    """Reconcile, and look at the repository right before the branch moves, when git would list what to remove at the latest."""
    with pytest.MonkeyPatch.context() as patch:
        move = git_output.update_refs
        patch.setattr(git_output, "update_refs", lambda *arguments: (look(arguments), move(*arguments))[1])
        assert fleet.reconcile(1).after is not None


def test_a_run_that_changes_nothing_writes_no_pack_during_a_collection(pair: Fleet, before: set[Path]) -> None:
    (pair.path / ".git/gc.pid").write_text("1 host\n")
    assert pair.reconcile(1).after is None
    assert list_object_files(pair) == before


@pytest.mark.parametrize("lost", ["placements", "placements^{tree}", "placements:clusters/first", "placements:README.md"])
def test_an_output_branch_that_has_lost_objects_continues_from_its_newest_complete_commit(
    pair: Fleet, before: set[Path], lost: str, capsys: pytest.CaptureFixture[str]
) -> None:
    known = add_workloads(pair, 2)
    complete = pair.head
    pair.reconcile(1)
    expected = pair.files()
    oid = pair.git("rev-parse", lost)
    path = pair.path / ".git/objects" / oid[:2] / oid[2:]
    assert before < known
    assert path not in known
    path.unlink()
    pair.commit({"apps/more.yaml": deployment("more")}, hour=2)
    pair.cache = pair.cache.with_name("other")
    for command in ("plan",) if lost.endswith("README.md") else ("plan", "status"):
        assert main([command, "-C", str(pair.path), "--cache-dir", str(pair.cache)]) == 1
        printed = capsys.readouterr()
        assert f"{oid}" in printed.err + printed.out
        assert f"update-ref refs/heads/placements {complete}" in printed.err
    run = pair.reconcile(2)
    assert run.after is not None
    assert [finding.severity for finding in run.plan.findings if finding.code == "output-restored"] == ["warning"]
    assert pair.git("rev-parse", "placements^") == complete
    pair.git("rev-list", "--objects", "--quiet", "placements")
    assert expected.keys() < pair.files().keys()


def test_a_collection_that_was_killed_yesterday_does_not_count(pair: Fleet, before: set[Path]) -> None:
    pid = pair.path / ".git/gc.pid"
    pid.write_text("1 host\n")
    os.utime(pid, (0, 0))
    assert before < add_workloads(pair, 2)
    assert pair.reconcile(1).after is not None
    assert list((pair.path / ".git/objects/pack").glob("*.pack")) == []
