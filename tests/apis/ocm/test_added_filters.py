"""Filters and scores that a program has added count for all Placements, and an engine that continues decides as a new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import pytest

from gitsched.apis.gitsched.config import Config
from gitsched.apis.ocm import scheduling
from gitsched.schedule import selection
from gitsched.schedule.fleet import Candidate, Fleet
from gitsched.schedule.plugins import register_selection_filter
from gitsched.schedule.scores import MAX_SCORE
from gitsched.schedule.selection import SelectionRequest, WeightedScore
from tests.apis.continuation import World, plan, run_history, settle
from tests.apis.ocm.test_continuation import WorldBuilder, add
from tests.builders.ocm import bound_global_set, label_predicate, managed_cluster, placed_config_map, placement, taint

Mask = Callable[[SelectionRequest, Fleet, int], int]


class AddedFilter:
    def __init__(self, name: str, mask: Mask, version: str = "") -> None:
        self.name, self._mask, self.version = name, mask, version

    def mask(self, request: SelectionRequest, fleet: Fleet, remaining: int) -> int:
        return self._mask(request, fleet, remaining)

    def reason(self, request: SelectionRequest, fleet: Fleet, index: int) -> str:
        return f"{self.name} rejects {fleet.names[index]}"


class AddedScore(NamedTuple):
    """Prefers candidates with many labels, or with `tier: a`."""

    name: str
    cacheable: bool

    def score_candidates(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        chosen = [fleet.candidates[index].labels for index in members]
        most = max((len(labels) for labels in chosen), default=0)
        return [MAX_SCORE if labels.get("tier") == "a" or len(labels) == most else 0 for labels in chosen]


def select(fleet: Fleet, passes: Callable[[Candidate], bool]) -> int:
    return fleet.mask(candidate.name for candidate in fleet.candidates if passes(candidate))


MASKS: dict[str, Mask] = {
    "Label": lambda request, fleet, _: request.previous | select(fleet, lambda one: one.labels.get("tier") != "b"),
    "Unread": lambda _, fleet, __: select(fleet, lambda one: one.labels.get("unread") != "b"),
    "Taint": lambda _, fleet, __: select(fleet, lambda one: not one.taints),
    "Claim": lambda _, fleet, remaining: remaining & fleet.with_field("zone"),
    "First": lambda _, fleet, remaining: sum(1 << index for index in fleet.members(remaining)[:2]),
    "Limited": lambda request, fleet, _: fleet.all if request.limit == 1 else fleet.mask(fleet.names[1:]),
}


@pytest.fixture(autouse=True)
def only_built_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "SELECTION_FILTERS", selection.SELECTION_FILTERS)


@pytest.mark.parametrize("name", sorted(MASKS))
def test_a_history_with_an_added_filter_and_score(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    register_selection_filter(AddedFilter(name, MASKS[name]))
    build = scheduling._build_prioritizers

    def build_with_score(*given: Any) -> Any:
        scores, add_ons = build(*given)
        return (*scores, WeightedScore(AddedScore("Added", cacheable=len(name) % 2 == 0), 3)), add_ons

    monkeypatch.setattr(scheduling, "_build_prioritizers", build_with_score)
    builder = WorldBuilder(Random(sorted(MASKS).index(name)))
    continued, _ = run_history(builder.build(), Config(), builder.change, 4)
    assert continued


def make_world() -> World:
    world = World()
    taints = [taint("full")]
    for body in (
        *bound_global_set("default"),
        managed_cluster("m1", {"tier": "b"}),
        managed_cluster("m2", {"tier": "a"}),
        managed_cluster("m3", {"tier": "a"}, taints),
        managed_cluster("m4", {"tier": "c"}),
        placement("one", "default", predicates=[{"requiredClusterSelector": {"labelSelector": {"matchExpressions": IN_A_B}}}]),
        placement("two", "default", predicates=[label_predicate(tier="b")]),
        placed_config_map("data", "default", "one"),
    ):
        add(world, body)
    return world


IN_A_B = [{"key": "tier", "operator": "In", "values": ["a", "b"]}]


def list_clusters(world: World, previous: Any = None) -> tuple[dict[str, list[str]], Any]:
    step = plan(world, Config(), previous or {}, 1)
    return {key.name: sorted(outcome.clusters) for key, outcome in step.decisions.outcomes.items()}, step


def test_a_filter_counts_in_the_next_run_of_the_same_documents() -> None:
    world = make_world()
    before = settle(world, Config())
    assert {key.name: sorted(found.clusters) for key, found in before.decisions.outcomes.items()} == {"data": ["m1", "m2"]}
    register_selection_filter(AddedFilter("Tier", lambda _, fleet, __: select(fleet, lambda one: one.labels["tier"] != "b")))
    found, step = list_clusters(world, before.written)
    assert found == {"data": ["m2"]}
    messages = [finding.message for finding in step.decisions.engines[0].findings]
    assert messages == [
        "Placement.cluster.open-cluster-management.io/default/two chooses no cluster: of 4 clusters, 3 excluded by its predicates; "
        "1 excluded because Tier rejects m1"
    ]


def test_a_filter_before_the_others_is_explained() -> None:
    first = AddedFilter("Tier", lambda _, fleet, __: select(fleet, lambda one: one.labels["tier"] != "b"))
    selection.SELECTION_FILTERS = (first, *selection.SELECTION_FILTERS)
    found, step = list_clusters(make_world())
    assert found == {"data": ["m2"]}
    engine, (template,) = step.decisions.engines[0], step.decisions.templates.values()
    reasons = {result.name: result.reason for result in engine.evaluate_candidates(template)}
    assert reasons == {
        "m1": "Tier rejects m1",
        "m2": "",
        "m3": "its taint full:NoSelect is not tolerated",
        "m4": "it does not meet the predicate",
    }
    explanation = engine.explain(template)
    assert explanation.selection[:4] == (
        "4 eligible clusters.",
        "Tier: 3 of 4 remain.",
        "Predicate: 2 of 3 remain.",
        "TaintToleration: 1 of 2 remain.",
    )
    assert [step["name"] for step in explanation.native["filteredPipelineResults"]] == [
        "Tier",
        "Tier,Predicate",
        "Tier,Predicate,TaintToleration",
    ]
    assert engine.propose(template, "m1").change.text == "the filter Tier let it pass"
    assert engine.propose(template, "m4").change.text == "its label tier were a"


def test_a_filter_admits_no_cluster_that_an_earlier_one_rejects() -> None:
    register_selection_filter(AddedFilter("All", lambda _, fleet, __: fleet.all))
    assert list_clusters(make_world())[0] == {"data": ["m1", "m2"]}


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="the filter 'Predicate' is registered already"):
        register_selection_filter(AddedFilter("Predicate", MASKS["Taint"]))
