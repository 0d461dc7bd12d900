"""Locations of source and output: worktree, bare repository, URL with a private clone, another repository, a CI checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gitsched.model.errors import Permanent
from gitsched.reconcile import Reconciler, RunResult, RunSettings, reconcile

from .conftest import Fleet, at_hour, cluster, deployment, execute

WEB = "clusters/first/default/deployment-web.yaml"


def run(fleet: Fleet, location: Path | str, hour: float = 0, **more: Any) -> RunResult:
    return reconcile(RunSettings(now=at_hour(hour), cache=fleet.cache, location=str(location))._replace(**more))


def config(text: str) -> str:
    return f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\nspec: {text}\n"


def paths(place: Path, branch: str = "placements") -> list[str]:
    return execute("ls-tree", "-r", "--name-only", branch, at=place).splitlines()


def bare(path: Path) -> Path:
    execute("init", "-q", "--bare", "-b", "main", str(path), at=path.parent)
    return path


@pytest.fixture
def remote(pair: Fleet, tmp_path: Path) -> Path:
    """Return a bare clone of `pair`, which has it as origin."""
    path = bare(tmp_path / "remote.git")
    pair.git("remote", "add", "origin", path.as_uri())
    pair.git("push", "-q", "origin", "main")
    return path


def test_the_source_may_be_a_bare_repository(pair: Fleet, remote: Path) -> None:
    assert run(pair, remote).after == pair.reconcile().after, "the same commit, wherever it was made"
    assert WEB in paths(remote)


def test_the_source_may_be_a_url_with_a_private_clone(pair: Fleet, remote: Path) -> None:
    first = run(pair, remote.as_uri())
    assert execute("rev-parse", "placements", at=remote) == first.after == pair.reconcile().after
    assert run(pair, remote.as_uri(), 1).after is None
    pair.commit({"apps/other.yaml": deployment("other")}, hour=1)
    pair.git("push", "-q", "origin", "main")
    second = run(pair, remote.as_uri(), 1)
    assert execute("rev-parse", "placements^", at=remote) == first.after
    assert execute("rev-parse", "placements", at=remote) == second.after


def test_a_private_clone_may_be_deleted_at_any_time(pair: Fleet, remote: Path, tmp_path: Path) -> None:
    with_copy = run(pair, remote.as_uri())
    pair.commit({"apps/other.yaml": deployment("other")}, hour=1)
    pair.git("push", "-q", "origin", "main")
    pair.cache = tmp_path / "new-cache"
    assert run(pair, remote.as_uri(), 1).before == with_copy.after
    assert execute("rev-list", "--count", "placements", at=remote) == "2"


def test_a_shallow_clone_of_a_url_keeps_last_valid_bytes(pair: Fleet, remote: Path, tmp_path: Path) -> None:
    run(pair, remote.as_uri())
    pair.commit({"clusters/first.yaml": cluster("first") + "  x: ["}, hour=1)
    pair.git("push", "-q", "origin", "main")
    pair.cache = tmp_path / "new-cache"
    run(pair, remote.as_uri(), 1)
    assert {WEB, "kept/clusters/first.yaml"} <= set(paths(remote))


def test_the_output_may_be_in_another_repository(pair: Fleet, tmp_path: Path) -> None:
    other = bare(tmp_path / "other.git")
    made = run(pair, pair.path, output=str(other))
    assert execute("rev-parse", "placements", at=other) == made.after == pair.reconcile().after
    assert pair.reconcile(output=str(other)).after is None


def test_the_output_may_be_in_another_repository_by_url(pair: Fleet, tmp_path: Path) -> None:
    other = bare(tmp_path / "other.git")
    pair.commit({"gitsched.yaml": config(f"{{output: {{repository: '{other.as_uri()}', branch: fleet}}}}")})
    pair.reconcile(output=other.as_uri())
    assert WEB in paths(other, "fleet")
    assert pair.git("for-each-ref", "refs/heads/fleet", "refs/heads/placements") == ""
    pair.commit({"apps/web.yaml": deployment("web", 5)}, hour=1)
    pair.reconcile(1, output=other.as_uri())
    assert "replicas: 5 #" in execute("show", f"fleet:{WEB}", at=other)


def test_a_prefix_leaves_the_rest_of_the_branch_unchanged(pair: Fleet, tmp_path: Path) -> None:
    other = bare(tmp_path / "other.git")
    tree = execute(
        "mktree",
        at=other,
        data=f"100644 blob {execute('hash-object', '-w', '--stdin', at=other, data=b'mine')}\tmine.txt\n".encode(),
    )
    execute("update-ref", "refs/heads/placements", execute("commit-tree", tree, "-m", "Mine", at=other), at=other)
    pair.commit({"gitsched.yaml": config("{output: {path: fleet/north}}")})
    for hour, files in enumerate(({}, {"apps/web.yaml": None, "apps/new.yaml": deployment("new")})):
        pair.commit(files, hour=hour)
        pair.reconcile(hour, output=str(other))
    there = paths(other)
    assert {path for path in there if not path.startswith("fleet/north/")} == {"mine.txt"}
    assert "fleet/north/clusters/first/default/deployment-new.yaml" in there
    assert f"fleet/north/{WEB}" not in there
    assert pair.reconcile(2, output=str(other)).after is None


def test_a_checkout_of_ci_with_a_detached_head_pushes_to_its_remote(pair: Fleet, remote: Path, tmp_path: Path) -> None:
    pair.commit({"apps/other.yaml": deployment("other")})
    pair.git("push", "-q", "origin", "main")
    checkout = Fleet(tmp_path / "checkout", pair.cache)
    checkout.git("remote", "add", "origin", remote.as_uri())
    for round_ in range(2):
        checkout.git("fetch", "-q", "--depth=1", "--no-tags", "origin", "+refs/heads/main:refs/remotes/origin/main")
        checkout.git("checkout", "-q", "--detach", "--force", "origin/main")
        done = checkout.reconcile(round_, push="origin")
        assert execute("rev-parse", "placements", at=remote) == done.after
        pair.commit({"apps/web.yaml": deployment("web", 7)}, hour=1)
        pair.git("push", "-q", "origin", "main")
    assert execute("rev-list", "--count", "placements", at=remote) == "2"
    execute("fsck", "--strict", "--no-dangling", at=remote)


def test_a_broken_file_in_a_shallow_checkout_finds_its_last_valid_bytes(pair: Fleet, remote: Path, tmp_path: Path) -> None:
    pair.reconcile(push="origin")
    pair.commit({"clusters/first.yaml": cluster("first") + "  x: ["}, hour=1)
    pair.git("push", "-q", "origin", "main")
    execute("clone", "-q", "--depth=1", remote.as_uri(), str(tmp_path / "shallow"), at=tmp_path)
    run(pair, tmp_path / "shallow", 1, push="origin")
    assert {WEB, "kept/clusters/first.yaml"} <= set(paths(remote))


def test_the_source_branch_is_never_written(pair: Fleet) -> None:
    before = pair.git("for-each-ref")
    for name in ("main", "refs/heads/main"):
        with pytest.raises(Permanent, match="is the source branch"):
            pair.reconcile(output_branch=name)
    assert pair.git("for-each-ref") == before


@pytest.mark.parametrize("inside", [True, False], ids=["inside of the source", "beside the source"])
def test_a_worktree_of_the_output_branch_stops_nothing(
    pair: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture, inside: bool
) -> None:
    pair.reconcile()
    pair.commit({"apps/other.yaml": deployment("other")}, hour=1)
    worktree = pair.path / "out" if inside else tmp_path / "looking"
    pair.git("worktree", "add", "-q", str(worktree), "placements")
    done = pair.reconcile(1)
    assert done.after == pair.head
    assert not any("other" in path.name for path in worktree.rglob("*"))
    assert [str(worktree) in message for message in caplog.messages] == [True]
    assert "submodule" not in {finding.code for finding in pair.preview(1, worktree=True).plan.findings}


def test_a_resident_process_and_new_processes_write_the_same_bytes(pair: Fleet, tmp_path: Path) -> None:
    execute("clone", "-q", "--no-hardlinks", str(pair.path), str(tmp_path / "twin"), at=tmp_path)
    twin = Fleet(tmp_path / "twin", tmp_path / "cache-twin")
    session = Reconciler(pair.settings())
    changes: list[dict[str, str | bytes | None]] = [
        {},
        {"apps/web.yaml": deployment("web", 5)},
        {"clusters/first.yaml": cluster("first", "power:NoExecute")},
        {"apps/other.yaml": deployment("other")},
        {"apps/web.yaml": deployment("web") + "  x: ["},
        {"clusters/first.yaml": cluster("first"), "apps/web.yaml": deployment("web", 6)},
        {"apps/web.yaml": None},
        {"clusters/first.yaml": None},
    ]
    for hour, files in enumerate(changes):
        for fleet in (pair, twin):
            fleet.commit(files, hour=hour)
        session.run(at_hour(hour + 0.5))
        twin.reconcile(hour + 0.5)
        assert pair.head == twin.head, f"after change {hour}"
    assert pair.git("rev-list", "--count", "placements") == twin.git("rev-list", "--count", "placements")
