"""The benchmark of the Krake profile places every application of its inputs."""

from __future__ import annotations

import pytest

from benchmarks.krake import INPUTS, UPSTREAM, measure, read


@pytest.mark.parametrize("count", [1, 20])
def test_every_application_of_an_input_is_placed(count: int) -> None:
    cost = measure(read(10), count)
    assert cost.total > cost.core > 0


def test_there_is_an_input_for_every_reference_figure() -> None:
    assert {path.name for path in INPUTS.iterdir()} == {f"clusters-{clusters}.json.xz" for clusters in UPSTREAM}
