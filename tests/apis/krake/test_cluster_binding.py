"""Binding of Clusters to clouds and MagnumClusters to projects: candidates, precedence and inheritance."""

from __future__ import annotations

import pytest

from tests.builders.krake import (
    TOSCA,
    Body,
    ScheduleRuns,
    application,
    cloud,
    cluster,
    codes,
    find,
    magnum_cluster,
    measure,
    project,
    weigh,
)

REFERENCE = {"api": "infrastructure", "kind": "Cloud", "namespace": "tenant-a", "name": "a"}


def cloud_of(*documents: Body, **constraints: list[str]) -> str | None:
    """Return the kind and name of the cloud that a cluster is bound to."""
    runs = ScheduleRuns(cluster("made", None, tosca=TOSCA, constraints=constraints), *documents, *measure(low=0.1, high=0.9))
    runs.run()
    target = runs.status("Cluster", "made").get("scheduled_to")
    return f"{target['kind']}/{target['name']}" if target else None


def test_the_best_cloud_is_chosen() -> None:
    assert cloud_of(cloud("a", *weigh(low=1)), cloud("b", *weigh(high=1))) == "Cloud/b"


def test_a_cloud_of_the_namespace_precedes_better_global_clouds() -> None:
    better = cloud("b", *weigh(high=1), is_global=True)
    assert cloud_of(cloud("a", *weigh(low=1)), better) == "Cloud/a"
    assert cloud_of(cloud("a", *weigh(low=1)), better, metrics=["high > 0.5"]) == "GlobalCloud/b"


def test_a_cloud_with_metrics_precedes_clouds_without_metrics() -> None:
    assert cloud_of(cloud("a"), cloud("b", *weigh(low=1))) == "Cloud/b"


def test_without_readable_metrics_all_clouds_are_equal() -> None:
    chosen = {cloud_of(cloud(f"{name}-1"), cloud(f"{name}-2", *weigh(unknown=1))) for name in "abcdefgh"}
    assert {name.rpartition("-")[2] for name in chosen if name} == {"1", "2"}


def test_label_and_metric_constraints_filter_clouds() -> None:
    german, slovak = cloud("a", labels={"location": "DE"}), cloud("b", labels={"location": "SK"})
    assert cloud_of(german, slovak, labels=["location is SK"]) == "Cloud/b"
    assert cloud_of(german, slovak, metrics=["low > 0"]) is None


def test_a_cluster_without_a_matching_cloud_has_failed_until_it_or_its_clouds_change() -> None:
    runs = ScheduleRuns(cluster("made", None, tosca=TOSCA))
    assert "unschedulable" in codes(runs.run())
    assert (runs.status("Cluster", "made")["state"], runs.status("Cluster", "made")["reason"]["code"]) == (
        "FAILED",
        "NO_SUITABLE_RESOURCE",
    )
    failed = runs.records
    runs.run(60)
    assert runs.records == failed
    runs.run(120, cloud("a"))
    status = runs.status("Cluster", "made")
    assert (status["state"], status["scheduled_to"]["name"], "reason" in status) == ("PENDING", "a", False)


def test_the_finding_about_an_unbound_cluster_says_why_no_cloud_matches() -> None:
    unbound = cluster("made", None, tosca=TOSCA, constraints={"labels": ["zone is x"]})
    schedule = ScheduleRuns(unbound, cloud("a"), cloud("b", labels={"zone": "y"}, is_global=True)).run()
    by_code = {finding.code: finding for finding in schedule.findings}
    assert "no candidate has zone=x; the fleet has y" in by_code["krake-constraint-impossible"].message
    assert by_code["unschedulable"].message.endswith(
        "could not be bound: No matching cloud found (a: label constraint zone == x: label zone is missing; "
        "GlobalCloud/b: label constraint zone == x: it is y)"
    )


def test_a_failed_cluster_is_bound_after_its_document_changes() -> None:
    runs = ScheduleRuns(cluster("made", None, tosca=TOSCA, constraints={"labels": ["zone is x"]}), cloud("a"))
    runs.run()
    assert runs.status("Cluster", "made")["state"] == "FAILED"
    runs.run(60, cluster("made", None, tosca=TOSCA))
    assert runs.status("Cluster", "made")["scheduled_to"]["name"] == "a"


