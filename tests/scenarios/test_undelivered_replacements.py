"""A workload that moves to a cluster whose manifest does not change, as while dispatching is suspended, keeps its former copies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scenarios.test_incremental_plan import ThreeVariants

from .conftest import UNGUARDED, Fleet, cluster, deployment, policy

WEB = "default/deployment-web"
SUSPENDED = "  suspension: {dispatchingOnClusters: {clusterNames: [bru]}}\n"
MINUTE = 1 / 60
FAILING = """\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: fails, namespace: default}
spec:
  overrideRules:
  - targetCluster: {clusterNames: [bru]}
    overriders: {plaintext: [{path: /spec/missing/field, operator: replace, value: 1}]}
"""
FREE: dict[str, str | bytes | None] = {"policy.yaml": policy("bru", scheduling="Divided")}
Change = Callable[[], dict[str, str | bytes | None]]


def suspend() -> dict[str, str | bytes | None]:
    return {"policy.yaml": policy("bru", scheduling="Divided", more=SUSPENDED)}


def fail_to_override() -> dict[str, str | bytes | None]:
    return {"override.yaml": FAILING, **FREE}


def read_replicas(fleet: Fleet) -> dict[str, int]:
    return {name: fleet.load(f"clusters/{name}/{WEB}.yaml")["spec"]["replicas"] for name in fleet.delivered(WEB)}


def start(fleet: Fleet, names: str = "ash,bru", scheduling: str = "Divided", replicas: int = 6) -> None:
    files = {f"clusters/{name}.yaml": cluster(name) for name in ("ash", "bru", "cph")}
    web, rule = deployment("web", replicas), policy(names, scheduling=scheduling)
    fleet.commit({"gitsched.yaml": UNGUARDED, **files, "web.yaml": web, "policy.yaml": rule})
    fleet.reconcile()


@pytest.mark.parametrize("change", [suspend, fail_to_override])
def test_replicas_stay_until_the_cluster_that_gets_them_takes_them(fleet: Fleet, change: Change) -> None:
    start(fleet)
    assert read_replicas(fleet) == {"ash": 3, "bru": 3}
    fleet.commit(change(), hour=1)
    run = fleet.reconcile(1)
    assert read_replicas(fleet) == {"ash": 3, "bru": 3}
    (finding,) = [finding for finding in run.plan.findings if finding.code == "copy-retained"]
    assert "until its replacement is delivered" in finding.message
    assert "bru (3 of 6 replicas)" in finding.message
    assert fleet.reconcile(48).after is None, "it stays without a limit of time"
    fleet.commit({**FREE, **({"override.yaml": None} if change is fail_to_override else {})}, hour=49)
    fleet.reconcile(49)
    assert read_replicas(fleet) == {"ash": 3, "bru": 6}
    fleet.reconcile(49 + 11 * MINUTE)
    assert read_replicas(fleet) == {"bru": 6}


def test_where_no_new_cluster_takes_its_manifest_the_finding_says_so(fleet: Fleet) -> None:
    start(fleet, "ash")
    fleet.commit(suspend(), hour=1)
    (finding,) = [finding for finding in fleet.reconcile(1).plan.findings if finding.code == "copy-retained"]
    assert "the manifest does not change in bru (0 of 6 replicas): resume dispatching there" in finding.message


def test_a_part_that_is_delivered_elsewhere_does_not_end_the_copy(fleet: Fleet) -> None:
    start(fleet)
    fleet.commit({"policy.yaml": policy("bru,cph", scheduling="Divided", more=SUSPENDED), "web.yaml": deployment("web", 9)}, hour=1)
    fleet.reconcile(1)
    fleet.reconcile(3)
    found = read_replicas(fleet)
    assert found.keys() == {"ash", "bru", "cph"}
    assert (found["ash"], found["bru"]) == (3, 3)


def test_fewer_replicas_than_the_cluster_has_end_the_copy(fleet: Fleet) -> None:
    start(fleet)
    fleet.commit({**suspend(), "web.yaml": deployment("web", 3)}, hour=1)
    fleet.reconcile(1)
    fleet.reconcile(3)
    assert read_replicas(fleet) == {"bru": 3}, "as many as are wanted"


def test_full_copies_stay_for_those_that_are_not_delivered(fleet: Fleet) -> None:
    start(fleet, "ash,cph", "Duplicated", 2)
    fleet.commit({"policy.yaml": policy("bru,cph", more=SUSPENDED)}, hour=1)
    fleet.reconcile(1)
    fleet.reconcile(3)
    assert fleet.delivered(WEB) == ["ash", "cph"]


def test_an_evicted_copy_stays_while_its_replacement_is_not_delivered(fleet: Fleet) -> None:
    start(fleet, "ash,bru")
    fleet.commit(
        {
            "clusters/ash.yaml": cluster("ash", "down:NoExecute"),
            "policy.yaml": policy("ash,bru", scheduling="Divided", more=SUSPENDED),
        },
        hour=1,
    )
    fleet.reconcile(1)
    fleet.reconcile(2)
    fleet.reconcile(5)
    assert read_replicas(fleet) == {"ash": 3, "bru": 3}


def test_a_removed_cluster_keeps_its_copy_while_the_replacement_is_not_delivered(fleet: Fleet) -> None:
    start(fleet)
    fleet.commit({"clusters/ash.yaml": None, **suspend()}, hour=1)
    fleet.reconcile(1)
    fleet.reconcile(72)
    assert read_replicas(fleet) == {"ash": 3, "bru": 3}


def test_copies_stay_while_replicas_in_a_removed_cluster_are_not_scheduled_again(fleet: Fleet) -> None:
    """Two clusters are needed, so Karmada leaves the replicas in the record of the removed one."""
    spread = "    spreadConstraints:\n    - {spreadByField: cluster, minGroups: 2}\n"
    start(fleet)
    fleet.commit({"policy.yaml": policy("ash,bru", scheduling="Divided", more=spread)}, hour=0.5)
    fleet.reconcile(0.5)
    moved = policy("bru,cph", scheduling="Divided", more=spread + SUSPENDED.replace("bru", "cph"))
    fleet.commit({"policy.yaml": moved}, hour=1)
    fleet.reconcile(1)
    assert read_replicas(fleet) == {"ash": 3, "bru": 3}
    fleet.commit({"clusters/cph.yaml": None}, hour=2)
    run = fleet.reconcile(2)
    (finding,) = [finding for finding in run.plan.findings if finding.code == "copy-retained"]
    assert "has clusters for 3 of 6 replicas, and keeps its copy in ash" in finding.message
    fleet.reconcile(50)
    assert read_replicas(fleet) == {"ash": 3, "bru": 3}


def test_a_second_move_counts_what_was_delivered(fleet: Fleet) -> None:
    start(fleet)
    fleet.commit(suspend(), hour=1)
    fleet.reconcile(1)
    fleet.commit({"policy.yaml": policy("bru,cph", scheduling="Divided", more=SUSPENDED), "web.yaml": deployment("web", 8)}, hour=2)
    fleet.reconcile(2)
    fleet.reconcile(4)
    found = read_replicas(fleet)
    assert sum(found.values()) >= 6, found


def test_a_copy_stays_while_changes_are_withheld_and_its_replacement_is_not_delivered(fleet: Fleet) -> None:
    start(fleet)
    fleet.commit(suspend(), hour=1)
    fleet.reconcile(1)
    fleet.commit({"gitsched.yaml": UNGUARDED + "    freeze: audit\n"}, hour=2)
    fleet.reconcile(2)
    fleet.commit({"web.yaml": deployment("web", 9)}, hour=3)
    run = fleet.reconcile(3)
    assert not run.plan.withheld.moves, "what is delivered does not change while dispatching is suspended"
    fleet.reconcile(5)
    assert read_replicas(fleet) == {"ash": 3, "bru": 3}


def test_a_copy_that_was_not_delivered_as_decided_overlaps_when_it_may_change(fleet: Fleet) -> None:
    start(fleet)
    weights = ", ".join(
        f"{{targetCluster: {{clusterNames: [{name}]}}, weight: {weight}}}" for name, weight in (("ash", 1), ("bru", 5))
    )
    rule = policy("ash,bru", scheduling="Divided").replace(
        "Weighted", f"Weighted, weightPreference: {{staticWeightList: [{weights}]}}"
    )
    fleet.commit({"policy.yaml": rule + "  suspension: {dispatching: true}\n"}, hour=1)
    fleet.reconcile(1)
    assert read_replicas(fleet) == {"ash": 3, "bru": 3}
    fleet.commit({"policy.yaml": rule}, hour=2)
    fleet.reconcile(2)
    assert read_replicas(fleet) == {"ash": 3, "bru": 5}
    fleet.reconcile(2 + 11 * MINUTE)
    assert read_replicas(fleet) == {"ash": 1, "bru": 5}


def test_what_a_suspended_cluster_has_of_full_copies_counts(fleet: Fleet) -> None:
    start(fleet, "ash,bru", "Duplicated", 2)
    for number, replicas in enumerate((2, 6), 1):
        fleet.commit({"policy.yaml": policy("ash,bru", more=SUSPENDED), "web.yaml": deployment("web", replicas)}, hour=number)
        fleet.reconcile(number)
    assert read_replicas(fleet) == {"ash": 6, "bru": 2}
    fleet.commit({"policy.yaml": policy("bru", more=SUSPENDED)}, hour=3)
    fleet.reconcile(3)
    fleet.reconcile(5)
    assert read_replicas(fleet) == {"ash": 6, "bru": 2}, "bru has 2 of 6"


def test_an_eviction_delivers_nothing_where_an_override_has_failed(fleet: Fleet) -> None:
    start(fleet, "bru")
    fleet.commit({"override.yaml": FAILING}, hour=1)
    fleet.reconcile(1)
    chosen = policy("ash,bru,cph", scheduling="Divided", more=SUSPENDED)
    fleet.commit({"api.yaml": deployment("api", 6), "policy.yaml": chosen}, hour=2)
    fleet.reconcile(2)
    assert fleet.delivered("default/deployment-api") == ["ash", "cph"]
    fleet.commit({"clusters/bru.yaml": cluster("bru", "down:NoExecute")}, hour=3)
    fleet.reconcile(3)
    assert fleet.delivered("default/deployment-api") == ["ash", "cph"]


@pytest.mark.usefixtures("bugs_are_raised")
@pytest.mark.parametrize(
    "gone", [{"api.yaml": None}, {"api.yaml": deployment("api", namespace="none")}], ids=["removed", "not selected"]
)
def test_a_workload_that_was_not_delivered_as_decided_is_removed(
    fleet: Fleet, tmp_path: Path, gone: dict[str, str | bytes | None]
) -> None:
    variants = ThreeVariants(fleet, tmp_path)
    files = {"gitsched.yaml": UNGUARDED, "web.yaml": deployment("web"), "api.yaml": deployment("api"), "bru.yaml": cluster("bru")}
    fleet.commit({**files, **suspend()})
    variants.run(0, "nothing is delivered")
    fleet.commit(gone, hour=1)
    for run in variants.run(1, "one goes"):
        assert [key.name for key in run.plan.totals.undelivered] == ["web"]
