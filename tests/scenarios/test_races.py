"""The loser of a race reports the commit that won, and whether it has what the loser wanted. The winner is a process of its own."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests import fork_server

from .conftest import UNGUARDED, Fleet, at_hour, cluster, deployment, execute

HOOK = """\
#!/bin/sh
[ -e "{flag}" ] && exit
touch "{flag}"
unset GIT_DIR GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES LC_ALL
exec {command} > "{out}" 2>&1
"""
"""A hook of the remote: while the first push is in flight, another process reconciles and pushes."""


def list_arguments(fleet: Fleet, hour: float, form: str, *options: str) -> list[str]:
    reports = [f"--report=env={fleet.path}.env", "-o", form]
    words = ["reconcile", f"--repo={fleet.path}", "--push=origin", *reports, *options]
    return [*words, f"--now={at_hour(hour).isoformat()}", f"--cache-dir={fleet.cache}"]


def start_race(
    remote: Path, winner: list[str], loser: Fleet, hour: float, form: str, tmp_path: Path
) -> subprocess.CompletedProcess[str]:
    """Start the loser, and the winner during its push; return the loser when both have ended."""
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    fork_server.write_script(tmp_path / "gitsched")
    command = shlex.join([str(tmp_path / "gitsched"), *winner])
    hook.write_text(HOOK.format(flag=tmp_path / "flag", command=command, out=tmp_path / "winner.txt"))
    hook.chmod(0o755)
    return fork_server.run(list_arguments(loser, hour, form), loser.path, os.environ)


def race(remote: Path, winner: list[str], loser: Fleet, hour: float, form: str, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """Start the loser, and the winner during its push; return what the loser prints, and its outputs for later steps."""
    done = start_race(remote, winner, loser, hour, form, tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout, dict(line.split("=", 1) for line in Path(f"{loser.path}.env").read_text().splitlines())


@pytest.fixture
def remote(pair: Fleet, tmp_path: Path) -> Path:
    """Return a remote that was reconciled once and has a newer source commit."""
    remote = tmp_path / "remote.git"
    pair.commit({"gitsched.yaml": UNGUARDED})
    pair.git("clone", "-q", "--bare", ".", str(remote))
    pair.git("remote", "add", "origin", remote.as_uri())
    pair.reconcile(push="origin")
    pair.commit({"apps/other.yaml": deployment("other")}, hour=1)
    pair.git("push", "-q", "origin", "main")
    return remote


def clone(remote: Path, into: Path) -> Fleet:
    execute("clone", "-q", remote.as_uri(), str(into), at=remote)
    return Fleet(into, into.with_suffix(".cache"))


def test_the_loser_names_the_commit_that_won(remote: Path, tmp_path: Path) -> None:
    """Both make the very same commit."""
    before = execute("rev-parse", "placements", at=remote)
    winner, loser = clone(remote, tmp_path / "one"), clone(remote, tmp_path / "two")
    text, outputs = race(remote, list_arguments(winner, 1, "json"), loser, 1, "json", tmp_path)
    head = execute("rev-parse", "placements", at=remote)
    assert execute("rev-list", "--count", "placements", at=remote) == "2"
    for out, expected in (((tmp_path / "winner.txt").read_text(), None), (text, "same")):
        result = json.loads(out)
        output = result["output"]
        assert (output["before"], output["after"], output["race"]) == (before, head, expected)
        assert result["changed"] is True
        assert [move["workload"]["name"] for move in result["moves"]] == ["other"]
    assert (outputs["changed"], outputs["sha"], outputs["race"], outputs["moves"]) == ("true", head, "same", "1")


def test_another_commit_with_the_same_content_counts_as_the_same(remote: Path, tmp_path: Path) -> None:
    winner, loser = clone(remote, tmp_path / "one"), clone(remote, tmp_path / "two")
    author = "--author=Other <other@example.com>"
    text, outputs = race(remote, list_arguments(winner, 1, "text", author), loser, 1, "text", tmp_path)
    head = execute("rev-parse", "placements", at=remote)
    assert execute("rev-list", "--count", "placements", at=remote) == "2"
    said = " ".join(text.split())
    assert (
        f"Another run committed {head[:10]} to branch placements of {remote.as_uri()} first, with the same content: 1 workload"
        in said
    )
    assert f"Committed {head[:10]}" in (tmp_path / "winner.txt").read_text()
    assert (outputs["changed"], outputs["sha"], outputs["race"], outputs["moves"]) == ("true", head, "same", "1")


def test_a_commit_with_other_content_is_reported_as_such(pair: Fleet, remote: Path, tmp_path: Path) -> None:
    """The winner runs after the end of a toleration, the loser before it."""
    tolerating = (
        (pair.path / "policies/all.yaml")
        .read_text()
        .replace(
            "  placement:\n", "  placement:\n    clusterTolerations: [{key: power, operator: Exists, tolerationSeconds: 3600}]\n"
        )
    )
    pair.commit({"policies/all.yaml": tolerating, "clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=1)
    pair.git("push", "-q", "origin", "main")
    before = execute("rev-parse", "placements", at=remote)
    winner, loser = clone(remote, tmp_path / "one"), clone(remote, tmp_path / "two")
    text, outputs = race(remote, list_arguments(winner, 3, "json"), loser, 1.5, "json", tmp_path)
    head, result = execute("rev-parse", "placements", at=remote), json.loads(text)
    assert execute("rev-list", "--count", "placements", at=remote) == "2"
    assert (result["output"]["before"], result["output"]["after"], result["output"]["race"]) == (before, head, "different")
    assert (outputs["changed"], outputs["sha"], outputs["race"]) == ("true", head, "different")


def test_a_loser_with_more_to_do_commits_on_top(pair: Fleet, remote: Path, tmp_path: Path) -> None:
    winner = clone(remote, tmp_path / "one")
    pair.commit({"apps/third.yaml": deployment("third")}, hour=2)
    pair.git("push", "-q", "origin", "main")
    loser = clone(remote, tmp_path / "two")
    text, outputs = race(remote, list_arguments(winner, 2, "json"), loser, 2, "json", tmp_path)
    head, result = execute("rev-parse", "placements", at=remote), json.loads(text)
    assert result["output"] | {"place": ""} == {
        "branch": "placements",
        "place": "",
        "before": execute("rev-parse", "placements~1", at=remote),
        "after": head,
        "race": None,
        "edits": [],
    }
    assert [move["workload"]["name"] for move in result["moves"]] == ["third"]
    assert (outputs["changed"], outputs["sha"], outputs["race"]) == ("true", head, "")
