"""Rank candidates and apply spread constraints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.scheduling import AffinityGroup, Assignment, Request, SpreadConstraint
from gitsched.schedule.estimator import Capacity
from gitsched.schedule.fleet import Candidate, Fleet
from gitsched.schedule.pipeline import schedule
from gitsched.schedule.spread_constraints import Region, select_regions


def fleet(**capacities: int | tuple[int, str]) -> Fleet:
    """Candidates by name: the number of free pods, and the region."""
    values = {name: value if isinstance(value, tuple) else (value, "") for name, value in capacities.items()}
    return Fleet(
        Candidate(name, {}, {"region": (region,) if region else ()}, capacity=Capacity({"pods": pods}))
        for name, (pods, region) in values.items()
    )


def request(*spreads: SpreadConstraint, **members: Any) -> Request:
    members = {"identity": "", "replicas": 6, "division": "aggregated", "groups": (AffinityGroup("", None),), **members}
    return Request(spread_constraints=spreads, divides=members["division"] != "duplicated", **members)


def spread(least: int, most: int, field: str = "cluster") -> SpreadConstraint:
    return SpreadConstraint(field, least, most)


@pytest.mark.parametrize(
    ("workload", "selected"),
    [
        pytest.param(request(spread(1, 2), replicas=9), {"b": 3, "c": 6}, id="those with most capacity"),
        pytest.param(
            request(spread(1, 2), previous=(Assignment("a", 1),)),
            {"a": 2, "c": 4},
            id="previous clusters first, then most capacity",
        ),
        pytest.param(
            request(spread(1, 1), previous=(Assignment("a", 1),)), {"c": 6}, id="but exchanged if the capacity is insufficient"
        ),
        pytest.param(request(spread(1, 3), division="duplicated"), {"a": 6, "b": 6, "c": 6}, id="all with capacity"),
        pytest.param(request(spread(1, 2), division="duplicated"), {"b": 6, "c": 6}, id="duplicated: the first ones"),
        pytest.param(
            request(spread(1, 1), division="duplicated", previous=(Assignment("a", 9),), replicas=99),
            {"a": 99},
            id="duplicated: capacity is ignored",
        ),
    ],
)
def test_clusters_are_selected_by_spread_constraint(workload: Request, selected: dict[str, int]) -> None:
    decision = schedule(workload, fleet(a=1, b=3, c=7))
    assert {target.name: target.replicas for target in decision.assignments} == selected, decision.message


@pytest.mark.parametrize(
    ("workload", "why"),
    [
        pytest.param(
            request(spread(4, 5)),
            "the number of feasible clusters is less than spreadConstraint.MinGroups",
            id="too few clusters",
        ),
        pytest.param(
            request(spread(1, 2), replicas=11), "no enough resource when selecting 2 clusters", id="insufficient capacity"
        ),
        pytest.param(
            request(spread(1, 0)), "no enough resource when selecting 0 clusters", id="a maximum that was not given is none"
        ),
        pytest.param(
            request(spread(1, 2, "zone")),
            "just support cluster and region spread constraint",
            id="zones alone cannot be spread over",
        ),
        pytest.param(
            request(spread(2, 2, "region"), spread(1, 2)),
            "the number of feasible region is less than spreadConstraint.MinGroups",
            id="too few regions",
        ),
    ],
)
def test_a_failed_selection_has_a_reason(workload: Request, why: str) -> None:
    decision = schedule(workload, fleet(a=1, b=3, c=7))
    assert (decision.status, decision.message) == ("error", f"failed to select clusters: {why}")


REGIONS = fleet(a1=(5, "a"), a2=(4, "a"), b1=(9, "b"), c1=(2, "c"), c2=(1, "c"), c3=(1, "c"))


@pytest.mark.parametrize(
    ("workload", "selected"),
    [
        pytest.param(
            request(spread(1, 1, "region"), spread(1, 2)),
            {"a1", "a2"},
            id="of regions with capacity for all that with more members",
        ),
        pytest.param(request(spread(2, 2, "region"), spread(2, 2)), {"a1", "c1"}, id="the best of each region"),
        pytest.param(request(spread(2, 2, "region"), spread(2, 3)), {"a1", "a2", "c1"}, id="then the best of all others"),
        pytest.param(request(spread(1, 3, "region"), spread(1, 0)), {"a1"}, id="without a maximum one per region"),
        pytest.param(request(spread(3, 3, "region"), spread(1, 2)), {"a1", "b1", "c1"}, id="never fewer than one per region"),
        pytest.param(
            request(spread(1, 2, "region"), spread(3, 4), division="duplicated", replicas=4),
            {"a1", "a2", "b1"},
            id="duplicated",
        ),
    ],
)
def test_regions_are_selected_by_spread_constraint(workload: Request, selected: set[str]) -> None:
    decision = schedule(workload._replace(division="duplicated"), REGIONS)  # which shows what was selected
    assert {target.name for target in decision.assignments} == selected, decision.message


def test_without_a_maximum_of_regions_selection_fails() -> None:
    decision = schedule(request(spread(1, 0, "region"), spread(1, 2)), REGIONS)
    assert (
        decision.message == "failed to select clusters: the number of clusters is less than the cluster spreadConstraint.MinGroups"
    )


def walk(regions: list[Region], least: int, most: int, members: int) -> Iterator[list[Region]]:
    """Karmada's search as documented: every combination, depth first."""
    ranked = sorted(regions, key=lambda region: (len(region.members), -region.score, region.name))

    def extend(path: list[Region], begin: int) -> Iterator[list[Region]]:
        if sum(len(region.members) for region in path) >= members and least <= len(path) <= most:
            yield path
        elif len(path) < most:
            for place in range(begin, len(ranked)):
                yield from extend([*path, ranked[place]], place + 1)

    return extend([], 0)


