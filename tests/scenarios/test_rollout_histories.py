"""In random histories, no cluster gets a change before the canaries are healthy, and what takes over has the approved content."""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random

import pytest

from tests.scenarios.conftest import Fleet
from tests.scenarios.rollout_histories import CLUSTERS, OutputCheck, RolloutHistory

pytestmark = pytest.mark.usefixtures("bugs_are_raised")


@pytest.mark.parametrize(
    ("seed", "steps", "settles"),
    [(2, 4, True), (9, 10, False), *(pytest.param(*more, marks=pytest.mark.long) for more in ((11, 10, False), (1093, 9, False)))],
)
def test_no_wave_passes_an_unhealthy_one(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int, steps: int, settles: bool
) -> None:
    caplog.set_level(logging.CRITICAL)
    history = RolloutHistory(fleet, Random(seed))
    check, incremental = OutputCheck(history), 0
    for step in range(steps):
        history.go_on()
        whole = fleet.preview(history.hour, cache=tmp_path / "none") if step % 3 == 1 else None
        run = fleet.reconcile(history.hour)
        assert list(check.check()) == [], f"step {step}"
        incremental += not run.plan.complete
        if whole is not None:
            plans = [(one.tree, one.plan.rollouts, one.plan.rollout_records, one.plan.findings) for one in (whole, run)]
            assert plans[0] == plans[1], f"step {step}"
    assert incremental
    if settles:  # with all clusters, and reports of all, everything arrives everywhere
        history.settle()
        for _ in range(4):
            fleet.reconcile(history.hour)
            assert list(check.check()) == []
            history.report_all()
        fleet.reconcile(history.hour)
        assert {name: version for name, (version, _) in check.last["web"].items()} == dict.fromkeys(
            CLUSTERS, str(history.version["web"])
        )
