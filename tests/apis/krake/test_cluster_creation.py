"""Applications with auto_cluster_create request a cluster on a cloud that scores higher than every cluster."""

from __future__ import annotations

import re

import pytest

from gitsched.apis.capabilities import ExpiryReporting
from tests.builders.krake import (
    NAMESPACE,
    Body,
    ScheduleRuns,
    application,
    cloud,
    cluster,
    codes,
    find,
    format_later,
    later,
    measure,
    weigh,
)

WAITING = "WAITING_FOR_CLUSTER_CREATION"


def requested_name(runs: ScheduleRuns) -> str:
    """Return the name of the cluster that `echo` requested."""
    name: str = runs.status()["auto_cluster_create_started"]
    return name


def request_runs(**constraints: list[str]) -> ScheduleRuns:
    """Return runs in which `echo` may request a cluster, and cloud `good` scores higher than cluster `one`."""
    existing = cluster("one", metrics=weigh(a=1), labels={"zone": "x"})
    good = cloud("good", *weigh(b=1), labels={"zone": "x"})
    return ScheduleRuns(application(auto_cluster_create=True, constraints=constraints), existing, good, *measure(a=0.1, b=0.9))


def test_a_cluster_is_requested_if_a_cloud_scores_higher() -> None:
    runs = request_runs(labels=["zone is x"], metrics=["b > 0.5"])
    runs.run()
    assert (runs.status()["state"], runs.target()) == (WAITING, None)
    assert re.fullmatch(r"cluster-\d{4}", requested_name(runs))
    body = find(runs.records, "Cluster", requested_name(runs))
    assert body["metadata"]["inherit_labels"] is True
    assert body["spec"] == {
        "auto_generated": True,
        "inherit_metrics": True,
        "constraints": {"cloud": {"labels": ["zone is x"], "metrics": ["b > 0.5"]}},
    }
    assert body["status"]["scheduled_to"]["name"] == "good"


def test_a_finding_describes_the_requested_cluster() -> None:
    runs = request_runs()
    for seconds in (0, 60):
        (message,) = (finding.message for finding in runs.run(seconds).findings if finding.code == "krake-cluster-wanted")
        assert f"commit status/kubernetes/cluster/{NAMESPACE}/{requested_name(runs)}.yaml from the output branch with" in message
    (message,) = (finding.message for finding in runs.run(90, cluster(requested_name(runs), "CONNECTING")).findings)
    assert f"is waiting until its cluster {requested_name(runs)} is ONLINE" in message
    assert codes(runs.run(120, cluster(requested_name(runs)))) == set()


def test_the_requested_cluster_is_the_same_in_every_run() -> None:
    runs = request_runs()
    runs.run()
    name, before = requested_name(runs), runs.records
    runs.run(3600, *measure(a=0.9, b=0.1))
    assert requested_name(runs) == name
    assert find(runs.records, "Application", "echo") == find(before, "Application", "echo")
    assert find(runs.records, "Cluster", name) == find(before, "Cluster", name)


def test_an_application_binds_to_its_requested_cluster_once_it_is_online() -> None:
    runs = request_runs(labels=["zone is x"])
    runs.run()
    name = requested_name(runs)
    runs.run(60, cluster(name, "CONNECTING"))
    assert runs.target() is None
    created = {"inherit_labels": True, "inherit_metrics": True, "auto_generated": True}
    runs.run(120, cluster(name, **created))
    assert runs.target() == name
    runs.run(130)
    assert runs.target() == name, "it was scheduled recently"
    runs.run(600)
    assert runs.target() == name, "it inherits the labels and metrics of its cloud"
    assert (runs.status()["state"], "auto_cluster_create_started" in runs.status()) == ("PENDING", False)


def test_an_application_leaves_its_requested_cluster_for_a_better_one_and_stays_there() -> None:
    runs = request_runs()
    runs.run()
    runs.run(60, cluster(requested_name(runs), metrics=weigh(b=1)))
    runs.run(180, *measure(a=0.9, b=0.1))
    assert runs.target() == "one"
    runs.run(300)
    assert runs.target() == "one"


def test_a_placed_application_keeps_its_request_and_its_cluster_meanwhile() -> None:
    runs = ScheduleRuns(*request_runs().documents[:2], *measure(a=0.1, b=0.9))
    runs.run()
    for seconds in (120, 240):
        schedule = runs.run(seconds, cloud("good", *weigh(b=1)))
        assert (runs.status()["state"], runs.target()) == (WAITING, "one")
        assert find(runs.records, "Cluster", requested_name(runs))["status"]["scheduled_to"]["name"] == "good"
        assert "krake-cluster-wanted" in codes(schedule)


@pytest.mark.parametrize("formula", ["document", "krake"])
def test_a_cluster_wins_a_tie_with_a_cloud(formula: str) -> None:
    runs = ScheduleRuns(*request_runs().documents, stickinessFormula=formula)
    runs.run(0, *measure(a=0.5, b=0.5))
    assert runs.target() == "one"


def test_no_cluster_is_requested_without_auto_cluster_create() -> None:
    runs = request_runs()
    runs.run(0, application())
    assert runs.target() == "one"
    assert [body["metadata"]["name"] for body in runs.records if body["kind"] == "Cluster"] == []


