"""Replicas that no cluster has room for are something wrong: `status`, `tree` and `explain` name them, with the cause and the next step."""

from __future__ import annotations

import pytest

from gitsched.model.explanation import Explanation
from gitsched.model.finding import UNSCHEDULABLE
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.review.fleet_tree import read_fleet_tree
from gitsched.reconcile.run import make_review
from gitsched.report.fleet_status import serialize_fleet_status, write_fleet_status
from gitsched.report.fleet_tree import write_fleet_tree
from gitsched.report.text import summarize_plan, write_run
from tests.scenarios.conftest import UNGUARDED, Fleet, cluster, deployment, policy

POD = "  template:\n    spec: {containers: [{name: main, image: example.com/main, resources: {requests: {cpu: 1}}}]}\n"


def sized(name: str, cpu: int, *taints: str) -> str:
    """Return a cluster with room for so many pods of a cpu each."""
    amounts = f"{{cpu: {cpu}, memory: 100Gi, pods: 110}}"
    return f"{cluster(name, *taints)}status: {{resourceSummary: {{allocatable: {amounts}}}}}\n"


def dynamic(name: str, replicas: int) -> str:
    return deployment(name, replicas) + POD


DYNAMIC = policy("one,two", scheduling="Divided").replace(
    "Weighted}", "Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}"
)
FIT = {
    "gitsched.yaml": UNGUARDED,
    "one.yaml": sized("one", 6),
    "two.yaml": sized("two", 4),
    "web.yaml": dynamic("web", 8),
    "api.yaml": dynamic("api", 1),
    "policy.yaml": DYNAMIC,
}
CHANGES: dict[str, tuple[dict[str, str], str, list[str]]] = {
    "more replicas than the clusters have room for": (
        {"web.yaml": dynamic("web", 60)},
        "Needs attention: Deployment default/web lacks 52 of 60 replicas.",
        ["Deployment default/web has 8 of 60 replicas"],
    ),
    "a drain of one of two clusters": (
        {"two.yaml": sized("two", 4, "power:NoExecute"), "api.yaml": dynamic("api", 0)},
        "Needs attention: Deployment default/web lacks 3 of 8 replicas, 1 of 2 clusters is drained.",
        ["Deployment default/web has 5 of 8 replicas"],
    ),
    "two workloads": (
        {"web.yaml": dynamic("web", 60), "api.yaml": dynamic("api", 30)},
        "Needs attention: 2 workloads lack 81 replicas.",
        ["Deployment default/api has 1 of 30 replicas", "Deployment default/web has 8 of 60 replicas"],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_missing_replicas_are_wrong(name: str, fleet: Fleet) -> None:
    files, first, missing = CHANGES[name]
    fleet.commit(FIT)
    fleet.reconcile(0)
    assert not serialize_fleet_status(read_fleet_status(fleet.settings(0)))["problems"]
    fleet.commit(files, hour=1)
    fleet.reconcile(1)
    lines = write_fleet_status(read_fleet_status(fleet.settings(1))).splitlines()
    assert lines[0] == first
    found = [line.removeprefix("Missing: ") for line in lines if line.startswith("Missing: ")]
    assert [line.partition(":")[0] for line in found] == missing
    assert all(" are not enough to schedule" in line and " cpu free, and each requests 1. (" in line for line in found), "the cause"
    assert found[-1].endswith("gitsched explain deployment/default/web")


def test_a_run_names_the_workload_that_has_no_cluster_before_one_that_lacks_replicas(fleet: Fleet) -> None:
    fleet.commit(FIT | {"api.yaml": dynamic("api", 1)})
    fleet.reconcile(0)
    fleet.commit({"api.yaml": dynamic("api", 60)}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"zoo.yaml": dynamic("zoo", 60)}, hour=2)
    planned = summarize_plan(compare_plans(fleet.settings(2)).review)
    headline = write_run(make_review(fleet.reconcile(2)), 10_000).splitlines()[0]
    again = summarize_plan(compare_plans(fleet.settings(3)).review)
    for text in (planned, headline, again):
        assert " 1 of 3 workloads is unplaced: Deployment.apps/default/zoo could not be scheduled: " in text


def test_a_workload_that_has_what_it_should_have_again_could_be_scheduled(fleet: Fleet) -> None:
    fleet.commit(FIT)
    fleet.reconcile(0)
    fleet.commit({"web.yaml": dynamic("web", 60)}, hour=1)
    assert UNSCHEDULABLE in {finding.code for finding in fleet.reconcile(1).plan.findings}
    fleet.commit(FIT, hour=2)
    run = fleet.reconcile(2)
    assert UNSCHEDULABLE not in {finding.code for finding in run.plan.findings}
    (condition,) = fleet.binding("web-deployment")["status"]["conditions"]
    assert condition["status"] == "False", "Karmada writes it only when it schedules"
    assert write_fleet_status(read_fleet_status(fleet.settings(2))).startswith("No errors, but 1 warning: "), "the guard"
    found = explain_resource(fleet.settings(2), "", None, "web")
    assert isinstance(found, Explanation)
    assert not found.findings


def test_a_workload_that_lacks_replicas_says_so(fleet: Fleet) -> None:
    fleet.commit(FIT)
    fleet.reconcile(0)
    fleet.commit({"web.yaml": dynamic("web", 60)}, hour=1)
    fleet.reconcile(1)
    tree = write_fleet_tree(read_fleet_tree(fleet.settings(1), "deployment", "default", "web")).splitlines()
    assert next(line for line in tree if "missing" in line).startswith("  missing: 52 of 60 replicas: ")
    explained = explain_resource(fleet.settings(1), "deployment", "default", "web")
    assert explained.state == "Placed on 2 clusters with 8 of 60 replicas."


def test_a_workload_that_exceeds_two_clusters_counts_once(fleet: Fleet) -> None:
    fleet.commit(
        {
            "one.yaml": sized("one", 1),
            "two.yaml": sized("two", 1),
            "web.yaml": dynamic("web", 5),
            "policy.yaml": policy("one,two"),
        }
    )
    fleet.reconcile(0)
    lines = write_fleet_status(read_fleet_status(fleet.settings(0))).splitlines()
    assert sum(line.endswith("[capacity-exceeded]") for line in lines) == 2
    assert "1 workload exceeds the capacity of its cluster" in lines[0]


def test_workloads_that_keep_what_they_have_because_they_cannot_be_scheduled_are_wrong(fleet: Fleet) -> None:
    spread = "    spreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 2}]\n"
    both = {"web.yaml": deployment("web"), "policy.yaml": policy("one,two") + spread}
    fleet.commit({"gitsched.yaml": UNGUARDED, "one.yaml": cluster("one"), "two.yaml": cluster("two"), **both})
    fleet.reconcile(0)
    assert not serialize_fleet_status(read_fleet_status(fleet.settings(0)))["problems"]
    fleet.commit({"two.yaml": cluster("two", "power:NoExecute")}, hour=1)
    fleet.reconcile(1)
    lost = "1 workload could not be scheduled and keeps what it has"
    why = "Not scheduled: Deployment default/web: failed to select clusters: the number of feasible clusters is less than "
    lines = write_fleet_status(read_fleet_status(fleet.settings(1)), 300).splitlines()
    assert lines[0] == f"Needs attention: 1 of 2 clusters is drained, {lost}."
    assert lines[1].startswith(why)
    assert lines[1].endswith("gitsched explain deployment/default/web")
    fleet.commit({"two.yaml": cluster("two")}, hour=1)
    fleet.reconcile(1)
    lines = write_fleet_status(read_fleet_status(fleet.settings(1)), 300).splitlines()
    assert lines[0] == f"Needs attention: {lost}.", "its eviction lasts"
    assert lines[1].startswith(why)
    fleet.commit({"policy.yaml": policy("oen")}, hour=30)
    fleet.reconcile(30)
    assert lost not in write_fleet_status(read_fleet_status(fleet.settings(30))), "it is unplaced, or selected by no policy"


BROKEN = """\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: none, namespace: default}
spec:
  overrideRules: [{targetCluster: {clusterNames: [two]}, overriders: {plaintext: [{path: /spec/none, operator: remove}]}}]
"""
NOT_DELIVERED = {
    "an override cannot be applied": ({"override.yaml": BROKEN}, "OverridePolicy/default/none cannot be applied to"),
    "dispatching is suspended": (
        {"policy.yaml": f"{DYNAMIC}  suspension: {{dispatchingOnClusters: {{clusterNames: [two]}}}}\n"},
        "its manifest is not delivered to two;",
    ),
}


def test_a_workload_with_all_replicas_in_each_cluster_should_have_their_sum(fleet: Fleet) -> None:
    fleet.commit(
        {**FIT, "override.yaml": BROKEN, "policy.yaml": policy("one,two"), "web.yaml": deployment("web", 3), "api.yaml": ""}
    )
    fleet.reconcile(0)
    lines = write_fleet_status(read_fleet_status(fleet.settings(0))).splitlines()
    assert lines[0] == "Needs attention: 1 error, Deployment default/web lacks 3 of 6 replicas."
    assert lines[1].startswith(
        "Missing: Deployment default/web has 3 of 6 replicas: OverridePolicy/default/none cannot be applied to"
    )


@pytest.mark.parametrize("name", NOT_DELIVERED)
def test_replicas_whose_manifest_is_not_delivered_are_missing(name: str, fleet: Fleet) -> None:
    files, reason = NOT_DELIVERED[name]
    fleet.commit({**FIT, **files, "api.yaml": ""})
    fleet.reconcile(0)
    lines = write_fleet_status(read_fleet_status(fleet.settings(0))).splitlines()
    (missing,) = [line for line in lines if line.startswith("Missing: ")]
    assert missing.startswith(f"Missing: Deployment default/web has 5 of 8 replicas: {reason}")
    assert "1 workload: 1 placed (5 replicas), 3 replicas missing." in lines
