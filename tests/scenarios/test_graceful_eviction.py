"""Graceful eviction: a workload runs in its new cluster before it is removed from the old one; deadlines take effect without a commit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from gitsched.git import Repository
from gitsched.model.history import HistoryFilter
from gitsched.model.time import format_time
from gitsched.reconcile import Reconciler
from gitsched.reconcile.output.history_records import HistoryBranch
from gitsched.reconcile.output.output_history import OutputHistory
from gitsched.reconcile.source.source_reader import SourceReader

from .conftest import Fleet, at_hour, cluster, deployment, policy
from .test_incremental_plan import ThreeVariants

DOWN = cluster("first", "power:NoExecute")
MINUTE = 1 / 60
WEB = "default/deployment-web"


def fill(fleet: Fleet, tolerate: int | None = None) -> None:
    """Return a fleet with web on `first`; `tolerate` are the seconds for which web tolerates the taint."""
    more = f"    clusterTolerations: [{{key: power, operator: Exists, effect: NoExecute, tolerationSeconds: {tolerate}}}]\n"
    policies = policy("first", "second", more=more if tolerate is not None else "")
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": policies, "second.yaml": cluster("second")})
    fleet.commit({"first.yaml": cluster("first")})
    fleet.reconcile()
    assert fleet.where(WEB) == ["first"]


def test_a_taint_moves_the_workload_and_keeps_the_old_copy_until_the_deadline(fleet: Fleet) -> None:
    fill(fleet)
    fleet.commit({"first.yaml": DOWN}, hour=1)
    moved = fleet.reconcile(1)
    assert fleet.delivered(WEB) == ["first", "second"]
    binding = fleet.binding("web-deployment")
    assert [entry["name"] for entry in binding["spec"]["clusters"]] == ["second"]
    assert [task["fromCluster"] for task in binding["spec"]["gracefulEvictionTasks"]] == ["first"]
    assert moved.plan.next_wakeup == at_hour(1 + 10 * MINUTE)

    assert fleet.reconcile(1 + 9 * MINUTE).after is None, "not yet"
    assert fleet.reconcile(1 + 10 * MINUTE).after is not None
    assert fleet.where(WEB) == ["second"]
    assert "gracefulEvictionTasks" not in fleet.binding("web-deployment")["spec"]


def test_a_workload_whose_only_copy_is_evicted_counts_as_unplaced_from_the_first_run_on(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": policy("first"), "first.yaml": cluster("first")})
    fleet.reconcile()
    fleet.commit({"first.yaml": DOWN}, hour=1)
    for hour in (1, 1 + 5 * MINUTE, 1 + 11 * MINUTE):
        states = fleet.reconcile(hour).plan.state_counts
        assert (states["placed"], states["pending"]) == (0, 1), hour
    assert fleet.delivered(WEB) == ["first"], "its copy stays until another cluster fits"


def test_the_history_of_a_workload_has_the_run_in_which_its_overlap_ended(fleet: Fleet) -> None:
    fill(fleet)
    other = deployment("other")
    fleet.commit({"first.yaml": DOWN}, hour=1)
    fleet.reconcile(1)
    fleet.commit(
        {"other.yaml": other, "policy-other.yaml": policy("second").replace("name: all", "name: other")}, hour=1 + 5 * MINUTE
    )
    fleet.reconcile(1 + 5 * MINUTE)
    fleet.reconcile(1 + 10 * MINUTE)
    repository = Repository(fleet.path)
    branch = HistoryBranch("placements", repository, fleet.git("rev-parse", "placements").strip(), "")

    def list_times(chosen: HistoryFilter) -> list[tuple[object, str]]:
        return [(entry.time, entry.cause) for entry in OutputHistory(branch, repository, chosen).read_entries(10)][:2]

    ended, moved = (at_hour(1 + 10 * MINUTE), "deadline"), (at_hour(1), "source")
    for chosen in (HistoryFilter(workload="web"), HistoryFilter(workload="web", cluster="first")):
        assert list_times(chosen) == [ended, moved]
    assert list_times(HistoryFilter(workload="web", cluster="second"))[0] == moved
    assert ended not in list_times(HistoryFilter(workload="other"))


def test_the_commit_of_a_deadline_has_the_time_of_the_deadline(fleet: Fleet) -> None:
    fill(fleet)
    fleet.commit({"first.yaml": DOWN}, hour=1)
    fleet.reconcile(1)
    fleet.reconcile(7)
    assert fleet.trailers()["Gitsched-Cause"] == "deadline"
    assert fleet.git("log", "-1", "--format=%ct", "placements") == str(int(at_hour(1 + 10 * MINUTE).timestamp()))


def test_a_run_that_is_late_by_less_than_a_tenth_of_the_overlap_writes_the_same_bytes(make_fleet: Callable[[str], Fleet]) -> None:
    punctual, late = make_fleet("punctual"), make_fleet("late")
    for fleet, minutes in ((punctual, (0, 3, 10, 30)), (late, (1, 10.9, 55))):
        fill(fleet)
        fleet.commit({"first.yaml": DOWN}, hour=1)
        for minute in minutes:
            fleet.reconcile(1 + minute * MINUTE)
    assert punctual.where(WEB) == ["second"]
    assert punctual.head == late.head


def test_a_run_after_the_move_and_the_deadline_keeps_the_old_copy_for_the_overlap(make_fleet: Callable[[str], Fleet]) -> None:
    punctual, late = make_fleet("punctual"), make_fleet("late")
    for fleet, hours in ((punctual, (1, 2)), (late, (2, 2 + 9 * MINUTE))):
        fill(fleet)
        fleet.commit({"first.yaml": DOWN}, hour=1)
        for hour in hours:
            fleet.reconcile(hour)
    assert (punctual.delivered(WEB), late.delivered(WEB)) == (["second"], ["first", "second"])
    assert "gracefulEvictionTasks" not in late.binding("web-deployment")["spec"], "the record is the same as that of a run in time"
    late.reconcile(2 + 10 * MINUTE)
    assert {path for path, blob in punctual.files().items() if late.files()[path] != blob} <= {"README.md", "gitsched.json"}
    assert punctual.files().keys() == late.files().keys()


def test_toleration_seconds_start_when_an_undated_taint_is_first_seen(fleet: Fleet) -> None:
    fill(fleet, tolerate=1800)
    fleet.commit({"first.yaml": DOWN}, hour=1)
    assert fleet.reconcile(1).plan.next_wakeup == at_hour(1.5)
    fleet.commit({"README.md": "Somebody commits something else meanwhile\n"}, hour=1.25)
    assert fleet.reconcile(1.25).plan.next_wakeup == at_hour(1.5), "the clock does not start again"
    fleet.commit({"other.yaml": deployment("other")}, hour=1.4)
    fleet.reconcile(1.4)
    assert fleet.where(WEB) == ["first"]
    fleet.reconcile(1.5)
    assert fleet.delivered(WEB) == ["first", "second"]
    assert fleet.binding("web-deployment")["spec"]["gracefulEvictionTasks"][0]["creationTimestamp"] == "2026-03-02T09:30:00Z"


def test_removing_a_taint_in_time_moves_nothing_and_a_new_one_starts_again(fleet: Fleet) -> None:
    fill(fleet, tolerate=1800)
    for hour, text in ((1, DOWN), (1.25, cluster("first")), (2, DOWN)):
        fleet.commit({"first.yaml": text}, hour=hour)
        fleet.reconcile(hour)
    assert fleet.reconcile(2.25).plan.next_wakeup == at_hour(2.5)
    assert fleet.where(WEB) == ["first"]


@pytest.mark.parametrize("hour", [2, 48])
def test_a_recovered_cluster_does_not_get_the_workload_back(fleet: Fleet, hour: float) -> None:
    fill(fleet)
    fleet.commit({"first.yaml": DOWN}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"first.yaml": cluster("first")}, hour=hour)
    fleet.reconcile(hour)
    assert fleet.where(WEB) == ["second"]


def test_a_run_reads_a_file_once_however_many_of_its_workloads_are_due(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_source = SourceReader.read

    def record(self: SourceReader, blob: str, path: str, *more: Any) -> Any:
        read.append(path)
        return read_source(self, blob, path, *more)

    fill(fleet, tolerate=600)
    without_overlap = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nspec:\n  output: {overlap: 0s}\n"
    workloads = "---\n".join(deployment(name) for name in ("web", *"abcdefghijkl"))
    fleet.commit({"gitsched.yaml": without_overlap, "first.yaml": DOWN, "web.yaml": workloads}, hour=1)
    session = Reconciler(fleet.settings(1))
    for minutes in (0, 1):  # the second run changes nothing, and saves what the third one starts from
        session.run(at_hour(1 + minutes * MINUTE))
    monkeypatch.setattr(SourceReader, "read", record)
    assert session.run(at_hour(1 + 10 * MINUTE)).changed
    assert fleet.binding("l-deployment")["spec"]["clusters"][0]["name"] == "second"
    assert read.count("web.yaml") == 1


def test_a_copy_is_recorded_where_a_workload_returns_to_a_cluster_that_still_has_it(
    make_fleet: Callable[[str], Fleet], tmp_path: Path
) -> None:
    fleet = make_fleet("returns")
    fill(fleet)
    near = policy("first", "second").replace("clusterNames: [first]", "labelSelector: {matchLabels: {near: here}}")
    variants, labelled = ThreeVariants(fleet, tmp_path), cluster("first").replace("spec:", "  labels: {near: here}\nspec:")
    settings = (
        "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\n"
        "spec: {karmada: {failback: WhenUnschedulable}}\n"
    )
    fleet.commit({"policy.yaml": near, "first.yaml": labelled, "gitsched.yaml": settings})
    again = (
        "apiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata: {name: again}\n"
        "spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}]}\n"
    )
    copies = []
    for minute, files in enumerate(
        ({}, {"first.yaml": cluster("first")}, {"first.yaml": labelled}, {"again.yaml": again}), start=60
    ):
        fleet.commit(files, hour=minute * MINUTE)
        runs = variants.run(minute * MINUTE, f"minute {minute}")
        copies.append([(copy.cluster, copy.until) for copy in runs[0].plan.retained])
    first_end, second_end = at_hour(71 * MINUTE), at_hour(73 * MINUTE)
    assert copies == [[], [("first", first_end)], [("first", first_end)], [("second", second_end)]]
    assert fleet.delivered(WEB, "resident") == ["first", "second"]

    variants.run(73 * MINUTE, "the end")
    assert fleet.delivered(WEB, "resident") == ["first"]
    repository = Repository(fleet.path)
    branch = HistoryBranch("resident", repository, fleet.git("rev-parse", "resident").strip(), "")
    history = OutputHistory(branch, repository, HistoryFilter())
    left, moved = islice(history.read_entries(2), 2)
    assert left.notes[0] == "Deployment default/web goes from second: its overlap is over"
    assert moved.notes == (f"Deployment default/web stays in second with 2 replicas until {format_time(second_end)}",)
