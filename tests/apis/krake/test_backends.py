"""Clusters onto clouds and Magnum clusters onto projects: who may be chosen, who goes first, what is taken over."""

from __future__ import annotations

import pytest

from tests.apis.krake.conftest import (
    TOSCA,
    Body,
    Story,
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


def cloud_of(*documents: Body, **wanted: list[str]) -> str | None:
    """Where a cluster `made` goes, and how its record calls the kind."""
    story = Story(cluster("made", None, tosca=TOSCA, constraints=wanted), *documents, *measure(low=0.1, high=0.9))
    story.run()
    target = story.status("Cluster", "made").get("scheduled_to")
    return f"{target['kind']}/{target['name']}" if target else None


def test_the_best_cloud_is_chosen() -> None:
    assert cloud_of(cloud("a", *weigh(low=1)), cloud("b", *weigh(high=1))) == "Cloud/b"


def test_a_cloud_of_the_namespace_goes_before_every_global_one_that_is_better() -> None:
    better = cloud("b", *weigh(high=1), everywhere=True)
    assert cloud_of(cloud("a", *weigh(low=1)), better) == "Cloud/a"
    assert cloud_of(cloud("a", *weigh(low=1)), better, metrics=["high > 0.5"]) == "GlobalCloud/b"


def test_a_cloud_with_metrics_goes_before_one_without() -> None:
    assert cloud_of(cloud("a"), cloud("b", *weigh(low=1))) == "Cloud/b"


def test_where_no_metrics_can_be_read_all_clouds_are_equal() -> None:
    picked = {cloud_of(cloud(f"{name}-1"), cloud(f"{name}-2", *weigh(unknown=1))) for name in "abcdefgh"}
    assert {name.rpartition("-")[2] for name in picked if name} == {"1", "2"}


def test_labels_and_metrics_are_asked_for() -> None:
    here, there = cloud("a", labels={"location": "DE"}), cloud("b", labels={"location": "SK"})
    assert cloud_of(here, there, labels=["location is SK"]) == "Cloud/b"
    assert cloud_of(here, there, metrics=["low > 0"]) is None


def test_without_a_cloud_a_cluster_has_failed_until_it_changes() -> None:
    story = Story(cluster("made", None, tosca=TOSCA))
    assert "unschedulable" in codes(story.run())
    assert (story.status("Cluster", "made")["state"], story.status("Cluster", "made")["reason"]["code"]) == (
        "FAILED",
        "NO_SUITABLE_RESOURCE",
    )
    story.run(60, cloud("a"))
    assert "scheduled_to" not in story.status("Cluster", "made")
    story.run(120, cluster("made", None, tosca=TOSCA, backoff=2))
    assert story.status("Cluster", "made")["scheduled_to"]["name"] == "a"


@pytest.mark.parametrize(
    "document",
    [
        cluster("made"),
        cluster("made", "FAILED", tosca=TOSCA),
        cluster("made") | {"metadata": {"name": "made", "namespace": "tenant-a", "deleted": "2026-01-01T00:00:00Z"}},
    ],
    ids=["has a kubeconfig", "has failed", "is deleted"],
)
def test_who_needs_no_cloud_gets_none(document: Body) -> None:
    story = Story(document, cloud("a"))
    story.run()
    records = [body for body in story.left if body["kind"] == "Cluster"]
    assert all("scheduled_to" not in body["status"] for body in records)


def test_a_cloud_is_chosen_once() -> None:
    story = Story(cluster("made", None, tosca=TOSCA), cloud("a", *weigh(high=1)), *measure(low=0.1, high=0.9))
    story.run()
    story.run(3600, cloud("b", *weigh(high=1)), cloud("a", *weigh(low=1)))
    assert story.status("Cluster", "made")["scheduled_to"]["name"] == "a"


def test_a_cluster_inherits_labels_and_metrics_from_its_cloud_if_it_says_so() -> None:
    wanted = {"labels": ["zone is x"], "metrics": ["high > 0.5"]}
    heir = cluster("heir", tosca=TOSCA, inherit_labels=True, inherit_metrics=True)
    other = cluster("other", tosca=TOSCA)
    story = Story(
        application(constraints=wanted), heir, other, cloud("a", *weigh(high=1), labels={"zone": "x"}), *measure(high=0.9)
    )
    schedule = story.run()
    assert story.place() == "heir"
    reasons = {verdict.name: verdict.reason for verdict in schedule.explain("Application", "echo", "tenant-a")}
    assert "label zone is missing" in reasons["other"]


def project_of(*documents: Body, labels: list[str] | None = None) -> str | None:
    story = Story(magnum_cluster(labels=labels), *documents, *measure(low=0.1, high=0.9))
    story.run()
    target = story.status("MagnumCluster", "m").get("project")
    return target["name"] if target else None


def test_the_best_project_of_any_namespace_is_chosen() -> None:
    assert project_of(project("a", *weigh(low=1)), project("b", *weigh(high=1), namespace="tenant-b")) == "b"
    assert project_of(project("a"), project("b", *weigh(low=1))) == "b"
    assert project_of(project("a", labels={"zone": "x"}), project("b", *weigh(high=1)), labels=["zone is x"]) == "a"


def test_projects_whose_metrics_fail_leave_no_one_to_choose_from() -> None:
    story = Story(magnum_cluster(), project("a"), project("b", *weigh(unknown=1)))
    assert {"unschedulable", "krake-failing-metric"} <= codes(story.run())
    assert story.status("MagnumCluster", "m")["reason"]["message"] == "No OpenStack project available"
    assert story.status("Project", "b")["state"] == "FAILING_METRICS"


def test_a_magnum_cluster_takes_over_labels_metrics_and_template_and_its_own_labels_win() -> None:
    source = project("p", *weigh(low=2), labels={"zone": "x", "site": "theirs"})
    story = Story(magnum_cluster(own={"site": "mine"}), source, *measure(low=0.1))
    story.run()
    body = find(story.left, "MagnumCluster", "m")
    assert body["metadata"]["labels"] == {"zone": "x", "site": "mine"}
    assert [entry["name"] for entry in body["spec"]["metrics"]] == ["low"]
    assert body["status"]["template"] == "template-p"
    assert body["metadata"]["owners"][0]["name"] == "p"


def test_a_cloud_that_nobody_asks_for_is_told_when_its_metrics_fail() -> None:
    schedule = Story(application(), cloud("a", *weigh(unknown=1)), cloud("b", *weigh(unknown=1), everywhere=True)).run()
    failing = [finding.resource for finding in schedule.findings if finding.code == "krake-failing-metric"]
    assert failing == [("Cloud", "tenant-a", "a"), ("GlobalCloud", "", "b")]
    for kind, name in (("Cloud", "a"), ("GlobalCloud", "b")):
        assert find(list(schedule.documents), kind, name)["status"]["state"] == "FAILING_METRICS"


def test_clouds_of_the_same_name_are_told_apart() -> None:
    going = cloud("a") | {"metadata": {"name": "a", "namespace": "tenant-a", "deleted": "2026-01-01T00:00:00Z"}}
    schedule = Story(cluster("made", None, tosca=TOSCA), going, cloud("a", everywhere=True)).run()
    verdicts = schedule.explain("Cluster", "made", "tenant-a")
    assert {verdict.name: verdict.eligible for verdict in verdicts} == {"a": False, "GlobalCloud/a": True}


@pytest.mark.parametrize(("clouds", "state"), [([], "FAILED"), ([cloud("a")], "PENDING")], ids=["without a cloud", "with a cloud"])
def test_of_a_cluster_that_is_yet_to_be_made_metrics_that_cannot_be_read_change_no_state(clouds: list[Body], state: str) -> None:
    story = Story(cluster("made", None, tosca=TOSCA, metrics=weigh(nobody=1)), *clouds)
    for seconds in (0, 60):
        assert "krake-failing-metric" in codes(story.run(seconds))
        assert story.status("Cluster", "made")["state"] == state


def test_what_is_inherited_is_added_and_what_a_cluster_lists_twice_still_counts_twice() -> None:
    heir = cluster("heir", metrics=weigh(low=2) * 2, inherit_metrics=True, scheduled_to=REFERENCE)
    story = Story(application(), heir, cloud("a", *weigh(low=2, high=1), *weigh(high=1)), *measure(low=0.1, high=0.9), stickiness=0)
    verdicts = story.run().explain("Application", "echo", "tenant-a")
    assert [verdict.total for verdict in verdicts] == [pytest.approx((0.1 * 2 + 0.1 * 2 + 0.9) / 5)]
