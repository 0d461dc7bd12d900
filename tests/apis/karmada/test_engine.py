"""What stays the same for a workload from one run to the next."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.model.time import format_time, parse_time
from tests.search_depth import count_examples

CLUSTERS = "\n---\n".join(f"kind: Cluster\nmetadata: {{name: m{i}}}" for i in (1, 2, 3))
WEB = "kind: Deployment\nmetadata: {name: web}\nspec: {replicas: 5}"
NOON, LATER, MUCH_LATER = "2026-01-01T12:00:00Z", "2026-01-01T13:00:00Z", "2026-01-02T12:00:00Z"
DIVIDED = "replicaScheduling: {replicaSchedulingType: Divided}"
GROUPS = "clusterAffinities: [{affinityName: a, clusterNames: [m1]}, {affinityName: b, clusterNames: [m2]}, {affinityName: c}]"


def policy(
    placement: str = "", spec: str = "", name: str = "p", kind: str = "PropagationPolicy", selects: str = "name: web"
) -> str:
    return f"""
kind: {kind}
metadata: {{name: {name}}}
spec:
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment, {selects}}}]
  placement: {{{placement}}}
  {spec}
"""


def cluster(name: str, *taints: str, deleting: bool = False) -> str:
    deletion = ", deletionTimestamp: '2026-01-01T00:00:00Z'" if deleting else ""
    return f"kind: Cluster\nmetadata: {{name: {name}{deletion}}}\nspec: {{taints: [{', '.join(taints)}]}}"


def repository(*documents: str) -> str:
    return "\n---\n".join(documents)


HOT = "{key: fire, effect: NoExecute, timeAdded: '2026-01-01T12:00:00Z'}"
COLD = "{key: work, effect: NoSchedule}"


# Claims


def test_a_claim_holds_against_a_later_policy_of_higher_priority(run: Any) -> None:
    first = run(repository(CLUSTERS, WEB, policy(name="old")))
    second = run(
        repository(CLUSTERS, WEB, policy(name="old"), policy("clusterAffinity: {clusterNames: [m3]}", "priority: 9", "new")), first
    )
    assert (second.policy("web"), list(second.clusters("web"))) == ("PropagationPolicy/default/old", ["m1", "m2", "m3"])


def test_a_claim_of_a_cluster_policy_holds_against_a_policy_of_the_namespace(run: Any) -> None:
    wide = policy(kind="ClusterPropagationPolicy", name="wide")
    second = run(repository(CLUSTERS, WEB, wide, policy(name="near")), run(repository(CLUSTERS, WEB, wide)))
    assert second.policy("web") == "ClusterPropagationPolicy/wide"


@pytest.mark.parametrize("old", ["", policy(name="old", selects="name: other")], ids=["deleted", "selects something else"])
def test_a_claim_ends_when_its_policy_does_not_select_the_workload(run: Any, old: str) -> None:
    first = run(repository(CLUSTERS, WEB, policy(name="old")))
    second = run(
        repository(CLUSTERS, WEB, policy("clusterAffinity: {clusterNames: [m3]}", name="new"), *[old] if old else []), first
    )
    assert (second.policy("web"), list(second.clusters("web"))) == ("PropagationPolicy/default/new", ["m3"])
    assert second.binding("web")["metadata"]["annotations"]["propagationpolicy.karmada.io/name"] == "new"


def test_a_claim_in_the_template_is_used_without_a_binding(run: Any) -> None:
    notes = "propagationpolicy.karmada.io/namespace: default, propagationpolicy.karmada.io/name: old"
    dumped = WEB.replace("{name: web}", f"{{name: web, annotations: {{{notes}}}}}")
    assert (
        run(repository(CLUSTERS, dumped, policy(name="old"), policy(spec="priority: 9", name="new"))).policy("web").endswith("/old")
    )


def test_without_any_policy_there_is_no_binding(run: Any) -> None:
    assert run(repository(CLUSTERS, WEB)).outcome("web") is None


# Groups


def test_scheduling_resumes_at_the_group_used_last(run: Any) -> None:
    first = run(repository(cluster("m1", COLD), cluster("m2"), cluster("m3"), WEB, policy(GROUPS)))
    assert first.binding("web")["status"]["schedulerObservingAffinityName"] == "b"
    second = run(repository(CLUSTERS, WEB, policy(GROUPS)), first)
    assert list(second.clusters("web")) == ["m2"]
    third = run(repository(cluster("m1"), cluster("m2", HOT), cluster("m3"), WEB, policy(GROUPS)), second, NOON)
    assert (list(third.clusters("web")), third.outcome("web").group) == (["m1", "m3"], "c")


def test_a_rebalance_starts_again_at_the_first_group_and_is_consumed_by_its_success(run: Any) -> None:
    first = run(repository(cluster("m1", COLD), cluster("m2"), cluster("m3"), WEB, policy(GROUPS)))
    binding = first.binding("web")
    binding["spec"]["rescheduleTriggeredAt"] = NOON
    second = run(repository(CLUSTERS, WEB, policy(GROUPS)), first, LATER)
    assert list(second.clusters("web")) == ["m1"]
    assert second.binding("web")["status"]["lastScheduledTime"] == LATER
    third = run(repository(cluster("m1", HOT), cluster("m2"), cluster("m3"), WEB, policy(GROUPS)), second, MUCH_LATER)
    assert list(third.clusters("web")) == ["m2"], "the group used last is now the first one, and it goes on from there"


@pytest.mark.parametrize("requested", [NOON, MUCH_LATER], ids=["before the run", "after the run"])
def test_a_rebalance_that_changes_nothing_is_consumed_too(run: Any, requested: str) -> None:
    first = run(repository(CLUSTERS, WEB, policy(DIVIDED)))
    first.binding("web")["spec"]["rescheduleTriggeredAt"] = requested
    second = run(repository(CLUSTERS, WEB, policy(DIVIDED)), first, LATER)
    assert second.clusters("web") == first.clusters("web")
    assert second.binding("web")["status"]["lastScheduledTime"] == max(requested, LATER)
    third = run(repository(CLUSTERS, WEB, policy(DIVIDED)), second, "2026-01-03T12:00:00Z")
    assert third.binding("web") == second.binding("web")


def test_the_observed_group_survives_a_run_in_which_nothing_fits(run: Any) -> None:
    first = run(repository(cluster("m1", COLD), cluster("m2"), WEB, policy(GROUPS)))
    nowhere = policy(GROUPS.replace("{affinityName: c}", "{affinityName: c, clusterNames: [m9]}"))
    second = run(repository(cluster("m1"), cluster("m2", HOT), WEB, nowhere), first, NOON)
    assert second.clusters("web") == {}
    assert second.binding("web")["status"]["schedulerObservingAffinityName"] == "b"


# Outcomes


def test_the_condition_of_a_scheduled_binding(run: Any) -> None:
    result = run(repository(CLUSTERS, WEB, policy()), at=NOON)
    assert result.clusters("web") == {"m1": 5, "m2": 5, "m3": 5}
    assert result.binding("web")["status"] == {
        "lastScheduledTime": NOON,
        "conditions": [
            {
                "type": "Scheduled",
                "status": "True",
                "reason": "Success",
                "message": "Binding has been scheduled successfully.",
                "lastTransitionTime": NOON,
            }
        ],
    }


@pytest.mark.parametrize("placement", ["", DIVIDED, GROUPS], ids=["duplicated", "divided", "groups"])
def test_nothing_changes_when_nothing_changed(run: Any, placement: str) -> None:
    first = run(repository(CLUSTERS, WEB, policy(placement)), at=NOON)
    second = run(repository(CLUSTERS, WEB, policy(placement)), first, LATER)
    assert second.binding("web") == first.binding("web")
    assert run(repository(CLUSTERS, WEB, policy(placement)), second, MUCH_LATER).binding("web") == first.binding("web")


def test_a_change_of_clusters_is_a_new_success(run: Any) -> None:
    first = run(repository(CLUSTERS, WEB, policy()), at=NOON)
    second = run(repository(CLUSTERS, cluster("m4"), WEB, policy()), first, LATER)
    assert list(second.clusters("web")) == ["m1", "m2", "m3", "m4"]
    assert second.binding("web")["status"]["lastScheduledTime"] == LATER
    assert second.condition("web")["lastTransitionTime"] == NOON, "the condition was true before and is true now"


@pytest.mark.parametrize(
    "placement", ["clusterAffinity: {clusterNames: [m9]}", DIVIDED + ", clusterAffinity: {clusterNames: [m9]}"]
)
def test_a_workload_that_fits_nowhere_loses_its_clusters(run: Any, placement: str) -> None:
    first = run(repository(CLUSTERS, WEB, policy()), at=NOON)
    second = run(repository(CLUSTERS, WEB, policy(placement)), first, LATER)
    assert (second.clusters("web"), second.outcome("web").state) == ({}, "pending")
    condition = second.condition("web")
    assert (condition["status"], condition["reason"], condition["lastTransitionTime"]) == ("False", "NoClusterFit", LATER)
    assert condition["message"].startswith("0/3 clusters are available: 3 cluster(s) did not match")
    assert second.binding("web")["status"]["lastScheduledTime"] == NOON
    assert second.codes("web") == ["unschedulable"]
    third = run(repository(CLUSTERS, WEB, policy(placement)), second, MUCH_LATER)
    assert third.binding("web") == second.binding("web")


def test_without_any_cluster_the_reason_says_so(run: Any) -> None:
    assert run(repository(WEB, policy())).condition("web")["message"] == "0/0 clusters are available: no cluster exists."


def test_reasons_are_counted_by_cluster_and_sorted(run: Any) -> None:
    fleet = repository(cluster("m1", COLD), cluster("m2", COLD), cluster("m3"), cluster("m4", deleting=True))
    result = run(repository(fleet, WEB, policy("clusterAffinity: {exclude: [m3]}")))
    assert result.condition("web")["message"] == (
        "0/4 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, "
        "2 cluster(s) had untolerated taint {work:NoSchedule}."
    )


def test_an_error_keeps_the_clusters_and_the_applied_placement(run: Any) -> None:
    first = run(repository(CLUSTERS, WEB, policy()), at=NOON)
    dynamic = "replicaScheduling: {replicaDivisionPreference: Aggregated}, spreadConstraints: [{spreadByLabel: x}]"
    second = run(repository(CLUSTERS, WEB, policy(dynamic)), first, LATER)
    assert second.clusters("web") == first.clusters("web")
    assert second.condition("web")["reason"] == "SchedulerError"
    key = "policy.karmada.io/applied-placement"
    assert second.binding("web")["metadata"]["annotations"][key] == first.binding("web")["metadata"]["annotations"][key]


def test_zero_replicas_are_a_success_without_clusters(run: Any) -> None:
    requests = "template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}"
    result = run(repository(CLUSTERS, WEB.replace("replicas: 5", f"replicas: 0, {requests}"), policy(DIVIDED)))
    assert (result.clusters("web"), result.condition("web")["reason"]) == ({}, "Success")


def test_an_object_without_replicas_goes_to_every_cluster(run: Any) -> None:
    assert run(repository(CLUSTERS, WEB.replace("5", "0"), policy(DIVIDED))).clusters("web") == {"m1": None, "m2": None, "m3": None}


# Not ours, not now


def test_a_workload_of_another_scheduler_is_not_scheduled(run: Any) -> None:
    result = run(repository(CLUSTERS, WEB, policy(spec="schedulerName: mine")))
    assert (result.clusters("web"), result.binding("web")["status"], result.codes("web")) == ({}, {}, [])
    assert result.binding("web")["spec"]["schedulerName"] == "mine"


def test_a_suspended_binding_keeps_its_clusters(run: Any) -> None:
    first = run(repository(CLUSTERS, WEB, policy()), at=NOON)
    first.binding("web")["spec"]["suspension"] = {"scheduling": True}
    second = run(repository(CLUSTERS, WEB, policy("clusterAffinity: {clusterNames: [m3]}")), first, LATER)
    assert second.clusters("web") == first.clusters("web")
    assert second.binding("web")["spec"]["suspension"] == {"scheduling": True}
    assert second.binding("web")["status"] == first.binding("web")["status"]


# Broken input


def test_an_invalid_policy_keeps_the_previous_decision(run: Any) -> None:
    first = run(repository(CLUSTERS, WEB, policy()), at=NOON)
    second = run(repository(cluster("m1", HOT), cluster("m2"), WEB, policy(spec="priority: high")), first, LATER)
    assert second.outcome("web").state == "stale"
    assert second.binding("web") == first.binding("web")
    assert sorted(second.codes("web")) == ["cluster-gone", "stale-decision"]


def test_an_invalid_policy_keeps_its_claim(run: Any) -> None:
    first = run(repository(CLUSTERS, WEB, policy()), at=NOON)
    second = run(repository(CLUSTERS, WEB, policy(spec="priority: high"), policy(name="q")), first, LATER)
    assert (second.policy("web"), second.outcome("web").state) == ("PropagationPolicy/default/p", "stale")


def test_an_invalid_cluster_keeps_its_workloads_and_gets_no_new_ones(run: Any) -> None:
    other = "kind: Deployment\nmetadata: {name: other}\nspec: {replicas: 1}"
    first = run(repository(CLUSTERS, WEB, policy(selects="labelSelector: {}")), at=NOON)
    broken = CLUSTERS.replace("{name: m2}", "{name: m2}\nspec: {syncMode: Sideways}")
    second = run(repository(broken, WEB, other, policy(selects="labelSelector: {}")), first, LATER)
    assert list(second.clusters("web")) == ["m1", "m2", "m3"]
    assert list(second.clusters("other")) == ["m1", "m3"]


def test_a_deleted_cluster_stays_bound_without_manifests_until_a_reschedule(run: Any) -> None:
    first = run(repository(CLUSTERS, WEB, policy(DIVIDED)), at=NOON)
    second = run(repository(cluster("m1"), cluster("m2"), WEB, policy(DIVIDED)), first, LATER)
    assert second.clusters("web") == first.clusters("web")
    assert set(second.outcome("web").replicas_by_cluster) == {"m1", "m2"}
    assert second.codes("web") == ["cluster-gone"]


def test_a_workload_leaves_a_cluster_that_is_being_deleted(run: Any) -> None:
    first = run(repository(CLUSTERS, WEB, policy(DIVIDED)), at=NOON)
    second = run(repository(cluster("m1", deleting=True), cluster("m2"), cluster("m3"), WEB, policy(DIVIDED)), first, LATER)
    assert second.clusters("web") == {"m2": 3, "m3": 2}


def test_a_new_no_schedule_taint_does_not_move_workloads(run: Any) -> None:
    first = run(repository(CLUSTERS, WEB, policy()), at=NOON)
    second = run(repository(cluster("m1", COLD), cluster("m2"), cluster("m3"), WEB, policy()), first, LATER)
    assert second.binding("web") == first.binding("web")


WEIRD = (None, 0, "x", True, 1.5, [], {}, ["x"], [None], [{}], 10**30)


@pytest.mark.parametrize("value", WEIRD, ids=repr)
def test_a_malformed_record_is_read_as_far_as_possible(run: Any, value: Any) -> None:
    files = repository(CLUSTERS, WEB, policy(DIVIDED))
    for path in (
        ("spec",),
        ("status",),
        ("spec", "clusters"),
        ("spec", "requiredBy"),
        ("status", "conditions"),
        ("metadata", "annotations"),
    ):
        first = run(files, at=NOON)
        holder = first.binding("web")
        for name in path[:-1]:
            holder = holder[name]
        holder[path[-1]] = value
        assert sum(run(files, first, LATER).clusters("web").values()) == 5


@pytest.mark.parametrize("value", WEIRD, ids=repr)
def test_a_malformed_pod_template_requests_nothing(run: Any, value: Any) -> None:
    pod = {"containers": value, "initContainers": value, "volumes": value, "overhead": value, "imagePullSecrets": value}
    web = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 5, "template": {"spec": pod}}}
    found = run(repository(CLUSTERS, json.dumps(web), policy(DIVIDED, "propagateDeps: true")))
    assert sum(found.clusters("web").values()) == 5


# Late and punctual


@settings(max_examples=count_examples(30))
@given(
    tolerated=st.tuples(*[st.none() | st.integers(0, 900)] * 3),
    added=st.tuples(*[st.integers(0, 900)] * 3),
    grace=st.sampled_from(["1m", "5m", "10m"]),
    purge=st.sampled_from(["Gracefully", "Directly"]),
    divided=st.booleans(),
    late=st.integers(0, 3000),
    more=st.integers(0, 1500),
)
def test_a_late_run_writes_the_result_of_punctual_ones(
    run: Any, tolerated: tuple[int | None, ...], added: tuple[int, ...], grace: str, purge: str, divided: bool, late: int, more: int
) -> None:
    at = "2026-01-01T12:20:00Z"
    start = parse_time(at)
    assert start is not None
    karmada = {"gracefulEvictionTimeout": grace, "evictionPurgeMode": purge}
    entries = [
        f"{{key: k{i}, operator: Exists{'' if seconds is None else f', tolerationSeconds: {seconds}'}}}"
        for i, seconds in enumerate(tolerated)
    ]
    rules = policy(f"clusterTolerations: [{', '.join(entries)}]{', ' + DIVIDED if divided else ''}")
    taints = [format_time(start - timedelta(seconds=seconds)) for seconds in added]
    hot = [cluster(f"m{i}", f"{{key: k{i}, effect: NoExecute, timeAdded: '{since}'}}") for i, since in enumerate(taints)]
    before = run(repository(*[cluster(f"m{i}") for i in range(3)], cluster("m3"), WEB, rules), at=NOON, karmada=karmada)
    files, end = repository(*hot, cluster("m3"), WEB, rules), format_time(start + timedelta(seconds=late))
    at_once = run(files, before, at, end, karmada)
    punctual = run(files, before, at, at, karmada)
    for _ in range(32):
        wakeup = punctual.outcome("web").wakeup
        if wakeup is None or format_time(wakeup) > end:
            break
        punctual = run(files, punctual, format_time(wakeup), format_time(wakeup), karmada)
    assert punctual.binding("web") == at_once.binding("web")
    assert punctual.outcome("web").wakeup == at_once.outcome("web").wakeup
    assert run(files, at_once, end, end, karmada).binding("web") == at_once.binding("web")
    later, reached = format_time(start + timedelta(seconds=late + more)), format_time(at_once.outcome("web").time)
    assert run(files, at_once, reached, later, karmada).binding("web") == run(files, before, at, later, karmada).binding("web"), (
        "a later run that goes on from the last event ends where one that did not stop would have ended"
    )
