"""The benchmark of causes proves every move of its pull requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.causes import CHANGES, measure
from benchmarks.generator import Size

pytestmark = pytest.mark.long


def test_every_pull_request_moves_workloads_for_proved_causes(tmp_path: Path) -> None:
    costs = measure(Size(100, 12, 20), tmp_path)
    assert [cost.name for cost in costs] == list(CHANGES)
    assert all(cost.moves == cost.proved > 0 for cost in costs)
    assert all(0 < cost.proofs < cost.plan for cost in costs)
