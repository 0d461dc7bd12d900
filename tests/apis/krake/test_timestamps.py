"""`scheduled` and `kube_controller_triggered`: when a placement changed, and which version of an application the scheduler has seen.

A commit is the moment of modification: a version is decided in the run that first sees it, so that nobody ever meets one that is not.
"""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.model.time import parse_time
from tests.apis.krake.conftest import (
    TOSCA,
    Body,
    Story,
    application,
    cloud,
    cluster,
    later,
    magnum_cluster,
    measure,
    project,
    text,
    weigh,
)

NOWHERE = {"labels": ["location is nowhere"]}


def moments(story: Story) -> tuple[str | None, str | None]:
    status = story.status()
    return status.get("scheduled"), status.get("kube_controller_triggered")


def pair(**spec: Any) -> Story:
    """Application `echo` on cluster `one`, since 12:00, which metric `a` makes better than `two`."""
    places = (cluster("one", metrics=weigh(a=1)), cluster("two", metrics=weigh(b=1)))
    story = Story(application(**spec), *places, *measure(a=0.9, b=0.1))
    story.run()
    assert story.place() == "one"
    return story


def turned() -> list[Body]:
    """Measurements that make `two` the better cluster."""
    return measure(a=0.1, b=0.9)


def test_the_first_binding_sets_both() -> None:
    assert moments(pair()) == (text(later(0)), text(later(0)))


def test_a_move_sets_both() -> None:
    story = pair()
    story.run(3600, *turned())
    assert story.place() == "two"
    assert moments(story) == (text(later(3600)), text(later(3600)))


def test_a_new_version_on_the_same_cluster_is_marked_as_seen() -> None:
    story = pair()
    story.run(3600, application(backoff=2))
    assert moments(story) == (text(later(0)), text(later(3600)))


def test_looking_again_leaves_no_trace() -> None:
    story = pair()
    before = story.left
    story.run(3600)
    assert story.left == before


@pytest.mark.parametrize("change", [[], turned(), [application(backoff=2)]], ids=["bound", "moved", "new version"])
def test_after_a_decision_no_version_is_newer_than_what_the_scheduler_saw(change: list[Body]) -> None:
    story = pair()
    story.run(3600, *change)
    modified, triggered = story.left[0]["metadata"]["modified"], story.status()["kube_controller_triggered"]
    assert modified <= triggered


def test_a_version_that_nobody_decided_yet_is_newer_until_it_is() -> None:
    seen = {"api": "kubernetes", "kind": "Cluster", "namespace": "tenant-a", "name": "one"}
    status = {"scheduled": text(later(-9000)), "kube_controller_triggered": text(later(-9000)), "scheduled_to": seen}
    document = application(status=status)
    document["metadata"] |= {"created": text(later(-9000)), "modified": text(later(-10))}
    story = Story(document, cluster("one"))
    story.run()
    assert moments(story) == (text(later(-9000)), text(later(0)))


def test_who_was_placed_a_short_while_ago_stays_and_is_scored_again_to_the_second() -> None:
    story = pair()
    story.run(59, *turned())
    assert story.place() == "one"
    story.run(60)
    assert story.place() == "two"
    assert moments(story) == (text(later(60)), text(later(60)))


def test_even_a_new_version_stays_for_that_while() -> None:
    story = pair()
    story.run(30, application(backoff=2), *turned())
    assert story.place() == "one"
    assert moments(story) == (text(later(0)), text(later(30)))


def test_a_cluster_that_no_longer_matches_is_left_at_once() -> None:
    story = pair()
    story.run(1, cluster("one", "OFFLINE", metrics=weigh(a=1)))
    assert story.place() == "two"
    assert moments(story) == (text(later(1)), text(later(1)))


def test_who_must_not_migrate_stays_and_only_new_versions_are_marked() -> None:
    story = pair(migration=False)
    story.run(3600, *turned(), cluster("one", "OFFLINE", metrics=weigh(a=1)))
    assert moments(story) == (text(later(0)), text(later(0)))
    story.run(7200, application(migration=False, backoff=2))
    assert (story.place(), *moments(story)) == ("one", text(later(0)), text(later(7200)))


def test_a_failure_sets_neither() -> None:
    story = pair()
    story.run(3600, application(constraints=NOWHERE))
    assert story.status()["state"] == "DEGRADED"
    assert (story.place(), *moments(story)) == ("one", text(later(0)), text(later(0)))


def test_a_cluster_has_only_the_first_of_them_and_a_magnum_cluster_none() -> None:
    story = Story(cluster("made", None, tosca=TOSCA), cloud("here"), magnum_cluster(), project("p"))
    story.run()
    assert story.status("Cluster", "made")["scheduled"] == text(later(0))
    assert "kube_controller_triggered" not in story.status("Cluster", "made")
    assert story.status("MagnumCluster", "m")["project"]["name"] == "p"
    assert {"scheduled", "kube_controller_triggered"}.isdisjoint(story.status("MagnumCluster", "m"))


def test_a_retry_that_is_due_is_stamped_with_its_deadline_however_late_it_is_made() -> None:
    limited = {"backoff_limit": 2, "backoff_delay": 100, "constraints": NOWHERE}
    story = Story(application(**limited), cluster("one"))
    story.run()
    assert (story.status()["state"], story.status()["retries"]) == ("DEGRADED", 1)
    assert parse_time(story.status()["scheduled_retry"]) == later(100)
    late, punctual = Story(*story.documents), Story(*story.documents)
    late.left = punctual.left = story.left
    for second in (100, 200, 300):
        punctual.run(second, at=0)
    late.run(5000, at=0)
    assert late.status() == punctual.status()
    assert late.status()["state"] == "FAILED"
