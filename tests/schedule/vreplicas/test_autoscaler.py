"""Compute the number of pods."""

from __future__ import annotations

import pytest

from gitsched.schedule.vreplicas.autoscaler import compute_replicas, find_evictable_ordinals
from gitsched.schedule.vreplicas.plugins import DEFAULT_DESCHEDULER_PROFILE, DEFAULT_SCHEDULER_PROFILE, Profile
from gitsched.schedule.vreplicas.scheduler import SchedulingStrategy
from gitsched.schedule.vreplicas.state import AdapterStatefulSet, Pod, Vpod, collect_state

NO_NODES = AdapterStatefulSet(capacity=4, replicas=3, pods={}, zones={})


@pytest.mark.parametrize(
    ("wanted", "held", "packs", "replicas"),
    [
        pytest.param(0, {}, False, 0, id="unused pods are removed"),
        pytest.param(2, {1: 2}, False, 2, id="what a source has keeps its pod"),
        pytest.param(5, {1: 2}, False, 3, id="no number of pods is a multiple of no node"),
        pytest.param(5, {1: 2}, True, 2, id="filling pods up spreads over no nodes"),
    ],
)
def test_replicas_without_a_usable_node(wanted: int, held: dict[int, int], packs: bool, replicas: int) -> None:
    state = collect_state(NO_NODES, [Vpod("orders", wanted, held)])
    assert (
        compute_replicas(
            state,
            SchedulingStrategy(DEFAULT_SCHEDULER_PROFILE, DEFAULT_DESCHEDULER_PROFILE, packs, reschedules_all=True),
            attempt_down=True,
        )
        == replicas
    )


@pytest.mark.parametrize(
    ("adding", "replaces", "emptied"),
    [
        pytest.param(Profile((), ()), True, [3], id="the last pod, when it alone finds room"),
        pytest.param(
            DEFAULT_SCHEDULER_PROFILE, True, [2, 3], id="as many as the profile that is not asked would have it, as upstream does"
        ),
        pytest.param(DEFAULT_SCHEDULER_PROFILE, False, [3], id="filling pods up spreads over nothing"),
    ],
)
def test_pods_are_emptied_from_the_highest_ordinal(adding: Profile, replaces: bool, emptied: list[int]) -> None:
    pods = {ordinal: Pod(ordinal, f"n{ordinal % 2}", "z") for ordinal in range(4)}
    state = collect_state(AdapterStatefulSet(4, 4, pods, {"n0": "z", "n1": "z"}), [Vpod("orders", 6, {0: 2, 2: 2, 3: 2})])
    assert (
        list(
            find_evictable_ordinals(
                state, SchedulingStrategy(adding, DEFAULT_DESCHEDULER_PROFILE, max_fill_up=True, reschedules_all=replaces)
            )
        )
        == emptied
    )
