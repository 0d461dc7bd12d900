"""The benchmark of feature gates: what it changes is decided by incremental plans, with everything on as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.gates import CHANGES, make_files, make_settings, measure
from tests.scenarios.conftest import Fleet


@pytest.mark.parametrize("on", [False, True])
def test_each_change_is_planned_from_the_state_of_the_last_run(tmp_path: Path, on: bool) -> None:
    fleet, files = Fleet(tmp_path / "fleet", tmp_path / "cache"), {**make_files(100, 10), "gitsched.yaml": make_settings(on=on)}
    fleet.commit(files)
    fleet.reconcile()
    fleet.commit({"README.md": "A change that nothing reads\n"}, hour=1)
    fleet.reconcile(1)
    for number, (name, change) in enumerate(CHANGES.items(), start=2):
        changed = change(files, 1)
        files |= changed
        fleet.commit(changed, hour=number)
        run = fleet.reconcile(number)
        assert (name, run.plan.complete) == (name, False)
        assert {outcome.state for outcome in run.plan.outcomes.values()} == {"placed"}


@pytest.mark.long
def test_the_first_run_and_each_change_are_measured() -> None:
    rows = measure(60, 5, 1)
    assert [name for name, _, _ in rows] == ["the first run", "the same once more", *CHANGES]
    assert all(off > 0 < on for _, off, on in rows)
