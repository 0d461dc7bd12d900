"""Killed and concurrent processes: the output branch has the old or the new commit, and no change is lost."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from gitsched.reconcile import RunSettings, reconcile

from .conftest import UNGUARDED, Fleet, ReconcileProcess, at_hour, cluster, deployment, execute, policy, start_process

ROUNDS = 6


def objects(fleet: Fleet) -> int:
    return sum(1 for path in (fleet.path / ".git" / "objects").rglob("*") if path.is_file())


def wait_for_writing(fleet: Fleet, process: ReconcileProcess) -> None:
    """Wait until the process starts to write objects or ends."""
    before = objects(fleet)
    while objects(fleet) == before and process.poll() is None:
        time.sleep(0.001)


def test_a_killed_reconcile_leaves_the_old_or_the_new_commit(pair: Fleet, tmp_path: Path) -> None:
    pair.commit({"gitsched.yaml": UNGUARDED})
    pair.reconcile()
    generator = random.Random(20260302)
    killed = 0
    for round_ in range(1, ROUNDS + 1):
        pair.commit({f"apps/app-{n}.yaml": deployment(f"app-{n}", round_) for n in range(30)}, hour=round_)
        before = pair.head
        process = start_process(round_, tmp_path / f"cache-{round_ % 3}", pair.path)
        if round_ % 5 == 0:
            time.sleep(generator.uniform(0, 0.05))  # somewhere between the start and the first object
        else:
            wait_for_writing(pair, process)
            time.sleep(generator.uniform(0, 0.04) if round_ > 1 else 0)
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        after = pair.head
        if after != before:
            assert pair.git("rev-parse", f"{after}^") == before
            assert pair.trailers()["Gitsched-Source"] == pair.git("rev-parse", "main")
        pair.git("fsck", "--strict", "--no-dangling")
        pair.reconcile(round_)
        shown = [pair.load(f"clusters/first/default/deployment-app-{n}.yaml")["spec"]["replicas"] for n in (0, 29)]
        assert shown == [round_, round_]
    assert killed > 0, "every process was done before it was killed"
    assert pair.git("rev-list", "--count", "placements") == str(ROUNDS + 1), "no commit was made twice and none was lost"


@pytest.mark.parametrize("where", ["refs/heads/placements.lock", "index.lock"])
def test_lock_files_of_a_killed_git_do_not_block_later_runs(pair: Fleet, where: str) -> None:
    lock = pair.path / ".git" / where
    if where == "index.lock":
        lock.touch()
        assert pair.reconcile().after is not None, "the index is none of our business"
        return
    lock.touch()
    with pytest.raises(Exception, match=r"placements\.lock"):
        pair.reconcile()
    lock.unlink()
    assert pair.reconcile().after is not None


def clone(remote: Path, into: Path, cache: Path) -> Fleet:
    execute("clone", "-q", remote.as_uri(), str(into), at=remote)
    return Fleet(into, cache)


def test_two_concurrent_reconcilers_of_one_remote_lose_no_change(pair: Fleet, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    pair.git("clone", "-q", "--bare", ".", str(remote))
    clones = [clone(remote, tmp_path / name, tmp_path / f"cache-{name}") for name in ("one", "two")]
    for round_ in range(1, 5):
        files = {f"apps/round-{round_}.yaml": deployment(f"round-{round_}")}
        clones[0].commit(files, hour=round_)
        clones[0].git("push", "-q", "origin", "main")
        # The second one sees this commit, too, or lags behind by one.
        if round_ % 2:
            clones[1].git("pull", "-q", "--ff-only", "origin", "main")
        rivals = [start_process(round_, rival.cache, rival.path, "origin") for rival in clones]
        ends = [(rival.communicate()[1], rival.returncode) for rival in rivals]
        assert [code for _, code in ends] in ([0, 0], [0, round_ % 2 ^ 1]), ends
        assert all("which was reconciled last" in error for error, code in ends if code), "the one that lags behind came later"
        execute("fsck", "--strict", "--no-dangling", at=remote)
    for rival in clones:
        rival.git("pull", "-q", "--ff-only", "origin", "main")
        reconcile(RunSettings(now=at_hour(9), cache=rival.cache, location=str(rival.path), push="origin"))
    assert execute("rev-list", "--min-parents=2", "placements", at=remote) == "", "the history is linear"
    tree = execute("ls-tree", "-r", "--name-only", "placements", at=remote).splitlines()
    rounds = [f"clusters/first/default/deployment-round-{n}.yaml" for n in range(1, 5)]
    assert set(rounds) <= set(tree)
    seen = {rival.git("rev-parse", "refs/remotes/origin/placements") for rival in clones}
    assert seen == {execute("rev-parse", "placements", at=remote)}


def test_two_reconcilers_of_one_commit_make_one_commit(pair: Fleet, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    pair.git("clone", "-q", "--bare", ".", str(remote))
    clones = [clone(remote, tmp_path / name, tmp_path / f"cache-{name}") for name in ("one", "two", "three")]
    rivals = [start_process(1, rival.cache, rival.path, "origin") for rival in clones]
    ends = [(rival.communicate()[1], rival.returncode) for rival in rivals]
    assert [code for _, code in ends] == [0, 0, 0], ends
    assert execute("rev-list", "--count", "placements", at=remote) == "1"


def test_a_run_that_died_after_its_push_is_completed_by_the_next_one(pair: Fleet, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    pair.git("clone", "-q", "--bare", ".", str(remote))
    rival = clone(remote, tmp_path / "one", tmp_path / "cache-one")
    rival.reconcile(0, push="origin")
    old = rival.head
    rival.commit({"apps/new.yaml": deployment("new")}, hour=1)
    rival.reconcile(1, push="origin")
    rival.git("update-ref", "refs/heads/placements", str(old))
    assert rival.reconcile(1, push="origin").after is None
    assert rival.head == execute("rev-parse", "placements", at=remote) != old


def test_a_rejected_push_is_an_error_and_does_not_move_the_local_branch(pair: Fleet, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    pair.git("clone", "-q", "--bare", ".", str(remote))
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    rival = clone(remote, tmp_path / "one", tmp_path / "cache-one")
    process = start_process(1, rival.cache, rival.path, "origin")
    _, errors = process.communicate()
    assert process.returncode != 0
    assert "declined" in errors
    assert rival.head is None
    hook.unlink()
    rival.reconcile(1, push="origin")
    assert rival.head == execute("rev-parse", "placements", at=remote)


def test_all_workloads_leave_a_cluster_that_fails_during_concurrent_runs(pair: Fleet, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    pair.commit({f"apps/{n}.yaml": deployment(f"app-{n}") for n in range(5)} | {"policies/all.yaml": policy("first", "second")})
    pair.git("clone", "-q", "--bare", ".", str(remote))
    clones = [clone(remote, tmp_path / name, tmp_path / f"cache-{name}") for name in ("one", "two")]
    clones[0].reconcile(push="origin")
    clones[0].commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=1)
    clones[0].git("push", "-q", "origin", "main")
    clones[1].git("pull", "-q", "--ff-only", "origin", "main")
    rivals = [start_process(1, rival.cache, rival.path, "origin") for rival in clones]
    assert [rival.wait() for rival in rivals] == [0, 0]
    assert execute("rev-list", "--count", "placements", at=remote) == "2"
    clones[1].reconcile(1, push="origin")
    assert clones[1].delivered("default/deployment-app-4", "origin/placements") == ["first", "second"]
