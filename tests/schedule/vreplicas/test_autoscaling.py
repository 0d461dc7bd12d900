"""How many pods upstream's autoscaler asks for, which `replace` follows."""

from __future__ import annotations

import pytest

from gitsched.schedule.vreplicas.adapter import Adapter, Vpod
from gitsched.schedule.vreplicas.autoscaling import scale
from gitsched.schedule.vreplicas.placing import Strategy
from gitsched.schedule.vreplicas.profile import ADDING, REMOVING
from gitsched.schedule.vreplicas.state import collect

NO_NODES = Adapter(capacity=4, replicas=3, pods={}, zones={})


@pytest.mark.parametrize(
    ("wanted", "held", "packs", "replicas"),
    [
        pytest.param(0, {}, False, 0, id="pods that nobody needs go"),
        pytest.param(2, {1: 2}, False, 2, id="what a source has keeps its pod"),
        pytest.param(5, {1: 2}, False, 3, id="no number of pods is a multiple of no node"),
        pytest.param(5, {1: 2}, True, 2, id="filling pods up spreads over no nodes"),
    ],
)
def test_without_a_usable_node(wanted: int, held: dict[int, int], packs: bool, replicas: int) -> None:
    state = collect(NO_NODES, [Vpod("orders", wanted, held)])
    assert scale(state, Strategy(ADDING, REMOVING, packs, replaces=True), attempt_down=True) == replicas
