"""Estimate how many replicas fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.schedule.estimator import UNLIMITED, Capacity, Estimator, ModelGrade, ResourceRequest, estimate_replicas
from tests.tables import each_row

ONE_CORE = (("cpu", 1000),)


@each_row(
    ("capacity", "resource_request", "fits"),
    [
        pytest.param(None, ONE_CORE, UNLIMITED, id="nothing is known"),
        pytest.param(Capacity({}), None, 0, id="no pods, no capacity"),
        pytest.param(Capacity({"cpu": 64_000}), ONE_CORE, 0, id="no pods, whatever else"),
        pytest.param(Capacity({"pods": -3}), None, 0, id="overcommitted"),
        pytest.param(Capacity({"pods": 110}), None, 110, id="a replica is a pod"),
        pytest.param(Capacity({"pods": 110}), (), 110, id="that asks for nothing"),
        pytest.param(Capacity({"pods": 110, "cpu": 2500}), ONE_CORE, 2, id="rounded down"),
        pytest.param(Capacity({"pods": 1, "cpu": 2500}), ONE_CORE, 1, id="no more than pods"),
        pytest.param(Capacity({"pods": 110, "memory": 1}), ONE_CORE, 0, id="a resource that is not there"),
        pytest.param(Capacity({"pods": 110, "cpu": -1}), ONE_CORE, 0, id="a resource that is used up"),
        pytest.param(Capacity({"pods": 110, "cpu": 9000, "memory": 50}), (("cpu", 1000), ("memory", 10)), 5, id="the scarcest"),
    ],
)
def test_free_resources_are_one_pool_without_a_resource_model(
    capacity: Capacity | None, resource_request: tuple[tuple[str, int], ...] | None, fits: int
) -> None:
    assert estimate_replicas(capacity, resource_request) == fits


NODES = (
    ModelGrade(5, (("cpu", 0), ("memory", 0))),
    ModelGrade(3, (("cpu", 2000), ("memory", 100))),
    ModelGrade(1, (("cpu", 8000), ("memory", 100))),
)


@pytest.mark.parametrize(
    ("resource_request", "fits"),
    [
        pytest.param(ONE_CORE, 3 * 2 + 8, id="each node for itself"),
        pytest.param((("cpu", 3000),), 2, id="what is too big for a node is not there, be the heap ever so large"),
        pytest.param((("cpu", 1000), ("memory", 50)), 3 * 2 + 2, id="the scarcest of each node"),
        pytest.param((("gpu", 1),), 0, id="a resource that is not modelled"),
        pytest.param((), 200, id="a pod each, no more than the cluster has"),
        pytest.param((("cpu", 1),), 200, id="no more than the cluster's pods"),
    ],
)
def test_modelled_nodes_are_counted_separately(resource_request: tuple[tuple[str, int], ...], fits: int) -> None:
    assert estimate_replicas(Capacity({"pods": 200, "cpu": 10**9, "memory": 10**9}, NODES), resource_request) == fits


def test_a_modelled_node_holds_110_pods() -> None:
    assert estimate_replicas(Capacity({"pods": 1000}, (ModelGrade(2, (("cpu", 10**9),)),)), (("cpu", 1),)) == 220


@given(st.dictionaries(st.sampled_from(["pods", "cpu", "memory"]), st.integers(-5, 500)), st.integers(1, 50), st.integers(1, 50))
def test_the_estimate_fits_and_one_more_does_not(free: dict[str, int], cpu: int, memory: int) -> None:
    resource_request = (("cpu", cpu), ("memory", memory), ("pods", 1))
    fits = estimate_replicas(Capacity(free), resource_request)
    assert fits >= 0
    if fits:
        assert all(free[name] >= fits * amount for name, amount in resource_request)
    assert any(free.get(name, 0) < (fits + 1) * amount for name, amount in resource_request)


amounts = st.dictionaries(st.sampled_from(["pods", "cpu", "memory"]), st.integers(-5, 500))
demands = st.none() | st.lists(st.tuples(st.sampled_from(["cpu", "memory", "gpu"]), st.integers(1, 50)), max_size=3).map(tuple)


@given(st.lists(st.none() | st.builds(Capacity, amounts, st.just(()) | st.just(NODES)), max_size=6), st.lists(demands, max_size=3))
def test_the_estimator_agrees_with_single_estimates(
    capacities: list[Capacity | None], requests: list[ResourceRequest | None]
) -> None:
    columns = Estimator(capacities)
    for resource_request in requests:
        assert columns.estimate_replicas(resource_request) == [
            estimate_replicas(capacity, resource_request) for capacity in capacities
        ]
