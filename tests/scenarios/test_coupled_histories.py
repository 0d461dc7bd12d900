"""What counts for each other is decided alike by empty, cached and resident runs, and never beyond quotas, capacity and groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.reconcile import Reconciler
from tests.search_depth import DEEP

from .conftest import Fleet
from .coupled_histories import CoupledHistory, list_broken_promises, read_bindings


@pytest.mark.search
@pytest.mark.parametrize("seed", range(300 if DEEP else 3))
def test_random_histories_with_everything_on(fleet: Fleet, tmp_path: Path, seed: int) -> None:
    history = CoupledHistory(fleet, seed)
    fleet.reconcile()
    before = read_bindings(fleet)
    assert list(list_broken_promises(fleet, {}, before, copies=history.copies)) == []
    resident = Reconciler(fleet.settings(cache=tmp_path / "resident"))
    for number in range(6):
        hour = history.step()
        empty = fleet.preview(hour, cache=tmp_path / str(number))
        resident.settings = fleet.settings(hour, cache=tmp_path / "resident")
        kept, run = resident.run(resident.settings.now, preview=True), fleet.reconcile(hour)
        assert run.tree == kept.tree == empty.tree
        assert run.plan.findings == kept.plan.findings == empty.plan.findings
        after = read_bindings(fleet)
        assert list(list_broken_promises(fleet, before, after, copies=history.copies)) == []
        before = after
