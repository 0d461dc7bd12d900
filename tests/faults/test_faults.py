"""A seeded sample of what `make faults` tries: one call of a run fails, or the process dies there."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from functools import cache

import pytest

from tests.faults.calls import ALL_KILLED, GIT_FAULTS, KILL
from tests.faults.scenes import SCENES, Scene
from tests.faults.trials import Trial, check, list_trials, prepare, remove_named_locks, run_disturbed, run_normally
from tests.search_depth import DEEP, count_examples

NAMES = SCENES if DEEP else ("local", "push", "url")
SAMPLE = 1
SEED = 20261122
Prepared = tuple[Scene, list[Trial]]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Prepared]:
    """Return a function that prepares a scene, once, and lists its trials."""

    @cache
    def make(name: str) -> Prepared:
        scene = prepare(name, tmp_path_factory.mktemp(name))
        return scene, list_trials(scene)

    return make


@pytest.mark.search
@pytest.mark.parametrize("name", NAMES)
def test_a_disturbed_run_leaves_the_old_or_the_new_output_and_the_next_run_heals_it(
    name: str, prepared: Callable[[str], Prepared]
) -> None:
    scene, trials = prepared(name)
    assert {trial.fault for trial in trials} >= set(GIT_FAULTS)
    assert {trial.call.split(" ")[0].split(".")[0] for trial in trials} >= {"git", "libgit2", "os", "sqlite"}
    for trial in random.Random(f"{SEED} {name}").sample(trials, count_examples(SAMPLE)):
        assert not check(scene, trial), trial


def choose(trials: list[Trial], call: str, fault: str) -> list[Trial]:
    return [trial for trial in trials if trial.call.startswith(call) and trial.fault == fault]


def test_a_kill_of_all_processes_during_a_fetch_is_healed_by_the_next_run(prepared: Callable[[str], Prepared]) -> None:
    scene, trials = prepared("url")
    found = choose(trials, "git fetch", ALL_KILLED)
    assert {trial.delay for trial in found} >= {1, 10}
    for trial in found[:: len(found) - 1]:
        assert not check(scene, trial), trial


def test_a_kill_while_a_run_plans_leaves_nothing_behind(prepared: Callable[[str], Prepared]) -> None:
    scene, trials = prepared("local")
    reads = choose(trials, "libgit2 read", KILL)
    scene.restore()
    before = {path for path in scene.work.rglob("*") if "cache" not in path.parts}
    assert run_disturbed(scene, reads[len(reads) // 2]).returncode != 0
    assert {path for path in scene.work.rglob("*") if "cache" not in path.parts} == before
    assert scene.list_leftovers() == []


LOCKS = {
    "fleet/.git": ["refs/heads/placements", "refs/notes/hydrator.metadata", "refs/remotes/origin/placements"],
    "remote.git": ["refs/heads/placements", "refs/notes/hydrator.metadata"],
}


@pytest.mark.parametrize("repository", LOCKS)
def test_runs_name_each_lock_that_a_killed_git_has_left_behind(repository: str, prepared: Callable[[str], Prepared]) -> None:
    scene, _ = prepared("push")
    scene.restore()
    left = {f"{repository}/{ref}.lock" for ref in LOCKS[repository]}
    for lock in left:
        (scene.work / lock).parent.mkdir(parents=True, exist_ok=True)
        (scene.work / lock).touch()
    while (found := remove_named_locks(scene, (done := run_normally(scene)).stderr)) and left:
        assert "remove " in done.stderr
        left -= set(found)
    assert (left, done.returncode, scene.read_head(), scene.list_leftovers()) == (set(), 0, scene.new, [])


def test_the_checks_notice_what_stays_and_what_is_lost(prepared: Callable[[str], Prepared]) -> None:
    """A check that cannot fail would prove nothing."""
    scene, trials = prepared("url")
    scene.restore()
    clone = next((scene.work / "cache").glob("*.git"))
    (clone / "config.lock").touch()
    (scene.work / "tmp" / "file").touch()
    assert scene.list_leftovers() == [f"cache/{clone.name}/config.lock", "tmp/file"]
    tree = subprocess.run(["git", "rev-parse", "placements^{tree}"], cwd=scene.target, capture_output=True, text=True, check=True)
    (scene.target / "objects" / tree.stdout[:2] / tree.stdout[2:].strip()).unlink()
    assert scene.list_damage()
    scene.restore()
    assert run_disturbed(scene, choose(trials, "git push", "EIO")[0]).returncode == 4
    assert scene.read_head() == scene.old != scene.new