@pytest.mark.parametrize(
    "document",
    [
        cluster("made"),
        cluster("made", "FAILED", tosca=TOSCA),
        cluster("made") | {"metadata": {"name": "made", "namespace": "tenant-a", "deleted": "2026-01-01T00:00:00Z"}},
    ],
    ids=["has a kubeconfig", "has failed", "is deleted"],
)
def test_existing_failed_and_deleted_clusters_get_no_cloud(document: Body) -> None:
    runs = ScheduleRuns(document, cloud("a"))
    runs.run()
    records = [body for body in runs.records if body["kind"] == "Cluster"]
    assert all("scheduled_to" not in body["status"] for body in records)


def test_the_binding_to_a_cloud_is_final() -> None:
    runs = ScheduleRuns(cluster("made", None, tosca=TOSCA), cloud("a", *weigh(high=1)), *measure(low=0.1, high=0.9))
    runs.run()
    runs.run(3600, cloud("b", *weigh(high=1)), cloud("a", *weigh(low=1)))
    assert runs.status("Cluster", "made")["scheduled_to"]["name"] == "a"


def test_a_cluster_inherits_labels_and_metrics_from_its_cloud_if_enabled() -> None:
    wanted = {"labels": ["zone is x"], "metrics": ["high > 0.5"]}
    inheriting = cluster("inheriting", tosca=TOSCA, inherit_labels=True, inherit_metrics=True)
    other = cluster("other", tosca=TOSCA)
    runs = ScheduleRuns(
        application(constraints=wanted), inheriting, other, cloud("a", *weigh(high=1), labels={"zone": "x"}), *measure(high=0.9)
    )
    schedule = runs.run()
    assert runs.target() == "inheriting"
    reasons = {result.name: result.reason for result in schedule.explain("Application", "echo", "tenant-a")}
    assert "label zone is missing" in reasons["other"]


def project_of(*documents: Body, labels: list[str] | None = None) -> str | None:
    runs = ScheduleRuns(magnum_cluster(labels=labels), *documents, *measure(low=0.1, high=0.9))
    runs.run()
    target = runs.status("MagnumCluster", "m").get("project")
    return target["name"] if target else None


def test_the_best_project_of_any_namespace_is_chosen() -> None:
    assert project_of(project("a", *weigh(low=1)), project("b", *weigh(high=1), namespace="tenant-b")) == "b"
    assert project_of(project("a"), project("b", *weigh(low=1))) == "b"
    assert project_of(project("a", labels={"zone": "x"}), project("b", *weigh(high=1)), labels=["zone is x"]) == "a"


@pytest.mark.parametrize("part", [{"metrics": ["low = 5"]}, {"metrics": ["low is"]}])
def test_other_constraints_than_those_on_labels_of_a_project_have_no_effect(part: Body) -> None:
    made = magnum_cluster()
    made["spec"]["constraints"] = {"project": part}
    runs = ScheduleRuns(made, project("a", *weigh(low=1)), *measure(low=0.1))
    assert codes(runs.run()) & {"krake-project-constraint", "unschedulable"} == {"krake-project-constraint"}
    assert runs.status("MagnumCluster", "m")["project"]["name"] == "a"


def test_projects_with_failing_metrics_leave_no_project_available() -> None:
    runs = ScheduleRuns(magnum_cluster(), project("a"), project("b", *weigh(unknown=1)))
    assert {"unschedulable", "krake-failing-metric"} <= codes(runs.run())
    assert runs.status("MagnumCluster", "m")["reason"]["message"] == "No OpenStack project available"
    assert runs.status("Project", "b")["state"] == "FAILING_METRICS"


