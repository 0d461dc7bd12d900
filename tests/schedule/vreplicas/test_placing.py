"""What holds of every placement, whatever the pods, sources and profiles."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.schedule.vreplicas.adapter import Adapter, Pod, Shares, Vpod
from gitsched.schedule.vreplicas.ledger import Ledger
from gitsched.schedule.vreplicas.placing import Strategy, may_stay, place
from gitsched.schedule.vreplicas.plugins import (
    EvenPods,
    EvenPodSpread,
    EvenZones,
    LowestOrdinal,
    NoMaxResourceCount,
    PodFitsResources,
)
from gitsched.schedule.vreplicas.profile import ADDING, REMOVING, Profile

from .situations import MOST_PODS, adapters, profiles, shares, vpods

DEFAULT = Strategy(ADDING, REMOVING)


def strategies() -> st.SearchStrategy[Strategy]:
    return st.builds(Strategy, profiles(), st.just(REMOVING), packs=st.booleans())


def run(adapter: Adapter, sources: Iterable[Vpod], strategy: Strategy) -> dict[str, Shares]:
    sources = list(sources)
    ledger = Ledger(adapter, [source.held for source in sources])
    placed = {source.name: place(source, adapter, ledger, strategy) for source in sources}
    again = Ledger(adapter, placed.values())
    assert {o: ledger.free.get(o, adapter.capacity) for o in range(MOST_PODS + 1)} == {
        o: again.free.get(o, adapter.capacity) for o in range(MOST_PODS + 1)
    }, "the books are right"
    return placed


def even(pods: int, capacity: int) -> Adapter:
    """As many pods, each on a node of its own, in two zones."""
    places = {o: Pod(o, f"n{o}", "xy"[o % 2]) for o in range(pods)}
    return Adapter(capacity, pods, places, {pod.node: pod.zone for pod in places.values()})


@given(adapters(), vpods(), strategies(), st.booleans())
def test_no_source_has_more_than_it_wants_nor_a_pod_more_than_it_holds(
    adapter: Adapter, sources: list[Vpod], strategy: Strategy, replaces: bool
) -> None:
    placed = run(adapter, sources, strategy._replace(replaces=replaces))
    held: dict[int, int] = {}
    for source in sources:
        shares = placed[source.name]
        assert all(number > 0 for number in shares.values())
        assert list(shares) == sorted(shares)
        assert sum(shares.values()) <= source.wanted
        for ordinal, number in shares.items():
            held[ordinal] = held.get(ordinal, 0) + number
    before: dict[int, int] = {}
    for source in sources:
        for ordinal, number in source.held.items():
            before[ordinal] = before.get(ordinal, 0) + number
    most = {ordinal: before.get(ordinal, 0) if replaces else 0 for ordinal in held}  # all or nothing leaves what there was
    assert all(number <= max(adapter.capacity, most[ordinal]) for ordinal, number in held.items())


@given(adapters(), vpods(), strategies())
def test_what_may_stay_stays(adapter: Adapter, sources: list[Vpod], strategy: Strategy) -> None:
    load: dict[int, int] = {}
    for source in sources:
        for ordinal, number in source.held.items():
            load[ordinal] = load.get(ordinal, 0) + number
    placed = run(adapter, sources, strategy)
    for source in sources:
        stay = {o: n for o, n in source.held.items() if may_stay(o, adapter) and load[o] <= adapter.capacity}
        if sum(source.held.values()) <= source.wanted:
            assert all(placed[source.name].get(ordinal, 0) >= number for ordinal, number in stay.items())


@given(adapters(), vpods(), strategies())
def test_nothing_new_comes_to_a_pod_that_may_take_nothing(adapter: Adapter, sources: list[Vpod], strategy: Strategy) -> None:
    placed = run(adapter, sources, strategy)
    for source in sources:
        for ordinal, number in placed[source.name].items():
            assert ordinal in adapter.pods or number <= source.held.get(ordinal, 0)


@given(adapters(), vpods(), strategies())
def test_a_second_run_changes_nothing(adapter: Adapter, sources: list[Vpod], strategy: Strategy) -> None:
    placed = run(adapter, sources, strategy)
    settled = [source._replace(held=placed[source.name]) for source in sources]
    if all(sum(source.held.values()) == source.wanted for source in settled) and not adapter.marked:
        assert run(adapter, settled, strategy) == placed


@given(adapters(), profiles(), st.lists(st.integers(0, 12), min_size=1, max_size=4), shares(), st.sampled_from("abcd"))
def test_more_pods_never_place_less(few: Adapter, profile: Profile, wanted: list[int], taken: Shares, node: str) -> None:
    zone = few.zones.get(node, "new")
    pods = {**few.pods, MOST_PODS: Pod(MOST_PODS, node, zone)}
    many = Adapter(few.capacity, MOST_PODS + 1, pods, {**few.zones, node: zone}, few.marked)
    others = {ordinal: min(number, few.capacity) for ordinal, number in taken.items() if ordinal < MOST_PODS}
    if profile.most_pods is not None:
        wanted = wanted[:1]  # which sources get the roomiest pods depends on all that came before
    placed = []
    for adapter in (few, many):
        ledger = Ledger(adapter, [others])
        sources = (Vpod(f"s{number}", count, {}) for number, count in enumerate(wanted))
        placed.append(sum(sum(place(source, adapter, ledger, Strategy(profile, REMOVING)).values()) for source in sources))
    assert placed[0] <= placed[1]


@given(adapters(), profiles(), st.integers(0, 20), shares(2), st.integers(1, 4))
def test_where_the_number_of_pods_is_limited_as_much_is_placed_as_the_roomiest_hold(
    adapter: Adapter, profile: Profile, wanted: int, taken: Shares, most: int
) -> None:
    profile = Profile((PodFitsResources(), NoMaxResourceCount(most)), profile.priorities)
    ledger = Ledger(adapter, [taken])
    rooms = sorted((max(ledger.free[ordinal], 0) for ordinal in adapter.pods), reverse=True)
    shares = place(Vpod("s", wanted, {}), adapter, ledger, Strategy(profile, REMOVING))
    assert len(shares) <= most
    assert sum(shares.values()) == min(wanted, sum(rooms[:most]))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(0, 20), st.integers(0, 3))
def test_the_skew_stays_within_its_bound_wherever_that_is_possible(rooms: list[int], wanted: int, skew: int) -> None:
    adapter = even(len(rooms), 6)
    strategy = Strategy(Profile((PodFitsResources(), EvenPodSpread(skew)), ((LowestOrdinal(), 1),)), REMOVING)
    others = {ordinal: 6 - room for ordinal, room in enumerate(rooms)}
    shares = place(Vpod("s", wanted, {}), adapter, Ledger(adapter, [others]), strategy)
    assert sum(shares.values()) == min(wanted, sum(rooms)), "nobody starves for evenness"
    usable = [room for room in rooms if room]
    levels = range(min(usable, default=-1) + 1)
    possible = any(level * len(usable) <= wanted <= sum(min(room, level + skew) for room in usable) for level in levels)
    if possible:
        counts = [shares.get(ordinal, 0) for ordinal, room in enumerate(rooms) if room]
        assert max(counts) - min(counts) <= skew


@pytest.mark.parametrize(
    ("wanted", "held", "after"),
    [
        pytest.param(3, {0: 2, 1: 1}, {0: 2, 1: 1}, id="nothing to do"),
        pytest.param(4, {0: 3}, {0: 3, 1: 1}, id="one more goes where there is least"),
        pytest.param(1, {0: 2, 1: 1}, {0: 1}, id="a pod that is emptied is not asked twice"),
        pytest.param(0, {0: 2, 3: 1}, {}, id="all of them"),
        pytest.param(2, {0: 2, 9: 4}, {0: 2}, id="what is on pods that are gone goes first"),
        pytest.param(6, {0: 2, 9: 4}, {0: 2, 1: 2, 2: 1, 3: 1}, id="or moves"),
    ],
)
def test_the_rules_without_any_configuration(wanted: int, held: Shares, after: Shares) -> None:
    assert run(even(4, 5), [Vpod("s", wanted, held)], DEFAULT) == {"s": after}


def test_where_evenness_has_to_give_way_the_pod_that_is_behind_catches_up_first() -> None:
    adapter = even(8, 20)
    strategy = Strategy(Profile((PodFitsResources(), EvenPodSpread(1)), ((LowestOrdinal(), 1),)), REMOVING)
    held = {0: 1, **dict.fromkeys(range(1, 7), 9), 7: 2}
    shares = place(Vpod("s", 60, held), adapter, Ledger(adapter, [held, {0: 19}]), strategy)
    assert shares == {**held, 7: 5}


@pytest.mark.parametrize(
    ("held", "after"),
    [
        pytest.param({0: 3, 1: 3}, {0: 3, 1: 3}, id="as it was, be it too much"),
        pytest.param({0: 3, 1: 1, 5: 2}, {0: 3, 1: 1}, id="what is on a pod that is gone goes first"),
        pytest.param({0: 9, 1: 1}, {0: 4}, id="a pod that holds more than it can is relieved"),
    ],
)
def test_replace_without_a_removing_profile_changes_all_or_nothing(held: Shares, after: Shares) -> None:
    strategy = Strategy(Profile((PodFitsResources(), EvenPodSpread(0, strict=True)), ()), None, replaces=True)
    assert run(even(3, 5), [Vpod("s", 4, held)], strategy) == {"s": after}


def test_replace_evens_out_over_pods_that_hold_too_much() -> None:
    strategy = Strategy(Profile((), ((EvenPods(strict=True), 5), (LowestOrdinal(), 2))), None, replaces=True)
    adapter = even(2, 2)
    assert place(Vpod("s", 6, {}), adapter, Ledger(adapter, [{0: 7, 1: 6}]), strategy) == {0: 3, 1: 3}


def test_replace_knows_the_pods_that_a_source_has_to_leave() -> None:
    strategy = Strategy(Profile((NoMaxResourceCount(2, strict=True),), ((EvenZones(), 1),)), None, replaces=True)
    adapter, held = even(4, 2), {0: 1, 1: 1, 2: 1}
    placed = place(Vpod("s", 4, held), adapter, Ledger(adapter, [held, {0: 3, 1: 3}]), strategy)
    assert placed == {0: 2, 1: 2}, "a limit on the number of pods speaks of new ones"
