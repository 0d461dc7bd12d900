"""`python -m benchmarks` measures every stage of a real reconcile: a stage whose calls were renamed would be empty, or an error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.commands import CHANGES
from benchmarks.meter import STAGES
from benchmarks.repository import environment

ROOT = Path(__file__).parents[2]
TINY = ("--manifests", "40", "--clusters", "9", "--policies", "4", "--rounds", "2")


def bench(*options: str) -> str:
    command = [sys.executable, "-m", "benchmarks", *TINY, *options]
    return subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the figures of one measurement, and beside it profile.txt."""
    directory = tmp_path_factory.mktemp("figures")
    (directory / "figures.json").write_text(bench("--json", "--profile", str(directory / "profile.txt")))
    return directory / "figures.json"


def test_every_stage_of_every_kind_of_run_is_measured(written: Path) -> None:
    figures = json.loads(written.read_text())
    assert figures["files"] == 53
    cold, warm, fresh = figures["cold"], figures["warm"], figures["fresh"]
    for run in (cold, *warm, fresh):
        assert run.keys() == set(STAGES)
        assert all(calls for stage, (_, _, calls) in run.items() if stage != "other"), run
    assert cold["validate"][2] >= 53
    assert [run["validate"][2] for run in (*warm, fresh)] == [1, 1, 1], "only the changed manifest is validated"
    assert len(figures["warm_git"]) == len(figures["processes_git"]) == len(figures["processes"]) - 1 == 2
    assert written.with_name("profile.txt").read_text().count("one manifest changed") == 2


def test_the_figures_are_shown_as_tables_with_ratios(written: Path) -> None:
    lines = bench("--show", str(written)).splitlines()
    assert [line.split()[0] for line in lines if line.startswith((*STAGES, "total"))] == [*STAGES, "total"]
    assert sum("aim:" in line for line in lines) == 3
    for change in (*CHANGES, "cluster leaves its pool"):
        assert any(line.startswith(f"gitsched plan of a pull request, {change}  ") for line in lines), change
    for command in (
        "reconcile, second run",
        "reconcile, no change, no cache",
        "explain of one workload",
        "simulate the loss",
        "validate",
    ):
        assert any(line.startswith(f"gitsched {command}") for line in lines), command


def test_a_repository_can_be_generated_without_measuring(tmp_path: Path) -> None:
    commit = bench("--generate", str(tmp_path / "fleet")).strip()
    head = subprocess.run(["git", "rev-parse", "main"], cwd=tmp_path / "fleet", stdout=subprocess.PIPE, text=True, check=True)
    assert head.stdout.strip() == commit
