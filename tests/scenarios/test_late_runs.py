"""Random histories: a run just before each commit writes the same output as runs at every deadline, where no copy is kept for a while."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from gitsched.reconcile import Reconciler, RunResult
from gitsched.reconcile.run_settings import RunChoices
from tests.scenarios.conftest import START, Fleet, cluster
from tests.scenarios.histories import Files, History
from tests.search_depth import count_examples

STEPS, DEADLINES = 9, 40
ACCOUNTS = ("gitsched.json", "hydrator.metadata", "README.md")
"""Files that describe the run itself."""
SECOND = 1 / 3600


def keep_nothing(files: Files) -> Files:
    """Return the files with settings that remove copies and directories at once: what stays for a while counts from the run."""
    settings = files.get("gitsched.yaml")
    if not isinstance(settings, str):
        return files
    return {**files, "gitsched.yaml": re.sub(r"retireAfter: \d+m", "retireAfter: 0s, overlap: 0s", settings)}


def run(fleet: Fleet, branch: str, hour: float, cache: Path) -> RunResult:
    session = Reconciler(fleet.settings(hour, output_branch=branch, cache=cache / branch))
    now = session.settings.now
    withheld = session.run(now, preview=True).plan.withheld.digest
    session.settings = session.settings._replace(choices=RunChoices(allowed=(withheld,) if withheld else ()))
    return session.run(now)


def show(fleet: Fleet, branch: str) -> dict[str, str]:
    return {path: blob for path, blob in fleet.files(branch).items() if path not in ACCOUNTS}


def follow(fleet: Fleet, hour: float, end: float, looks: list[float], cache: Path) -> int:
    """Run after each commit, at random times and at each deadline; return the number of deadlines that changed the output."""
    todo, woken = [hour, *looks], 0
    for _ in range(DEADLINES):
        if not todo:
            break
        now = todo.pop(0)
        wakeup = run(fleet, "punctual", now, cache).plan.next_wakeup
        due = (wakeup - START) / timedelta(hours=1) if wakeup is not None else end
        if now < due < end and due not in todo:
            todo, woken = sorted([*todo, due]), woken + 1
    return woken


@pytest.mark.search
@pytest.mark.long
@pytest.mark.parametrize("seed", range(count_examples(1)))
def test_a_late_run_writes_the_bytes_of_timely_runs(fleet: Fleet, tmp_path: Path, seed: int) -> None:
    dice, hour, woken = Random(seed), 0.0, 0
    history = History(dice, ())
    fleet.commit(keep_nothing(history.files))
    for step in range(STEPS):
        gap = dice.choice((0.1, 0.3, 0.6, 1, 2.5))
        end = hour + gap - SECOND
        woken += follow(fleet, hour, end, sorted(dice.uniform(hour, end) for _ in range(dice.randrange(3))), tmp_path)
        punctual, late = run(fleet, "punctual", end, tmp_path), run(fleet, "late", end, tmp_path)
        assert show(fleet, "late") == show(fleet, "punctual"), f"step {step}"
        assert late.plan.next_wakeup == punctual.plan.next_wakeup, f"step {step}"
        hour += gap
        place = dice.choice(("first", "second", "third"))
        power = {f"clusters/{place}.yaml": cluster(place, *dice.choice((("power:NoExecute",), ())))}
        history.files |= power
        fleet.commit(keep_nothing({**history.go_on(0.2), **power}), hour=hour)
    assert woken > 0, "time alone changed nothing at all"
