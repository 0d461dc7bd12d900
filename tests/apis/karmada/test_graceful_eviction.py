"""When a NoExecute taint evicts, and how long the old copy stays."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml

from gitsched.apis.karmada.failover.graceful_eviction import (
    drop_expired_tasks,
    find_eviction_time,
    make_eviction_task,
    read_applied_tolerations,
)
from gitsched.model.scheduling import Assignment
from gitsched.model.taints import parse_taint, parse_toleration
from gitsched.model.time import format_time, parse_time
from tests.tables import each_row

NOW = datetime.fromisoformat("2026-01-01T12:00:00+00:00")
TIMEOUT = timedelta(minutes=10)
FOREVER, SOON = "{key: a, operator: Exists}", "{key: a, operator: Exists, tolerationSeconds: 300}"
ENDS = f"""
no taint at all:                  {{taints: [], tolerations: [], end: never}}
other effects do not evict:       {{taints: [{{key: a, effect: NoSchedule}}, {{key: a, effect: PreferNoSchedule}}], tolerations: [], end: never}}
nothing tolerates it:             {{taints: [{{key: a, added: -60}}], tolerations: [], end: 0}}
something else is tolerated:      {{taints: [{{key: b, added: -60}}], tolerations: [{FOREVER}], end: 0}}
tolerated for ever:               {{taints: [{{key: a, added: -60}}], tolerations: [{FOREVER}], end: never}}
tolerated for a while:            {{taints: [{{key: a, added: -60}}], tolerations: [{SOON}], end: 240}}
for a while that is over:         {{taints: [{{key: a, added: -600}}], tolerations: [{SOON}], end: 0}}
for no time at all:               {{taints: [{{key: a, added: -60}}], tolerations: [{{operator: Exists, tolerationSeconds: 0}}], end: 0}}
for less than no time:            {{taints: [{{key: a, added: -60}}], tolerations: [{{operator: Exists, tolerationSeconds: -5}}], end: 0}}
of no known age:                  {{taints: [{{key: a}}], tolerations: [{SOON}], end: 300}}
for longer than calendars last:   {{taints: [{{key: a}}], tolerations: [{{operator: Exists, tolerationSeconds: 999999999999999}}], end: last day}}
the first toleration counts:      {{taints: [{{key: a, added: -60}}], tolerations: [{FOREVER}, {SOON}], end: never}}
the first one may be short:       {{taints: [{{key: a, added: -60}}], tolerations: [{SOON}, {FOREVER}], end: 240}}
one of two taints is untolerated: {{taints: [{{key: a, added: -60}}, {{key: b, added: -60}}], tolerations: [{SOON}], end: 0}}
the earliest of two ends:         {{taints: [{{key: a, added: -60}}, {{key: b, added: -90}}], tolerations: [{SOON}, {{operator: Exists, tolerationSeconds: 100}}], end: 10}}
a used one counts for each taint: {{taints: [{{key: a, added: -60}}, {{key: b, added: -90}}], tolerations: [{FOREVER}, {{operator: Exists, tolerationSeconds: 100}}], end: 10}}
also for one that tolerates more: {{taints: [{{key: b, added: -60}}, {{key: a, added: -90}}], tolerations: [{FOREVER}, {{operator: Exists, tolerationSeconds: 100}}], end: 10}}
"""  # noqa: E501 - a table
TASKS = """
a young one stays:               {task: {created: -60},                                 end: 540}
an old one is over:              {task: {created: -601},                                end: over}
over at the very end:            {task: {created: -600},                                end: over}
its own grace period:            {task: {created: -60, gracePeriodSeconds: 90},         end: 30}
its own grace period is over:    {task: {created: -91, gracePeriodSeconds: 90},         end: over}
a longer grace period:           {task: {created: -1000, gracePeriodSeconds: 2000},     end: 1000}
kept for ever:                   {task: {created: -9999, suppressDeletion: true},       end: never}
let go at once:                  {task: {created: -1, suppressDeletion: false},         end: over}
one without a time starts now:   {task: {},                                             end: 600}
one with nonsense for a time:    {task: {creationTimestamp: yesterday},                 end: 600}
"""


def seconds_after(time: datetime | None) -> Any:
    if time is None:
        return "never"
    return "last day" if time.year == 9999 else (time - NOW).total_seconds()


@each_row("case", (ends := yaml.safe_load(ENDS)).values())
def test_when_a_workload_is_evicted(case: dict[str, Any]) -> None:
    entries = [{"effect": "NoExecute", **entry} for entry in case["taints"]]
    taints = [
        parse_taint({**e, **({"timeAdded": format_time(NOW + timedelta(seconds=e["added"]))} if "added" in e else {})})
        for e in entries
    ]
    assert seconds_after(find_eviction_time(taints, tuple(map(parse_toleration, case["tolerations"])), NOW)) == case["end"]


@each_row("case", (tasks := yaml.safe_load(TASKS)).values())
def test_when_an_eviction_task_ends(case: dict[str, Any]) -> None:
    task = {"fromCluster": "m1", **case["task"]}
    if (created := task.pop("created", None)) is not None:
        task["creationTimestamp"] = format_time(NOW + timedelta(seconds=created))
    live, wakeup = drop_expired_tasks([task], TIMEOUT, NOW)
    if case["end"] == "over":
        assert (live, wakeup) == ((), None)
        return
    assert seconds_after(wakeup) == case["end"]
    (kept,) = live
    assert parse_time(kept["creationTimestamp"]) is not None
    assert {**kept, "creationTimestamp": 0} == {**task, "creationTimestamp": 0}


def test_the_next_wake_up_is_the_first_end() -> None:
    created = format_time(NOW)
    tasks = [
        {"fromCluster": c, "creationTimestamp": created, "gracePeriodSeconds": s} for c, s in (("m1", 90), ("m2", 30), ("m3", 60))
    ]
    assert seconds_after(drop_expired_tasks(tasks, TIMEOUT, NOW).wakeup) == 30


@pytest.mark.parametrize("applied", [None, "", "{", "[]", "null"])
def test_without_a_readable_placement_the_tolerations_are_unknown(applied: str | None) -> None:
    assert read_applied_tolerations(applied) is None


@pytest.mark.parametrize("applied", ["{}", '{"clusterTolerations":null}', '{"clusterTolerations":7}'])
def test_a_placement_may_tolerate_nothing(applied: str) -> None:
    assert read_applied_tolerations(applied) == ()


@pytest.mark.parametrize("tolerant", [True, False])
def test_a_workload_without_an_applied_placement_uses_the_present_one(run: Any, tolerant: bool) -> None:
    unnoted = """
