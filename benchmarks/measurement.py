"""Measure all figures of one comparison, each in a separate process, on two equal generated repositories."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.commands import Process, Row, measure_commands, run_gitsched
from benchmarks.generator import Size, generate
from benchmarks.meter import Stage
from benchmarks.repository import commit_change, create, environment, git, read_files

ROOT = Path(__file__).parents[1]
PYTHON = Path(sys.executable)

Stages = dict[str, Stage]


class Measurement(NamedTuple):
    """`cold` is the first run, nothing cached. `warm` are the runs of a resident process, one for each changed manifest, and `warm_git`
    is what git needed to commit those changes. `fresh` is an instrumented run in a new process. `processes` are `gitsched reconcile`:
    a cold one, then one for each change of `processes_git`; `start` is `gitsched --help`, what any command takes to begin with.
    `commands` are further commands, and git for comparison. `load` is PyYAML on the same files. Times are in seconds.
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
    start: Process
    commands: list[Row]
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
    processes = [run_gitsched(separate, cache, "reconcile")]
    contents, seconds = read_files(separate), []
    for round_ in range(1, rounds + 1):
        seconds.append(commit_change(separate, contents, round_))
        processes.append(run_gitsched(separate, cache, "reconcile"))
    _compare(resident, separate, rounds + 1)
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
        run_gitsched(separate, cache, "--help"),
        measure_commands(separate, cache, scratch),
        Process(load["seconds"], load["processor"], load["peak"]),
    )


def read_measurement(figures: dict[str, Any]) -> Measurement:
    """Return the measurement that was written as JSON."""
    own = {
        "cold": _stages(figures["cold"]),
        "warm": [_stages(stages) for stages in figures["warm"]],
        "fresh": _stages(figures["fresh"]),
        "processes": [Process(*process) for process in figures["processes"]],
        "start": Process(*figures["start"]),
        "commands": [Row(name, Process(*process)) for name, process in figures["commands"]],
        "load": Process(*figures["load"]),
    }
    return Measurement(**figures | own)


def profile(size: Size, seed: int, rounds: int, scratch: Path, into: Path) -> None:
    """Write the hottest functions of a cold run, of a run after a change in the same process, and of one in a new process."""
    files = generate(size, seed)
    into.write_text("", encoding="utf-8")
    create(scratch / "profiled", files)
    _child("resident", scratch / "profiled", scratch / "profiled-cache", rounds, into)
    directory, cache = scratch / "profiled-fresh", scratch / "profiled-fresh-cache"
    create(directory, files)
    run_gitsched(directory, cache, "reconcile")
    commit_change(directory, files, 1)
    run_gitsched(directory, cache, "reconcile")  # the first run that reads the output of the cold run
    commit_change(directory, files, 2)
    _child("fresh", directory, cache / "gitsched", 1, into)


def _child(mode: str, directory: Path, *more: object) -> dict[str, Any]:
    command = [str(PYTHON), "-m", "benchmarks.child", mode, str(directory), *map(str, more)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, check=True)
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def _compare(one: Path, other: Path, runs: int) -> None:
    """Check that each run made the same commit in both repositories, whatever was cached."""
    ours, theirs = (git(directory, "rev-list", "placements").split() for directory in (one, other))
    if ours != theirs or len(ours) != runs:
        sys.exit(
            f"{runs} runs made {len(ours)} commits in one process and {len(theirs)} in separate processes, equal: {ours == theirs}"
        )


def _stages(value: Mapping[str, Sequence[float]]) -> Stages:
    return {name: Stage(seconds, int(peak), int(calls)) for name, (seconds, peak, calls) in value.items()}


def _machine() -> str:
    version = git(ROOT, "version").removeprefix("git version ")
    today = datetime.now(UTC).date().isoformat()
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    return f"{today}, Python {platform.python_version()}, git {version}, {system}"
