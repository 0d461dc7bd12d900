"""`python -m benchmarks` measures every stage of a real reconcile: a stage whose calls were renamed would be empty, or an error."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks import commands, measurement
from benchmarks.__main__ import main
from benchmarks.commands import CHANGES
from benchmarks.meter import STAGES
from tests import fork_server

pytestmark = pytest.mark.long

TINY = ("python -m benchmarks", "--manifests", "40", "--clusters", "9", "--policies", "4", "--rounds", "2")
CHILD = "import sys; from benchmarks.child import main; main(sys.argv[3:])"
"""What follows `python -m benchmarks.child`."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the figures of one measurement, whose processes are forks, and beside it profile.txt."""
    directory = tmp_path_factory.mktemp("figures")
    fork_server.write_script(directory / "gitsched")
    fork_server.write_script(directory / "python", CHILD)
    with pytest.MonkeyPatch.context() as patch, (directory / "figures.json").open("w") as file:
        patch.setattr(commands, "GITSCHED", directory / "gitsched")
        patch.setattr(measurement, "PYTHON", directory / "python")
        patch.setattr("sys.argv", [*TINY, "--json", "--profile", str(directory / "profile.txt")])
        patch.setattr("sys.stdout", file)
        main()
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


def test_the_figures_are_shown_as_tables_with_ratios(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [*TINY, "--show", str(written)])
    main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith((*STAGES, "total"))] == [*STAGES, "total"]
    assert sum("aim:" in line for line in lines) == 3
    for change in (*CHANGES, "cluster leaves its pool"):
        assert any(line.startswith(f"gitsched plan of a pull request, {change}  ") for line in lines), change
    for command in (
        "reconcile, second run",
        "reconcile, no change, no cache",
        "explain of one workload",
        "explain of one cluster",
        "rebalance of one workload",
        "status",
        "simulate the loss",
        "validate",
    ):
        assert any(line.startswith(f"gitsched {command}") for line in lines), command


def test_a_repository_can_be_generated_without_measuring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [*TINY, "--generate", str(tmp_path / "fleet")])
    main()
    commit = capsys.readouterr().out.strip()
    head = subprocess.run(["git", "rev-parse", "main"], cwd=tmp_path / "fleet", stdout=subprocess.PIPE, text=True, check=True)
    assert head.stdout.strip() == commit
