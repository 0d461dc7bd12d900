"""Conditions of clusters: taints and evictions at their deadlines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from gitsched.reconcile import Reconciler

from .conftest import Fleet, at_hour, cluster, deployment, policy

MINUTE = 1 / 60
WEB = "default/deployment-web"
SETTINGS = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  karmada: {allowNoExecuteTaintPolicy: true}
"""
DRAIN = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterTaintPolicy
metadata:
  name: drain-the-dead
spec:
  addOnConditions:
  - {conditionType: Ready, operator: NotIn, statusValues: ["True"]}
  removeOnConditions:
  - {conditionType: Ready, operator: In, statusValues: ["True"]}
  taints:
  - key: dead
    effect: NoExecute
"""
PATIENT = "    clusterTolerations: [{key: dead, operator: Exists, effect: NoExecute, tolerationSeconds: 1800}]\n"


def state(ready: str) -> str:
    return f'{cluster("first")}status:\n  conditions:\n  - {{type: Ready, status: "{ready}"}}\n'


def fill(fleet: Fleet) -> None:
    """A fleet with web on `first`, which is ready; a failure is tolerated for half an hour."""
    policies = policy("first", "second", more=PATIENT)
    files = {"gitsched.yaml": SETTINGS, "web.yaml": deployment("web"), "policy.yaml": policies, "drain.yaml": DRAIN}
    fleet.commit({**files, "first.yaml": state("True"), "second.yaml": cluster("second")})
    fleet.reconcile()
    assert fleet.where(WEB) == ["first"]


def taints(fleet: Fleet) -> list[dict[str, Any]]:
    """Return the taints that the record of `first` contains."""
    path = "status/cluster.karmada.io/cluster/_/first.yaml"
    if path not in fleet.files():
        return []
    entries: list[dict[str, Any]] = json.loads(fleet.load(path)["metadata"]["annotations"]["gitsched.io/taints-added"])
    return entries


def test_workloads_leave_a_cluster_that_is_not_ready_for_too_long(fleet: Fleet) -> None:
    fill(fleet)
    fleet.commit({"first.yaml": state("False")}, hour=1)
    assert fleet.reconcile(1).plan.next_wakeup == at_hour(1.5)
    assert taints(fleet) == [
        {
            "key": "cluster.karmada.io/not-ready",
            "effect": "NoSchedule",
            "timeAdded": "2026-03-02T09:00:00Z",
            "addedBy": "its condition Ready is False",
        },
        {
            "key": "dead",
            "effect": "NoExecute",
            "timeAdded": "2026-03-02T09:00:00Z",
            "addedBy": "ClusterTaintPolicy/drain-the-dead",
        },
    ]
    # Another status is no news for the policy: its taint is as old as it was.
    fleet.commit({"first.yaml": state("Unknown")}, hour=1.25)
    assert fleet.reconcile(1.25).plan.next_wakeup == at_hour(1.5)
    assert [entry["timeAdded"] for entry in taints(fleet)] == ["2026-03-02T09:15:00Z", "2026-03-02T09:00:00Z"]
    fleet.reconcile(1.5)
    assert fleet.delivered(WEB) == ["first", "second"], "the old copy stays until the new one had its time"
    fleet.reconcile(1.5 + 10 * MINUTE)
    assert fleet.where(WEB) == ["second"]


def test_a_cluster_that_is_ready_again_in_time_keeps_its_workloads(fleet: Fleet) -> None:
    fill(fleet)
    for hour, ready in ((1, "False"), (1.25, "True")):
        fleet.commit({"first.yaml": state(ready)}, hour=hour)
        fleet.reconcile(hour)
    assert (taints(fleet), fleet.reconcile(2).after, fleet.where(WEB)) == ([], None, ["first"])


def test_a_run_that_is_late_by_less_than_a_tenth_of_the_overlap_writes_the_same_bytes(make_fleet: Callable[[str], Fleet]) -> None:
    punctual, late = make_fleet("punctual"), make_fleet("late")
    for fleet, minutes in ((punctual, (0, 12, 30, 40, 55)), (late, (4, 30.9, 45, 58))):
        fill(fleet)
        fleet.commit({"first.yaml": state("False")}, hour=1)
        for minute in minutes:
            fleet.reconcile(1 + minute * MINUTE)
    assert punctual.where(WEB) == ["second"]
    assert punctual.head == late.head


def test_a_resident_process_writes_the_bytes_of_a_new_one(make_fleet: Callable[[str], Fleet]) -> None:
    fresh, resident = make_fleet("fresh"), make_fleet("resident")
    fill(fresh)
    fill(resident)
    session = Reconciler(resident.settings())
    changes = [
        (1.0, {"first.yaml": state("False")}),
        (1.1, {"web.yaml": deployment("web", 3)}),
        (1.2, {"drain.yaml": DRAIN.replace('operator: In, statusValues: ["True"]', "operator: In, statusValues: [Never]")}),
        (1.3, {"first.yaml": state("True")}),
        (1.4, {"web.yaml": deployment("web", 4)}),
        (1.6, {"drain.yaml": None}),
        (1.7, {"first.yaml": cluster("first")}),
    ]
    for hour, files in changes:
        for fleet in (fresh, resident):
            fleet.commit(files, hour=hour)
        fresh.reconcile(hour + MINUTE)
        session.run(at_hour(hour + MINUTE))
        assert fresh.head == resident.head
    assert [entry["key"] for entry in taints(fresh)] == ["dead"], "it outlives its policy"


def test_a_policy_with_no_execute_must_be_allowed(fleet: Fleet) -> None:
    fill(fleet)
    fleet.commit({"gitsched.yaml": SETTINGS.replace("true", "false"), "first.yaml": state("False")}, hour=1)
    run = fleet.reconcile(1)
    (refusal,) = (finding for finding in run.plan.findings if finding.severity == "error")
    assert str(refusal.location) == "drain.yaml:12:13"
    assert refusal.code == "karmada-taint-policy-no-execute"
    assert [entry["key"] for entry in taints(fleet)] == ["cluster.karmada.io/not-ready"]
    fleet.commit({"gitsched.yaml": SETTINGS}, hour=2)
    assert fleet.reconcile(2).plan.next_wakeup == at_hour(2.5)
