"""`python -m benchmarks` measures every stage of a real reconcile: a stage whose calls were renamed would be empty, or an error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.meter import STAGES
from benchmarks.repository import environment

ROOT = Path(__file__).parents[2]
TINY = ("--manifests", "40", "--clusters", "9", "--policies", "4", "--rounds", "2")


def bench(*options: str) -> str:
    command = [sys.executable, "-m", "benchmarks", *TINY, *options]
    return subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, check=True).stdout


def test_every_stage_of_every_kind_of_run_is_measured(tmp_path: Path) -> None:
    profile = tmp_path / "profile.txt"
    figures = json.loads(bench("--json", "--profile", str(profile)))
    assert figures["files"] == 53
    cold, warm, fresh = figures["cold"], figures["warm"], figures["fresh"]
    for run in (cold, *warm, fresh):
        assert run.keys() == set(STAGES)
        assert all(calls for stage, (_, _, calls) in run.items() if stage != "other"), run
    assert cold["validate"][2] >= 53
    assert [run["validate"][2] for run in (*warm, fresh)] == [1, 1, 1], "only the changed manifest is validated"
    assert len(figures["warm_git"]) == len(figures["processes_git"]) == len(figures["processes"]) - 1 == 2
    assert profile.read_text().count("one manifest changed") == 2


def test_the_figures_are_shown_as_a_table_with_ratios() -> None:
    lines = bench().splitlines()
    assert [line.split()[0] for line in lines if line.startswith((*STAGES, "total"))] == [*STAGES, "total"]
    assert sum("aim:" in line for line in lines) == 3


def test_a_repository_can_be_generated_without_measuring(tmp_path: Path) -> None:
    commit = bench("--generate", str(tmp_path / "fleet")).strip()
    head = subprocess.run(["git", "rev-parse", "main"], cwd=tmp_path / "fleet", stdout=subprocess.PIPE, text=True, check=True)
    assert head.stdout.strip() == commit
