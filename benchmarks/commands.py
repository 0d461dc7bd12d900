"""Measure whole processes of gitsched on a generated repository: reviews of pull requests, runs after each kind of change, and runs without
a cache.

Processor time (user and system, with the processes of git) is compared, because it hardly depends on what else the machine does.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from benchmarks.generator import change
from benchmarks.repository import environment, git, read_files

GITSCHED = Path(sys.executable).with_name("gitsched")
_FIRST_ROUND = 100
"""Rounds from here on change other manifests than the rounds of the stages."""
GIT_COMMIT = "git add && git commit of one change"
_TOLERATED = b"maintenance.example.com/window"
_PLAN = ("plan", "main", "review")
Changes = Mapping[str, bytes | None]
"""Content of changed files by path; None for a removed file."""


class Process(NamedTuple):
    """A whole process from start to exit: wall time and processor time in seconds, highest resident memory in bytes."""

    seconds: float
    processor: float
    peak: int


class Row(NamedTuple):
    """A command that was measured, and what it ran on."""

    name: str
    process: Process


def run_process(command: Iterable[str | Path], directory: Path, variables: Mapping[str, str]) -> Process:
    """Run a command that has to succeed; its output is dropped. Raise CalledProcessError when it fails."""
    words, start = list(command), perf_counter()
    child = subprocess.Popen(words, cwd=directory, env=dict(variables), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, [str(word) for word in words])
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Process(seconds, usage.ru_utime + usage.ru_stime, peak)


def run_gitsched(directory: Path, cache: Path, *words: str) -> Process:
    """Run a command of gitsched with a cache of its own."""
    return run_process([GITSCHED, *words], directory, environment() | {"XDG_CACHE_HOME": str(cache)})


def measure_commands(directory: Path, cache: Path, scratch: Path) -> list[Row]:
    """Measure the commands on a repository whose last commit has been reconciled with the cache. Commits to the repository.

    What runs without a cache gets an empty directory. A pull request is a branch with one commit; its plan is the one of its merge.
    """
    files: dict[str, bytes] = read_files(directory)
    rows: list[Row] = []
    commits: list[Process] = []

    def add(name: str, *words: str, cached: bool = True) -> None:
        empty = scratch / "empty-cache"
        rows.append(Row(f"gitsched {name}", run_gitsched(directory, cache if cached else empty, *words)))
        shutil.rmtree(empty, ignore_errors=True)

    add("reconcile, no change", "reconcile")
    add("reconcile, no change, no cache", "reconcile", cached=False)
    for number, (name, edit) in enumerate(CHANGES.items()):
        commits.append(_commit(directory, files, edit(files, _FIRST_ROUND + number), _FIRST_ROUND + number))
        add(f"reconcile, {name}", "reconcile")
    _commit(directory, files, edit_manifest(files, _FIRST_ROUND + 50), _FIRST_ROUND + 50)
    add("reconcile, manifest changed, no cache", "reconcile", cached=False)
    add("reconcile after a run with another cache", "reconcile")
    for number, (name, edit) in enumerate(_REVIEWED.items()):
        round_ = _FIRST_ROUND + 60 + number
        git(directory, "switch", "--quiet", "--create", "review")
        _commit(directory, dict(files), edit(files, round_), round_)
        git(directory, "switch", "--quiet", "main")
        # A cluster that everything leaves exceeds the limit of the guard, and then the plan exits with 1.
        limit = ("--guard", "cluster.removed=100") if edit is _edit_pool else ()
        add(f"plan of a pull request, {name}", *_PLAN, *limit)
        if name in ("manifest changed", "policy changed"):
            add(f"plan of a pull request, {name}, no cache", *_PLAN, cached=False)
        git(directory, "branch", "--quiet", "-D", "review")
    path = next(path for path in sorted(files) if "/deployment-" in path)
    workload, namespace = f"Deployment/{_read_name(files[path])}", path.split("/")[1]
    cluster = _list_clusters(files)[0].removeprefix("clusters/").removesuffix(".yaml")
    explain, looking = ("explain", "-n", namespace, workload), scratch / "looking-cache"
    add("explain of one workload", *explain)
    for name in (", no cache", ", cache of an earlier explain"):
        rows.append(Row(f"gitsched explain of one workload{name}", run_gitsched(directory, looking, *explain)))
    for cached, name in ((True, ""), (False, ", no cache")):
        add(f"simulate the loss of one cluster{name}", "simulate", "--lose", cluster, cached=cached)
    add("explain of one cluster", "explain", f"cluster/{cluster}")
    add("rebalance of one workload", "rebalance", "-n", namespace, workload)
    add("status", "status")
    add("validate", "validate", cached=False)
    rows += measure_state(directory, cache, scratch, files)
    middle = sorted(commits, key=lambda process: process.processor)[len(commits) // 2]
    return [*rows, Row(GIT_COMMIT, middle)]


def measure_state(directory: Path, cache: Path, scratch: Path, files: dict[str, bytes]) -> list[Row]:
    """Measure commands without a cache where a run has stored its state beside the output branch, and no longer in the cache. Commits to
    the repository."""
    run_gitsched(directory, cache, "reconcile", "--state", "on")
    rows: list[Row] = []

    def add(name: str, *words: str) -> None:
        empty = scratch / "empty-cache"
        rows.append(Row(f"gitsched {name}, state, no cache", run_gitsched(directory, empty, *words, "--state", "on")))
        shutil.rmtree(empty, ignore_errors=True)

    add("reconcile, no change", "reconcile")
    first = git(directory, "rev-parse", "HEAD")
    _commit(directory, files, edit_manifest(files, _FIRST_ROUND + 51), _FIRST_ROUND + 51)
    add("plan of a pull request, manifest changed", "plan", first, "HEAD")
    path = next(path for path in sorted(files) if "/deployment-" in path)
    add("explain of one workload", "explain", "-n", path.split("/")[1], f"Deployment/{_read_name(files[path])}")
    add("reconcile, manifest changed", "reconcile")
    return rows


def edit_manifest(files: Mapping[str, bytes], round_: int) -> Changes:
    """Return one changed Deployment."""
    path, data = change(files, round_)
    return {path: data}


def _edit_policy(files: Mapping[str, bytes], _round: int) -> Changes:
    """Return a policy, of one namespace if there is one left, that no longer tolerates the taint of maintenance."""
    path = next(path for path in sorted(files, reverse=True) if path.startswith("policies/") and _TOLERATED in files[path])
    return {path: files[path].replace(_TOLERATED, b"maintenance.example.com/none")}


def _edit_label(files: Mapping[str, bytes], _round: int) -> Changes:
    """Return a cluster with another value of a label that no policy reads."""
    path = next(path for path in _list_clusters(files) if b"storage: ssd" in files[path])
    return {path: files[path].replace(b"storage: ssd", b"storage: nvme")}


def _edit_pool(files: Mapping[str, bytes], _round: int) -> Changes:
    """Return a cluster with another value of the label by which most policies choose clusters: workloads leave it."""
    path = _list_clusters(files)[1]
    before, mark, after = files[path].partition(b"pool: pool-")
    return {path: before + mark + b"9" + after}


def _add_taint(files: Mapping[str, bytes], _round: int) -> Changes:
    """Return a cluster with a taint that no policy tolerates."""
    path = next(path for path in reversed(_list_clusters(files)) if b"taints:" not in files[path])
    return {
        path: files[path].replace(b"\nstatus:", b"\n  taints:\n    - {key: example.com/broken, effect: NoSchedule}\nstatus:", 1)
    }


def _add_workload(files: Mapping[str, bytes], round_: int) -> Changes:
    """Return one more Deployment, like an existing one."""
    path, data = change(files, round_)
    name = _read_name(data)
    return {path.replace(".yaml", "-copy.yaml"): data.replace(name.encode(), f"{name}-copy".encode())}


def _remove_workload(files: Mapping[str, bytes], round_: int) -> Changes:
    """Return one Deployment less."""
    return {change(files, round_)[0]: None}


CHANGES: dict[str, Callable[[Mapping[str, bytes], int], Changes]] = {
    "manifest changed": edit_manifest,
    "policy changed": _edit_policy,
    "unread cluster label changed": _edit_label,
    "cluster tainted": _add_taint,
    "workload added": _add_workload,
    "workload removed": _remove_workload,
}
_REVIEWED = {**CHANGES, "cluster leaves its pool": _edit_pool}


def _commit(directory: Path, files: dict[str, bytes], changes: Changes, round_: int) -> Process:
    """Commit changes of the worktree, and follow them in `files`. Return what `git add` and `git commit` needed."""
    for path, data in changes.items():
        if data is None:
            (directory / path).unlink()
            del files[path]
        else:
            (directory / path).write_bytes(data)
            files[path] = data
    git(directory, "update-index", "-q", "--refresh")  # as any earlier git command would have done
    variables = environment(round_)
    parts = [
        run_process(["git", *words], directory, variables)
        for words in (["add", "--all", "--", *changes], ["commit", "--quiet", "-m", f"Round {round_}"])
    ]
    return Process(sum(part.seconds for part in parts), sum(part.processor for part in parts), max(part.peak for part in parts))


def _list_clusters(files: Mapping[str, bytes]) -> list[str]:
    return sorted(path for path in files if path.startswith("clusters/"))


def _read_name(data: bytes) -> str:
    """Return the name of the object of a generated file."""
    return data.partition(b"\n  name: ")[2].partition(b"\n")[0].decode()
