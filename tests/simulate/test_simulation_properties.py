"""Properties of simulated losses: scheduling only affected workloads gives the complete result, and simulations have no side effects."""

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
from tests.search_depth import count_examples
from tests.simulate.conftest import WEIGHTED, cluster, divide

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


@settings(max_examples=count_examples(20))
@given(baselines(), st.sampled_from(NAMES), st.booleans())
def test_workloads_that_a_loss_cannot_affect_are_not_scheduled(baseline: Baseline, name: str, unreachable: bool) -> None:
    complete = baseline._replace(relevant_clusters=dict.fromkeys(baseline.relevant_clusters), continued=None)
    scenario = Scenario(lose=(FailureDomain("cluster", name),), unreachable=unreachable)
    assert simulate(baseline, scenario) == simulate(complete, scenario)


@settings(max_examples=count_examples(20))
@given(baselines(), st.sampled_from(NAMES))
def test_no_workload_stays_on_a_lost_cluster_and_each_replica_is_counted_once(baseline: Baseline, name: str) -> None:
    found = simulate(baseline, Scenario(lose=(FailureDomain("cluster", name),)))
    for effect in found.effects:
        assert name not in effect.after
        assert 0 <= effect.shortfall <= (effect.replicas or 0)
        assert effect.waiting <= effect.started_replicas
    assert sum(overload.waiting for overload in found.overloaded) == found.waiting


@settings(max_examples=count_examples(15))
@given(baselines(), st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_simulations_are_independent_of_each_other(baseline: Baseline, name: str, other: str) -> None:
    scenario = Scenario(lose=(FailureDomain("cluster", name),))
    first = simulate(baseline, scenario)
    simulate(baseline, Scenario(drain=(FailureDomain("cluster", other),), fresh=True))
    assert simulate(baseline, scenario) == first
