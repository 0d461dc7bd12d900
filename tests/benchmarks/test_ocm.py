"""The benchmark of Open Cluster Management's profile decides every Placement of its inputs."""

from __future__ import annotations

import pytest

from benchmarks.ocm import INPUTS, RECORDED, measure, read


@pytest.mark.parametrize("name", RECORDED)
def test_every_placement_of_an_input_is_decided(name: str) -> None:
    times = measure(read(name, 100))
    assert 0 < times.further < times.total
    assert 0 < times.first < times.total
    assert times.decisions > 0


def test_there_is_an_input_for_every_reference_figure() -> None:
    wanted = {f"{name}-{clusters}.json.xz" for name, references in RECORDED.items() for clusters in references}
    assert {path.name for path in INPUTS.iterdir()} == wanted
