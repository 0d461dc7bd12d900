"""Scheduling of Placements: independence of order, prioritizers, spread constraints."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gitsched
from tests.apis.ocm.chosen_clusters import NOW, list_chosen
from tests.builders.ocm import (
    Body,
    add_on,
    addon_scores,
    bound_global_set,
    built_in,
    label_predicate,
    managed_cluster,
    placement,
    taint,
)
from tests.search_depth import count_examples

NAMES = st.lists(st.sampled_from([f"c{number:02}" for number in range(20)]), min_size=1, max_size=8, unique=True)
ENVIRONMENTS = st.sampled_from(["a", "b"])


@st.composite
def fleets(draw: st.DrawFn) -> list[Body]:
    names = draw(NAMES)
    documents = bound_global_set("ns")
    for name in names:
        taints = [taint("k", draw(st.sampled_from(["NoSelect", "NoSelectIfNew", "PreferNoSelect"])))]
        documents.append(managed_cluster(name, {"env": draw(ENVIRONMENTS)}, taints if draw(st.booleans()) else []))
        if draw(st.booleans()):
            documents.append(addon_scores(name, {"cpu": draw(st.integers(-100, 100))}))
    weights = st.integers(-10, 10)
    for name in ("p", "q"):
        terms = [add_on("cpu", draw(weights)), built_in("Balance", draw(weights)), built_in("Steady", draw(weights))]
        predicates = [label_predicate(env=draw(ENVIRONMENTS))]
        number = draw(st.one_of(st.none(), st.integers(1, 6)))
        documents.append(placement(name, "ns", number, terms, **({"predicates": predicates} if draw(st.booleans()) else {})))
    return documents


@given(fleets(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=count_examples(30))
def test_the_order_of_documents_does_not_matter_and_a_second_run_changes_nothing(
    documents: list[Body], order: random.Random
) -> None:
    first = gitsched.schedule(documents, now=NOW)
    shuffled = order.sample(documents, len(documents))
    assert gitsched.schedule(shuffled, now=NOW).documents == first.documents
    again = gitsched.schedule(documents, previous=first.documents, now=NOW)
    assert again.documents == first.documents, "a second run changes nothing"
    assert (
        gitsched.schedule(shuffled, previous=order.sample(first.documents, len(first.documents)), now=NOW).documents
        == again.documents
    )


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=10, unique=True), st.integers(1, 10), st.integers(1, 10))
@settings(deadline=None, max_examples=count_examples(30))
def test_a_negative_weight_reverses_the_order_of_clusters(values: list[int], weight: int, number: int) -> None:
    fleet = bound_global_set("ns")
    for at, value in enumerate(values):
        fleet += [managed_cluster(f"c{at}"), addon_scores(f"c{at}", {"cpu": value})]
    ranking = [f"c{at}" for at, _ in sorted(enumerate(values), key=lambda entry: -entry[1])]
    number = min(number, len(values))
    best = list_chosen([*fleet, placement("p", "ns", number, [add_on("cpu", weight)])])
    worst = list_chosen([*fleet, placement("p", "ns", number, [add_on("cpu", -weight)])])
    assert sorted(best) == sorted(ranking[:number])
    assert sorted(worst) == sorted(ranking[len(values) - number :])


@given(NAMES, st.lists(st.sampled_from(["a", "c05x", "zz"]), min_size=1, unique=True), st.integers(1, 8))
@settings(deadline=None, max_examples=count_examples(30))
def test_a_new_cluster_does_not_evict_workloads_with_steady_only(names: list[str], newcomers: list[str], number: int) -> None:
    fleet = [*bound_global_set("ns"), placement("p", "ns", number, [built_in("Steady")]), *map(managed_cluster, names)]
    before = gitsched.schedule(fleet, now=NOW)
    chosen = list_chosen(fleet)
    grown = list_chosen([*fleet, *map(managed_cluster, newcomers)], previous=list(before.documents))
    assert set(chosen) <= set(grown)
    assert len(grown) == min(number, len(names) + len(newcomers))


ZONES = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b", "c1": "c", "x": ""}


def spread(number: int | None, skew: int, when: str, annotation: str = "true", kind: str = "Label") -> list[str]:
    """Return the chosen clusters of three zones, with the highest scores in the first, and one cluster without a zone."""
    fleet = bound_global_set("ns")
    for at, (name, zone) in enumerate(ZONES.items()):
        zones = {"zone": zone} if zone else {}
        cluster = managed_cluster(name, zones) if kind == "Label" else managed_cluster(name, claims=zones)
        fleet += [cluster, addon_scores(name, {"cpu": 90 - 10 * at})]
    constraint = {"topologyKey": "zone", "topologyKeyType": kind, "maxSkew": skew, "whenUnsatisfiable": when}
    annotations = {"gitsched.io/spread-policy": annotation}
    policy = {"spreadConstraints": [constraint]}
    return list_chosen([*fleet, placement("p", "ns", number, [add_on("cpu")], annotations=annotations, spreadPolicy=policy)])


@pytest.mark.parametrize(
    ("number", "skew", "when", "expected"),
    [
        (3, 1, "DoNotSchedule", "a1 b1 c1"),
        (3, 2, "DoNotSchedule", "a1 a2 b1"),
        (4, 1, "DoNotSchedule", "a1 a2 b1 c1"),
        (None, 1, "DoNotSchedule", "a1 a2 b1 b2 c1"),
        (6, 1, "ScheduleAnyway", "a1 a2 a3 b1 b2 c1"),
        (3, 1, "ScheduleAnyway", "a1 b1 c1"),
        (None, 1, "ScheduleAnyway", "a1 a2 a3 b1 b2 c1 x"),
    ],
)
def test_the_annotation_enables_the_spread_policy(number: int | None, skew: int, when: str, expected: str) -> None:
    assert spread(number, skew, when) == expected.split()
    assert spread(number, skew, when, kind="Claim") == expected.split()


def test_without_the_annotation_the_spread_policy_has_no_effect() -> None:
    assert spread(3, 1, "DoNotSchedule", annotation="no") == ["a1", "a2", "a3"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(-100, 100)), min_size=1, max_size=12),
    st.integers(1, 12),
    st.integers(1, 3),
)
@settings(deadline=None, max_examples=count_examples(30))
def test_zones_differ_by_max_skew_at_most(clusters: list[tuple[str, int]], number: int, skew: int) -> None:
    fleet = bound_global_set("ns")
    for at, (zone, value) in enumerate(clusters):
        fleet += [managed_cluster(f"{zone}{at}", {"zone": zone}), addon_scores(f"{zone}{at}", {"cpu": value})]
    constraint = {"topologyKey": "zone", "topologyKeyType": "Label", "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule"}
    annotations = {"gitsched.io/spread-policy": "true"}
    policy = {"spreadConstraints": [constraint]}
    names = list_chosen([*fleet, placement("p", "ns", number, [add_on("cpu")], annotations=annotations, spreadPolicy=policy)])
    counts = [sum(name[0] == zone for name in names) for zone in {zone for zone, _ in clusters}]
    assert max(counts) - min(counts) <= skew
    assert len(names) <= number
