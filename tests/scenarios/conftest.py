"""A fleet in a real repository: commit files at an hour, reconcile at an hour, and read the output branch.

What a test does often, to commit and to read, is done in the process with libgit2; it opens the repository anew each time, as git does.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pygit2
import pytest
import yaml

from gitsched.cli.commands.reconciliation import group_options
from gitsched.model.allow_list import HostRule, TokenRule
from gitsched.reconcile import RunResult, RunSettings, preview, reconcile
from gitsched.reconcile.incremental import fallback
from gitsched.reconcile.run_settings import RunChoices
from gitsched.render.output_files import relative_path
from gitsched.render.retained_copies import read_retained_copy
from tests import fork_server
from tests.builders import worktree

LOCAL: tuple[tuple[HostRule, ...], ...] = ((HostRule("127.0.0.1"), HostRule("localhost")),)
LOCAL_SERVERS: dict[str, Any] = {
    "hosts": LOCAL,
    "status_hosts": LOCAL,
    "remotes": (("/", "127.0.0.1", "localhost"),),
    "tokens": ((TokenRule("env", "FORGE_TOKEN"), TokenRule("env", "INFLUX_TOKEN")),),
}
"""The operator of these fleets allows servers and repositories of this machine."""
START = datetime(2026, 3, 2, 8, 0, 0, tzinfo=UTC)
PROCESS = """\
import sys
from datetime import datetime
from pathlib import Path
from gitsched.reconcile import RunSettings, reconcile
now, cache, location, push = sys.argv[1:5]
run = reconcile(RunSettings(now=datetime.fromisoformat(now), cache=Path(cache), location=location, push=push or None))
print(run.after or "")
"""
"""A reconcile in its own process: time, cache, location and remote to push to."""


def execute(*arguments: str, at: Path, data: bytes | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Run git; return its output without the newline at the end."""
    done = subprocess.run(["git", *arguments], cwd=at, input=data, capture_output=True, env={**os.environ, **(environment or {})})
    assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr.decode()}"
    return done.stdout.decode("utf-8", "surrogateescape").removesuffix("\n")


class Fleet:
    """A source repository with its output branch. Hours count from START."""

    def __init__(self, path: Path, cache: Path) -> None:
        self.path, self.cache = path, cache
        worktree.init(path)

    def git(self, *arguments: str, data: bytes | None = None, environment: Mapping[str, str] | None = None) -> str:
        return execute(*arguments, at=self.path, data=data, environment=environment)

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        """Write files to the worktree; None removes a file."""
        for name, text in files.items():
            path = self.path / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, files: Mapping[str, str | bytes | None] | None = None, *, hour: float = 0, message: str = "Change") -> str:
        self.write(files or {})
        worktree.stage(self.repository)
        return self.record(hour, message)

    def record(self, hour: float, message: str = "Change") -> str:
        """Commit the index; its parents are the branch and what is being merged."""
        return worktree.record(self.repository, os.environ, message, int(at_hour(hour).timestamp()), 60)

    @property
    def repository(self) -> pygit2.Repository:
        return pygit2.Repository(str(self.path))

    def settings(self, hour: float = 0, **more: Any) -> RunSettings:
        return RunSettings(now=at_hour(hour), cache=self.cache, location=str(self.path), **LOCAL_SERVERS)._replace(
            **group_options(more)
        )

    def reconcile(self, hour: float = 0, **more: Any) -> RunResult:
        return reconcile(self.settings(hour, **more))

    def preview(self, hour: float = 0, **more: Any) -> RunResult:
        return preview(self.settings(hour, **more))

    @property
    def head(self) -> str | None:
        """Return the commit of the output branch."""
        found = self.repository.references.get("refs/heads/placements")
        return None if found is None else str(found.resolve().target)

    def files(self, at: str = "placements") -> dict[str, str]:
        """Return the blob id of each path."""
        found: dict[str, str] = {}
        pending = [("", self.repository.revparse_single(at).peel(pygit2.Tree))]
        while pending:
            directory, tree = pending.pop()
            for entry in tree:
                path = directory + os.fsdecode(entry.raw_name)
                if isinstance(entry, pygit2.Tree):
                    pending.append((f"{path}/", entry))
                else:
                    found[path] = str(entry.id)
        return dict(sorted(found.items(), key=lambda item: os.fsencode(item[0])))

    def read(self, path: str, at: str = "placements") -> str:
        entry = self.repository.revparse_single(at).peel(pygit2.Tree)[path]
        assert isinstance(entry, pygit2.Blob), f"{path} is no file"
        return entry.data.decode("utf-8", "surrogateescape").removesuffix("\n") + "\n"

    def load(self, path: str, at: str = "placements") -> Any:
        text = self.read(path, at)
        return json.loads(text) if path.endswith(".json") else yaml.safe_load(text)

    def where(self, workload: str, at: str = "placements") -> list[str]:
        """Return the clusters that have a workload, given by its file name, without those that it has left and where its copy only stays
        for an overlap."""
        copies = [read_retained_copy(entry) for entry in self.load("gitsched.json", at).get("retainedCopies", ())]
        kept = {copy.cluster for copy in copies if copy is not None and relative_path(copy.workload) == f"{workload}.yaml"}
        if kept and f"placements/{workload}.yaml" in self.files(at):
            kept -= {each["clusterProfileRef"]["name"] for each in self.load(f"placements/{workload}.yaml", at)["decisions"]}
        return [cluster for cluster in self.delivered(workload, at) if cluster not in kept]

    def delivered(self, workload: str, at: str = "placements") -> list[str]:
        """Return the clusters whose directory has a workload, given by its file name ("default/deployment-web")."""
        parts = [path.split("/", 2) for path in self.files(at) if path.startswith("clusters/")]
        return [cluster for _, cluster, rest in parts if rest == f"{workload}.yaml"]

    def binding(self, name: str, namespace: str = "default", at: str = "placements") -> Any:
        return self.load(f"status/work.karmada.io/resourcebinding/{namespace}/{name}.yaml", at)

    def trailers(self, commit: str = "placements") -> dict[str, str]:
        text = self.git("log", "-1", "--format=%(trailers:only,unfold)", commit)
        return dict(line.split(": ", 1) for line in text.splitlines() if line)

    def checkout(self, into: Path, at: str = "placements") -> Path:
        """Return the output as a delivery tool reads it."""
        self.git("worktree", "add", "-q", "--detach", str(into), at)
        return into


