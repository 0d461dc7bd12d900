"""Builders of pods, vpods and states for tests."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from gitsched.schedule.vreplicas.plugins import (
    PREDICATES,
    PRIORITIES,
    EvenPodSpread,
    NoMaxResourceCount,
    PodFitsResources,
    PodPredicate,
    PodPriority,
    Profile,
)
from gitsched.schedule.vreplicas.state import AdapterStatefulSet, Pod, Vpod, VreplicasByOrdinal

MOST_PODS = 7


@st.composite
def adapters(draw: st.DrawFn) -> AdapterStatefulSet:
    """Up to seven pods, some of them unschedulable; some nodes have no pod."""
    zones = draw(st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xyz"), min_size=1))
    ordinals = draw(st.sets(st.integers(0, MOST_PODS - 1), min_size=1))
    marked = draw(st.sets(st.integers(0, MOST_PODS - 1), max_size=1))
    pods = {}
    for ordinal in sorted(ordinals - marked):
        node = draw(st.sampled_from(sorted(zones)))
        pods[ordinal] = Pod(ordinal, node, zones[node])
    return AdapterStatefulSet(draw(st.integers(1, 5)), MOST_PODS, pods, zones, frozenset(marked))


def shares(most: int = 4) -> st.SearchStrategy[VreplicasByOrdinal]:
    return st.dictionaries(st.integers(0, MOST_PODS), st.integers(1, most), max_size=5)


def vpods() -> st.SearchStrategy[list[Vpod]]:
    one = st.tuples(st.integers(0, 12), shares())
    return st.lists(one, min_size=1, max_size=4).map(lambda them: [Vpod(f"s{n}", w, h) for n, (w, h) in enumerate(them)])


@st.composite
def profiles(draw: st.DrawFn, strict: bool = False) -> Profile:
    """Any plug-ins in any order; the first keeps pods within their capacity."""
    more = draw(st.lists(st.sampled_from((NoMaxResourceCount, EvenPodSpread)), max_size=2, unique=True))
    predicates: list[PodPredicate] = [PodFitsResources(), *(plugin(draw(st.integers(0, 3)), strict) for plugin in more)]
    chosen = draw(st.lists(st.sampled_from(sorted(PRIORITIES)), max_size=4, unique=True))
    return Profile(tuple(predicates), tuple((PRIORITIES[name](1, strict), draw(st.integers(0, 10))) for name in chosen))


def choose_slowly(
    adapter: AdapterStatefulSet, profile: Profile, free: Mapping[int, int], counts: VreplicasByOrdinal, among: list[int]
) -> int | None:
    """The best pod by the rules: each pod is compared with every other."""
    fit = [o for o in among if all(_admits(p, o, adapter, free, counts) for p in profile.predicates)]
    return min(
        fit,
        key=lambda o: (sum(w * _penalty(p, o, adapter, free, counts) for p, w in profile.priorities), among.index(o)),
        default=None,
    )


def _admits(
    predicate: PodPredicate, ordinal: int, adapter: AdapterStatefulSet, free: Mapping[int, int], counts: VreplicasByOrdinal
) -> bool:
    mine = counts.get(ordinal, 0)
    match predicate.name:
        case "PodFitsResources":
            return free[ordinal] > 0
        case "NoMaxResourceCount":
            return ordinal in counts or len(counts) + 1 <= predicate.value
    others = [counts.get(o, 0) for o in adapter.pods if o != ordinal and (counts.get(o, 0) or free[o] > 0)]
    return all(mine + 1 - n <= predicate.value and (not predicate.strict or n - mine - 1 <= predicate.value) for n in others)


def _penalty(
    priority: PodPriority, ordinal: int, adapter: AdapterStatefulSet, free: Mapping[int, int], counts: VreplicasByOrdinal
) -> int:
    pods, pod = adapter.pods, adapter.pods[ordinal]
    match priority.name:
        case "LowestOrdinalPriority":
            return ordinal
        case "RemoveWithHighestOrdinalPriority":
            return -ordinal
    level = {"EvenPodSpread": "ordinal", "RemoveWithEvenPodSpreadPriority": "ordinal"}.get(priority.name)
    level = level or ("node" if "Node" in priority.name else "zone")
    removing = priority.name.startswith("Remove")
    if level == "ordinal":
        every = [o for o in pods if counts.get(o, 0) or free[o] > 0 or (priority.strict and free[o] < 0)]
    else:
        every = list(adapter.zones) if level == "node" else sorted(set(adapter.zones.values()))
    spread: dict[object, int] = {}
    for o, number in counts.items():
        place = getattr(pods[o], level)
        spread[place] = spread.get(place, 0) + number
    here = getattr(pod, level)
    target = spread.get(here, 0) + (-1 if removing else 1)
    return sum(abs(target - spread.get(place, 0)) for place in (spread if removing else every) if place != here)


__all__ = ["PREDICATES", "Pod", "adapters", "choose_slowly", "profiles", "shares", "vpods"]