kind: ResourceBinding
metadata: {name: web-deployment, namespace: default, annotations: {propagationpolicy.karmada.io/name: p, propagationpolicy.karmada.io/namespace: default}}
spec: {resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}, replicas: 4, clusters: [{name: m1, replicas: 4}]}
"""  # noqa: E501 - a binding
    toleration = ", clusterTolerations: [{key: fire, operator: Exists}]" if tolerant else ""
    second = run(repository(HOT, toleration), unnoted, "2026-01-01T12:00:00Z")
    assert second.clusters("web") == ({"m1": 2, "m2": 2} if tolerant else {"m2": 4})


def test_a_task_is_written_as_by_the_taint_manager_of_karmada() -> None:
    assert make_eviction_task(Assignment("m1", 3), "Directly", NOW) == {
        "fromCluster": "m1",
        "purgeMode": "Directly",
        "replicas": 3,
        "reason": "TaintUntolerated",
        "producer": "TaintManager",
        "creationTimestamp": "2026-01-01T12:00:00Z",
    }
    assert "replicas" not in make_eviction_task(Assignment("m1", 0), "Directly", NOW)


# Through a whole run

FLEET = "kind: Cluster\nmetadata: {name: m1}\nspec: {taints: [%s]}\n---\nkind: Cluster\nmetadata: {name: m2}"
HOT = "{key: fire, effect: NoExecute, timeAdded: '2026-01-01T12:00:00Z'}"
WEB = "kind: Deployment\nmetadata: {name: web}\nspec: {replicas: 4}"
POLICY = """
kind: PropagationPolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {replicaScheduling: {replicaSchedulingType: Divided}%s}
  %s
