"""The score of a cluster, computed a second time from the formula of the design document."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tests.apis.krake.conftest import SPACE, Body, Story, application, cluster, measure

VALUES = st.floats(0, 1).map(lambda value: round(value, 3))
WEIGHTS = st.floats(0.01, 20).map(lambda weight: round(weight, 2))
METRICS = st.dictionaries(st.sampled_from("abcd"), WEIGHTS, max_size=3)
FLEETS = st.dictionaries(st.sampled_from(["c1", "c2", "c3", "c4"]), METRICS, min_size=1)
MEASURED = st.fixed_dictionaries(dict.fromkeys("abcd", VALUES))


def expect(values: dict[str, float], weights: dict[str, float], stickiness: float, held: bool, everywhere: bool) -> float:
    """One cluster with metrics, by the formula."""
    sticky = stickiness if held else 0.0
    below = sum(weights.values()) + (stickiness if held or everywhere else 0.0)
    return (sticky + sum(values[name] * weight for name, weight in weights.items())) / below


def bound(name: str) -> Body:
    target = {"api": "kubernetes", "kind": "Cluster", "namespace": SPACE, "name": name}
    return {"scheduled_to": target, "scheduled": "2026-01-01T00:00:00Z", "kube_controller_triggered": "2026-01-01T00:00:00Z"}


@given(fleet=FLEETS, values=MEASURED, stickiness=st.sampled_from([0, 0.1, 0.5, 3]), everywhere=st.booleans(), data=st.data())
def test_an_application_is_on_a_cluster_with_the_highest_score(
    fleet: dict[str, dict[str, float]], values: dict[str, float], stickiness: float, everywhere: bool, data: st.DataObject
) -> None:
    held = data.draw(st.sampled_from(sorted(fleet)))
    places = [cluster(name, metrics=[{"name": m, "weight": w} for m, w in metrics.items()]) for name, metrics in fleet.items()]
    formula = "document" if everywhere else "krake"
    story = Story(application(status=bound(held)), *places, *measure(**values), stickiness=stickiness, stickinessFormula=formula)
    schedule = story.run()
    measured = {name: metrics for name, metrics in fleet.items() if metrics}
    if measured:
        scores = {name: expect(values, metrics, stickiness, name == held, everywhere) for name, metrics in measured.items()}
    else:
        scores = {name: stickiness if name == held else 0.0 for name in fleet}
    told = {verdict.name: verdict.total for verdict in schedule.explain("Application", "echo", SPACE) if verdict.total is not None}
    assert told.keys() == scores.keys()
    assert all(math.isclose(told[name], scores[name], abs_tol=1e-12) for name in scores)
    chosen = story.place()
    assert chosen is not None
    assert told[chosen] == max(told.values())
    story.run(3600)
    assert story.place() == chosen, "who is where it is best stays"
