"""A first run says how many of the workloads it places, and why it does not place them all."""

from __future__ import annotations

import pytest

from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.run import make_review
from gitsched.report.fleet_status import write_fleet_status
from gitsched.report.text import summarize_plan, write_run
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

FLEET = {"one.yaml": cluster("one"), "a.yaml": deployment("a"), "b.yaml": deployment("b")}
ONLY_A = policy("one", name="a").replace("Deployment}", "Deployment, name: a}")
NOWHERE = policy("oen", name="b").replace("Deployment}", "Deployment, name: b}")
FIRST: dict[str, tuple[dict[str, str], str, str, str]] = {
    "everything": ({"p.yaml": policy("one")}, "2 workloads", "", "Nothing is wrong: "),
    "no cluster of the policy": (
        {"p.yaml": policy("oen")},
        "0 of 2 workloads",
        " PropagationPolicy/default/all names clusters without a Cluster document: oen; did you mean one? (p.yaml:12).",
        "Needs attention: 2 workloads are unplaced.",
    ),
    "another policy": (
        {
            "one.yaml": cluster("one", "power:NoSchedule"),
            "p.yaml": policy("one"),
            "q.yaml": policy("oen", name="maps", kind="ConfigMap"),
        },
        "0 of 2 workloads",
        " Deployment.apps/default/a could not be scheduled: 0/1 clusters are available: ",
        "Needs attention: 2 workloads are unplaced.",
    ),
    "a part": (
        {"p.yaml": ONLY_A, "q.yaml": NOWHERE},
        "1 of 2 workloads",
        " Deployment.apps/default/b could not be scheduled: ",
        "Needs attention: 1 workload is unplaced.",
    ),
    "a misspelled kind": (
        {"p.yaml": policy("one").replace("Deployment", "Deploymnt")},
        "no workload",
        " PropagationPolicy/default/all selects Deploymnt of apps/v1, which the repository does not have; did you mean Deployment? "
        "(p.yaml:8).",
        "Needs attention: no policy selects an object.",
    ),
    "no policy": (
        {},
        "no workload",
        " No policy selects an object of the source: gitsched status --unclaimed lists 2 objects.",
        "Needs attention: no policy selects an object.",
    ),
}


@pytest.mark.parametrize("name", FIRST)
def test_a_first_run_says_how_much_it_places_and_why_no_more(name: str, fleet: Fleet) -> None:
    files, placed, why, status = FIRST[name]
    fleet.commit({**FLEET, **files})
    plan = summarize_plan(make_review(fleet.preview()))
    assert f" and place {placed}.{why}" in plan
    assert plan.endswith(f" and place {placed}.") == (not why)
    first = write_run(make_review(fleet.reconcile()), 10_000).splitlines()[0]
    assert f" (first commit): {placed} placed, from commit " in first
    assert f".{why}" in first
    assert write_fleet_status(read_fleet_status(fleet.settings())).startswith(status)
