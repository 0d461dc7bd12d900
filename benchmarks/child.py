"""Measure the runs of one process and print JSON. Each figure comes from a separate process, so that no run profits from another.

python -m benchmarks.child resident REPOSITORY CACHE ROUNDS [PROFILE]    a cold run, then one for each round's change
python -m benchmarks.child fresh REPOSITORY CACHE 1 [PROFILE]            one run on the cache on disk
python -m benchmarks.child load REPOSITORY                               PyYAML's C loader over the files of the worktree
"""

from __future__ import annotations

import cProfile
import json
import pstats
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time
from typing import IO, Any

from benchmarks.meter import Meter, Stage, resident
from benchmarks.repository import commit_change, read_files

_HOTTEST = 40


def main(arguments: list[str]) -> None:
    mode, directory, *rest = arguments
    if mode == "load":
        print(json.dumps(load(Path(directory))))
        return
    cache, rounds, *profile = rest
    measure = profile_runs if profile else measure_runs
    print(json.dumps(measure(mode, Path(directory), Path(cache), int(rounds), *map(Path, profile))))


def measure_runs(mode: str, directory: Path, cache: Path, rounds: int) -> dict[str, Any]:
    """Return the stages of the first run and of each later one, and git's own seconds for the change that caused it."""
    meter = Meter()
    reconcile = open_reconciler(directory, cache)
    meter.install()
    with meter.run() as first:
        reconcile()
    later: list[dict[str, Stage]] = []
    git: list[float] = []
    if mode == "resident":
        files = read_files(directory)
        for round_ in range(1, rounds + 1):
            git.append(commit_change(directory, files, round_))
            with meter.run() as stages:
                reconcile()
            later.append(stages)
    return {"first": first, "later": later, "git": git}


def profile_runs(mode: str, directory: Path, cache: Path, rounds: int, into: Path) -> dict[str, Any]:
    """Append the hottest functions of the same runs to a file; these runs are slower and are not timed."""
    reconcile = open_reconciler(directory, cache)
    with into.open("a", encoding="utf-8") as file:
        _profile(f"{mode}: the first run", reconcile, file)
        if mode == "resident":
            files = read_files(directory)
            for round_ in range(1, rounds):
                commit_change(directory, files, round_)
                reconcile()
            commit_change(directory, files, rounds)
            _profile(f"{mode}: one manifest changed", reconcile, file)
    return {}


def open_reconciler(directory: Path, cache: Path) -> Callable[[], Any]:
    """Return a function that reconciles, with caches between its calls."""
    from gitsched.reconcile import Reconciler
    from gitsched.reconcile.run_settings import RunSettings

    now = datetime.now(UTC)  # as for the commands: a state of a later time counts for no run
    reconciler = Reconciler(RunSettings(now=now, cache=cache, location=str(directory)))
    return lambda: reconciler.run(now)


def load(directory: Path) -> Mapping[str, float]:
    """Return the seconds of PyYAML's C loader for all documents, which are dropped at once, and the highest memory."""
    import yaml

    files = list(read_files(directory).values())
    start, started = perf_counter(), process_time()
    for data in files:
        for _ in yaml.load_all(data, Loader=yaml.CSafeLoader):
            pass
    return {"seconds": perf_counter() - start, "processor": process_time() - started, "peak": resident(), "files": len(files)}


def _profile(title: str, work: Callable[[], Any], file: IO[str]) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(work)
    for order in ("tottime", "cumulative"):
        file.write(f"== {title}, by {order}\n")
        pstats.Stats(profiler, stream=file).strip_dirs().sort_stats(order).print_stats(_HOTTEST)


if __name__ == "__main__":
    main(sys.argv[1:])
