"""An existing branch that gitsched did not write is not overwritten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Run


def test_a_branch_not_written_by_gitsched_is_not_replaced(gitsched: Run, fleet: Path, git: Callable[..., str]) -> None:
    git("branch", "release", at=fleet)
    before = git("rev-parse", "release", at=fleet)
    for verb in ("plan", "reconcile"):
        found = gitsched(verb, "--output-branch", "release")
        assert found.returncode == 1
        assert "gitsched did not write it" in found.stderr
    assert git("rev-parse", "release", at=fleet) == before


def test_a_branch_with_the_initial_commit_of_a_forge_is_used(gitsched: Run, fleet: Path, git: Callable[..., str]) -> None:
    blob = git("hash-object", "-w", "web.yaml", at=fleet)
    git("update-index", "--add", "--cacheinfo", f"100644,{blob},README.md", at=fleet)
    git("rm", "-q", "--cached", "one.yaml", "two.yaml", "policy.yaml", "web.yaml", at=fleet)
    initial = git("commit-tree", "-m", "Initial commit", git("write-tree", at=fleet), at=fleet)
    git("reset", "-q", at=fleet)
    git("branch", "placements", initial, at=fleet)
    done = gitsched("reconcile")
    assert done.returncode == 0, done.stderr
    assert git("rev-parse", "placements~1", at=fleet) == initial
    assert "gitsched.json" in git("ls-tree", "--name-only", "placements", at=fleet)


def test_an_output_path_allows_sharing_a_branch(gitsched: Run, fleet: Path, git: Callable[..., str]) -> None:
    (fleet / "gitsched.yaml").write_text(
        "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {output: {path: out}}\n"
    )
    git("add", ".", at=fleet)
    git("commit", "-qm", "Settings", at=fleet)
    git("branch", "release", at=fleet)
    done = gitsched("reconcile", "--output-branch", "release")
    assert done.returncode == 0, done.stderr
    names = git("ls-tree", "--name-only", "release", at=fleet).split()
    assert {"web.yaml", "out"} <= set(names)
