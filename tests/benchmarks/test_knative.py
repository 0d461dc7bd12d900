"""The benchmark of the Knative profile places every vreplica of its inputs."""

from __future__ import annotations

import pytest

from benchmarks.knative import INPUTS, RECORDED, measure, read


@pytest.mark.parametrize("profile", RECORDED)
@pytest.mark.parametrize("pods", [10, 100, 500])
def test_every_vreplica_of_an_input_is_placed(profile: str, pods: int) -> None:
    times = measure(read(profile, 1000, pods))
    assert times.total > times.core > 0


def test_there_is_an_input_for_every_reference_figure() -> None:
    wanted = {f"{name}-{vreplicas}v-{pods}p.json.xz" for name, figures in RECORDED.items() for vreplicas, pods in figures}
    assert {path.name for path in INPUTS.iterdir()} == wanted
