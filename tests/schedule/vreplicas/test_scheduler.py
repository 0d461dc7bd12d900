"""Schedule the vreplicas of one vpod."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.schedule.vreplicas.plugins import (
    DEFAULT_DESCHEDULER_PROFILE,
    DEFAULT_SCHEDULER_PROFILE,
    AvailabilityZonePriority,
    EvenPodSpread,
    EvenPodSpreadPriority,
    LowestOrdinalPriority,
    NoMaxResourceCount,
    PodFitsResources,
    Profile,
)
from gitsched.schedule.vreplicas.scheduler import SchedulingStrategy, can_keep_vreplicas, schedule_vpod
from gitsched.schedule.vreplicas.state import AdapterStatefulSet, FreeCapacity, Pod, Vpod, VreplicasByOrdinal

from .vreplica_builders import MOST_PODS, adapters, profiles, shares, vpods

DEFAULT = SchedulingStrategy(DEFAULT_SCHEDULER_PROFILE, DEFAULT_DESCHEDULER_PROFILE)


def strategies() -> st.SearchStrategy[SchedulingStrategy]:
    return st.builds(SchedulingStrategy, profiles(), st.just(DEFAULT_DESCHEDULER_PROFILE), st.booleans(), st.just(False))


def run(adapter: AdapterStatefulSet, sources: Iterable[Vpod], strategy: SchedulingStrategy) -> dict[str, VreplicasByOrdinal]:
    sources = list(sources)
    ledger = FreeCapacity(adapter, [source.placements for source in sources])
    placed = {source.name: schedule_vpod(source, adapter, ledger, strategy) for source in sources}
    again = FreeCapacity(adapter, placed.values())
    assert {o: ledger.free.get(o, adapter.capacity) for o in range(MOST_PODS + 1)} == {
        o: again.free.get(o, adapter.capacity) for o in range(MOST_PODS + 1)
    }, "the books are right"
    return placed


def even(pods: int, capacity: int) -> AdapterStatefulSet:
    """As many pods, each on a node of its own, in two zones."""
    places = {o: Pod(o, f"n{o}", "xy"[o % 2]) for o in range(pods)}
    return AdapterStatefulSet(capacity, pods, places, {pod.node: pod.zone for pod in places.values()})


@given(adapters(), vpods(), strategies(), st.booleans())
def test_no_vpod_exceeds_its_vreplicas_and_no_pod_its_capacity(
    adapter: AdapterStatefulSet, sources: list[Vpod], strategy: SchedulingStrategy, replaces: bool
) -> None:
    placed = run(adapter, sources, strategy._replace(reschedules_all=replaces))
    used: dict[int, int] = {}
    for source in sources:
        shares = placed[source.name]
        assert all(number > 0 for number in shares.values())
        assert list(shares) == sorted(shares)
        assert sum(shares.values()) <= source.expected
        for ordinal, number in shares.items():
            used[ordinal] = used.get(ordinal, 0) + number
    before: dict[int, int] = {}
    for source in sources:
        for ordinal, number in source.placements.items():
            before[ordinal] = before.get(ordinal, 0) + number
    most = {ordinal: before.get(ordinal, 0) if replaces else 0 for ordinal in used}  # all or nothing leaves what there was
    assert all(number <= max(adapter.capacity, most[ordinal]) for ordinal, number in used.items())


@given(adapters(), vpods(), strategies())
def test_valid_placements_are_kept(adapter: AdapterStatefulSet, sources: list[Vpod], strategy: SchedulingStrategy) -> None:
    load: dict[int, int] = {}
    for source in sources:
        for ordinal, number in source.placements.items():
            load[ordinal] = load.get(ordinal, 0) + number
    placed = run(adapter, sources, strategy)
    for source in sources:
        stay = {o: n for o, n in source.placements.items() if can_keep_vreplicas(o, adapter) and load[o] <= adapter.capacity}
        if sum(source.placements.values()) <= source.expected:
            assert all(placed[source.name].get(ordinal, 0) >= number for ordinal, number in stay.items())


@given(adapters(), vpods(), strategies())
def test_an_unschedulable_pod_receives_no_vreplicas(
    adapter: AdapterStatefulSet, sources: list[Vpod], strategy: SchedulingStrategy
) -> None:
    placed = run(adapter, sources, strategy)
    for source in sources:
        for ordinal, number in placed[source.name].items():
            assert ordinal in adapter.pods or number <= source.placements.get(ordinal, 0)


@given(adapters(), vpods(), strategies())
def test_a_second_run_changes_nothing(adapter: AdapterStatefulSet, sources: list[Vpod], strategy: SchedulingStrategy) -> None:
    placed = run(adapter, sources, strategy)
    settled = [source._replace(placements=placed[source.name]) for source in sources]
    if all(sum(source.placements.values()) == source.expected for source in settled) and not adapter.unschedulable:
        assert run(adapter, settled, strategy) == placed


@given(adapters(), profiles(), st.lists(st.integers(0, 12), min_size=1, max_size=4), shares(), st.sampled_from("abcd"))
def test_more_pods_never_place_less(
    few: AdapterStatefulSet, profile: Profile, wanted: list[int], taken: VreplicasByOrdinal, node: str
) -> None:
    zone = few.zones.get(node, "new")
    pods = {**few.pods, MOST_PODS: Pod(MOST_PODS, node, zone)}
    many = AdapterStatefulSet(few.capacity, MOST_PODS + 1, pods, {**few.zones, node: zone}, few.unschedulable)
    others = {ordinal: min(number, few.capacity) for ordinal, number in taken.items() if ordinal < MOST_PODS}
    if profile.max_pods is not None:
        wanted = wanted[:1]  # which sources get the roomiest pods depends on all that came before
    placed = []
    for adapter in (few, many):
        ledger = FreeCapacity(adapter, [others])
        sources = (Vpod(f"s{number}", count, {}) for number, count in enumerate(wanted))
        placed.append(
            sum(
                sum(schedule_vpod(source, adapter, ledger, SchedulingStrategy(profile, DEFAULT_DESCHEDULER_PROFILE)).values())
                for source in sources
            )
        )
    assert placed[0] <= placed[1]


@given(adapters(), profiles(), st.integers(0, 20), shares(2), st.integers(1, 4))
def test_with_a_pod_limit_the_pods_with_most_capacity_are_used(
    adapter: AdapterStatefulSet, profile: Profile, wanted: int, taken: VreplicasByOrdinal, most: int
) -> None:
    profile = Profile((PodFitsResources(), NoMaxResourceCount(most)), profile.priorities)
    ledger = FreeCapacity(adapter, [taken])
    capacities = sorted((max(ledger.free[ordinal], 0) for ordinal in adapter.pods), reverse=True)
    shares = schedule_vpod(Vpod("s", wanted, {}), adapter, ledger, SchedulingStrategy(profile, DEFAULT_DESCHEDULER_PROFILE))
    assert len(shares) <= most
    assert sum(shares.values()) == min(wanted, sum(capacities[:most]))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(0, 20), st.integers(0, 3))
def test_the_skew_stays_within_its_limit_if_possible(capacities: list[int], wanted: int, skew: int) -> None:
    adapter = even(len(capacities), 6)
    strategy = SchedulingStrategy(
        Profile((PodFitsResources(), EvenPodSpread(skew)), ((LowestOrdinalPriority(), 1),)), DEFAULT_DESCHEDULER_PROFILE
    )
    others = {ordinal: 6 - room for ordinal, room in enumerate(capacities)}
    shares = schedule_vpod(Vpod("s", wanted, {}), adapter, FreeCapacity(adapter, [others]), strategy)
    assert sum(shares.values()) == min(wanted, sum(capacities)), "even spread never reduces the total"
    usable = [room for room in capacities if room]
    levels = range(min(usable, default=-1) + 1)
    possible = any(level * len(usable) <= wanted <= sum(min(room, level + skew) for room in usable) for level in levels)
    if possible:
        counts = [shares.get(ordinal, 0) for ordinal, room in enumerate(capacities) if room]
        assert max(counts) - min(counts) <= skew


@pytest.mark.parametrize(
    ("wanted", "previous", "after"),
    [
        pytest.param(3, {0: 2, 1: 1}, {0: 2, 1: 1}, id="nothing to do"),
        pytest.param(4, {0: 3}, {0: 3, 1: 1}, id="one more goes where there is least"),
        pytest.param(1, {0: 2, 1: 1}, {0: 1}, id="a pod that is emptied is not asked twice"),
        pytest.param(0, {0: 2, 3: 1}, {}, id="all of them"),
        pytest.param(2, {0: 2, 9: 4}, {0: 2}, id="what is on pods that are gone goes first"),
        pytest.param(6, {0: 2, 9: 4}, {0: 2, 1: 2, 2: 1, 3: 1}, id="or moves"),
    ],
)
def test_default_profiles(wanted: int, previous: VreplicasByOrdinal, after: VreplicasByOrdinal) -> None:
    assert run(even(4, 5), [Vpod("s", wanted, previous)], DEFAULT) == {"s": after}


def test_without_an_even_placement_the_pod_with_fewest_vreplicas_is_filled_first() -> None:
    adapter = even(8, 20)
    strategy = SchedulingStrategy(
        Profile((PodFitsResources(), EvenPodSpread(1)), ((LowestOrdinalPriority(), 1),)), DEFAULT_DESCHEDULER_PROFILE
    )
    previous = {0: 1, **dict.fromkeys(range(1, 7), 9), 7: 2}
    shares = schedule_vpod(Vpod("s", 60, previous), adapter, FreeCapacity(adapter, [previous, {0: 19}]), strategy)
    assert shares == {**previous, 7: 5}


@pytest.mark.parametrize(
    ("previous", "after"),
    [
        pytest.param({0: 3, 1: 3}, {0: 3, 1: 3}, id="as it was, be it too much"),
        pytest.param({0: 3, 1: 1, 5: 2}, {0: 3, 1: 1}, id="what is on a pod that is gone goes first"),
        pytest.param({0: 9, 1: 1}, {0: 4}, id="a pod that holds more than it can is relieved"),
    ],
)
def test_replace_without_a_descheduler_profile_changes_all_or_nothing(
    previous: VreplicasByOrdinal, after: VreplicasByOrdinal
) -> None:
    strategy = SchedulingStrategy(Profile((PodFitsResources(), EvenPodSpread(0, strict=True)), ()), None, reschedules_all=True)
    assert run(even(3, 5), [Vpod("s", 4, previous)], strategy) == {"s": after}


def test_replace_spreads_evenly_over_pods_beyond_their_capacity() -> None:
    strategy = SchedulingStrategy(
        Profile((), ((EvenPodSpreadPriority(strict=True), 5), (LowestOrdinalPriority(), 2))), None, reschedules_all=True
    )
    adapter = even(2, 2)
    assert schedule_vpod(Vpod("s", 6, {}), adapter, FreeCapacity(adapter, [{0: 7, 1: 6}]), strategy) == {0: 3, 1: 3}


def test_replace_moves_vreplicas_from_unschedulable_pods() -> None:
    strategy = SchedulingStrategy(
        Profile((NoMaxResourceCount(2, strict=True),), ((AvailabilityZonePriority(), 1),)), None, reschedules_all=True
    )
    adapter, previous = even(4, 2), {0: 1, 1: 1, 2: 1}
    placed = schedule_vpod(Vpod("s", 4, previous), adapter, FreeCapacity(adapter, [previous, {0: 3, 1: 3}]), strategy)
    assert placed == {0: 2, 1: 2}, "a limit on the number of pods speaks of new ones"
