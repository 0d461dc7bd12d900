"""The API of the proposal for extensible scheduling: valid and invalid scores and prioritizers, and what their fields do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import gitsched
from tests.apis.ocm.chosen_clusters import NOW, list_chosen
from tests.builders.ocm import GROUP, Body, add_on, addon_scores, bound_global_set, built_in, managed_cluster, placement
from tests.search_depth import count_examples
from tests.tables import each_row

CLUSTERS = ("ash", "bru", "cph")
FLEET = [*bound_global_set("ns"), *map(managed_cluster, CLUSTERS)]
SCORE = {"ash": 10, "bru": 30, "cph": 20}
SCORED = [*FLEET, *(addon_scores(cluster, {"cpu": value}) for cluster, value in SCORE.items())]


def old_placement(configuration: str, **spec: Any) -> Body:
    """Return a Placement of v1alpha1 in mode Exact; the configuration is YAML."""
    entries = [yaml.safe_load(configuration)]
    return {**placement("p", "ns", 1, entries, **spec), "apiVersion": f"{GROUP}/v1alpha1"}


def score_document(status: str) -> Body:
    """Return the AddOnPlacementScore default of the cluster ash; the status is YAML."""
    return {**addon_scores("ash", {}), "status": yaml.safe_load(status)}


VALID_SCORES = """\
{}
{scores: []}
{conditions: []}
{scores: [{name: cpu, value: -100}, {name: mem, value: 100}]}
{validUntil: null, scores: [{name: cpu, value: 0}]}
{validUntil: "2021-10-29T18:31:39Z"}
"""
INVALID_SCORES = """\
{scores: [{name: cpu, value: 101}]} | 'value' must be at most 100, not 101
{scores: [{name: cpu, value: -101}]} | 'value' must be at least -100, not -101
{scores: [{name: cpu, value: 1.5}]} | 'value' must be an integer, not 1.5
{scores: [{name: cpu}]} | lacks 'value', which is required
{scores: [{value: 5}]} | lacks 'name', which is required
{validUntil: soon} | not an RFC 3339 time
"""
VALID_PRIORITIZERS = """\
{name: Steady}
{scoreCoordinate: {buildIn: Steady}}
{scoreCoordinate: {type: "", buildIn: Balance}}
{scoreCoordinate: {type: BuildIn, buildIn: ResourceAllocatableCPU}, weight: 10}
{scoreCoordinate: {type: BuildIn, buildIn: ResourceAllocatableMemory}, weight: -10}
{scoreCoordinate: {type: AddOn, addOn: {resourceName: default, scoreName: cpu}}, weight: 0}
"""
INVALID_PRIORITIZERS = """\
{name: Stedy} | incorrect builtin prioritizer: Stedy; use one of Balance, Steady, ResourceAllocatableCPU, ResourceAllocatableMemory
{scoreCoordinate: {type: BuildIn}} | incorrect builtin prioritizer; use one of Balance
{scoreCoordinate: {type: BuildIn, buildIn: steady}} | incorrect builtin prioritizer: steady; use one of Balance
{scoreCoordinate: {type: AddOn}} | addOn should not be empty; set its resourceName and scoreName
{scoreCoordinate: {type: AddOn, addOn: {scoreName: cpu}}} | 'addOn' lacks 'resourceName', which is required
{scoreCoordinate: {type: AddOn, addOn: {resourceName: default}}} | 'addOn' lacks 'scoreName', which is required
{scoreCoordinate: {type: Addon, addOn: {resourceName: default, scoreName: cpu}}} | did you mean "AddOn"?
{name: Steady, weight: 11} | 'weight' must be at most 10, not 11
{name: Steady, weight: -11} | 'weight' must be at least -10, not -11
{name: Steady, weight: 1.5} | 'weight' must be an integer, not 1.5
{weight: 1} | lacks 'scoreCoordinate', which is required
"""


def list_problems(*documents: Body) -> list[str]:
    findings = gitsched.schedule(documents, now=NOW).findings
    return [finding.message for finding in findings if finding.severity == "error"]


@pytest.mark.parametrize("status", VALID_SCORES.splitlines())
def test_a_valid_score_is_accepted(status: str) -> None:
    assert list_problems(*FLEET, score_document(status)) == []


@pytest.mark.parametrize("line", INVALID_SCORES.splitlines())
def test_an_invalid_score_is_refused(line: str) -> None:
    status, message = line.split(" | ")
    (found,) = list_problems(*FLEET, score_document(status))
    assert message in found


@pytest.mark.parametrize("configuration", VALID_PRIORITIZERS.splitlines())
def test_a_valid_prioritizer_is_accepted(configuration: str) -> None:
    assert list_problems(*SCORED, old_placement(configuration)) == []


@each_row("line", INVALID_PRIORITIZERS.splitlines())
def test_an_invalid_prioritizer_is_refused(line: str) -> None:
    configuration, message = line.split(" | ")
    (found,) = list_problems(*SCORED, old_placement(configuration))
    assert message in found


def test_no_other_scheduler_can_be_named() -> None:
    findings = gitsched.schedule([*SCORED, old_placement("{name: Steady}", schedulerName="mine")], now=NOW).findings
    assert [finding.message for finding in findings] == ["spec.schedulerName: the field 'schedulerName' is unknown and ignored"]


def list_totals(documents: list[Body], *prioritizers: Body) -> dict[str, float | None]:
    result = gitsched.schedule([*documents, placement("p", "ns", None, prioritizers)], now=NOW)
    return {candidate.name: candidate.total for candidate in result.explain("Placement", "p", "ns")}


VALUES = st.fixed_dictionaries({cluster: st.integers(-100, 100) for cluster in CLUSTERS})


@given(VALUES, VALUES, st.integers(-10, 10), st.integers(-10, 10))
@settings(deadline=None, max_examples=count_examples(20))
def test_the_final_score_is_the_sum_of_weighted_scores(
    cpu: Mapping[str, int], memory: Mapping[str, int], cpu_weight: int, memory_weight: int
) -> None:
    scores = [addon_scores(cluster, {"cpu": cpu[cluster], "memory": memory[cluster]}) for cluster in CLUSTERS]
    found = list_totals([*FLEET, *scores], add_on("cpu", cpu_weight), add_on("memory", memory_weight))
    assert found == {cluster: cpu_weight * cpu[cluster] + memory_weight * memory[cluster] for cluster in CLUSTERS}


@pytest.mark.parametrize(("cpu_weight", "memory_weight", "winner"), [(2, 1, "ash"), (1, 2, "bru"), (0, 1, "bru"), (1, 0, "ash")])
def test_a_higher_weight_counts_more_and_weight_0_disables(cpu_weight: int, memory_weight: int, winner: str) -> None:
    scores = [addon_scores("ash", {"cpu": 50, "memory": 0}), addon_scores("bru", {"cpu": 0, "memory": 50})]
    body = placement("p", "ns", 1, [add_on("cpu", cpu_weight), add_on("memory", memory_weight)])
    assert list_chosen([*FLEET, *scores, body]) == [winner]


@pytest.mark.parametrize(
    ("resource", "score", "winner"), [("default", "cpu", "ash"), ("default", "mem", "bru"), ("other", "cpu", "cph")]
)
def test_a_prioritizer_reads_the_score_with_its_resource_name_and_score_name(resource: str, score: str, winner: str) -> None:
    scores = [
        addon_scores("ash", {"cpu": 90, "mem": 0}),
        addon_scores("bru", {"cpu": 0, "mem": 90}),
        addon_scores("cph", {"cpu": 90}, name="other"),
    ]
    assert list_chosen([*FLEET, *scores, placement("p", "ns", 1, [add_on(score, resource=resource)])]) == [winner]


def test_without_a_policy_balance_and_steady_apply() -> None:
    result = gitsched.schedule([*SCORED, placement("p", "ns", 1)], now=NOW)
    assert {tuple(sorted(candidate.scores)) for candidate in result.explain("Placement", "p", "ns")} == {("Balance", "Steady")}


def test_balance_spreads_the_decisions_of_placements() -> None:
    documents = [*FLEET, *(placement(name, "ns", 1, [built_in("Balance")]) for name in ("p", "q", "r"))]
    assert [list_chosen(documents, name=name) for name in ("p", "q", "r")] == [["ash"], ["bru"], ["cph"]]


def test_steady_keeps_the_decision_that_another_score_would_move() -> None:
    terms = [built_in("Steady", 3), add_on("cpu", 1)]
    first = gitsched.schedule([*SCORED, placement("p", "ns", 1, terms)], now=NOW)
    swapped = [*FLEET, addon_scores("ash", {"cpu": 100}), addon_scores("bru", {"cpu": -100})]
    assert list_chosen([*SCORED, placement("p", "ns", 1, terms)]) == ["bru"]
    assert list_chosen([*swapped, placement("p", "ns", 1, terms)], previous=first.documents) == ["bru"]
    assert list_chosen([*swapped, placement("p", "ns", 1, [add_on("cpu", 1)])], previous=first.documents) == ["ash"]


@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_allocatable_resources_are_scored_from_the_lowest_to_the_highest(resource: str) -> None:
    clusters = []
    for cluster, amount in zip(CLUSTERS, ("2Gi", "8Gi", "5Gi"), strict=True):
        amounts = {resource: amount}
        clusters.append({**managed_cluster(cluster), "status": {"allocatable": amounts, "capacity": amounts}})
    name = {"cpu": "ResourceAllocatableCPU", "memory": "ResourceAllocatableMemory"}[resource]
    assert list_totals([*bound_global_set("ns"), *clusters], built_in(name)) == {"ash": -100, "bru": 100, "cph": 0}