"""


def repository(taints: str = "", placement: str = "", spec: str = "", fleet: str = FLEET) -> str:
    return "\n---\n".join([fleet % taints, WEB, POLICY % (placement, spec)])


def test_eviction_moves_the_replicas_and_keeps_the_old_copy_until_the_grace_period_ends(run: Any) -> None:
    first = run(repository())
    assert first.clusters("web") == {"m1": 2, "m2": 2}
    second = run(repository(HOT), first, "2026-01-01T12:05:00Z")
    assert second.clusters("web") == {"m2": 4}
    assert [(p.cluster, p.replicas, p.evicting) for p in second.outcome("web").targets] == [("m2", 4, False), ("m1", 2, True)]
    assert format_time(second.outcome("web").wakeup) == "2026-01-01T12:15:00Z"
    third = run(repository(HOT), second, "2026-01-01T12:14:59Z")
    assert third.binding("web") == second.binding("web")
    fourth = run(repository(HOT), third, "2026-01-01T12:15:00Z")
    assert "gracefulEvictionTasks" not in fourth.binding("web")["spec"]
    assert ([p.cluster for p in fourth.outcome("web").targets], fourth.outcome("web").wakeup) == (["m2"], None)


@pytest.mark.parametrize(
    ("spec", "karmada", "mode", "stays"),
    [
        ("", {}, "Gracefully", True),
        ("", {"evictionPurgeMode": "Directly"}, "Directly", False),
        ("failover: {cluster: {purgeMode: Directly}}", {}, "Directly", False),
        ("failover: {cluster: {purgeMode: Gracefully}}", {"evictionPurgeMode": "Directly"}, "Gracefully", True),
        ("failover: {cluster: {}}", {"evictionPurgeMode": "Directly"}, "Gracefully", True),
    ],
)
def test_the_purge_mode_decides_whether_the_old_copy_stays(run: Any, spec: str, karmada: Any, mode: str, stays: bool) -> None:
    second = run(repository(HOT, spec=spec), run(repository(spec=spec)), "2026-01-01T12:00:00Z", karmada=karmada)
    (task,) = second.binding("web")["spec"]["gracefulEvictionTasks"]
    assert (task["purgeMode"], any(place.evicting for place in second.outcome("web").targets)) == (mode, stays)


def test_the_timeout_is_a_setting(run: Any) -> None:
    second = run(repository(HOT), run(repository()), "2026-01-01T12:00:00Z", karmada={"gracefulEvictionTimeout": "90s"})
    assert format_time(second.outcome("web").wakeup) == "2026-01-01T12:01:30Z"


def test_the_eviction_can_be_turned_off(run: Any) -> None:
    first = run(repository())
    second = run(repository(HOT), first, "2026-01-01T12:00:00Z", karmada={"taintEviction": False})
    assert second.binding("web") == first.binding("web")


def test_the_tolerations_of_the_applied_placement_decide(run: Any) -> None:
    tolerant = ", clusterTolerations: [{key: fire, operator: Exists}]"
    second = run(repository(HOT, tolerant), run(repository()), "2026-01-01T12:00:00Z")
    assert [task["fromCluster"] for task in second.binding("web")["spec"]["gracefulEvictionTasks"]] == ["m1"]
    kept = run(repository(HOT, tolerant), run(repository("", tolerant)), "2026-01-01T12:00:00Z")
    assert kept.clusters("web") == {"m1": 2, "m2": 2}


def test_a_limited_toleration_sets_the_wakeup_of_the_eviction(run: Any) -> None:
    patient = ", clusterTolerations: [{key: fire, operator: Exists, tolerationSeconds: 300}]"
    second = run(repository(HOT, patient), run(repository("", patient)), "2026-01-01T12:01:00Z")
    assert second.clusters("web") == {"m1": 2, "m2": 2}
    assert format_time(second.outcome("web").wakeup) == "2026-01-01T12:05:00Z"
    third = run(repository(HOT, patient), second, "2026-01-01T12:05:00Z")
    assert third.clusters("web") == {"m2": 4}


def test_a_taint_without_a_time_starts_when_it_is_first_seen(run: Any) -> None:
    patient = ", clusterTolerations: [{key: fire, operator: Exists, tolerationSeconds: 300}]"
    undated = HOT.replace(", timeAdded: '2026-01-01T12:00:00Z'", "")
    second = run(repository(undated, patient), run(repository("", patient)), "2026-01-01T12:01:00Z")
    third = run(repository(undated, patient), second, "2026-01-01T12:03:00Z")
    assert format_time(third.outcome("web").wakeup) == "2026-01-01T12:06:00Z"
    assert run(repository(undated, patient), third, "2026-01-01T12:06:00Z").clusters("web") == {"m2": 4}


def test_a_cluster_with_an_expired_toleration_is_not_chosen_again(run: Any) -> None:
    patient = ", clusterTolerations: [{key: fire, operator: Exists, tolerationSeconds: 300}]"
    evicted = run(repository(HOT, patient), run(repository("", patient)), "2026-01-01T12:01:00Z", "2026-01-01T12:05:00Z")
    more = "kind: Cluster\nmetadata: {name: m3}\n---\n" + repository(HOT, patient).replace("replicas: 4", "replicas: 6")
    assert run(more, evicted, "2026-01-01T13:00:00Z").clusters("web") == {"m2": 3, "m3": 3}


def test_without_another_cluster_the_old_copy_stays_for_its_grace_period(run: Any) -> None:
    alone = "kind: Cluster\nmetadata: {name: m1}\nspec: {taints: [%s]}"
    second = run(repository(HOT, fleet=alone), run(repository(fleet=alone)), "2026-01-01T12:00:00Z")
    assert (second.clusters("web"), second.condition("web")["reason"]) == ({}, "NoClusterFit")
    assert [(p.cluster, p.evicting) for p in second.outcome("web").targets] == [("m1", True)]
