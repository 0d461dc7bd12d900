"""Fixtures: a small fleet in a real repository, and gitsched in processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pygit2
import pytest

from tests import fork_server
from tests.builders import worktree
from tests.builders.ocm import bound_global_set, managed_cluster, to_yaml
from tests.local import PATIENCE

Run = Callable[..., subprocess.CompletedProcess[str]]

CLUSTER = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata:
  name: {name}
  labels: {{ownership: {owner}}}
spec:
  syncMode: Pull
"""
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: web
  namespace: shop
spec:
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment, name: web}
  placement:
    clusterAffinities:
      - affinityName: private
        labelSelector: {matchLabels: {ownership: private}}
      - affinityName: cloud
        labelSelector: {matchLabels: {ownership: cloud}}
"""
WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 2
"""
PLACEMENT = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata:
  name: placement
  namespace: ns1
spec:
  numberOfClusters: 3
  prioritizerPolicy:
    mode: Exact
    configurations:
      - scoreCoordinate:
          type: AddOn
          addOn:
            resourceName: default
            scoreName: cpuratio
        weight: 1
"""
OCM_CLUSTERS = ("ash", "bru", "cph", "dub", "edi")
FIRST_COMMIT = 1772442000
"""Time before the first commit of a repository, in seconds since 1970."""
TAINT = "  taints:\n    - {key: power, effect: NoExecute}\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if (name == "GIT_CONFIG_GLOBAL" or not name.startswith("GIT_")) and name not in ("COLUMNS", "GITSCHED_DEBUG")
    }
    people = {
        f"GIT_{role}_{what}": text
        for role in ("AUTHOR", "COMMITTER")
        for what, text in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
    }
    return kept | people | {"GIT_CONFIG_NOSYSTEM": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def git(environment: dict[str, str]) -> Callable[..., str]:
    """Run git; a commit is dated ten seconds after the last one of the repository, however fast the machine is."""

    def run(*arguments: str, at: Path, **more: str) -> str:
        variables = environment | more
        if arguments[0] == "commit" and "GIT_COMMITTER_DATE" not in variables:
            previous = run("log", "-1", "--format=%ct", "--all", at=at)
            date = f"{int(previous or FIRST_COMMIT) + 10} +0000"
            variables |= {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = subprocess.run(["git", *arguments], cwd=at, env=variables, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return run


@pytest.fixture
def commit(environment: dict[str, str]) -> Callable[..., None]:
    """Write files (None: remove) and commit them, ten seconds after the last commit of the repository."""

    def make(at: Path, **files: str | None) -> None:
        for name, text in files.items():
            path = at / f"{name}.yaml"
            path.unlink() if text is None else path.write_text(text)
        repository = pygit2.Repository(str(at))
        worktree.stage(repository)
        worktree.record(repository, environment, "Change", (worktree.find_last_time(repository) or FIRST_COMMIT) + 10)

    return make


@pytest.fixture
def fleet(tmp_path: Path, commit: Callable[..., None]) -> Path:
    path = tmp_path / "fleet"
    worktree.init(path)
    commit(
        path,
        one=CLUSTER.format(name="one", owner="private"),
        two=CLUSTER.format(name="two", owner="cloud"),
        policy=POLICY,
        web=WORKLOAD,
    )
    return path


@pytest.fixture
def place(fleet: Path, commit: Callable[..., None]) -> Path:
    """A fleet with a Placement that selects the three ManagedClusters with the highest scores."""
    sets = to_yaml(*bound_global_set("ns1"), *map(managed_cluster, OCM_CLUSTERS))
    commit(fleet, sets=sets, placement=PLACEMENT)
    return fleet


@pytest.fixture
def gitsched(environment: dict[str, str], fleet: Path) -> Run:
    def run(*arguments: str, data: str | None = None, at: Path = fleet, **more: str) -> subprocess.CompletedProcess[str]:
        return fork_server.run(arguments, at, environment | more, data)

    return run


class Process:
    """A command that runs until it gets a signal; `log` is what it writes to its error output."""

    def __init__(self, arguments: list[str], at: Path, environment: dict[str, str], log: Path, *, fork: bool = True) -> None:
        self.log = log
        with Path(os.devnull).open("r+b") as null, log.open("wb") as file:
            self.process = fork_server.start(arguments, at, environment, [null, null, file], fork=fork)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def events(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line.get("event") == event]

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the process and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def wait_for(self, seen: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not seen():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.02)


@pytest.fixture
def watcher(environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def start(at: Path, *arguments: str, fork: bool = True, **variables: str) -> Process:
        command = ["watch", "--log-format", "json", *arguments]
        started.append(Process(command, at, environment | variables, tmp_path / f"log-{len(started)}", fork=fork))
        return started[-1]

    yield start
    for entry in started:
        if entry.process.poll() is None:
            entry.process.kill()
        entry.process.wait()


@pytest.fixture
def make(tmp_path: Path, git: Callable[..., str]) -> Callable[[Mapping[str, str]], Path]:
    """Return a function that commits files to a new repository and returns its directory."""

    def create(files: Mapping[str, str]) -> Path:
        place = tmp_path / "shop"
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        git("init", "-q", "-b", "main", ".", at=place)
        git("add", "-A", at=place)
        git("commit", "-qm", "The shop", at=place)
        return place

    return create
