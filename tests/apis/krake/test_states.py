"""States of applications and clusters: deletion, the end of a failure, and clusters that are unreachable or not healthy."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.krake import Body, ScheduleRuns, application, cluster, codes, find

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"


def node(name: str = "n1", **conditions: str) -> Body:
    listed = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return {"metadata": {"name": name}, "status": {"conditions": listed}}


def observed(name: str, state: str | None, *nodes: Any) -> Body:
    body = cluster(name, state)
    return {**body, "status": {**body["status"], "nodes": list(nodes)}}


@pytest.mark.parametrize("state", ["DELETING", "DELETED"])
def test_an_application_that_is_deleted_has_no_place(state: str) -> None:
    runs = ScheduleRuns(cluster("one"), application(status={"state": state}))
    schedule = runs.run()
    assert (runs.target(), codes(schedule)) == (None, set())


def test_a_placed_application_is_removed_while_its_state_is_deleting() -> None:
    runs = ScheduleRuns(cluster("one"), application())
    assert runs.run().decisions.outcomes.popitem()[1].targets
    for state in ("DELETING", None):
        schedule = runs.run(60, application(status={"state": state} if state else None))
        (outcome,) = schedule.decisions.outcomes.values()
        assert bool(outcome.targets) is (state is None)
    assert runs.status()["state"] == "PENDING"


def test_a_failure_ends_when_an_application_is_placed() -> None:
    runs = ScheduleRuns(cluster("one", "OFFLINE"), application(backoff_limit=3))
    runs.run()
    assert (runs.status()["state"], runs.status()["reason"]["code"]) == ("DEGRADED", "NO_SUITABLE_RESOURCE")
    runs.run(60, cluster("one"))
    assert runs.target() == "one"
    assert runs.status()["state"] == "PENDING"
    assert runs.status().keys().isdisjoint({"reason", "retries", "scheduled_retry"})
    before = runs.records
    runs.run(120)
    assert runs.records == before


def test_a_failure_ends_when_the_cluster_of_an_application_matches_again() -> None:
    runs = ScheduleRuns(cluster("one"), application(status={"state": "RUNNING"}))
    runs.run()
    runs.run(60, cluster("one", "OFFLINE"))
    assert (runs.target(), runs.status()["state"]) == ("one", "DEGRADED")
    runs.run(180, cluster("one"))
    assert (runs.target(), runs.status()["state"], "reason" in runs.status()) == ("one", "RUNNING", False)
    before = runs.records
    runs.run(240)
    assert runs.records == before


def test_the_finding_about_a_failure_says_that_a_cluster_matches_by_now() -> None:
    runs = ScheduleRuns(cluster("one", "OFFLINE"), application(backoff_limit=0))
    runs.run()
    (finding,) = runs.run(60, cluster("one")).findings
    assert finding.message.endswith(
        "has failed: No matching Kubernetes cluster found (one: it matches now); it is scheduled again when its document changes"
    )
    runs = ScheduleRuns(cluster("one", "OFFLINE"), application(backoff_limit=3, backoff_delay=600))
    runs.run()
    (finding,) = runs.run(60, cluster("one")).findings
    assert finding.message.endswith("could not be scheduled: No matching Kubernetes cluster found (one: it matches now)")


def test_a_failure_in_the_document_is_not_gitscheds_to_remove() -> None:
    reason = {"code": "INTERNAL_ERROR", "message": "of another controller"}
    runs = ScheduleRuns(cluster("one"), application(status={"state": "RUNNING", "reason": reason}))
    runs.run()
    assert (runs.target(), runs.status()["reason"]) == ("one", reason)


@pytest.mark.parametrize("reason", [None, {"code": "INTERNAL_ERROR", "message": "of another controller"}])
def test_a_failure_in_the_document_ends_when_it_leaves_the_document(reason: Body | None) -> None:
    failed = {"state": "FAILED"} | ({"reason": reason} if reason else {})
    runs = ScheduleRuns(cluster("one"), application(status=failed))
    runs.run()
    assert (runs.target(), runs.status()["state"]) == (None, "FAILED")
    runs.run(60, application())
    assert (runs.target(), runs.status()["state"], "reason" in runs.status()) == ("one", "PENDING", False)


@pytest.mark.parametrize(
    ("state", "nodes", "expected", "reason"),
    [
        ("ONLINE", [node(Ready=TRUE, MemoryPressure=FALSE)], True, ""),
        ("ONLINE", [], True, ""),
        ("ONLINE", [node(Ready=FALSE)], False, "NOTREADY, not ONLINE: node n1 is not ready (status False)"),
        ("ONLINE", [node(Ready=TRUE), node("n2", Ready=UNKNOWN)], False, "NOTREADY, not ONLINE: node n2 is not ready"),
        ("ONLINE", [node(DiskPressure=TRUE, Ready=FALSE)], False, "UNHEALTHY, not ONLINE: node n1 reports DiskPressure"),
        ("OFFLINE", [node(Ready=TRUE)], False, "OFFLINE, not ONLINE"),
        (None, [node(Ready=TRUE)], True, ""),
        (None, [node(Ready=FALSE)], False, "NOTREADY"),
        ("ONLINE", ["nonsense", {"status": {"conditions": "none"}}], True, ""),
    ],
)
def test_a_cluster_with_a_failing_node_is_no_candidate(state: str | None, nodes: list[Any], expected: bool, reason: str) -> None:
    runs = ScheduleRuns(observed("one", state, *nodes), application())
    schedule = runs.run()
    if "nonsense" not in nodes:
        (result,) = schedule.explain("Application", "echo", "tenant-a")
        assert (result.eligible, reason in result.reason) == (expected, True)
        assert ("krake-cluster-unavailable" in codes(schedule)) is not expected


@pytest.mark.parametrize("state", ["OFFLINE", "UNHEALTHY", "NOTREADY", "DEGRADED", "FAILING_RECONCILIATION"])
def test_an_unavailable_cluster_is_reported_and_left(state: str) -> None:
    runs = ScheduleRuns(cluster("one"), application())
    runs.run()
    schedule = runs.run(60, cluster("one", state), cluster("two"))
    (finding,) = (finding for finding in schedule.findings if finding.code == "krake-cluster-unavailable")
    assert (runs.target(), finding.resource) == ("two", ("Cluster", "tenant-a", "one"))
    assert f"is {state}, so nothing is scheduled there: " in finding.message


def test_an_observed_node_moves_applications() -> None:
    runs = ScheduleRuns(observed("one", "ONLINE", node(Ready=TRUE)), application())
    runs.run()
    runs.run(120, observed("one", "ONLINE", node(Ready=UNKNOWN)), cluster("two"))
    assert runs.target() == "two"
    assert find(runs.records, "Application", "echo")["status"]["state"] == "PENDING"
