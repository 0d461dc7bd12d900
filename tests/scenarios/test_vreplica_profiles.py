"""The predicates and priorities of Knative's design document, one at a time and in its two ConfigMaps."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.knative import ADAPTER, NAMESPACE, adapter, node, placements, pods, schedule, source
from tests.search_depth import count_examples

ZONES = {"knative-worker": "zone1", "knative-worker2": "zone1", "knative-worker3": "zone2"}
NODES = tuple(node(name, zone) for name, zone in ZONES.items())
ON = dict(enumerate((*ZONES, *ZONES)))
"""Pods 0 and 3 are on knative-worker, 1 and 4 on knative-worker2, 2 and 5 on knative-worker3, alone in zone2."""

CONFIG_SCHEDULER = """\
data:
  predicates: |+
                  [
                    {"Name": "PodFitsResources"},
                    {"Name": "NoMaxResourceCount",
                    "Args": "{\\"NumPartitions\\": 100}"},
                    {"Name": "EvenPodSpread",
                    "Args": "{\\"MaxSkew\\": 2}"}
                  ]
  priorities: |+
                  [
                    {"Name": "AvailabilityZonePriority",
                    "Weight": 10,
                    "Args":  "{\\"MaxSkew\\": 2}"},
                    {"Name": "LowestOrdinalPriority",
                    "Weight": 2}
                  ]
"""
CONFIG_DESCHEDULER = """\
data:
  priorities: |+
                  [
                    {"Name": "RemoveWithEvenPodSpreadPriority",
                    "Weight": 10,
                    "Args": "{\\"MaxSkew\\": 2}"},
                    {"Name": "RemoveWithAvailabilityZonePriority",
                    "Weight": 10,
                    "Args":  "{\\"MaxSkew\\": 2}"},
                    {"Name": "RemoveWithHighestOrdinalPriority",
                    "Weight": 2}
                  ]