def allow_withheld(settings: RunSettings) -> RunSettings:
    """Return the settings of a run that allows what the guard would withhold."""
    digest = preview(settings).plan.withheld.digest
    return settings._replace(choices=RunChoices(allowed=(digest,))) if digest else settings


UNGUARDED = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  guard:
    fleet: {removed: 100, moved: 100, replicasLost: 100, replicasAdded: 100000}
    namespace: {removed: 100}
    cluster: {removed: 100}
"""
"""Settings with which the guard withholds nothing."""


def at_hour(hour: float) -> datetime:
    return START + timedelta(hours=hour)


def cluster(name: str, *taints: str, region: str = "north") -> str:
    """Return a Cluster; taints are given as key:effect."""
    entries = "".join(f"\n  - {{key: {taint.partition(':')[0]}, effect: {taint.partition(':')[2]}}}" for taint in taints)
    spec = f"  syncMode: Push\n  region: {region}\n" + (f"  taints:{entries}\n" if entries else "")
    return f"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata:\n  name: {name}\nspec:\n{spec}"


def deployment(name: str, replicas: int | str = 2, namespace: str = "default") -> str:
    return (
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  namespace: {namespace}\nspec:\n"
        f"  replicas: {replicas} # as many as it takes\n  selector: {{matchLabels: {{app: {name}}}}}\n"
    )


def policy(*groups: str, name: str = "all", kind: str = "Deployment", scheduling: str = "Duplicated", more: str = "") -> str:
    """Return a policy in `default` for all objects of a kind. Each ordered group lists clusters separated by commas, or "" for all."""
    terms = "".join(
        f"\n    - affinityName: group-{number}" + (f"\n      clusterNames: [{names}]" if names else "\n      labelSelector: {}")
        for number, names in enumerate(groups)
    )
    version = "v1" if kind in ("ConfigMap", "Secret", "Service") else "apps/v1"
    preference = ", replicaDivisionPreference: Weighted" if scheduling == "Divided" else ""
    return (
        f"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata:\n  name: {name}\n  namespace: default\nspec:\n"
        f"  resourceSelectors:\n  - {{apiVersion: {version}, kind: {kind}}}\n  placement:\n"
        + (f"    clusterAffinities:{terms}\n" if groups else "")
        + f"    replicaScheduling: {{replicaSchedulingType: {scheduling}{preference}}}\n{more}"
    )


@pytest.fixture
def bugs_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in an incremental plan fails the test: without this, a complete plan takes its place, with a warning."""

    def fail(error: Exception) -> None:
        raise AssertionError("a bug showed when the last plan was continued") from error

    monkeypatch.setattr(fallback, "report_fallback", fail)


@pytest.fixture
def make_fleet(tmp_path: Path) -> Callable[[str], Fleet]:
    return lambda name: Fleet(tmp_path / name, tmp_path / "cache")


@pytest.fixture
def fleet(make_fleet: Callable[[str], Fleet]) -> Fleet:
    """Return a fleet without files."""
    return make_fleet("fleet")


@pytest.fixture
def pair(fleet: Fleet) -> Fleet:
    """Deployment `web` with ordered groups: cluster `first`, else `second`. Committed, not reconciled."""
    files = {"apps/web.yaml": deployment("web"), "policies/all.yaml": policy("first", "second")}
    fleet.commit({**files, "clusters/first.yaml": cluster("first"), "clusters/second.yaml": cluster("second")})
    return fleet


class ReconcileProcess:
    """A reconcile in a process of its own, whose output is kept in files."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str]) -> None:
        self._output, self._errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - communicate() closes them
        with Path(os.devnull).open("rb") as nothing:
            files = [nothing, self._output, self._errors]
            self._process = fork_server.start(arguments, Path.cwd(), environment, files, program=PROCESS)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self) -> int:
        return self._process.wait()

    def kill(self) -> None:
        self._process.kill()

    def communicate(self) -> tuple[str, str]:
        """Wait for the end and return the output and the error output."""
        self.wait()
        texts = []
        for file in (self._output, self._errors):
            file.seek(0)
            texts.append(file.read().decode())
            file.close()
        return texts[0], texts[1]


def start_process(hour: float, cache: Path, location: Path | str, push: str = "", **environment: str) -> ReconcileProcess:
    """Start a reconcile in its own process; it prints the id of the new commit, or an empty line."""
    return ReconcileProcess([at_hour(hour).isoformat(), str(cache), str(location), push], {**os.environ, **environment})
