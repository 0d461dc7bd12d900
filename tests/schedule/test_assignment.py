"""Assign replicas to the selected candidates."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.scheduling import Affinity, AffinityGroup, Assignment, Request
from gitsched.schedule.estimator import Capacity
from gitsched.schedule.fleet import Candidate, Fleet
from gitsched.schedule.pipeline import schedule
from tests.tables import each_row

ANY = (AffinityGroup("", None),)


def fleet(capacities: dict[str, int]) -> Fleet:
    return Fleet(Candidate(name, {}, {}, capacity=Capacity({"pods": pods})) for name, pods in capacities.items())


def request(replicas: int, **members: Any) -> Request:
    return Request(**{"identity": "", "replicas": replicas, "division": "dynamic", "groups": ANY, "divides": True, **members})


def assignments(**replicas: int) -> tuple[Assignment, ...]:
    return tuple(Assignment(name, count) for name, count in replicas.items())


FLEET = fleet({"a": 10, "b": 20, "c": 30})


@each_row(
    ("workload", "expected"),
    [
        pytest.param(request(12), {"a": 2, "b": 4, "c": 6}, id="in proportion to capacity"),
        pytest.param(request(12, previous=assignments(a=12)), {"a": 12}, id="no change: nothing moves, whatever the capacity"),
        pytest.param(request(18, previous=assignments(a=12)), {"a": 13, "b": 2, "c": 3}, id="scale up: only the difference"),
        pytest.param(
            request(6, previous=assignments(a=4, c=8)), {"a": 2, "c": 4}, id="scale down: in proportion to previous replicas"
        ),
        pytest.param(
            request(12, previous=assignments(a=12), fresh=True),
            {"a": 4, "b": 3, "c": 5},
            id="fresh: previous replicas count as capacity",
        ),
        pytest.param(request(60), {"a": 10, "b": 20, "c": 30}, id="everything is taken"),
        pytest.param(request(12, division="aggregated"), {"c": 12}, id="aggregated: as few as have the capacity"),
        pytest.param(request(40, division="aggregated"), {"b": 16, "c": 24}, id="aggregated: in proportion among those"),
        pytest.param(
            request(20, division="aggregated", previous=assignments(a=6)),
            {"a": 10, "c": 10},
            id="aggregated: previous clusters come first",
        ),
        pytest.param(
            request(3, division="aggregated", previous=assignments(b=2, a=4)),
            {"a": 3},
            id="aggregated: fewer when scaled down",
        ),
    ],
)
def test_replicas_are_divided_by_capacity(workload: Request, expected: dict[str, int]) -> None:
    decision = schedule(workload, FLEET)
    assert {target.name: target.replicas for target in decision.assignments} == expected, decision.message


@pytest.mark.parametrize("division", ["dynamic", "aggregated"])
def test_insufficient_capacity_is_unschedulable_and_reported(division: str) -> None:
    decision = schedule(request(61, division=division), FLEET)
    assert (decision.status, decision.message) == (
        "unschedulable",
        "failed to assign replicas: failed to scale up: Clusters available replicas 60 are not enough to schedule.",
    )


OVERFLOW = (AffinityGroup("main", Affinity(("a",)), (Affinity(("b",)), Affinity(("a", "c")))),)


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        pytest.param(request(8), {"a": 8}, id="the group itself is enough"),
        pytest.param(request(14), {"a": 10, "b": 4}, id="the next set takes what is left"),
        pytest.param(request(35), {"a": 10, "b": 20, "c": 5}, id="and the next"),
        pytest.param(request(12, previous=assignments(b=12)), {"a": 10, "b": 2}, id="the group before previous clusters"),
    ],
)
def test_overflow_fills_set_by_set(workload: Request, expected: dict[str, int]) -> None:
    decision = schedule(workload._replace(groups=OVERFLOW), FLEET)
    assert {target.name: target.replicas for target in decision.assignments} == expected, decision.message


def test_insufficient_overflow_places_nothing() -> None:
    decision = schedule(request(61, groups=OVERFLOW), FLEET)
    assert (decision.status, decision.assignments) == ("unschedulable", ())


def test_candidates_of_unknown_capacity_have_equal_weights() -> None:
    decision = schedule(request(4), Fleet([Candidate("a", {}, {}), Candidate("b", {}, {})]))
    assert decision.assignments == assignments(a=2, b=2)


NAMES = "abcdefghijklmnopqrst"


@st.composite
def situations(draw: st.DrawFn) -> tuple[Request, dict[str, int]]:
    capacities = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 12), min_size=1))
    before = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 6), max_size=5))
    workload = request(
        draw(st.integers(1, 80)),
        division=draw(st.sampled_from(["dynamic", "aggregated"])),
        previous=assignments(**before),
        fresh=draw(st.booleans()),
        identity=draw(st.sampled_from(["", "x", "y"])),
    )
    return workload, capacities


@given(situations())
def test_all_replicas_are_assigned_or_none(situation: tuple[Request, dict[str, int]]) -> None:
    workload, capacities = situation
    decision = schedule(workload, fleet(capacities))
    if decision.status != "scheduled":
        assert decision.assignments == ()
        return
    assert sum(target.replicas for target in decision.assignments) == workload.replicas
    assert {target.name for target in decision.assignments} <= capacities.keys()
    assert all(target.replicas > 0 for target in decision.assignments)


@given(situations())
def test_an_assignment_is_stable_without_changes(situation: tuple[Request, dict[str, int]]) -> None:
    workload, capacities = situation
    first = schedule(workload, fleet(capacities))
    if first.status == "scheduled":
        again = schedule(workload._replace(previous=first.assignments, fresh=False), fleet(capacities))
        assert set(again.assignments) == set(first.assignments)


@given(situations())
def test_fresh_ignores_the_previous_assignment(situation: tuple[Request, dict[str, int]]) -> None:
    """For a fresh division previous replicas only count as capacity: history makes no difference if the capacity is the sum."""
    workload, capacities = situation
    workload = workload._replace(fresh=True, division="dynamic")
    past = {target.name: target.replicas for target in workload.previous}
    total = {name: pods + past.get(name, 0) for name, pods in capacities.items()}
    # A cluster without any free pod counts as one without capacity, whatever its previous replicas.
    with_past = schedule(workload, fleet({name: max(pods, 0) for name, pods in capacities.items()}))
    without = schedule(workload._replace(previous=()), fleet(total))
    assert sorted(with_past.assignments) == sorted(without.assignments)