def test_without_clusters_and_clouds_an_application_is_unschedulable() -> None:
    runs = ScheduleRuns(application(auto_cluster_create=True))
    assert "unschedulable" in codes(runs.run())
    assert runs.status()["reason"]["code"] == "NO_SUITABLE_RESOURCE"


def test_clouds_do_not_satisfy_custom_resource_constraints() -> None:
    """Krake's worker crashes in this case."""
    runs = request_runs(custom_resources=["crds.example.org"])
    assert "unschedulable" in codes(runs.run())
    assert runs.target() is None


def test_each_application_requests_its_own_cluster() -> None:
    runs = request_runs()
    runs.run(0, application("other", auto_cluster_create=True))
    names = {runs.status("Application", name)["auto_cluster_create_started"] for name in ("echo", "other")}
    assert len(names) == 2
    assert {body["metadata"]["name"] for body in runs.records if body["kind"] == "Cluster"} == names


def test_a_removed_application_withdraws_its_request() -> None:
    runs = request_runs()
    runs.run()
    runs.remove("Application", "echo")
    runs.run(60)
    assert [body["kind"] for body in runs.records if body["kind"] == "Cluster"] == []


@pytest.mark.parametrize("others", [[], [cloud("plain")]], ids=["alone", "beside a cloud without metrics"])
def test_no_cluster_is_requested_while_metrics_of_the_clouds_cannot_be_read(others: list[Body]) -> None:
    """Clouds with metrics precede clouds without, so the latter are not used during an outage either."""
    runs = ScheduleRuns(application(auto_cluster_create=True), cloud("unknown", *weigh(nobody=1)), *others)
    assert "unschedulable" in codes(runs.run())
    assert (runs.status()["state"], runs.status()["reason"]["code"]) == ("DEGRADED", "NO_SUITABLE_RESOURCE")
    runs.run(60, cluster("one"))
    assert runs.target() == "one"


@pytest.mark.parametrize(
    ("state", "metrics", "bound"),
    [
        ("ONLINE", weigh(nobody=1), True),
        ("FAILING_METRICS", weigh(nobody=1), True),
        ("FAILING_METRICS", weigh(a=1), True),
        ("FAILING_METRICS", [], False),
        ("OFFLINE", weigh(nobody=1), False),
    ],
)
def test_a_requested_cluster_is_used_even_if_its_metrics_fail(state: str, metrics: list[Body], bound: bool) -> None:
    runs = request_runs()
    runs.run()
    name = requested_name(runs)
    runs.run(60, cluster(name, state, metrics=metrics))
    assert runs.target() == (name if bound else None)


def test_a_deleted_cloud_is_compared_but_gets_no_cluster() -> None:
    """As in Krake, where only the scheduling of clusters checks whether a cloud is being deleted."""
    runs = request_runs()
    good = cloud("good", *weigh(b=1))
    schedule = runs.run(0, {**good, "metadata": {**good["metadata"], "deleted": "2026-01-01T00:00:00Z"}})
    results = {result.name: result.eligible for result in schedule.explain("Application", "echo", NAMESPACE)}
    assert (runs.status()["state"], results["Cloud/good"]) == (WAITING, True)
    assert find(runs.records, "Cluster", requested_name(runs))["status"]["state"] == "FAILED"
    assert {"krake-cluster-wanted", "unschedulable"} <= codes(schedule)


@pytest.mark.parametrize(
    ("document", "others", "unused"),
    [
        (cluster("made", auto_generated=True), [], True),
        (cluster("made"), [], False),
        (cluster("made", "CONNECTING", auto_generated=True), [], False),
        (cluster("made", auto_generated=True), [application(constraints={"labels": ["zone is x"]})], True),
        (cluster("made", auto_generated=True), [application()], False),
        (cluster("made", auto_generated=True), [application(status={"state": "DELETED"})], True),
        (cluster("made", auto_generated=True), [application(constraints={"labels": ["zone of x"]})], False),
    ],
    ids=["no application", "not generated", "not online", "no match", "used", "deleted application", "invalid application"],
)
def test_a_generated_cluster_without_applications_is_reported(document: Body, others: list[Body], unused: bool) -> None:
    schedule = ScheduleRuns(document, *others).run()
    found = [finding.resource for finding in schedule.findings if finding.code == "krake-cluster-unused"]
    assert found == ([("Cluster", NAMESPACE, "made")] if unused else [])


def test_the_time_since_which_a_generated_cluster_is_unused_is_recorded_once() -> None:
    runs = ScheduleRuns(cluster("made", auto_generated=True))
    for seconds in (0, 600):
        schedule = runs.run(seconds)
        annotations = find(runs.records, "Cluster", "made")["metadata"]["annotations"]
        assert annotations["gitsched.io/unused-since"] == format_later(0)
        (engine,) = schedule.decisions.engines
        assert isinstance(engine, ExpiryReporting)
        assert [(entry.document.key.name, entry.since) for entry in engine.expired_documents()] == (
            [("made", later(0))] if seconds else []
        )
    runs.run(1200, application())
    assert "gitsched.io/unused-since" not in find(runs.records, "Cluster", "made")["metadata"]["annotations"]
