"""Fixtures: a small fleet in a real repository, and gitsched as a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders.ocm import bound_global_set, managed_cluster, to_yaml

GITSCHED = [sys.executable, "-c", "import sys; from gitsched.cli import main; sys.exit(main())"]
Run = Callable[..., subprocess.CompletedProcess[str]]
PATIENCE = 30.0
"""Timeout of waits in seconds."""

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
        if not name.startswith("GIT_") and name not in ("COLUMNS", "GITSCHED_DEBUG")
    }
    people = {
        f"GIT_{role}_{what}": text
        for role in ("AUTHOR", "COMMITTER")
        for what, text in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
    }
    return kept | people | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def git(environment: dict[str, str]) -> Callable[..., str]:
    def run(*arguments: str, at: Path, **more: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=at, env=environment | more, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    return run


@pytest.fixture
def commit(git: Callable[..., str]) -> Callable[..., None]:
    """Write files (None: remove) and commit them, ten seconds after the last commit, however fast the machine is."""

    def make(at: Path, **files: str | None) -> None:
        for name, text in files.items():
            path = at / f"{name}.yaml"
            path.unlink() if text is None else path.write_text(text)
        git("add", "--all", ".", at=at)
        previous = git("log", "-1", "--format=%ct", "--all", at=at).strip()
        date = f"{int(previous or FIRST_COMMIT) + 10} +0000"
        git("commit", "-qm", "Change", at=at, GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)

    return make


@pytest.fixture
def fleet(tmp_path: Path, git: Callable[..., str], commit: Callable[..., None]) -> Path:
    path = tmp_path / "fleet"
    path.mkdir()
    git("init", "-q", "-b", "main", ".", at=path)
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
        command = [*GITSCHED, *arguments]
        return subprocess.run(command, cwd=at, env=environment | more, input=data, capture_output=True, text=True, check=False)

    return run


class Process:
    def __init__(self, command: list[str], at: Path, environment: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("w") as file:
            self.process = subprocess.Popen(command, cwd=at, env=environment, stderr=file)

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

    def start(at: Path, *arguments: str, **variables: str) -> Process:
        command = [*GITSCHED, "watch", "--log-format", "json", *arguments]
        started.append(Process(command, at, environment | variables, tmp_path / f"log-{len(started)}"))
        return started[-1]

    yield start
    for entry in started:
        if entry.process.poll() is None:
            entry.process.kill()
        entry.process.wait()
