"""In random histories, an independent check of the output branch finds nothing that is lost and no wave after an unhealthy one."""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random

import pytest

from tests.scenarios.conftest import Fleet
from tests.scenarios.delivered_invariants import check_branch
from tests.scenarios.delivery_histories import DeliveryHistory
from tests.search_depth import DEEP, count_examples

pytestmark = pytest.mark.usefixtures("bugs_are_raised")
STEPS = 14
SEEDS = range(count_examples(5)) if DEEP else (62, *(pytest.param(seed, marks=pytest.mark.long) for seed in (127, 144, 3123)))
"""Those of the suite have found lost replicas and skipped waves."""


@pytest.mark.search
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_whatever_keeps_manifests_as_they_are(
    fleet: Fleet, tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    caplog.set_level(logging.CRITICAL)
    history = DeliveryHistory(fleet, Random(seed))
    for _ in range(STEPS):
        history.go_on()
        run = history.run(tmp_path)
        wakeup = run.plan.next_wakeup
        if wakeup is not None and history.dice.random() < 0.5:
            history.wait_until(wakeup)
            history.run(tmp_path)
    assert check_branch(fleet.path) == []
