"""Ties between equal candidates are broken by a hash, so that equal applications spread and nothing moves without a reason."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256

import pytest

from tests.builders.krake import ScheduleRuns, application, cluster, measure, weigh

CLUSTERS = [f"c{number}" for number in range(10)]


@pytest.fixture(scope="module")
def equal_applications() -> ScheduleRuns:
    """1,000 equal applications, ten equal clusters."""
    runs = ScheduleRuns(
        *(application(f"app-{n}") for n in range(1000)), *(cluster(p, metrics=weigh(a=1)) for p in CLUSTERS), *measure(a=0.5)
    )
    runs.run()
    return runs


def targets(runs: ScheduleRuns) -> dict[str, str]:
    return {
        body["metadata"]["name"]: body["status"]["scheduled_to"]["name"] for body in runs.records if body["kind"] == "Application"
    }


def test_equal_applications_spread_evenly_over_equal_clusters(equal_applications: ScheduleRuns) -> None:
    counts = Counter(targets(equal_applications).values())
    assert set(counts) == set(CLUSTERS)
    # 100 each on average; four standard deviations of a uniform choice are 38.
    assert all(62 <= count <= 138 for count in counts.values()), counts


def test_a_second_run_moves_nothing(equal_applications: ScheduleRuns) -> None:
    again = ScheduleRuns(*reversed(equal_applications.documents))
    again.records = list(reversed(equal_applications.records))
    again.run(86_400)
    assert targets(again) == targets(equal_applications)
    new_runs = ScheduleRuns(*reversed(equal_applications.documents))
    new_runs.run(5)
    assert targets(new_runs) == targets(equal_applications), "without previous records the result is the same"


def test_ties_are_broken_by_the_documented_hash(equal_applications: ScheduleRuns) -> None:
    def hash_pair(name: str, cluster_name: str) -> bytes:
        return sha256(f"Application/tenant-a/{name}\n{cluster_name}".encode()).digest()

    assert targets(equal_applications) == {
        f"app-{n}": min(CLUSTERS, key=lambda name: hash_pair(f"app-{n}", name)) for n in range(1000)
    }


def test_a_new_cluster_only_takes_the_ties_that_it_wins(equal_applications: ScheduleRuns) -> None:
    runs = ScheduleRuns(*equal_applications.documents, cluster("new", metrics=weigh(a=1)), stickiness=0)
    runs.records = equal_applications.records
    before = targets(equal_applications)
    runs.run(86_400)
    moved = {name: target for name, target in targets(runs).items() if target != before[name]}
    assert set(moved.values()) == {"new"}
    assert 50 <= len(moved) <= 135
