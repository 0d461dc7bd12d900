"""Scores of clusters, compared with the formula of Krake's design document."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.krake import NAMESPACE, Body, ScheduleRuns, application, cluster, measure

VALUES = st.floats(0, 1).map(lambda value: round(value, 3))
WEIGHTS = st.floats(0.01, 20).map(lambda weight: round(weight, 2))
METRICS = st.dictionaries(st.sampled_from("abcd"), WEIGHTS, max_size=3)
FLEETS = st.dictionaries(st.sampled_from(["c1", "c2", "c3", "c4"]), METRICS, min_size=1)
MEASURED = st.fixed_dictionaries(dict.fromkeys("abcd", VALUES))


def expect(values: dict[str, float], weights: dict[str, float], stickiness: float, current: bool, everywhere: bool) -> float:
    """Return the score of a cluster with metrics by the formula."""
    sticky = stickiness if current else 0.0
    denominator = sum(weights.values()) + (stickiness if current or everywhere else 0.0)
    return (sticky + sum(values[name] * weight for name, weight in weights.items())) / denominator


def bound(name: str) -> Body:
    target = {"api": "kubernetes", "kind": "Cluster", "namespace": NAMESPACE, "name": name}
    return {"scheduled_to": target, "scheduled": "2026-01-01T00:00:00Z", "kube_controller_triggered": "2026-01-01T00:00:00Z"}


@given(fleet=FLEETS, values=MEASURED, stickiness=st.sampled_from([0, 0.1, 0.5, 3]), everywhere=st.booleans(), data=st.data())
def test_an_application_runs_on_a_cluster_with_the_highest_score(
    fleet: dict[str, dict[str, float]], values: dict[str, float], stickiness: float, everywhere: bool, data: st.DataObject
) -> None:
    current = data.draw(st.sampled_from(sorted(fleet)))
    clusters = [cluster(name, metrics=[{"name": m, "weight": w} for m, w in metrics.items()]) for name, metrics in fleet.items()]
    formula = "document" if everywhere else "krake"
    runs = ScheduleRuns(
        application(status=bound(current)), *clusters, *measure(**values), stickiness=stickiness, stickinessFormula=formula
    )
    schedule = runs.run()
    measured = {name: metrics for name, metrics in fleet.items() if metrics}
    if measured:
        scores = {name: expect(values, metrics, stickiness, name == current, everywhere) for name, metrics in measured.items()}
    else:
        scores = {name: stickiness if name == current else 0.0 for name in fleet}
    actual = {
        result.name: result.total for result in schedule.explain("Application", "echo", NAMESPACE) if result.total is not None
    }
    assert actual.keys() == scores.keys()
    assert all(math.isclose(actual[name], scores[name], abs_tol=1e-12) for name in scores)
    chosen = runs.target()
    assert chosen is not None
    assert actual[chosen] == max(actual.values())
    runs.run(3600)
    assert runs.target() == chosen, "an application on the best cluster stays"
