"""A loss is decided only for whom it can touch: for any fleet that gives what deciding everything gives, and looking changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched import schedule
from gitsched.apis.gitsched.config import Config
from gitsched.model.simulation import FailureDomain
from gitsched.simulate.baseline import Baseline, make_baseline
from gitsched.simulate.scenario import Scenario
from gitsched.simulate.simulation import simulate
from tests.scenarios.conftest import deployment
from tests.simulation.conftest import WEIGHTED, cluster, divide

NOW = datetime(2026, 3, 2, tzinfo=UTC)
NAMES = ("c1", "c2", "c3", "c4")
WHERE = st.sampled_from(
    [
        "labelSelector: {}",
        "clusterNames: [c1, c2]",
        "exclude: [c1]",
        "fieldSelector: {matchExpressions: [{key: region, operator: In, values: [east]}]}",
    ]
)
HOW = st.sampled_from(
    [
        "{replicaSchedulingType: Duplicated}",
        "{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}",
        WEIGHTED,
        "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}",
    ]
)
MORE = st.sampled_from(["", "    spreadConstraints: [{spreadByField: cluster, maxGroups: 2, minGroups: 1}]\n"])


@st.composite
def baselines(draw: st.DrawFn) -> Baseline:
    documents: list[Any] = []
    for name in NAMES:
        pods = draw(st.sampled_from([None, 2, 20]))
        documents.append(yaml.safe_load(cluster(name, region=draw(st.sampled_from(["east", "west"])), pods=pods)))
    for name in ("a", "b", "c"):
        documents.append(yaml.safe_load(deployment(name, draw(st.integers(0, 6)))))
        documents.append(yaml.safe_load(divide(name, draw(WHERE), draw(HOW)) + draw(MORE)))
    first = schedule(documents, now=NOW)
    again = schedule(documents, previous=first.documents, now=NOW)
    return make_baseline(again.decisions, Config(), NOW, {})


@settings(max_examples=60)
@given(baselines(), st.sampled_from(NAMES), st.booleans())
def test_workloads_that_a_loss_cannot_affect_are_not_scheduled(ground: Baseline, name: str, silent: bool) -> None:
    everyone = ground._replace(relevant_clusters=dict.fromkeys(ground.relevant_clusters))
    scenario = Scenario(lose=(FailureDomain("cluster", name),), unreachable=silent)
    assert simulate(ground, scenario) == simulate(everyone, scenario)


@settings(max_examples=40)
@given(baselines(), st.sampled_from(NAMES))
def test_after_a_loss_nothing_runs_on_what_is_lost_and_nothing_is_counted_twice(ground: Baseline, name: str) -> None:
    found = simulate(ground, Scenario(lose=(FailureDomain("cluster", name),)))
    for effect in found.effects:
        assert name not in effect.after
        assert 0 <= effect.shortfall <= (effect.replicas or 0)
        assert effect.waiting <= effect.started_replicas
    assert sum(crowd.waiting for crowd in found.overloaded) == found.waiting


@settings(max_examples=30)
@given(baselines(), st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_one_simulation_leaves_no_trace_in_the_next(ground: Baseline, name: str, other: str) -> None:
    scenario = Scenario(lose=(FailureDomain("cluster", name),))
    first = simulate(ground, scenario)
    simulate(ground, Scenario(drain=(FailureDomain("cluster", other),), fresh=True))
    assert simulate(ground, scenario) == first