def test_only_magnum_clusters_that_are_not_bound_and_not_deleted_get_a_project() -> None:
    deleted = magnum_cluster("deleted")
    deleted["metadata"]["deleted"] = "2026-01-01T00:00:00Z"
    failed = {**magnum_cluster("failed"), "status": {"state": "FAILED"}}
    runs = ScheduleRuns(magnum_cluster(), deleted, failed, project("a", *weigh(low=1)), *measure(low=0.1, high=0.9))
    runs.run()
    runs.run(60, project("b", *weigh(high=1)))
    assert runs.status("MagnumCluster", "m")["project"]["name"] == "a", "it is bound"
    assert runs.status("MagnumCluster", "failed")["project"]["name"] == "a", "only deleted ones are left out"
    assert "project" not in runs.status("MagnumCluster", "deleted")


def test_a_magnum_cluster_inherits_labels_metrics_and_template_and_its_own_labels_take_precedence() -> None:
    source = project("p", *weigh(low=2), labels={"zone": "x", "site": "tinheritings"})
    runs = ScheduleRuns(magnum_cluster(own={"site": "mine"}), source, *measure(low=0.1))
    runs.run()
    body = find(runs.records, "MagnumCluster", "m")
    assert body["metadata"]["labels"] == {"zone": "x", "site": "mine"}
    assert [entry["name"] for entry in body["spec"]["metrics"]] == ["low"]
    assert body["status"]["template"] == "template-p"
    assert body["metadata"]["owners"][0]["name"] == "p"


def test_failing_metrics_of_unused_clouds_are_reported() -> None:
    schedule = ScheduleRuns(application(), cloud("a", *weigh(unknown=1)), cloud("b", *weigh(unknown=1), is_global=True)).run()
    failing = [finding.resource for finding in schedule.findings if finding.code == "krake-failing-metric"]
    assert failing == [("Cloud", "tenant-a", "a"), ("GlobalCloud", "", "b")]
    for kind, name in (("Cloud", "a"), ("GlobalCloud", "b")):
        assert find(list(schedule.documents), kind, name)["status"]["state"] == "FAILING_METRICS"


def test_namespaced_and_global_clouds_of_the_same_name_are_distinguished() -> None:
    deleted = cloud("a") | {"metadata": {"name": "a", "namespace": "tenant-a", "deleted": "2026-01-01T00:00:00Z"}}
    schedule = ScheduleRuns(cluster("made", None, tosca=TOSCA), deleted, cloud("a", is_global=True)).run()
    results = schedule.explain("Cluster", "made", "tenant-a")
    assert {result.name: result.eligible for result in results} == {"a": False, "GlobalCloud/a": True}


@pytest.mark.parametrize(("clouds", "state"), [([], "FAILED"), ([cloud("a")], "PENDING")], ids=["without a cloud", "with a cloud"])
def test_failing_metrics_do_not_change_the_state_of_a_cluster_that_does_not_exist_yet(clouds: list[Body], state: str) -> None:
    runs = ScheduleRuns(cluster("made", None, tosca=TOSCA, metrics=weigh(nobody=1)), *clouds)
    for seconds in (0, 60):
        assert "krake-failing-metric" in codes(runs.run(seconds))
        assert runs.status("Cluster", "made")["state"] == state


def test_inherited_metrics_are_added_and_a_clusters_duplicates_still_count() -> None:
    inheriting = cluster("inheriting", metrics=weigh(low=2) * 2, inherit_metrics=True, scheduled_to=REFERENCE)
    runs = ScheduleRuns(
        application(), inheriting, cloud("a", *weigh(low=2, high=1), *weigh(high=1)), *measure(low=0.1, high=0.9), stickiness=0
    )
    results = runs.run().explain("Application", "echo", "tenant-a")
    assert [result.total for result in results] == [pytest.approx((0.1 * 2 + 0.1 * 2 + 0.9) / 5)]


def test_a_binding_outlives_changes_of_the_document() -> None:
    runs = ScheduleRuns(cluster("made", None, tosca=TOSCA), cloud("a", *weigh(a=1)), *measure(a=0.5, b=0.9))
    runs.run()
    runs.run(60, cluster("made", None, tosca=TOSCA, backoff=2), cloud("b", *weigh(b=1)))
    runs.run(120)
    assert runs.status("Cluster", "made")["scheduled_to"]["name"] == "a"
    runs.run(180, cluster("made"))
    assert runs.status("Cluster", "made")["scheduled_to"]["name"] == "a"
