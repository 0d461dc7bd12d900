"""The engine of Open Cluster Management: findings, and decisions that survive invalid documents."""

from __future__ import annotations

import copy
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gitsched
from gitsched.model.time import parse_time
from tests.apis.ocm.chosen_clusters import NOW, list_chosen
from tests.builders.ocm import (
    Body,
    bound_global_set,
    built_in,
    label_predicate,
    managed_cluster,
    placed_config_map,
    placement,
    taint,
)
from tests.search_depth import count_examples

DISABLED = "cluster.open-cluster-management.io/experimental-scheduling-disable"
CASES = Path(__file__).parents[2] / "conformance" / "ocm.jsonl.xz"
INVALID_VALUES: list[Any] = [
    None,
    0,
    -1,
    1.5,
    True,
    "",
    [],
    {},
    "x" * 300,
    "é\n",
    [None],
    [{}],
    {"a": None},
    10**30,
    "9999-12-31T23:59:59Z",
]


def small_cases() -> list[dict[str, Any]]:
    with lzma.open(CASES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if len(line) < 6000][:80]


SMALL = small_cases()


def locations(value: Any) -> list[tuple[Any, Any]]:
    """Return the container and key of every value in a document."""
    if isinstance(value, dict):
        own = [(value, key) for key in value]
    elif isinstance(value, list):
        own = [(value, index) for index in range(len(value))]
    else:
        return []
    return own + [location for container, key in own for location in locations(container[key])]


@given(st.data())
@settings(deadline=None, max_examples=count_examples(50))
def test_invalid_documents_raise_no_exception(data: st.DataObject) -> None:
    case = copy.deepcopy(data.draw(st.sampled_from(SMALL)))
    for documents in (case["resources"], case.get("previous") or []):
        for _ in range(data.draw(st.integers(0, 3))):
            candidates = [location for body in documents for location in locations(body)]
            if candidates:
                container, key = candidates[data.draw(st.integers(0, len(candidates) - 1))]
                container[key] = data.draw(st.sampled_from(INVALID_VALUES))
    now = parse_time(case["now"])
    first = gitsched.schedule(case["resources"], previous=case.get("previous") or [], now=now)
    gitsched.schedule(case["resources"], previous=first.documents, now=now)


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (
            {"celSelector": {"celExpressions": ["true", "managedCluster.foo("]}},
            "unexpected end of the expression, in the expression managedCluster.foo(",
        ),
        ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "in"}]}}, "'in' is not a valid operator"),
        ({"celSelector": {"celExpressions": ["math.abs(1) == 1"]}}, "the function abs() at character 5 is not supported"),
    ],
)
def test_a_misconfigured_placement_keeps_its_decisions_and_has_a_finding(predicate: dict[str, Any], message: str) -> None:
    fleet = [*bound_global_set("ns"), managed_cluster("dub"), managed_cluster("par")]
    before = gitsched.schedule([*fleet, placement("p", "ns", 1)], now=NOW)
    broken = placement("p", "ns", 2, predicates=[{"requiredClusterSelector": predicate}])
    assert list_chosen([*fleet, broken], previous=list(before.documents)) == ["dub"]
    findings = gitsched.schedule([*fleet, broken], previous=before.documents).findings
    assert [message in finding.message for finding in findings if finding.severity == "error"] == [True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "of 3 clusters, 1 excluded by its predicates; 2 excluded because their taint power:NoSelect is not tolerated"),
        ({"sets": False}, "the ManagedClusterSet global, which is bound to the namespace ns, does not exist: add its document"),
        ({"sets": False, "clusterSets": ["other"]}, "no ManagedClusterSet is bound to the namespace ns"),
        ({"bindings": False}, "no ManagedClusterSet is bound to the namespace ns"),
        ({"clusterSets": ["other"]}, "its clusterSets (other) are not bound to the namespace ns, which has global"),
        ({"clusters": False}, "the source has no ManagedCluster"),
    ],
)
def test_a_placement_without_clusters_has_a_finding_with_the_reasons(change: Body, message: str) -> None:
    taints = [taint("power")]
    clusters = [managed_cluster("a", {"env": "x"}, taints), managed_cluster("b", {"env": "x"}, taints), managed_cluster("c")]
    predicates = [label_predicate(env="x")]
    spec = {"clusterSets": change["clusterSets"]} if "clusterSets" in change else {}
    fleet = bound_global_set("ns") if change.get("bindings", True) else bound_global_set("ns")[:1]
    fleet = fleet if change.get("sets", True) else fleet[1:]
    fleet += clusters if change.get("clusters", True) else []
    findings = gitsched.schedule([*fleet, placement("p", "ns", 1, predicates=predicates, **spec)], now=NOW).findings
    assert [message in finding.message for finding in findings if finding.code == "ocm-nothing-chosen"] == [True]


@pytest.mark.parametrize(
    ("broken", "spec", "message"),
    [
        (
            0,
            {"clusterSelector": {"selectorType": "Other"}},
            "ManagedClusterSet global, which is bound to the namespace ns, has errors",
        ),
        (1, {"clusterSet": "other"}, "the ManagedClusterSetBinding global of the namespace ns has errors: correct them"),
        (1, {"clusterSet": ["global"]}, "the ManagedClusterSetBinding global of the namespace ns has errors: correct them"),
    ],
)
@pytest.mark.parametrize("listed", [{}, {"clusterSets": ["global"]}])
def test_a_placement_whose_cluster_set_has_errors_says_so(broken: int, spec: Body, message: str, listed: Body) -> None:
    sets = [{**document, "spec": spec} if index == broken else document for index, document in enumerate(bound_global_set("ns"))]
    findings = gitsched.schedule([*sets, managed_cluster("a"), placement("p", "ns", 1, **listed)], now=NOW).findings
    assert [message in finding.message for finding in findings if finding.code == "ocm-nothing-chosen"] == [True]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (placement("p", "ns", 0), "its numberOfClusters is 0"),
        (
            placement("p", "ns", 1, clusterSets=["other"]),
            "its clusterSets (other) are not bound to the namespace ns, which has global",
        ),
        (placement("p", "ns", 1, [built_in("Nonsense")]), "it is misconfigured: incorrect builtin prioritizer: Nonsense"),
        (
            {**placement("p", "ns"), "metadata": {"name": "p", "namespace": "ns", "annotations": {DISABLED: "true"}}},
            f"it is not scheduled: it has the annotation {DISABLED}",
        ),
        ({**placement("p", "ns"), "spec": 1}, "its document is invalid"),
    ],
)
def test_a_workload_without_clusters_has_the_reason_of_its_placement(body: Body, reason: str) -> None:
    fleet = [*bound_global_set("ns"), managed_cluster("dub"), placed_config_map("settings", "ns", "p")]
    result = gitsched.schedule([*fleet, body], now=NOW)
    (outcome,) = result.decisions.outcomes.values()
    assert outcome.reason == f"Placement.cluster.open-cluster-management.io/ns/p: {reason}"
