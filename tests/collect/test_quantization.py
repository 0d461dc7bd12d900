"""A jitter of 5 % changes nothing, and a real change is seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.apis.gitsched.facts_document import read_facts, write_facts
from gitsched.apis.karmada.cluster.facts import apply_facts, read_cluster
from gitsched.collect.quantization import quantize_amounts, quantize_grades, quantize_nodes, settle_facts, settle_readiness
from gitsched.model.cluster_facts import FALSE, TRUE, ClusterFacts, NodeCount, Readiness
from gitsched.model.quantity import NANO, parse_quantity
from gitsched.reconcile.facts.collection import find_problem

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
UNITS = {"cpu": NANO // 1000, "memory": NANO, "pods": NANO, "nvidia.com/gpu": NANO}
resources = st.sampled_from(sorted(UNITS))
jitter = st.integers(-500, 500)


def apply_jitter(resource: str, amount: int, hundredths: int) -> int:
    """Return an amount with a deviation, in billionths: a whole number between 95 % and 105 %."""
    least, most = -(-amount * 95 // 100), amount * 105 // 100
    return min(max(amount * (10_000 + hundredths) // 10_000, least), most) * UNITS[resource]


@given(resources, st.integers(0, 2**53), st.lists(jitter, min_size=2, max_size=6), st.booleans())
def test_a_jitter_of_five_percent_changes_nothing(resource: str, amount: int, deviations: list[int], up: bool) -> None:
    first = quantize_amounts({resource: apply_jitter(resource, amount, deviations[0])}, None, up=up)
    if resource == "memory" and amount < 100 << 20:
        return  # below the step of a MiB
    if resource == "cpu" and amount < 100:
        return  # below the step of a thousandth
    last = first
    for deviation in deviations[1:]:
        last = quantize_amounts({resource: apply_jitter(resource, amount, deviation)}, last, up=up)
    assert last == first


@given(resources, st.integers(1000, 2**53), st.booleans())
def test_three_digits_are_kept_on_the_safe_side(resource: str, amount: int, up: bool) -> None:
    nano = amount * UNITS[resource]
    quantity = parse_quantity(quantize_amounts({resource: nano}, None, up=up)[resource])
    assert quantity is not None
    step = max(quantity.nano, nano) // 100 + (NANO << 20)
    assert 0 <= (quantity.nano - nano if up else nano - quantity.nano) <= step


@given(resources, st.integers(1000, 2**40), st.booleans())
def test_a_change_of_more_than_the_tolerance_is_seen(resource: str, amount: int, up: bool) -> None:
    scaled = amount << 20 if resource == "memory" else amount
    before = quantize_amounts({resource: scaled * UNITS[resource]}, None, up=up)
    assert quantize_amounts({resource: scaled * UNITS[resource] * 114 // 100}, before, up=up) != before
    assert quantize_amounts({resource: scaled * UNITS[resource] * 86 // 100}, before, up=up) != before


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [
        ((8, 8), (8, 7), False),
        ((40, 40), (40, 38), True),
        ((40, 40), (33, 33), False),
        ((1, 1), (1, 0), False),
        ((3, 3), (3, 3), True),
    ],
)
def test_nodes(before: tuple[int, int], now: tuple[int, int], kept: bool) -> None:
    found = quantize_nodes(NodeCount(*now), NodeCount(*before))
    assert found == NodeCount(*(before if kept else now))


def test_a_few_things_are_counted_exactly() -> None:
    before = {"nvidia.com/gpu": "9"}
    assert quantize_amounts({"nvidia.com/gpu": 8 * NANO}, before, up=False) == {"nvidia.com/gpu": "8"}


def test_readiness_keeps_the_time_of_its_last_change() -> None:
    earlier = Readiness(TRUE, "ClusterReady", "all 3 nodes", NOW - timedelta(hours=3))
    assert settle_readiness(Readiness(TRUE, "ClusterReady", "2 nodes"), earlier, NOW) == earlier
    assert settle_readiness(Readiness(FALSE, "NodesNotReady"), earlier, NOW).since == NOW


@pytest.mark.parametrize(("minutes", "version", "written"), [(29, "v1.34.1", False), (30, "v1.34.1", True), (1, "v1.34.2", True)])
def test_unchanged_facts_are_written_again_when_they_are_old(minutes: int, version: str, written: bool) -> None:
    before = ClusterFacts("dub", NOW, version="v1.34.1")
    now = ClusterFacts("dub", NOW + timedelta(minutes=minutes), version=version)
    assert settle_facts(now, before, timedelta(minutes=30)) == (now if written else before)


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [
        ({0: 40, 1: 60}, {0: 43, 1: 57}, True),
        ({0: 40, 1: 60}, {0: 50, 1: 50}, False),
        ({0: 1, 1: 2}, {0: 2, 1: 1}, False),
        ({0: 40}, {0: 40, 1: 0}, False),
        ({}, {0: 1}, False),
    ],
)
def test_nodes_by_grade_change_with_more_than_the_tolerance_of_all_nodes(
    before: dict[int, int], now: dict[int, int], kept: bool
) -> None:
    assert quantize_grades(now, before) == (before if kept else now)


def test_nodes_by_grade_become_the_modelings_of_a_cluster() -> None:
    hub = {"metadata": {"name": "a"}, "status": {"resourceSummary": {"allocatableModelings": [{"grade": 1, "count": 2}]}}}
    facts = read_cluster(hub, datetime(2026, 3, 1, tzinfo=UTC)).facts
    assert read_facts(write_facts(facts)) == facts
    source = {"metadata": {"name": "a"}, "status": {"resourceSummary": {"allocatable": {"cpu": "1"}}}}
    made = apply_facts(source, facts, None)["status"]["resourceSummary"]
    assert made == {"allocatable": {"cpu": "1"}, "allocatableModelings": [{"grade": 1, "count": 2}]}
    broken = read_cluster(
        {"metadata": {"name": "a"}, "status": {"resourceSummary": {"allocatableModelings": [{"grade": []}]}}}, facts.observed
    )
    assert find_problem(write_facts(broken.facts))
