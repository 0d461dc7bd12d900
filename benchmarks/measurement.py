"""Measure all figures of one comparison, each in a separate process, on two equal generated repositories."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from benchmarks.generator import Size, generate
from benchmarks.meter import Stage
from benchmarks.repository import commit_change, create, environment, git, read_files

ROOT = Path(__file__).parents[1]
GITSCHED = Path(sys.executable).with_name("gitsched")

Stages = dict[str, Stage]


class Process(NamedTuple):
    """A whole process from start to exit: wall time in seconds, highest resident memory in bytes."""

    seconds: float
    peak: int


class Measurement(NamedTuple):
    """`cold` is the first run, nothing cached. `warm` are the runs of a resident process, one for each changed manifest, and `warm_git`
    is what git needed to commit those changes. `fresh` is an instrumented run in a new process. `processes` are `gitsched reconcile`:
    a cold one, then one for each change of `processes_git`; `idle` is one after no change, `start` is `gitsched --help`, what any
    command takes to begin with. `load` is PyYAML on the same files. Times are in seconds.
    """

    machine: str
    source: str
    files: int
    cold: Stages
    warm: list[Stages]
    warm_git: list[float]
    fresh: Stages
    processes: list[Process]
    processes_git: list[float]
    idle: Process
    start: Process
    load: Process


def measure(size: Size, seed: int, rounds: int, scratch: Path) -> Measurement:
    """Generate and measure. `scratch` is an empty directory for both repositories and caches."""
    files = generate(size, seed)
    resident, separate = scratch / "resident", scratch / "separate"
    source = create(resident, files)
    create(separate, files)
    load = _child("load", resident)
    measured = _child("resident", resident, scratch / "resident-cache", rounds)

    cache = scratch / "separate-cache"
    processes = [_run(separate, cache, "reconcile")]
    contents, seconds = read_files(separate), []
    for round_ in range(1, rounds + 1):
        seconds.append(commit_change(separate, contents, round_))
        processes.append(_run(separate, cache, "reconcile"))
    _compare(resident, separate, rounds + 1)
    idle = _run(separate, cache, "reconcile")
    commit_change(separate, contents, rounds + 1)
    fresh = _child("fresh", separate, cache / "gitsched", 1)
    return Measurement(
        _machine(),
        source,
        len(files),
        _stages(measured["first"]),
        [_stages(stages) for stages in measured["later"]],
        measured["git"],
        _stages(fresh["first"]),
        processes,
        seconds,
        idle,
        _run(separate, cache, "--help"),
        Process(load["seconds"], load["peak"]),
    )


def profile(size: Size, seed: int, rounds: int, scratch: Path, into: Path) -> None:
    """Write the hottest functions of a cold run, of a run after a change in the same process, and of one in a new process."""
    files = generate(size, seed)
    into.write_text("", encoding="utf-8")
    create(scratch / "profiled", files)
    _child("resident", scratch / "profiled", scratch / "profiled-cache", rounds, into)
    directory, cache = scratch / "profiled-fresh", scratch / "profiled-fresh-cache"
    create(directory, files)
    _run(directory, cache, "reconcile")
    commit_change(directory, files, 1)
    _run(directory, cache, "reconcile")  # the first run that reads the output of the cold run
    commit_change(directory, files, 2)
    _child("fresh", directory, cache / "gitsched", 1, into)


def _child(mode: str, directory: Path, *more: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.child", mode, str(directory), *map(str, more)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, check=True)
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def _run(directory: Path, cache: Path, verb: str) -> Process:
    """Run a command of gitsched with a separate cache."""
    variables = environment() | {"XDG_CACHE_HOME": str(cache)}
    start = perf_counter()
    child = subprocess.Popen([GITSCHED, verb], cwd=directory, env=variables, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, f"gitsched {verb}")
    return Process(seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def _compare(one: Path, other: Path, runs: int) -> None:
    """Check that each run made the same commit in both repositories, whatever was cached."""
    ours, theirs = (git(directory, "rev-list", "placements").split() for directory in (one, other))
    if ours != theirs or len(ours) != runs:
        sys.exit(
            f"{runs} runs made {len(ours)} commits in one process and {len(theirs)} in separate processes, equal: {ours == theirs}"
        )


def _stages(value: dict[str, list[float]]) -> Stages:
    return {name: Stage(seconds, int(peak), int(calls)) for name, (seconds, peak, calls) in value.items()}


def _machine() -> str:
    version = git(ROOT, "version").removeprefix("git version ")
    today = datetime.now(UTC).date().isoformat()
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    return f"{today}, Python {platform.python_version()}, git {version}, {system}"