def search(regions: list[Region], least: int, most: int, members: int) -> list[str] | None:
    """The best recorded path, then every shorter recorded one that is a prefix of it."""
    paths = [sorted(path, key=lambda region: (-region.score, region.name)) for path in walk(regions, least, most, members)]
    order = sorted(range(len(paths)), key=lambda i: (-sum(r.score for r in paths[i]), -sum(len(r.members) for r in paths[i]), i))
    ranked = [[region.name for region in paths[i]] for i in order]
    best = ranked[0] if ranked else None
    for path in ranked[1:]:
        if best is not None and len(path) < len(best) and best[: len(path)] == path:
            best = path
    return best


@st.composite
def choices(draw: st.DrawFn) -> tuple[list[Region], int, int, int]:
    counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=7))
    scores = draw(st.lists(st.sampled_from([0, 0, 1000, 1100, 2000, 2100, 5000]), min_size=len(counts), max_size=len(counts)))
    regions = [Region(f"r{i}", score, list(range(count))) for i, (count, score) in enumerate(zip(counts, scores, strict=True))]
    least = draw(st.integers(1, len(regions)))
    # Upstream does not walk where every region is needed.
    most = draw(st.integers(least, len(regions) + 1))
    return regions, least, most, draw(st.integers(1, 12))


@given(choices())
def test_the_result_is_that_of_the_exhaustive_search(choice: tuple[list[Region], int, int, int]) -> None:
    regions, least, most, members = choice
    found = select_regions(regions, least, most, members)
    assert (found and [region.name for region in found]) == search(regions, least, most, members)


def test_forty_regions_are_selected_quickly() -> None:
    regions = [Region(f"r{i:02}", 1000 * (i % 7), list(range(1 + i % 3))) for i in range(40)]
    found = select_regions(regions, 2, 20, 30)
    assert found is not None
    assert sum(len(region.members) for region in found) >= 30
    assert len(found) <= 20
