"""What is free on candidates, less what is assumed to run there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.scheduling import EqualPods
from gitsched.schedule.capacity_ledger import CapacityLedger
from gitsched.schedule.estimator import UNLIMITED, Capacity, ModelGrade, ResourceRequest
from tests.tables import each_row

TEN = Capacity({"cpu": 10_000, "memory": 64, "pods": 100})
TWO_NODES = Capacity({"cpu": 99_000, "pods": 100}, (ModelGrade(2, (("cpu", 4_000),)),))
CPU = (("cpu", 2_000),)


@each_row(
    ("capacity", "assumed", "request", "expected"),
    [
        pytest.param(TEN, (), CPU, 5, id="nothing is assumed"),
        pytest.param(TEN, (EqualPods(3, CPU),), CPU, 2, id="less what is assumed"),
        pytest.param(TEN, (EqualPods(9, CPU),), CPU, 0, id="more is assumed than there is"),
        pytest.param(TEN, (EqualPods(97, None),), CPU, 3, id="pods without a request are pods"),
        pytest.param(TEN, (EqualPods(97, None),), None, 3, id="a pod without a request"),
        pytest.param(None, (EqualPods(9, CPU),), CPU, UNLIMITED, id="no facts"),
        pytest.param(TWO_NODES, (), (("cpu", 3_000),), 2, id="one for each node"),
        pytest.param(TWO_NODES, (EqualPods(1, CPU),), (("cpu", 3_000),), 1, id="the first node is in use"),
        pytest.param(TWO_NODES, (EqualPods(3, CPU),), CPU, 1, id="the first node is full"),
    ],
)
def test_what_is_assumed_is_not_free(
    capacity: Capacity | None, assumed: tuple[EqualPods, ...], request: ResourceRequest | None, expected: int
) -> None:
    remaining = CapacityLedger([capacity])
    remaining.assume("default/web-deployment", 0, assumed)
    assert list(remaining.estimate_replicas(request)) == [expected]


@each_row(
    ("pods", "capacity", "expected"),
    [
        pytest.param((EqualPods(1, CPU), EqualPods(2, (("cpu", 1_000),))), TEN, 2, id="whole sets"),
        pytest.param((EqualPods(30, None),), TEN, 3, id="pods alone"),
        pytest.param((EqualPods(0, CPU),), TEN, 100, id="a set without pods"),
        pytest.param((EqualPods(1, (("gpu", 1),)),), TEN, 0, id="a resource that is not there"),
        pytest.param((EqualPods(1, (("cpu", 3_000),)), EqualPods(1, (("cpu", 1_000),))), TWO_NODES, 2, id="a set on each node"),
        pytest.param((EqualPods(3, (("cpu", 3_000),)),), TWO_NODES, 0, id="a set that is too large for the nodes"),
    ],
)
def test_sets_are_placed_whole(pods: tuple[EqualPods, ...], capacity: Capacity, expected: int) -> None:
    assert list(CapacityLedger([capacity]).estimate_sets(pods)) == [expected]


requests = st.none() | st.lists(
    st.tuples(st.sampled_from(["cpu", "memory"]), st.integers(1, 4_000)), max_size=2, unique_by=lambda one: one[0]
).map(tuple)
groups = st.builds(EqualPods, st.integers(0, 6), requests)
grades = st.lists(
    st.builds(lambda nodes, cpu: ModelGrade(nodes, (("cpu", cpu), ("memory", 64))), st.integers(0, 3), st.integers(0, 9_000)),
    max_size=3,
)
capacities = st.none() | st.builds(
    lambda cpu, pods, found: Capacity({"cpu": cpu, "memory": 64, "pods": pods}, tuple(found)),
    st.integers(0, 20_000),
    st.integers(0, 30),
    grades,
)


@given(
    st.lists(capacities, min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.lists(groups, max_size=2)), max_size=8),
    requests,
)
def test_estimates_follow_what_is_assumed(
    found: list[Capacity | None], steps: list[tuple[str, int, list[EqualPods]]], request: ResourceRequest | None
) -> None:
    remaining, state = CapacityLedger(found), dict[tuple[str, int], list[EqualPods]]()
    for owner, index, pods in steps:
        remaining.estimate_replicas(request)
        remaining.assume(owner, index % len(found), pods)
        state[owner, index % len(found)] = pods
    fresh = CapacityLedger(found)
    for (owner, index), pods in state.items():
        fresh.assume(owner, index, pods)
    assert list(remaining.estimate_replicas(request)) == list(fresh.estimate_replicas(request))


@given(grades, st.lists(groups, max_size=4), groups)
def test_nodes_take_pods_one_by_one(found: list[ModelGrade], assumed: list[EqualPods], more: EqualPods) -> None:
    """The runs of equal nodes give what single nodes do, to which each pod goes in turn."""
    nodes = [{**dict(grade.minimum), "pods": 110} for grade in found for _ in range(grade.nodes)]

    def place(request: ResourceRequest | None) -> bool:
        for node in nodes:
            if node["pods"] and all(node.get(name, 0) >= amount for name, amount in request or ()):
                for name, amount in request or ():
                    node[name] -= amount
                node["pods"] -= 1
                return True
        return False

    for replicas, request, _ in assumed:
        for _ in range(replicas):
            place(request)
    capacity = Capacity({"cpu": 10**9, "memory": 10**9, "pods": 10**6}, tuple(found))
    remaining = CapacityLedger([capacity])
    remaining.assume("a", 0, assumed)
    count = 0
    while nodes and more.resource_request is not None and count < 2_000 and place(more.resource_request):
        count += 1
    if more.resource_request and any(grade.nodes for grade in found):
        assert list(remaining.estimate_replicas(more.resource_request)) == [count]
