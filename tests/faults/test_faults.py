"""A seeded sample of what `make faults` tries: one call of a run fails, or the process dies there."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from tests.faults.calls import GIT_FAULTS
from tests.faults.scenes import SCENES, Scene
from tests.faults.trials import check, list_trials, prepare, run_disturbed
from tests.search_depth import count_examples

SAMPLE = 1
SEED = 20261122


@pytest.mark.search
@pytest.mark.parametrize("name", SCENES)
def test_a_disturbed_run_leaves_the_old_or_the_new_output_and_the_next_run_heals_it(name: str, tmp_path: Path) -> None:
    scene = prepare(name, tmp_path)
    trials = list_trials(scene)
    assert {trial.fault for trial in trials} >= set(GIT_FAULTS)
    assert {trial.call.split(" ")[0].split(".")[0] for trial in trials} >= {"git", "libgit2", "os", "sqlite", "open", "file"} - (
        {"open"} if name == "cold" else set()
    )
    for trial in random.Random(f"{SEED} {name}").sample(trials, count_examples(SAMPLE)):
        assert not check(scene, trial), trial


def test_the_checks_notice_what_stays_and_what_is_lost(tmp_path: Path) -> None:
    """A check that cannot fail would prove nothing."""
    scene: Scene = prepare("url", tmp_path)
    scene.restore()
    clone = next((scene.work / "cache").glob("*.git"))
    (clone / "config.lock").touch()
    (scene.work / "tmp" / "file").touch()
    assert scene.list_leftovers() == [f"cache/{clone.name}/config.lock", "tmp/file"]
    tree = subprocess.run(["git", "rev-parse", "placements^{tree}"], cwd=scene.target, capture_output=True, text=True, check=True)
    (scene.target / "objects" / tree.stdout[:2] / tree.stdout[2:].strip()).unlink()
    assert scene.list_damage()
    trial = next(trial for trial in list_trials(scene) if trial.call == "git push" and trial.fault == "EIO")
    scene.restore()
    assert run_disturbed(scene, trial).returncode == 4
    assert scene.read_head() == scene.old != scene.new
