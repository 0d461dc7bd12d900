"""The timestamps `scheduled` (the placement changed) and `kube_controller_triggered` (the scheduler processed a version).

The time of a commit is the modification time of its documents: the first run on a commit schedules their new versions.
"""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.model.time import parse_time
from tests.builders.krake import (
    TOSCA,
    Body,
    ScheduleRuns,
    application,
    cloud,
    cluster,
    format_later,
    later,
    magnum_cluster,
    measure,
    project,
    weigh,
)

NOWHERE = {"labels": ["location is nowhere"]}


def timestamps(runs: ScheduleRuns) -> tuple[str | None, str | None]:
    status = runs.status()
    return status.get("scheduled"), status.get("kube_controller_triggered")


def two_cluster_runs(**spec: Any) -> ScheduleRuns:
    """Return runs with application `echo` on cluster `one` since 12:00, which has a better metric than `two`."""
    clusters = (cluster("one", metrics=weigh(a=1)), cluster("two", metrics=weigh(b=1)))
    runs = ScheduleRuns(application(**spec), *clusters, *measure(a=0.9, b=0.1))
    runs.run()
    assert runs.target() == "one"
    return runs


def reversed_metrics() -> list[Body]:
    """Return metric values that make `two` the better cluster."""
    return measure(a=0.1, b=0.9)


def test_the_first_binding_sets_both_timestamps() -> None:
    assert timestamps(two_cluster_runs()) == (format_later(0), format_later(0))


def test_a_move_sets_both_timestamps() -> None:
    runs = two_cluster_runs()
    runs.run(3600, *reversed_metrics())
    assert runs.target() == "two"
    assert timestamps(runs) == (format_later(3600), format_later(3600))


def test_a_new_version_on_the_same_cluster_updates_kube_controller_triggered() -> None:
    runs = two_cluster_runs()
    runs.run(3600, application(backoff=2))
    assert timestamps(runs) == (format_later(0), format_later(3600))


def test_a_run_without_changes_keeps_the_records() -> None:
    runs = two_cluster_runs()
    before = runs.records
    runs.run(3600)
    assert runs.records == before


@pytest.mark.parametrize("change", [[], reversed_metrics(), [application(backoff=2)]], ids=["bound", "moved", "new version"])
def test_after_a_run_modified_is_not_later_than_kube_controller_triggered(change: list[Body]) -> None:
    runs = two_cluster_runs()
    runs.run(3600, *change)
    modified, triggered = runs.records[0]["metadata"]["modified"], runs.status()["kube_controller_triggered"]
    assert modified <= triggered


def test_a_pending_version_updates_kube_controller_triggered_when_it_is_scheduled() -> None:
    target = {"api": "kubernetes", "kind": "Cluster", "namespace": "tenant-a", "name": "one"}
    status = {"scheduled": format_later(-9000), "kube_controller_triggered": format_later(-9000), "scheduled_to": target}
    document = application(status=status)
    document["metadata"] |= {"created": format_later(-9000), "modified": format_later(-10)}
    runs = ScheduleRuns(document, cluster("one"))
    runs.run()
    assert timestamps(runs) == (format_later(-9000), format_later(0))


def test_a_recently_scheduled_application_stays_until_reschedule_after_has_passed() -> None:
    runs = two_cluster_runs()
    runs.run(59, *reversed_metrics())
    assert runs.target() == "one"
    runs.run(60)
    assert runs.target() == "two"
    assert timestamps(runs) == (format_later(60), format_later(60))


def test_a_new_version_does_not_shorten_reschedule_after() -> None:
    runs = two_cluster_runs()
    runs.run(30, application(backoff=2), *reversed_metrics())
    assert runs.target() == "one"
    assert timestamps(runs) == (format_later(0), format_later(30))


def test_an_application_leaves_a_cluster_that_does_not_match_immediately() -> None:
    runs = two_cluster_runs()
    runs.run(1, cluster("one", "OFFLINE", metrics=weigh(a=1)))
    assert runs.target() == "two"
    assert timestamps(runs) == (format_later(1), format_later(1))


def test_with_migration_disabled_an_application_stays_and_only_new_versions_are_marked() -> None:
    runs = two_cluster_runs(migration=False)
    runs.run(3600, *reversed_metrics(), cluster("one", "OFFLINE", metrics=weigh(a=1)))
    assert timestamps(runs) == (format_later(0), format_later(0))
    runs.run(7200, application(migration=False, backoff=2))
    assert (runs.target(), *timestamps(runs)) == ("one", format_later(0), format_later(7200))


def test_a_failure_sets_no_timestamp() -> None:
    runs = two_cluster_runs()
    runs.run(3600, application(constraints=NOWHERE))
    assert runs.status()["state"] == "DEGRADED"
    assert (runs.target(), *timestamps(runs)) == ("one", format_later(0), format_later(0))


def test_a_cluster_has_only_scheduled_and_a_magnum_cluster_no_timestamp() -> None:
    runs = ScheduleRuns(cluster("made", None, tosca=TOSCA), cloud("here"), magnum_cluster(), project("p"))
    runs.run()
    assert runs.status("Cluster", "made")["scheduled"] == format_later(0)
    assert "kube_controller_triggered" not in runs.status("Cluster", "made")
    assert runs.status("MagnumCluster", "m")["project"]["name"] == "p"
    assert {"scheduled", "kube_controller_triggered"}.isdisjoint(runs.status("MagnumCluster", "m"))


def test_a_late_retry_has_the_timestamp_of_its_deadline() -> None:
    retry_settings = {"backoff_limit": 2, "backoff_delay": 100, "constraints": NOWHERE}
    runs = ScheduleRuns(application(**retry_settings), cluster("one"))
    runs.run()
    assert (runs.status()["state"], runs.status()["retries"]) == ("DEGRADED", 1)
    assert parse_time(runs.status()["scheduled_retry"]) == later(100)
    late, on_time = ScheduleRuns(*runs.documents), ScheduleRuns(*runs.documents)
    late.records = on_time.records = runs.records
    for second in (100, 200, 300):
        on_time.run(second, at=0)
    late.run(5000, at=0)
    assert late.status() == on_time.status()
    assert late.status()["state"] == "FAILED"
