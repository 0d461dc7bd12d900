"""Disturb every call of a run in each scene, and print counts: `make faults`. Exit with 1 if a trial fails.

The repositories are in memory where there is /dev/shm, and runs are forks of one process. With `--state`, trials that are listed in the
file are left out, so that a search can be interrupted and resumed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.faults.calls import FAULTS, GIT_FAULTS
from tests.faults.scenes import SCENES
from tests.faults.trials import Trial, check, list_trials, prepare, select

PEOPLE = {f"GIT_{role}_{what}": f"{what.lower()}@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
_MEMORY = Path("/dev/shm")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("scenes", nargs="*", choices=[*SCENES, []], help="the scenes; all by default")
    parser.add_argument("--per-call", type=int, default=0, metavar="N", help="trials for each call and fault; 0 (default): all")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--faults", nargs="+", choices=(*FAULTS, *GIT_FAULTS), help="only these faults, such as kill and all-killed"
    )
    parser.add_argument(
        "--trials", type=int, default=0, metavar="N", help="at most so many trials for each scene; 0 (default): all"
    )
    parser.add_argument("--state", type=Path, metavar="FILE", help="list finished trials here, and leave out those that it lists")
    options = parser.parse_args()
    os.environ.update(PEOPLE, GIT_CONFIG_NOSYSTEM="1")
    failed = 0
    for name in options.scenes or SCENES:
        failed += run_scene(name, options, random.Random(options.seed))
    return 1 if failed else 0


def run_scene(name: str, options: argparse.Namespace, generator: random.Random) -> int:
    """Carry out the trials of a scene, print counts and what is wrong, and return the number of trials that failed."""
    jobs, state = options.jobs, options.state
    finished = set(state.read_text().splitlines()) if state is not None and state.exists() else set()
    base = Path(tempfile.mkdtemp(prefix="faults-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))
    start = time.monotonic()
    try:
        scenes = []
        for number in range(jobs):
            (base / str(number)).mkdir()
            scenes.append(prepare(name, base / str(number)))
        trials = select(list_trials(scenes[0]), options.per_call, generator)
        trials = [trial for trial in trials if not options.faults or trial.fault in options.faults]
        trials = sorted(generator.sample(trials, min(options.trials or len(trials), len(trials))))
        trials = [trial for trial in trials if f"{name}, {trial}" not in finished]

        def work(number: int) -> list[Trial]:
            failed = []
            for trial in trials[number::jobs]:
                problems = check(scenes[number], trial)
                if state is not None and not problems:
                    with state.open("a") as file:
                        file.write(f"{name}, {trial}\n")
                if problems:
                    failed.append(trial)
                    print(f"{name}, {trial}", *problems, sep="\n    ", flush=True)
            return failed

        with ThreadPoolExecutor(jobs) as pool:
            failed = [trial for found in pool.map(work, range(jobs)) for trial in found]
    finally:
        shutil.rmtree(base, ignore_errors=True)
    counts = ", ".join(f"{count} {fault}" for fault, count in sorted(Counter(trial.fault for trial in trials).items()))
    seconds = time.monotonic() - start
    print(f"{name}: {len(trials)} trials ({counts}) in {seconds:.0f} s, {len(failed)} failed", flush=True)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
