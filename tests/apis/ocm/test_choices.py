"""What holds for every Placement: order never matters, signs mirror, newcomers evict nobody, and spreading is even."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gitsched
from gitsched.model.time import parse_time

GROUP = "cluster.open-cluster-management.io"
NOW = parse_time("2026-03-02T08:00:00Z")
Body = dict[str, Any]


def managed(name: str, labels: dict[str, str] | None = None, taints: list[Body] | None = None) -> Body:
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": f"{GROUP}/v1", "kind": "ManagedCluster", "metadata": metadata, "spec": {"taints": taints or []}}


def score(cluster: str, value: int) -> Body:
    metadata = {"name": "default", "namespace": cluster}
    status = {"scores": [{"name": "cpu", "value": value}]}
    return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "AddOnPlacementScore", "metadata": metadata, "status": status}


def sets() -> list[Body]:
    selector = {"selectorType": "LabelSelector", "labelSelector": {}}
    return [
        {
            "apiVersion": f"{GROUP}/v1beta2",
            "kind": "ManagedClusterSet",
            "metadata": {"name": "global"},
            "spec": {"clusterSelector": selector},
        },
        {
            "apiVersion": f"{GROUP}/v1beta2",
            "kind": "ManagedClusterSetBinding",
            "metadata": {"name": "global", "namespace": "ns"},
            "spec": {"clusterSet": "global"},
        },
    ]


def built_in(name: str, weight: int = 1) -> Body:
    return {"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight}


def add_on(weight: int) -> Body:
    return {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "default", "scoreName": "cpu"}}, "weight": weight}


def placement(number: int | None, *terms: Body, name: str = "p", mode: str = "Exact", **spec: Any) -> Body:
    policy = {"mode": mode, "configurations": list(terms)}
    count = {} if number is None else {"numberOfClusters": number}
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "Placement",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"prioritizerPolicy": policy, **count, **spec},
    }


def chosen(documents: list[Body], previous: list[Body] | None = None, name: str = "p") -> list[str]:
    result = gitsched.schedule(documents, previous=previous or [], now=NOW)
    return [
        entry["clusterName"]
        for body in result.documents
        if body["kind"] == "PlacementDecision" and body["metadata"]["labels"][f"{GROUP}/placement"] == name
        for entry in body["status"]["decisions"]
    ]


NAMES = st.lists(st.sampled_from([f"c{number:02}" for number in range(20)]), min_size=1, max_size=8, unique=True)
ENVIRONMENTS = st.sampled_from(["a", "b"])


@st.composite
def fleets(draw: st.DrawFn) -> list[Body]:
    names = draw(NAMES)
    documents = sets()
    for name in names:
        taints = [{"key": "k", "effect": draw(st.sampled_from(["NoSelect", "NoSelectIfNew", "PreferNoSelect"]))}]
        documents.append(managed(name, {"env": draw(ENVIRONMENTS)}, taints if draw(st.booleans()) else None))
        if draw(st.booleans()):
            documents.append(score(name, draw(st.integers(-100, 100))))
    weights = st.integers(-10, 10)
    for name in ("p", "q"):
        terms = [add_on(draw(weights)), built_in("Balance", draw(weights)), built_in("Steady", draw(weights))]
        predicates = [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": draw(ENVIRONMENTS)}}}}]
        number = draw(st.one_of(st.none(), st.integers(1, 6)))
        documents.append(placement(number, *terms, name=name, **({"predicates": predicates} if draw(st.booleans()) else {})))
    return documents


@given(fleets(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_the_order_of_documents_and_clusters_never_matters(documents: list[Body], order: random.Random) -> None:
    first = gitsched.schedule(documents, now=NOW)
    shuffled = order.sample(documents, len(documents))
    assert gitsched.schedule(shuffled, now=NOW).documents == first.documents
    again = gitsched.schedule(documents, previous=first.documents, now=NOW)
    assert again.documents == first.documents, "nor does a second run"
    assert (
        gitsched.schedule(shuffled, previous=order.sample(first.documents, len(first.documents)), now=NOW).documents
        == again.documents
    )


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=10, unique=True), st.integers(1, 10), st.integers(1, 10))
@settings(deadline=None, max_examples=60)
def test_a_negative_weight_mirrors_the_order_of_distinct_totals(values: list[int], weight: int, number: int) -> None:
    fleet = sets() + [body for at, value in enumerate(values) for body in (managed(f"c{at}"), score(f"c{at}", value))]
    ranking = [f"c{at}" for at, _ in sorted(enumerate(values), key=lambda entry: -entry[1])]
    number = min(number, len(values))
    best = chosen([*fleet, placement(number, add_on(weight))])
    worst = chosen([*fleet, placement(number, add_on(-weight))])
    assert sorted(best) == sorted(ranking[:number])
    assert sorted(worst) == sorted(ranking[len(values) - number :])


@given(NAMES, st.lists(st.sampled_from(["a", "c05x", "zz"]), min_size=1, unique=True), st.integers(1, 8))
@settings(deadline=None, max_examples=60)
def test_another_cluster_never_evicts_under_steady_alone(names: list[str], newcomers: list[str], number: int) -> None:
    fleet = [*sets(), placement(number, built_in("Steady")), *map(managed, names)]
    before = gitsched.schedule(fleet, now=NOW)
    held = chosen(fleet)
    grown = chosen([*fleet, *map(managed, newcomers)], previous=list(before.documents))
    assert set(held) <= set(grown)
    assert len(grown) == min(number, len(names) + len(newcomers))


ZONES = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b", "c1": "c", "x": ""}


def spread(number: int | None, skew: int, when: str, honoured: str = "true", kind: str = "Label") -> list[str]:
    """Clusters of three zones, those of the first with the best scores, and one without a zone."""
    fleet = sets()
    for at, (name, zone) in enumerate(ZONES.items()):
        body = managed(name, {"zone": zone} if zone and kind == "Label" else None)
        body["status"] = {"clusterClaims": [{"name": "zone", "value": zone}]} if zone and kind == "Claim" else {}
        fleet += [body, score(name, 90 - 10 * at)]
    constraint = {"topologyKey": "zone", "topologyKeyType": kind, "maxSkew": skew, "whenUnsatisfiable": when}
    body = placement(number, add_on(1), spreadPolicy={"spreadConstraints": [constraint]})
    body["metadata"]["annotations"] = {"gitsched.io/spread-policy": honoured}
    return chosen([*fleet, body])


@pytest.mark.parametrize(
    ("number", "skew", "when", "wanted"),
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
def test_a_spread_policy_counts_where_it_is_asked_for(number: int | None, skew: int, when: str, wanted: str) -> None:
    assert spread(number, skew, when) == wanted.split()
    assert spread(number, skew, when, kind="Claim") == wanted.split()


def test_without_the_annotation_it_is_as_inert_as_upstream_and_said_so() -> None:
    assert spread(3, 1, "DoNotSchedule", honoured="no") == ["a1", "a2", "a3"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(-100, 100)), min_size=1, max_size=12),
    st.integers(1, 12),
    st.integers(1, 3),
)
@settings(deadline=None, max_examples=60)
def test_no_zone_is_ahead_by_more_than_the_skew(clusters: list[tuple[str, int]], number: int, skew: int) -> None:
    fleet = sets()
    for at, (zone, value) in enumerate(clusters):
        fleet += [managed(f"{zone}{at}", {"zone": zone}), score(f"{zone}{at}", value)]
    constraint = {"topologyKey": "zone", "topologyKeyType": "Label", "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule"}
    body = placement(number, add_on(1), spreadPolicy={"spreadConstraints": [constraint]})
    body["metadata"]["annotations"] = {"gitsched.io/spread-policy": "true"}
    names = chosen([*fleet, body])
    counts = [sum(name[0] == zone for name in names) for zone in {zone for zone, _ in clusters}]
    assert max(counts) - min(counts) <= skew
    assert len(names) <= number


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "of 3 clusters, 1 excluded by its predicates; 2 excluded because its taint power:NoSelect is not tolerated"),
        ({"bindings": False}, "no ManagedClusterSet is bound to the namespace ns"),
        ({"clusterSets": ["other"]}, "its clusterSets (other) are not bound to the namespace ns, which has global"),
        ({"clusters": False}, "global has no cluster"),
    ],
)
def test_a_placement_that_chooses_nothing_says_where_the_clusters_were_lost(change: Body, said: str) -> None:
    taint = [{"key": "power", "effect": "NoSelect"}]
    clusters = [managed("a", {"env": "x"}, taint), managed("b", {"env": "x"}, taint), managed("c")]
    predicates = [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "x"}}}}]
    spec = {"clusterSets": change["clusterSets"]} if "clusterSets" in change else {}
    fleet = sets() if change.get("bindings", True) else sets()[:1]
    fleet += clusters if change.get("clusters", True) else []
    findings = gitsched.schedule([*fleet, placement(1, predicates=predicates, **spec)], now=NOW).findings
    assert [said in finding.message for finding in findings if finding.code == "ocm-nothing-chosen"] == [True]
