"""While the guard withholds changes, a status says of the fleet what is delivered, and which commit requested what is withheld."""

from __future__ import annotations

import pytest

from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.report.fleet_status import write_fleet_status

from .conftest import Fleet, at_hour
from .facts_histories import commit_branch
from .test_guard import SETTINGS, labelled, place_one_on_each, withheld
from .test_shared_capacity import DUPLICATED, cluster, deployment, policy
from .test_staying_workloads import STATEFUL

FACTS = """\
apiVersion: gitsched.io/v1alpha1
kind: ClusterFacts
metadata: {{name: {}}}
status: {{observedAt: "{}", ready: {{status: "True"}}}}
"""


def read_status(fleet: Fleet, hour: float) -> str:
    return " ".join(write_fleet_status(read_fleet_status(fleet.settings(hour))).split())


def test_what_would_lack_capacity_or_be_held_elsewhere_is_reported_as_delivered(fleet: Fleet) -> None:
    stateful = STATEFUL.replace("default", "shop")
    both = policy(DUPLICATED) + policy("clusterAffinity: {clusterNames: [a]}\n", "data").replace("Deployment", "StatefulSet")
    files = {"a.yaml": cluster("a", cpu=10), "b.yaml": cluster("b", cpu=10), "policy.yaml": both, "data.yaml": stateful}
    fleet.commit({**files, "web.yaml": deployment("web", 4)})
    fleet.reconcile()
    freeze = SETTINGS.format("guard: {freeze: audit}")
    larger = {"web.yaml": deployment("web", 40), "data.yaml": stateful.replace("replicas: 2", "replicas: 8")}
    fleet.commit({**larger, "policy.yaml": both.replace("[a]", "[b]"), "gitsched.yaml": freeze}, hour=1)
    planned, run = fleet.preview(1), fleet.reconcile(1)
    assert any(one.code == "cluster-overcommitted" for one in planned.plan.findings), "a plan says what would be"
    assert len(run.plan.withheld.moves) == 2
    found = read_status(fleet, 1)
    assert "2 changes are withheld" in found
    assert "lack" not in found
    assert "StatefulSet shop/tenth is held on a 2: " in found
    assert "2 workloads: 2 placed (10 replicas)" in found
    fleet.reconcile(2, allowed=(run.plan.withheld.digest,))
    found = read_status(fleet, 2)
    assert "2 of 2 clusters lack capacity" in found
    assert "StatefulSet shop/tenth is held on a 8: " in found


@pytest.mark.parametrize("guard", ["", "guard: {freeze: audit}, "], ids=["facts alone", "an edit, too"])
def test_no_commit_requests_what_only_follows_doubted_facts(fleet: Fleet, guard: str) -> None:
    place_one_on_each(fleet, 6)
    settings = SETTINGS.format(
        f"{guard}karmada: {{failover: cluster}}, source: {{facts: {{branch: facts, staleAfter: 1h, stale: evict}}}}"
    )
    fleet.commit({"gitsched.yaml": settings})

    def observe(hour: float, *others: int) -> None:
        times = {n: at_hour(hour if n in others else 1).isoformat().replace("+00:00", "Z") for n in range(6)}
        commit_branch(fleet, "facts", {f"{n}.yaml": FACTS.format(f"c{n}", time) for n, time in times.items()}, hour)

    observe(1)
    fleet.reconcile(1)
    observe(3, 5)
    fleet.commit({"5.yaml": labelled("w5", "w5").replace("replicas: 2", "replicas: 3")}, hour=3, message="Larger")
    run = fleet.reconcile(3)
    assert withheld(run)[0].startswith("5 of 6 clusters are not ready by reported facts alone")
    assert len(run.plan.withheld.moves) == (6 if guard else 5)
    assert ("requested by" in read_status(fleet, 3)) == bool(guard)
