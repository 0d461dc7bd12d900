"""A local repository of a forge with a merge request and its merge commit, and clones as in CI jobs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import fork_server
from tests.forge.fake_forge import FakeForge
from tests.scenarios.conftest import START, cluster, deployment, policy
from tests.scenarios.test_rebalancer import make_rebalancer

TOKEN = "ghs_0123456789abcdef"
SCORES = """\
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: first}
---
apiVersion: gitsched.io/v1alpha1
kind: ClusterScores
metadata: {name: default}
spec: {scores: [{name: price, static: {first: 9}}]}
"""
FACTS = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: fleet}\nspec: {source: {facts: {branch: facts}}}\n"


def git(*arguments: str, at: Path) -> str:
    dates = {f"GIT_{role}_DATE": f"{int(START.timestamp())} +0000" for role in ("AUTHOR", "COMMITTER")}
    done = subprocess.run(["git", *arguments], cwd=at, env={**os.environ, **dates}, capture_output=True, text=True)
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
    return done.stdout.strip()


class Hub:
    """`bare` is the repository of the forge; `work` is the clone of a developer."""

    def __init__(self, base: Path, template: Path | None = None) -> None:
        self.base, self.bare, self.work = base, base / "acme" / "fleet.git", base / "work"
        if template is not None:
            shutil.copytree(template, base, dirs_exist_ok=True)
            git("remote", "set-url", "origin", str(self.bare), at=self.work)
            return
        self.bare.mkdir(parents=True)
        git("init", "-q", "--bare", "-b", "main", ".", at=self.bare)
        git("config", "uploadpack.allowAnySHA1InWant", "true", at=self.bare)  # as forges do
        git("clone", "-q", str(self.bare), str(self.work), at=base)
        git("checkout", "-q", "-B", "main", at=self.work)
        self.commit(
            {
                "apps/web.yaml": deployment("web"),
                "policies/all.yaml": policy("first", "second"),
                "clusters/first.yaml": cluster("first"),
                "clusters/second.yaml": cluster("second"),
            }
        )
        self.push("main")
        self.reconcile()

    def commit(self, files: dict[str, str], message: str = "Change") -> str:
        for name, text in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git("add", "-A", at=self.work)
        git("commit", "-q", "-m", message, at=self.work)
        return git("rev-parse", "HEAD", at=self.work)

    def push(self, branch: str) -> None:
        git("push", "-q", "origin", f"HEAD:refs/heads/{branch}", at=self.work)

    def reconcile(self) -> None:
        done = fork_server.run(["reconcile", "-C", f"file://{self.bare}"], self.base, os.environ)
        assert done.returncode == 0, done.stderr

    def add_scores(self) -> None:
        """Commit a definition of scores, and the name of a facts branch."""
        self.commit({"scores.yaml": SCORES, "gitsched.yaml": FACTS})
        self.push("main")

    def expire(self) -> None:
        """Commit a rebalancer to main that has been handled and has expired."""
        self.commit({"rebalance/old.yaml": make_rebalancer("web", ttl=0)})
        self.push("main")
        self.reconcile()

    def request(self, files: dict[str, str], number: int = 5) -> str:
        """Propose a change and return its commit. Like GitHub, the forge stores it and its merge with main below refs/pull."""
        git("checkout", "-q", "-B", "topic", "main", at=self.work)
        head = self.commit(files, "A proposal\n\nwith $(touch pwned) `touch pwned` in it")
        git("checkout", "-q", "--detach", "main", at=self.work)
        git("merge", "-q", "--no-ff", "-m", "Merge", head, at=self.work)
        git("push", "-q", "origin", "-f", f"{head}:refs/pull/{number}/head", f"HEAD:refs/pull/{number}/merge", at=self.work)
        git("push", "-q", "origin", "-f", f"{head}:refs/heads/topic", at=self.work)
        git("checkout", "-q", "main", at=self.work)
        return head

    def clone(self, ref: str = "refs/heads/main", depth: int | None = 1) -> Path:
        """Return a clone as the checkout step of a job makes it: one ref, a limited depth, a detached HEAD."""
        path = self.base / f"job-{len(list(self.base.glob('job-*')))}"
        path.mkdir()
        git("init", "-q", ".", at=path)
        git("remote", "add", "origin", f"file://{self.bare}", at=path)
        more = [] if depth is None else [f"--depth={depth}"]
        git("fetch", "-q", "--no-tags", *more, "origin", ref, at=path)
        git("checkout", "-q", "--detach", "FETCH_HEAD", at=path)
        return path

    @property
    def placements(self) -> str:
        return git("rev-parse", "refs/heads/placements", at=self.bare)

    def where(self, name: str = "deployment-web") -> list[str]:
        paths = git("ls-tree", "-r", "--name-only", "placements", "clusters", at=self.bare).splitlines()
        return [path.split("/")[1] for path in paths if path.endswith(f"/{name}.yaml")]


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create the repository once; every test gets a copy."""
    return Hub(tmp_path_factory.mktemp("hub")).base


@pytest.fixture
def hub(tmp_path: Path, _template: Path) -> Hub:
    return Hub(tmp_path, _template)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment with the program on PATH and a separate home directory."""
    programs = tmp_path / "programs"
    fork_server.write_script(programs / "gitsched")
    home = tmp_path / "home"
    home.mkdir()
    return {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(home), "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def talk() -> Iterator[FakeForge]:
    server = FakeForge(TOKEN)
    yield server
    server.close()
