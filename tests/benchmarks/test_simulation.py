"""The benchmark of simulations loses what there is to lose."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import sweep
from benchmarks.generator import Size
from benchmarks.simulation import measure

pytestmark = pytest.mark.long


def test_every_cluster_and_every_region_is_lost_once(tmp_path: Path) -> None:
    timings = measure(Size(40, 8, 8), tmp_path)
    assert [(timing.name, timing.losses) for timing in timings] == [("every cluster", 8), ("every region", 6), ("explain", 0)]


def test_all_clusters_samples_and_pairs_are_lost_with_each_number_of_processes(tmp_path: Path) -> None:
    timings = sweep.measure(Size(40, 8, 8, wide=True), tmp_path, [1, 2], pairs=True)
    assert [timing.losses for timing in timings if "samples" not in timing.name] == [8, 8, 8, 28, 28]
    assert len({timing.losses for timing in timings if "samples" in timing.name}) == 1
