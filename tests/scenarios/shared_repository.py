"""A remote with a source and an output branch, three writers of the output, and the people who push there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pygit2
import yaml

from gitsched.git.notes import NOTES_REF
from gitsched.git.output import OutputRepository
from gitsched.reconcile import Reconciler, RunResult, RunSettings, pipeline, preview
from gitsched.reconcile.reconciler import run_with_retries
from gitsched.render.output_files import METADATA_FILES

from .conftest import execute

SOURCE, OUTPUT = "refs/heads/main", "refs/heads/placements"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LEFT_OVER = ("*.lock", "tmp_*", "*.tmp", "plan-*.[0-9]*", "plan-*-journal")


class Killed(BaseException):
    """The process ends here."""


class Writer(NamedTuple):
    """Somebody who reconciles: in a clone that pushes to the remote, or by the URL of the remote with a private clone in the cache."""

    name: str
    location: str
    cache: Path
    push: str | None

    def settings(self, now: datetime, **more: Any) -> RunSettings:
        return RunSettings(now=now, cache=self.cache, location=self.location, push=self.push, observations="recorded")._replace(
            **more
        )


class SharedRepository:
    """The remote and the clones `ann` and `bob`; `resident` reconciles by URL and keeps its caches in memory, as `gitsched watch` does."""

    def __init__(self, root: Path, files: Mapping[str, str], now: datetime) -> None:
        self.root = root
        self.remote = root / "remote.git"
        self.repository = pygit2.init_repository(self.remote, bare=True, initial_head="main")
        self.commit(files, now)
        url = self.remote.as_uri()
        for name in ("ann", "bob"):
            execute("clone", "-q", "--bare", url, str(root / name), at=root)
        self.writers = {name: Writer(name, str(root / name), root / f"{name}.cache", "origin") for name in ("ann", "bob")}
        self.writers["resident"] = Writer("resident", url, root / "resident.cache", None)
        self._resident: Reconciler | None = None

    def head(self, ref: str = OUTPUT) -> str | None:
        found = self.repository.references.get(ref)
        return str(found.target) if found is not None else None

    def refs(self) -> dict[str, str]:
        """Return the commits of the branches. A run without a commit may write the note that a killed one did not."""
        return {ref.name: str(ref.target) for ref in self.repository.references.objects if ref.name != NOTES_REF}

    def list_ancestors(self, oid: str) -> list[str]:
        """Return a commit and its ancestors by first parents, the newest first."""
        return [str(commit.id) for commit in self.repository.walk(oid)]

    def commit(self, files: Mapping[str, str], now: datetime, *, ref: str = SOURCE, parents: list[str] | None = None) -> str:
        """Commit files as the complete content of a branch, on its head or on other parents."""
        index = pygit2.Index()
        for path, text in files.items():
            index.add(pygit2.IndexEntry(path, self.repository.create_blob(text.encode()), pygit2.enums.FileMode.BLOB))
        tree, head = index.write_tree(self.repository), self.head(ref)
        parents = ([head] if head else []) if parents is None else parents
        ann = pygit2.Signature("Ann", "ann@example.com", int(now.timestamp()), 60)
        oid = self.repository.create_commit(None, ann, ann, "Change", tree, parents)
        self.repository.references.create(ref, oid, force=True)
        return str(oid)

    def read(self, commit: str) -> dict[str, str]:
        """Return the files of a commit or tree."""
        index = pygit2.Index()
        index.read_tree(self.repository[commit].peel(pygit2.Tree))
        return {entry.path: self.repository[entry.id].data.decode() for entry in index}  # type: ignore[union-attr]

    def list_decided(self, at: str, repository: Path | None = None) -> dict[str, str]:
        """Return the blobs of a tree, without the files that describe the run."""
        found = execute("ls-tree", "-rz", at, at=repository or self.remote)
        lines = (line.partition("\t") for line in found.split("\0") if line)
        return {path: row.split()[2] for row, _, path in lines if path not in METADATA_FILES}

    def fetch_source(self, name: str) -> None:
        """Have a clone follow the source branch of the remote."""
        if self.head(SOURCE) is not None:
            execute("fetch", "-q", "origin", f"+{SOURCE}:{SOURCE}", at=self.root / name)

    def preview(self, name: str, now: datetime) -> RunResult:
        """Plan as a process without caches would."""
        fresh = self.root / "fresh.cache"
        try:
            return preview(self.writers[name].settings(now, cache=fresh))
        finally:
            if name != "resident":  # its objects are in there
                shutil.rmtree(fresh, ignore_errors=True)

    def run(self, name: str, now: datetime) -> RunResult:
        """Reconcile as this writer."""
        writer = self.writers[name]
        if name != "resident":
            settings = writer.settings(now)
            return run_with_retries(Reconciler(settings), settings)
        self._resident = self._resident or Reconciler(writer.settings(now))
        try:
            return run_with_retries(self._resident, self._resident.settings._replace(now=now))
        finally:
            self._resident.close_files()

    def collect_garbage(self, name: str) -> None:
        """Remove all that no ref reaches from a repository: the remote, a clone or a private clone."""
        if name == "resident":
            for path in sorted(self.root.glob("resident.cache/**/HEAD")):
                execute("gc", "-q", "--prune=now", at=path.parent)
        else:
            execute("gc", "-q", "--prune=now", at=self.remote if name == "remote" else self.root / name)

    def drop_cache(self, name: str) -> None:
        shutil.rmtree(self.writers[name].cache, ignore_errors=True)

    def list_left_over(self) -> list[str]:
        """Return the locks and temporary files of all repositories and caches, without the files that processes lock, which stay."""
        found = {path for pattern in _LEFT_OVER for path in self.root.rglob(pattern) if path.is_file()}
        return sorted(str(path.relative_to(self.root)) for path in found.difference(self.root.glob("*.cache/*.lock")))

    def check_objects(self) -> None:
        for path in (self.remote, self.root / "ann", self.root / "bob"):
            execute("fsck", "--connectivity-only", "--no-dangling", "--no-progress", at=path)

    @contextmanager
    def interrupted(self, step: str) -> Iterator[None]:
        """Have the process die instead of one step of publishing."""

        def die(*_: object, **__: object) -> None:
            raise Killed(step)

        with mock.patch.object(OutputRepository, step, die):
            yield

    @contextmanager
    def overtaken(self, other: Callable[[], object]) -> Iterator[None]:
        """Have something else happen once, after a run has planned and before it publishes."""
        publish, waiting = pipeline.publish, [other]

        def publish_later(*arguments: Any) -> Any:
            if waiting:
                waiting.pop()()
            return publish(*arguments)

        with mock.patch.object(pipeline, "publish", publish_later):
            yield


def count_open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def check_output(files: Mapping[str, str]) -> None:
    """The output is complete: each file can be read, the index of each cluster lists its files, each decision is delivered."""
    loaded = {path: json.loads(text) for path, text in files.items() if path.endswith(".json")}
    loaded |= {path: list(yaml.load_all(text, Loader=_LOADER)) for path, text in files.items() if path.endswith(".yaml")}
    assert loaded["gitsched.json"]["source"]
    for path in [path for path in files if path.startswith("clusters/") and path.endswith("/kustomization.yaml")]:
        directory = path.removesuffix("kustomization.yaml")
        listed = {directory + name for name in loaded[path][0]["resources"]}
        present = {name for name in files if name.startswith(directory) and name.endswith(".yaml")} - {path}
        assert listed == present, path
    for path in [path for path in files if path.startswith("placements/") and "/application.kubernetes-" not in path]:
        for decision in loaded[path][0].get("decisions") or ():
            delivered = f"clusters/{decision['clusterProfileRef']['name']}/{path.removeprefix('placements/')}"
            assert delivered in files, f"{path} chooses a cluster without {delivered}"


def check_replicas(run: RunResult) -> None:
    """Clusters get what a workload demands, or a finding says why they do not."""
    for outcome in run.plan.outcomes.values():
        given = list(outcome.replicas_by_cluster.values())
        numbers = [count for count in given if count is not None]
        if outcome.state != "placed" or outcome.replicas is None or not numbers or outcome.findings:
            continue
        divided = sum(numbers) == outcome.replicas
        assert divided or set(numbers) == {outcome.replicas}, f"{outcome.key}: {outcome.replicas_by_cluster} of {outcome.replicas}"
