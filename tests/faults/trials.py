"""Disturb one call of a run, and check what the run says, what is left, and that the next run heals it."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests import fork_server
from tests.faults.calls import ALL_KILLED, FAULTS, GIT_COMPLETED, GIT_FAULTS, GIT_KILLED, KILL, PROGRAM
from tests.faults.scenes import Scene, build_template, change_source

_ALLOWED_CODES = {0, 1, 4}
_NAMED_LOCK = re.compile(r"/[^\s']+?\.lock\b")
_TRACES = ("Traceback", "this is a bug")


class Trial(NamedTuple):
    """The n-th call (from 1), the fault, and the milliseconds after which git is killed, where that is the fault."""

    number: int
    call: str
    fault: str
    delay: int = 0

    def __str__(self) -> str:
        return f"call {self.number} ({self.call}): {self.fault}" + (f" after {self.delay} ms" if self.delay else "")


def run_disturbed(scene: Scene, trial: Trial | None, names: str = "-") -> subprocess.CompletedProcess[str]:
    number, fault, delay = (trial.number, trial.fault, trial.delay) if trial is not None else (0, KILL, 0)
    arguments = [str(scene.work), str(number), fault, str(delay / 1000), names, *scene.list_arguments()]
    return fork_server.run(arguments, scene.root, scene.environment, program=PROGRAM)


def run_normally(scene: Scene) -> subprocess.CompletedProcess[str]:
    return fork_server.run(scene.list_arguments(), scene.root, scene.environment)


def prepare(name: str, root: Path) -> Scene:
    """Build the repositories of a scene below an empty directory, and find out what a run commits that nothing disturbs."""
    build_template(name, root)
    scene = Scene(name, root, "", "")
    _require_success(run_normally(scene))
    scene = scene._replace(old=scene.read_head())
    change_source(name, root)
    shutil.move(scene.work, root / "template")
    scene.restore()
    _require_success(run_normally(scene))
    return scene._replace(new=scene.read_head())


def _require_success(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr


def list_trials(scene: Scene, delays: tuple[int, ...] = (1, 3, 6, 10)) -> list[Trial]:
    """Return every fault at every call of a run."""
    scene.restore()
    names = scene.root / "calls.json"
    _require_success(run_disturbed(scene, None, str(names)))
    calls = json.loads(names.read_text())
    trials = []
    for number, call in enumerate(calls, 1):
        trials += [Trial(number, call, fault) for fault in FAULTS]
        if call.startswith("git "):
            trials.append(Trial(number, call, GIT_COMPLETED))
            trials += [Trial(number, call, fault, delay) for fault in (GIT_KILLED, ALL_KILLED) for delay in delays]
    return trials


def select(trials: Sequence[Trial], per_call: int, generator: random.Random) -> list[Trial]:
    """Return at most so many random trials for each call and fault; all for 0."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.call, trial.fault), []).append(trial)
    chosen = [generator.sample(group, min(per_call or len(group), len(group))) for group in groups.values()]
    return sorted(trial for group in chosen for trial in group)


def check(scene: Scene, trial: Trial) -> list[str]:
    """Carry out a trial, and return what is wrong afterwards."""
    return examine(scene, lambda: run_disturbed(scene, trial), may_die=trial.fault in (KILL, *GIT_FAULTS))


def examine(scene: Scene, run: Callable[[], subprocess.CompletedProcess[str]], *, may_die: bool) -> list[str]:
    """Carry out a run that something disturbs, and the next one, and return what is wrong afterwards."""
    scene.restore()
    with tempfile.TemporaryFile() as none, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        neighbour = None
        if scene.name == "shared":
            neighbour = fork_server.start(scene.list_arguments("plan"), scene.root, scene.environment, [none, out, err])
        done = run()
        problems = _check_output(done, may_die=may_die)
        if neighbour is not None:
            code = neighbour.wait(60)
            err.seek(0)
            said = err.read().decode()
            if code not in (0, 4) or any(trace in said for trace in _TRACES):
                problems.append(f"the process that shares the cache ended with {code}: {said}")
    head = scene.read_head()
    if head not in (scene.old, scene.new):
        problems.append(f"the output is neither old nor new: {head}")
    if done.returncode == 0 and head != scene.new:
        problems.append(f"exit code 0 without the new output: {done.stderr}")
    return problems + scene.list_damage() + _check_next_run(scene)


def _check_output(done: subprocess.CompletedProcess[str], *, may_die: bool) -> list[str]:
    killed = may_die and done.returncode == -signal.SIGKILL
    problems = [] if killed or done.returncode in _ALLOWED_CODES else [f"exit code {done.returncode}: {done.stderr}"]
    if any(trace in done.stderr for trace in _TRACES):
        problems.append(f"a message for developers: {done.stderr}")
    if done.returncode in (1, 4) and not done.stderr.strip():
        problems.append("a failure without a message")
    if "git gave no reason" in done.stderr:
        problems.append(f"a failure without a reason: {done.stderr}")
    return problems


def remove_named_locks(scene: Scene, message: str) -> list[str]:
    """Remove the lock files that a message names, as a user does whose git was killed, and return their paths below the scene. Nobody
    removes a lock of the cache by hand."""
    named = {Path(found) for found in _NAMED_LOCK.findall(message) if "/cache/" not in found}
    locks = [path for path in named if scene.work in path.parents and path.exists()]
    for path in locks:
        path.unlink()
    return sorted(str(path.relative_to(scene.work)) for path in locks)


def _check_next_run(scene: Scene) -> list[str]:
    scene.age_temporary_files()
    done = run_normally(scene)
    while remove_named_locks(scene, done.stderr):  # each run names the locks of the ref that it moves next
        done = run_normally(scene)
    problems = [] if done.returncode == 0 else [f"the next run ended with {done.returncode}: {done.stderr}"]
    problems += _check_output(done, may_die=False)
    if scene.read_head() != scene.new:
        problems.append("the next run did not write the output of an undisturbed run")
    if left := scene.list_leftovers():
        problems.append(f"left over: {', '.join(left)}")
    return problems + scene.list_damage()
