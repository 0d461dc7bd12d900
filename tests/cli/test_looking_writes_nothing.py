"""Commands that only look leave every file of the user's Git directory as it was."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.cli.conftest import CLUSTER, WORKLOAD, Run

LOOKS = {
    "validate": ("validate",),
    "validate-worktree": ("validate", "."),
    "plan": ("plan",),
    "plan-worktree": ("plan", "--worktree"),
    "plan-base": ("plan", "main", "change"),
    "explain": ("explain", "deploy/web", "-n", "shop"),
    "simulate": ("simulate", "--lose", "one"),
    "status": ("status",),
    "history": ("history",),
}


@pytest.fixture
def changed_fleet(fleet: Path, commit: Callable[..., None], git: Callable[..., str], gitsched: Run) -> Path:
    """A fleet with an output branch, a commit that was not reconciled, a branch to merge, and a file that is not committed."""
    assert gitsched("reconcile").returncode == 0
    git("switch", "-qc", "change", at=fleet)
    commit(fleet, web=WORKLOAD.replace("replicas: 2", "replicas: 3"))
    git("switch", "-q", "main", at=fleet)
    commit(fleet, three=CLUSTER.format(name="three", owner="private"), one=CLUSTER.format(name="one", owner="cloud"))
    (fleet / "four.yaml").write_text(CLUSTER.format(name="four", owner="private"))
    return fleet


@pytest.mark.parametrize("look", LOOKS)
def test_a_command_that_looks_leaves_the_git_directory_as_it_was(changed_fleet: Path, gitsched: Run, look: str) -> None:
    before = _hash_files(changed_fleet / ".git")
    done = gitsched(*LOOKS[look])
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout
    assert _hash_files(changed_fleet / ".git") == before


def test_a_plan_of_many_objects_writes_no_pack(changed_fleet: Path, commit: Callable[..., None], gitsched: Run) -> None:
    clusters = {f"cluster-{number}": CLUSTER.format(name=f"cluster-{number}", owner="private") for number in range(120)}
    commit(changed_fleet, **clusters)
    before = _hash_files(changed_fleet / ".git")
    assert "clusters" in gitsched("plan").stdout
    assert _hash_files(changed_fleet / ".git") == before
    assert gitsched("reconcile").returncode == 0
    assert len(list((changed_fleet / ".git" / "objects" / "pack").glob("*.pack"))) == 1


def _hash_files(directory: Path) -> dict[str, str]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): sha256(path.read_bytes()).hexdigest() for path in sorted(files)}
