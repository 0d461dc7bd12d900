"""Equal candidates: who wins is drawn by a hash, so that equal applications spread and nothing moves without a reason."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256

import pytest

from tests.apis.krake.conftest import Story, application, cluster, measure, weigh

PLACES = [f"c{number}" for number in range(10)]


@pytest.fixture(scope="module")
def crowd() -> Story:
    """1,000 equal applications, ten equal clusters."""
    story = Story(
        *(application(f"app-{n}") for n in range(1000)), *(cluster(p, metrics=weigh(a=1)) for p in PLACES), *measure(a=0.5)
    )
    story.run()
    return story


def places(story: Story) -> dict[str, str]:
    return {
        body["metadata"]["name"]: body["status"]["scheduled_to"]["name"] for body in story.left if body["kind"] == "Application"
    }


def test_equal_applications_spread_evenly_over_equal_clusters(crowd: Story) -> None:
    counts = Counter(places(crowd).values())
    assert set(counts) == set(PLACES)
    # 100 each on average; four standard deviations of a fair lottery are 38.
    assert all(62 <= count <= 138 for count in counts.values()), counts


def test_a_rerun_moves_none(crowd: Story) -> None:
    again = Story(*reversed(crowd.documents))
    again.left = list(reversed(crowd.left))
    again.run(86_400)
    assert places(again) == places(crowd)
    fresh = Story(*reversed(crowd.documents))
    fresh.run(5)
    assert places(fresh) == places(crowd), "nor does a start from nothing"


def test_the_lot_is_the_documented_one(crowd: Story) -> None:
    def ticket(name: str, place: str) -> bytes:
        return sha256(f"Application/tenant-a/{name}\n{place}".encode()).digest()

    assert places(crowd) == {f"app-{n}": min(PLACES, key=lambda place: ticket(f"app-{n}", place)) for n in range(1000)}


def test_a_new_cluster_takes_only_what_it_wins(crowd: Story) -> None:
    story = Story(*crowd.documents, cluster("new", metrics=weigh(a=1)), stickiness=0)
    story.left = crowd.left
    before = places(crowd)
    story.run(86_400)
    moved = {name: place for name, place in places(story).items() if place != before[name]}
    assert set(moved.values()) == {"new"}
    assert 50 <= len(moved) <= 135
