"""The benchmark of the Karmada profile decides every binding of its inputs."""

from __future__ import annotations

import json
import lzma

import pytest

from benchmarks.karmada import INPUTS, RECORDED, measure, search_regions


@pytest.mark.parametrize("name", RECORDED)
def test_every_binding_of_an_input_is_decided(name: str) -> None:
    with lzma.open(INPUTS / f"{name}-10.json.xz", "rt", encoding="utf-8") as file:
        case = json.load(file)
    rate = measure(case)
    assert rate.core > rate.total > 0


def test_there_is_an_input_for_every_reference_figure() -> None:
    wanted = {f"{name}-{clusters}.json.xz" for name, rates in RECORDED.items() for clusters in rates}
    assert {path.name for path in INPUTS.iterdir()} == wanted


def test_the_choice_of_regions_can_be_measured() -> None:
    assert search_regions(8) >= 0
