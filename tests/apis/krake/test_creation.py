"""Clusters that are to be made because a cloud suits an application better than every cluster does."""

from __future__ import annotations

import re

import pytest

from tests.apis.krake.conftest import SPACE, Body, Story, application, cloud, cluster, codes, find, measure, weigh

WAITING = "WAITING_FOR_CLUSTER_CREATION"


def made(story: Story) -> str:
    """The name of the cluster that `echo` waits for."""
    name: str = story.status()["auto_cluster_create_started"]
    return name


def wanting(**constraints: list[str]) -> Story:
    """`echo` may have a cluster made; cloud `good` is better than cluster `one`."""
    place = cluster("one", metrics=weigh(a=1), labels={"zone": "x"})
    good = cloud("good", *weigh(b=1), labels={"zone": "x"})
    return Story(application(auto_cluster_create=True, constraints=constraints), place, good, *measure(a=0.1, b=0.9))


def test_a_cluster_is_to_be_made_where_a_cloud_is_better() -> None:
    story = wanting(labels=["zone is x"], metrics=["b > 0.5"])
    story.run()
    assert (story.status()["state"], story.place()) == (WAITING, None)
    assert re.fullmatch(r"cluster-\d{4}", made(story))
    body = find(story.left, "Cluster", made(story))
    assert body["metadata"]["inherit_labels"] is True
    assert body["spec"] == {
        "auto_generated": True,
        "inherit_metrics": True,
        "constraints": {"cloud": {"labels": ["zone is x"], "metrics": ["b > 0.5"]}},
    }
    assert body["status"]["scheduled_to"]["name"] == "good"


def test_whoever_has_to_make_it_is_told() -> None:
    story = wanting()
    for seconds in (0, 60):
        (message,) = (finding.message for finding in story.run(seconds).findings if finding.code == "krake-cluster-wanted")
        assert f"commit status/kubernetes/cluster/{SPACE}/{made(story)}.yaml from the output branch with" in message
    (message,) = (finding.message for finding in story.run(90, cluster(made(story), "CONNECTING")).findings)
    assert f"is waiting until its cluster {made(story)} is ONLINE" in message
    assert codes(story.run(120, cluster(made(story)))) == set()


def test_it_is_the_same_cluster_in_every_run() -> None:
    story = wanting()
    story.run()
    name, before = made(story), story.left
    story.run(3600, *measure(a=0.9, b=0.1))
    assert made(story) == name
    assert find(story.left, "Application", "echo") == find(before, "Application", "echo")
    assert find(story.left, "Cluster", name) == find(before, "Cluster", name)


def test_as_soon_as_it_is_online_it_is_taken_whatever_the_constraints() -> None:
    story = wanting(labels=["zone is x"])
    story.run()
    name = made(story)
    story.run(60, cluster(name, "CONNECTING"))
    assert story.place() is None
    story.run(120, cluster(name))
    assert story.place() == name
    story.run(130)
    assert story.place() == name, "it was placed a short while ago"


@pytest.mark.parametrize("formula", ["document", "krake"])
def test_a_cluster_wins_against_a_cloud_that_is_as_good(formula: str) -> None:
    story = Story(*wanting().documents, stickinessFormula=formula)
    story.run(0, *measure(a=0.5, b=0.5))
    assert story.place() == "one"


def test_nothing_is_made_for_whoever_does_not_ask() -> None:
    story = wanting()
    story.run(0, application())
    assert story.place() == "one"
    assert [body["metadata"]["name"] for body in story.left if body["kind"] == "Cluster"] == []


def test_without_a_cluster_and_without_a_cloud_it_could_not_be_scheduled() -> None:
    story = Story(application(auto_cluster_create=True))
    assert "unschedulable" in codes(story.run())
    assert story.status()["reason"]["code"] == "NO_SUITABLE_RESOURCE"


def test_custom_resources_are_no_clouds_business() -> None:
    """Upstream's worker dies of this."""
    story = wanting(custom_resources=["crds.example.org"])
    assert "unschedulable" in codes(story.run())
    assert story.place() is None


def test_two_applications_wait_for_two_clusters() -> None:
    story = wanting()
    story.run(0, application("other", auto_cluster_create=True))
    names = {story.status("Application", name)["auto_cluster_create_started"] for name in ("echo", "other")}
    assert len(names) == 2
    assert {body["metadata"]["name"] for body in story.left if body["kind"] == "Cluster"} == names


def test_whoever_goes_takes_the_wish_along() -> None:
    story = wanting()
    story.run()
    story.drop("Application", "echo")
    story.run(60)
    assert [body["kind"] for body in story.left if body["kind"] == "Cluster"] == []


@pytest.mark.parametrize("others", [[], [cloud("plain")]], ids=["alone", "beside a cloud without metrics"])
def test_no_cluster_is_made_while_the_metrics_of_the_clouds_cannot_be_read(others: list[Body]) -> None:
    """Clouds with metrics go first, so that one without is no way out of an outage either."""
    story = Story(application(auto_cluster_create=True), cloud("unknown", *weigh(nobody=1)), *others)
    assert "unschedulable" in codes(story.run())
    assert (story.status()["state"], story.status()["reason"]["code"]) == ("DEGRADED", "NO_SUITABLE_RESOURCE")
    story.run(60, cluster("one"))
    assert story.place() == "one"


@pytest.mark.parametrize(
    ("state", "metrics", "taken"),
    [
        ("ONLINE", weigh(nobody=1), True),
        ("FAILING_METRICS", weigh(nobody=1), True),
        ("FAILING_METRICS", weigh(a=1), True),
        ("FAILING_METRICS", [], False),
        ("OFFLINE", weigh(nobody=1), False),
    ],
)
def test_a_cluster_that_was_made_is_taken_whatever_its_metrics_say(state: str, metrics: list[Body], taken: bool) -> None:
    story = wanting()
    story.run()
    name = made(story)
    story.run(60, cluster(name, state, metrics=metrics))
    assert story.place() == (name if taken else None)


def test_a_cloud_on_its_way_out_is_compared_and_gets_nothing() -> None:
    """As in Krake, where only the handler of clusters asks whether a cloud is being deleted."""
    story = wanting()
    good = cloud("good", *weigh(b=1))
    schedule = story.run(0, {**good, "metadata": {**good["metadata"], "deleted": "2026-01-01T00:00:00Z"}})
    verdicts = {verdict.name: verdict.eligible for verdict in schedule.explain("Application", "echo", SPACE)}
    assert (story.status()["state"], verdicts["Cloud/good"]) == (WAITING, True)
    assert find(story.left, "Cluster", made(story))["status"]["state"] == "FAILED"
    assert {"krake-cluster-wanted", "unschedulable"} <= codes(schedule)