"""
FITS = {"Name": "PodFitsResources"}
LOWEST, HIGHEST = "LowestOrdinalPriority", "HighestOrdinalPriority"


def config_map(name: str, data: str) -> str:
    """Return a policy with `data` as the document shows it."""
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\n{data}"


def plugin(name: str, weight: int | None = None, **args: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"Name": name} | ({"Args": json.dumps(args)} if args else {})
    return entry | ({"Weight": weight} if weight is not None else {})


def policy(predicates: list[dict[str, Any]], priorities: list[dict[str, Any]], name: str = "config-scheduler") -> str:
    data = f"data:\n  predicates: '{json.dumps(predicates)}'\n  priorities: '{json.dumps(priorities)}'\n"
    return config_map(name, data)


def placed(name: str, consumers: int, on: dict[int, int]) -> str:
    """Return a source with placements in its status."""
    entries = ", ".join(f"{{podName: {ADAPTER}-{ordinal}, vreplicas: {number}}}" for ordinal, number in on.items())
    return f"{source(name, consumers)}status: {{placements: [{entries}]}}\n"


def run(*texts: str, replicas: int = 6, **knative: Any) -> Any:
    on = {ordinal: name for ordinal, name in ON.items() if ordinal < replicas}
    return schedule(adapter(replicas), *NODES, pods(on), *texts, **{"capacity": 8, "cluster": "events", **knative})


def spread(counts: dict[int, int], by: dict[str, str] | None = None) -> dict[str, int]:
    """Return the vreplicas by node, or by what `by` gives for the node."""
    total: dict[str, int] = {}
    for ordinal, number in counts.items():
        place = (by or {}).get(ON[ordinal], ON[ordinal])
        total[place] = total.get(place, 0) + number
    return total


def test_each_source_is_spread_evenly_over_zones_and_nodes_by_default() -> None:
    """Four nodes in two zones, with two pods each."""
    zones = {**ZONES, "knative-worker4": "zone2"}
    on = dict(enumerate((*zones, *zones)))
    nodes = (node(name, zone) for name, zone in zones.items())
    result = schedule(adapter(8), *nodes, pods(on), source("orders", 12), source("clicks", 8), cluster="events")
    for name, each in (("orders", 3), ("clicks", 2)):
        counts = placements(result.documents, name)
        by_node = {place: sum(number for ordinal, number in counts.items() if on[ordinal] == place) for place in zones}
        assert by_node == dict.fromkeys(zones, each), "and so each zone has the same number, too"


def test_each_pod_has_an_equal_part_of_a_source() -> None:
    even = policy([FITS, plugin("EvenPodSpread", MaxSkew=1)], [plugin("AvailabilityZonePriority", 10, MaxSkew=1)])
    assert placements(run(even, source("orders", 18)).documents, "orders") == dict.fromkeys(range(6), 3)
    assert sorted(placements(run(even, source("orders", 20)).documents, "orders").values()) == [3, 3, 3, 3, 4, 4]


@pytest.mark.parametrize(("partitions", "pods_used", "pending"), [(2, 2, 4), (4, 4, 0), (100, 6, 0)])
def test_a_source_is_on_no_more_pods_than_it_has_partitions(partitions: int, pods_used: int, pending: int) -> None:
    limit = policy([FITS, plugin("NoMaxResourceCount", NumPartitions=partitions)], [plugin("EvenPodSpread", 10, MaxSkew=1)])
    result = run(limit, source("orders", 20))
    counts = placements(result.documents, "orders")
    assert (len(counts), sum(counts.values())) == (pods_used, 20 - pending)
    adapter_record = next(body for body in result.documents if body["kind"] == "StatefulSet")
    assert adapter_record["spec"]["replicas"] == 6, "no pod is requested that the source must not use"


def test_a_full_pod_takes_no_vreplica() -> None:
    counts = placements(
        run(policy([FITS], [plugin(LOWEST, 1)]), placed("full", 7, {0: 7}), source("orders", 3)).documents, "orders"
    )
    assert counts == {0: 1, 1: 2}


@pytest.mark.parametrize(("skew", "after"), [(1, [1, 1, 1, 1, 1, 1]), (2, [2, 2, 2]), (3, [3, 3])])
def test_pods_differ_by_no_more_than_the_skew(skew: int, after: list[int]) -> None:
    lowest = policy([FITS, plugin("EvenPodSpread", MaxSkew=skew)], [plugin(LOWEST, 1)])
    assert list(placements(run(lowest, source("orders", 6)).documents, "orders").values()) == after


@pytest.mark.parametrize(
    ("priority", "consumers", "after"),
    [
        pytest.param("AvailabilityNodePriority", 9, dict.fromkeys(ZONES, 3), id="nodes"),
        pytest.param("AvailabilityZonePriority", 8, {"zone1": 4, "zone2": 4}, id="zones"),
    ],
)
@pytest.mark.parametrize("skew", [0, 5])
def test_a_priority_keeps_its_domains_even_whatever_its_skew(
    priority: str, consumers: int, after: dict[str, int], skew: int
) -> None:
    result = run(policy([FITS], [plugin(priority, 10, MaxSkew=skew)]), source("orders", consumers))
    assert spread(placements(result.documents, "orders"), ZONES if "Zone" in priority else None) == after


def test_the_pods_with_low_ordinals_are_used_first() -> None:
    assert placements(run(policy([FITS], [plugin(LOWEST, 2)]), source("orders", 10)).documents, "orders") == {0: 8, 1: 2}


@pytest.mark.parametrize(
    ("priority", "before", "after"),
    [
        pytest.param(
            plugin("RemoveWithAvailabilityNodePriority", 10, MaxSkew=1), {0: 4, 1: 2, 2: 2}, {0: 2, 1: 2, 2: 2}, id="nodes"
        ),
        pytest.param(plugin("RemoveWithAvailabilityZonePriority", 10, MaxSkew=1), {0: 2, 1: 2, 2: 2}, {1: 2, 2: 2}, id="zones"),
        pytest.param(plugin("RemoveWithEvenPodSpreadPriority", 10, MaxSkew=1), {0: 3, 3: 1}, {0: 1, 3: 1}, id="pods"),
        pytest.param(plugin(HIGHEST, 2), {0: 2, 1: 1, 5: 1}, {0: 2}, id="the name in the document's list"),
        pytest.param(plugin("RemoveWithHighestOrdinalPriority", 2), {0: 2, 1: 1, 5: 1}, {0: 2}, id="the name in its example"),
    ],
)
def test_two_vreplicas_are_removed(priority: dict[str, Any], before: dict[int, int], after: dict[int, int]) -> None:
    descheduler = policy([], [priority], "config-descheduler")
    result = run(descheduler, placed("orders", sum(before.values()) - 2, before))
    assert placements(result.documents, "orders") == after
    assert not [finding for finding in result.findings if finding.code == "knative-unknown-plugin"]


def test_the_example_config_maps_place_and_remove() -> None:
    policies = config_map("config-scheduler", CONFIG_SCHEDULER), config_map("config-descheduler", CONFIG_DESCHEDULER)
    first = run(*policies, source("orders", 12))
    counts = placements(first.documents, "orders")
    assert spread(counts, ZONES) == {"zone1": 7, "zone2": 5}, "the skew between the pods lets one zone have two more"
    assert max(counts.get(ordinal, 0) for ordinal in ON) - min(counts.get(ordinal, 0) for ordinal in ON) <= 2
    second = run(*policies, source("orders", 5), previous=first.documents)
    remaining = placements(second.documents, "orders")
    assert sum(remaining.values()) == 5
    assert abs(spread(remaining, ZONES)["zone1"] - spread(remaining, ZONES)["zone2"]) == 1
    assert {finding.severity for result in (first, second) for finding in result.findings} == {"info"}
    (candidate, *_) = first.explain("KafkaSource", "orders", "shop")
    assert set(candidate.scores) == {"AvailabilityZonePriority", LOWEST}


def test_predicates_after_the_one_that_rejects_a_pod_are_not_called() -> None:
    """Pod 0 is full and exceeds the skew, pod 1 exceeds only the skew."""
    policies = policy([FITS, plugin("EvenPodSpread", MaxSkew=1)], [])
    result = run(policies, placed("orders", 12, {0: 8, 1: 4}), replicas=3, evenPodSpread="strict", autoscaler={"leader": False})
    assert [candidate.reason.partition(":")[0] for candidate in result.explain("KafkaSource", "orders", "shop")] == [
        "PodFitsResources",
        "EvenPodSpread",
        "",
    ]


@pytest.mark.parametrize(("weights", "best"), [((10, 1), 2), ((1, 10), 0)])
def test_the_pod_with_the_highest_weighted_sum_is_chosen(weights: tuple[int, int], best: int) -> None:
    """The zones want pod 2, the ordinals pod 0."""
    zone, ordinal = weights
    scheduler = policy([FITS], [plugin("AvailabilityZonePriority", zone, MaxSkew=1), plugin(LOWEST, ordinal)])
    before = run(scheduler, placed("orders", 1, {0: 1}))
    candidates = before.explain("KafkaSource", "orders", "shop")
    assert all(candidate.total == sum(candidate.scores.values()) for candidate in candidates)
    assert max(candidates, key=lambda candidate: candidate.total).name == f"{ADAPTER}-{best}"
    after = placements(run(scheduler, placed("orders", 2, {0: 1})).documents, "orders")
    assert after == ({0: 2} if best == 0 else {0: 1, best: 1})


@pytest.mark.parametrize(("mode", "pending"), [("soft", 0), ("strict", 2)])
def test_a_vreplica_that_passes_no_predicate_is_pending_unless_only_a_soft_one_rejects_it(mode: str, pending: int) -> None:
    """Pod 1 has room for one vreplica; pod 0 may exceed it by one."""
    full = placed("full", 7, {1: 7})
    even = policy([FITS, plugin("EvenPodSpread", MaxSkew=1)], [plugin(LOWEST, 1)])
    result = run(even, full, source("orders", 5), replicas=2, evenPodSpread=mode, autoscaler={"leader": False})
    assert sum(placements(result.documents, "orders").values()) == 5 - pending
    assert len([finding for finding in result.findings if finding.code == "knative-pending"]) == bool(pending)


def test_a_placed_vreplica_counts_for_the_next_sources() -> None:
    result = run(policy([FITS], [plugin(LOWEST, 1)]), source("first", 6), source("second", 6), source("third", 6), replicas=3)
    assert [placements(result.documents, name) for name in ("first", "second", "third")] == [{0: 6}, {0: 2, 1: 4}, {1: 4, 2: 2}]


def test_placements_that_the_status_does_not_show_yet_take_capacity() -> None:
    """The first run places `orders`; its status in the source still has nothing when `clicks` arrives."""
    policies = policy([FITS], [plugin(LOWEST, 1)])
    first = run(policies, placed("orders", 6, {}))
    second = run(policies, placed("orders", 6, {}), source("clicks", 4), previous=first.documents)
    assert placements(second.documents, "orders") == {0: 6}
    assert placements(second.documents, "clicks") == {0: 2, 1: 2}
    promised = run(policies, source("clicks", 4), reserved={"shop/elsewhere": {f"{ADAPTER}-0": 7}})
    assert placements(promised.documents, "clicks") == {0: 1, 1: 3}


def test_a_source_that_shrinks_leaves_a_marked_pod_when_a_later_one_releases_capacity() -> None:
    on = {0: ON[0], 1: ON[1]}
    documents = (adapter(2), *NODES, pods(on, marked={0}))
    before = placed("first", 2, {0: 3}), placed("second", 1, {1: 4})
    result = schedule(*documents, *before, cluster="events")
    assert placements(result.documents, "first") == {1: 2}
    assert placements(result.documents, "second") == {1: 1}
    assert not [finding for finding in result.findings if finding.code == "knative-lingering"]


CHANGES = st.tuples(
    st.lists(st.integers(0, 8), min_size=1, max_size=4),
    st.sets(st.integers(0, 5), max_size=2),
    st.sets(st.sampled_from(sorted(ZONES)), max_size=1),
)


@settings(max_examples=count_examples(25))
@given(st.lists(CHANGES, min_size=1, max_size=3), st.sampled_from(["soft", "strict"]), st.booleans())
def test_a_second_run_changes_nothing(changes: list[tuple[list[int], set[int], set[str]]], mode: str, with_examples: bool) -> None:
    """Each change sets the vreplicas of all sources, the marked pods and the cordoned nodes."""
    policies = (config_map("config-scheduler", CONFIG_SCHEDULER),) if with_examples else ()
    previous: list[Any] = []
    for consumers, marked, cordoned in changes:
        nodes = (node(name, zone, cordoned=name in cordoned) for name, zone in ZONES.items())
        texts = (adapter(6), *nodes, pods(ON, marked), *policies, *(source(f"s{i}", n) for i, n in enumerate(consumers)))
        options = {"cluster": "events", "evenPodSpread": mode, "autoscaler": {"attemptScaleDown": False}}
        first = schedule(*texts, previous=previous, **options)
        assert schedule(*texts, previous=first.documents, **options).documents == first.documents
        previous = list(first.documents)
