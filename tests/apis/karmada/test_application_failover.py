"""Application failover: a workload that is reported unhealthy is evicted, with the state that its policy preserves."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gitsched.apis.karmada.failover.graceful_eviction import (
    AggregatedStatus,
    apply_suppress_deletion,
    read_unhealthy_since,
    update_unhealthy_since,
)
from gitsched.model.time import parse_time

NOON, PAST = "2026-01-01T12:00:00Z", "2026-01-01T12:05:00Z"
FLEET = "kind: Cluster\nmetadata: {name: m1}\n---\nkind: Cluster\nmetadata: {name: m2}"
WEB = "kind: Deployment\nmetadata: {name: web, labels: {app: web}}\nspec: {replicas: 2}"
POLICY = """
kind: PropagationPolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  propagateDeps: true
  placement:
    clusterAffinities: [{affinityName: one, clusterNames: [m1]}, {affinityName: two, clusterNames: [m2]}]
  failover: {application: %s}
"""
PATIENT = "{decisionConditions: {tolerationSeconds: 300}}"


def report(health: dict[str, str] | None = None, **more: Any) -> str:
    """A ResourceBinding of the repository: health by cluster; `status` of each copy and tasks of its spec, if any."""
    entries = [
        {"clusterName": c, "health": h, **({"status": more["status"]} if "status" in more else {})}
        for c, h in (health or {}).items()
    ]
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "web"}
    spec = {"resource": resource, **({"gracefulEvictionTasks": more["tasks"]} if "tasks" in more else {})}
    metadata = {"name": "web-deployment", "namespace": "default"}
    return yaml.safe_dump({"kind": "ResourceBinding", "metadata": metadata, "spec": spec, "status": {"aggregatedStatus": entries}})


def repository(health: str = "", application: str = PATIENT) -> str:
    return "\n---\n".join([FLEET, WEB, POLICY % application, *([health] if health else [])])


SICK, WELL, UNSURE = report({"m1": "Unhealthy"}), report({"m1": "Healthy"}), report({"m1": "Unknown"})


def task_of(done: Any) -> dict[str, Any]:
    (task,) = done.binding("web")["spec"]["gracefulEvictionTasks"]
    assert isinstance(task, dict)
    return task


def since_of(done: Any) -> dict[str, Any]:
    return read_unhealthy_since(done.binding("web")["metadata"]["annotations"])


def test_a_workload_that_is_unhealthy_for_too_long_is_evicted(run: Any) -> None:
    first = run(repository())
    sick = run(repository(SICK), first, NOON)
    assert (sick.clusters("web"), since_of(sick)) == ({"m1": 2}, {"m1": parse_time(NOON)})
    assert sick.outcome("web").wakeup == parse_time(PAST)
    assert "unhealthy in m1 since 2026-01-01T12:00:00Z, and is evicted at 2026-01-01T12:05:00Z" in sick.explain("web").trigger
    waiting = run(repository(SICK), sick, "2026-01-01T12:04:59Z")
    assert waiting.binding("web") == sick.binding("web"), "a run in between changes nothing"
    moved = run(repository(SICK), waiting, "2026-01-01T12:04:59Z", now=PAST)
    assert moved.clusters("web") == {"m2": 2}
    assert task_of(moved) == {
        "fromCluster": "m1",
        "purgeMode": "Gracefully",
        "replicas": 2,
        "reason": "ApplicationFailure",
        "producer": "resource-binding-application-failover-controller",
        "gracePeriodSeconds": 600,
        "creationTimestamp": PAST,
    }
    assert [(p.cluster, p.evicting) for p in moved.outcome("web").targets] == [("m2", False), ("m1", True)]
    over = run(repository(SICK), moved, PAST, now="2026-01-01T12:15:00Z")
    assert (over.clusters("web"), [p.cluster for p in over.outcome("web").targets]) == ({"m2": 2}, ["m2"])
    assert over.outcome("web").wakeup is None
    reasons = [c.result.reason for c in over.explain("web").candidates if c.result.name == "m1"]
    assert reasons[0] == "ClusterEviction: the workload was unhealthy there for too long and has not been reported healthy since"


PURGES = """
gracefully:             {application: "{purgeMode: Gracefully, gracePeriodSeconds: 60, decisionConditions: {}}", task: {purgeMode: Gracefully, gracePeriodSeconds: 60}, stays: true,  ends: "2026-01-01T12:06:00Z"}
gracefully by default:  {application: "{decisionConditions: {}}",                          task: {purgeMode: Gracefully, gracePeriodSeconds: 600}, stays: true,  ends: "2026-01-01T12:15:00Z"}
directly:               {application: "{purgeMode: Directly, decisionConditions: {}}",     task: {purgeMode: Directly},                             stays: false, ends: "2026-01-01T12:15:00Z"}
never:                  {application: "{purgeMode: Never, decisionConditions: {}}",        task: {purgeMode: Never, suppressDeletion: true},         stays: true,  ends: null}
"""  # noqa: E501 - a table


@pytest.mark.parametrize("case", (purges := yaml.safe_load(PURGES)).values(), ids=purges)
def test_the_purge_mode_decides_about_the_failed_copy(run: Any, case: dict[str, Any]) -> None:
    sick = run(repository(SICK, case["application"]), run(repository(application=case["application"])), NOON)
    moved = run(repository(SICK, case["application"]), sick, NOON, now=PAST)
    task = task_of(moved)
    assert {name: task.get(name) for name in ("purgeMode", "gracePeriodSeconds", "suppressDeletion") if name in task} == case[
        "task"
    ]
    assert any(place.evicting for place in moved.outcome("web").targets) is case["stays"]
    assert moved.outcome("web").wakeup == parse_time(case["ends"])


def test_zero_toleration_seconds_evict_at_once(run: Any) -> None:
    hasty = "{decisionConditions: {tolerationSeconds: 0}}"
    assert run(repository(SICK, hasty), run(repository(application=hasty)), NOON).clusters("web") == {"m2": 2}


@pytest.mark.parametrize("better", [WELL, UNSURE], ids=["Healthy", "Unknown"])
def test_a_healthy_status_restarts_the_timer(run: Any, better: str) -> None:
    sick = run(repository(SICK), run(repository()), NOON)
    recovered = run(repository(better), sick, "2026-01-01T12:03:00Z")
    assert (since_of(recovered), recovered.outcome("web").wakeup) == ({}, None)
    again = run(repository(SICK), recovered, "2026-01-01T12:04:00Z")
    assert again.outcome("web").wakeup == parse_time("2026-01-01T12:09:00Z")


def test_a_missing_status_does_not_stop_the_timer(run: Any) -> None:
    sick = run(repository(SICK), run(repository()), NOON)
    silent = run(repository(report({"m1": ""}).replace("health: ''\n", "applied: true\n")), sick, "2026-01-01T12:03:00Z")
    assert since_of(silent) == {"m1": parse_time(NOON)}
    assert run(repository(SICK), silent, PAST).clusters("web") == {"m2": 2}


@pytest.mark.parametrize("kind", ["no failover", "no report", "nothing in the report"])
def test_no_timer_without_failover_rules_or_status(run: Any, kind: str) -> None:
    sick = run(repository(SICK), run(repository()), NOON)
    changed = repository(SICK).replace(f"failover: {{application: {PATIENT}}}", "") if kind == "no failover" else repository()
    calm = run(repository(report()) if kind == "nothing in the report" else changed, sick, "2026-01-01T12:03:00Z")
    assert (since_of(calm), calm.outcome("web").wakeup) == ({}, None)


def test_a_cluster_where_it_failed_is_excluded_until_it_is_healthy_there(run: Any) -> None:
    everywhere = repository(SICK).replace(
        "clusterAffinities: [{affinityName: one, clusterNames: [m1]}, {affinityName: two, clusterNames: [m2]}]", "{}"
    )
    assert everywhere != repository(SICK)
    first = run(everywhere.replace("Unhealthy", "Healthy"))
    assert first.clusters("web") == {"m1": 2, "m2": 2}
    moved = run(everywhere, run(everywhere, first, NOON), NOON, now="2026-01-01T12:15:00Z")
    assert (moved.clusters("web"), moved.outcome("web").wakeup) == ({"m2": 2}, None)
    later = run(everywhere, moved, "2026-01-02T12:00:00Z")
    assert later.binding("web") == moved.binding("web")
    recovered = run(everywhere.replace("Unhealthy", "Healthy"), later, "2026-01-02T13:00:00Z")
    assert recovered.clusters("web") == {"m1": 2, "m2": 2}


ENDS = """
every new copy is healthy:         {health: {m2: Healthy},                        ended: true}
the old one does not matter:       {health: {m1: Unhealthy, m2: Healthy},         ended: true}
one is not:                        {health: {m2: Unhealthy},                      ended: false}
unknown:                           {health: {m2: Unknown},                        ended: false}
no report:                          {health: {m1: Healthy},                        ended: false}
no report at all:                  {health: {},                                   ended: false}
what was known at the eviction:    {health: {m1: Unhealthy},                      ended: false}
"""


@pytest.mark.parametrize("case", (ends := yaml.safe_load(ENDS)).values(), ids=ends)
def test_a_graceful_eviction_ends_early_when_every_new_copy_is_reported_healthy(run: Any, case: dict[str, Any]) -> None:
    moved = run(repository(SICK), run(repository(SICK), run(repository()), NOON), NOON, now=PAST)
    after = run(repository(report(case["health"])), moved, "2026-01-01T12:07:00Z")
    assert after.clusters("web") == {"m2": 2}
    assert ("gracefulEvictionTasks" not in after.binding("web")["spec"]) is case["ended"]


def test_a_status_older_than_the_eviction_does_not_end_it(run: Any) -> None:
    both = report({"m1": "Unhealthy", "m2": "Healthy"})
    moved = run(repository(both), run(repository(both), run(repository()), NOON), NOON, now=PAST)
    assert task_of(run(repository(both), moved, "2026-01-01T12:06:00Z")) == task_of(moved)


def test_an_eviction_by_a_taint_ends_early_in_the_same_way(run: Any) -> None:
    hot = repository().replace("metadata: {name: m1}", "metadata: {name: m1}\nspec: {taints: [{key: fire, effect: NoExecute}]}")
    moved = run(hot, run(repository()), NOON)
    assert task_of(moved)["reason"] == "TaintUntolerated"
    done = run(f"{hot}\n---\n{report({'m2': 'Healthy'})}", moved, "2026-01-01T12:01:00Z")
    assert "gracefulEvictionTasks" not in done.binding("web")["spec"]


@pytest.mark.parametrize("created", [None, PAST, "2025-01-01T00:00:00Z"])
def test_suppress_deletion_false_removes_a_copy_that_is_never_purged(run: Any, created: str | None) -> None:
    never = "{purgeMode: Never, decisionConditions: {}}"
    moved = run(repository(SICK, never), run(repository(SICK, never), run(repository(application=never)), NOON), NOON, now=PAST)
    assert run(repository(SICK, never), moved, "2027-01-01T00:00:00Z").binding("web") == moved.binding("web")
    task = {"fromCluster": "m1", "producer": "me", "reason": "Checked", "suppressDeletion": False}
    confirmed = report({"m1": "Unhealthy"}, tasks=[task | ({"creationTimestamp": created} if created else {})])
    done = run(repository(confirmed, never), moved, "2027-01-01T00:00:00Z")
    meant = created in (None, PAST)
    assert ("gracefulEvictionTasks" not in done.binding("web")["spec"]) is meant, "a task of another time is another task"


def test_suppress_deletion_true_keeps_a_copy_after_its_grace_period(run: Any) -> None:
    moved = run(repository(SICK), run(repository(SICK), run(repository()), NOON), NOON, now=PAST)
    kept = report({"m1": "Unhealthy"}, tasks=[{"fromCluster": "m1", "producer": "me", "reason": "Wait", "suppressDeletion": True}])
    assert [p.cluster for p in run(repository(kept), moved, "2026-02-01T00:00:00Z").outcome("web").targets] == ["m2", "m1"]


# What goes along

STATEFUL = """{purgeMode: %s, decisionConditions: {}, statePreservation: {rules: [
  {aliasLabelName: example.com/job, jsonPath: "{ .jobStatus.jobID }"}, {aliasLabelName: round, jsonPath: "{.rounds[-1]}"}]}}"""
STATE = {"jobStatus": {"jobID": "f00d"}, "rounds": [1, 2, 3]}


def fail_over(run: Any, mode: str, status: dict[str, Any] | None = STATE) -> Any:
    rules = STATEFUL % mode
    sick = report({"m1": "Unhealthy"}, **({} if status is None else {"status": status}))
    return run(repository(sick, rules), run(repository(sick, rules), run(repository(application=rules)), NOON), NOON, now=PAST)


def test_the_new_copy_has_the_preserved_state_as_labels(run: Any) -> None:
    moved = fail_over(run, "Directly")
    assert task_of(moved)["preservedLabelState"] == {"example.com/job": "f00d", "round": "3"}
    assert task_of(moved)["clustersBeforeFailover"] == ["m1"]
    (place,) = moved.outcome("web").targets
    assert place.body["metadata"]["labels"] == {"app": "web", "example.com/job": "f00d", "round": "3"}
    assert place.body["spec"] == {"replicas": 2}


def test_the_labels_stay_with_that_copy_and_with_no_other(run: Any) -> None:
    moved = fail_over(run, "Directly")
    rules = STATEFUL % "Directly"
    over = run(repository(SICK, rules), moved, "2026-01-01T13:00:00Z")
    assert "gracefulEvictionTasks" not in over.binding("web")["spec"]
    assert over.outcome("web").targets == moved.outcome("web").targets, "a manifest that lost them would be another one"
    broken = run(repository(SICK, rules).replace("propagateDeps: true", "propagateDeps: maybe"), over, "2026-01-01T14:00:00Z")
    assert (broken.outcome("web").state, broken.outcome("web").targets) == ("stale", moved.outcome("web").targets)
    alone = repository(SICK, rules).replace("affinityName: two, clusterNames: [m2]", "affinityName: two, clusterNames: [m3]")
    elsewhere = run(f"{alone}\n---\nkind: Cluster\nmetadata: {{name: m3}}", over, "2026-01-01T14:00:00Z")
    assert [(place.cluster, place.body) for place in elsewhere.outcome("web").targets] == [("m3", None)]


def test_a_copy_that_stays_next_to_the_new_one_preserves_no_state(run: Any) -> None:
    moved = fail_over(run, "Gracefully")
    assert task_of(moved)["preservedLabelState"] == {"example.com/job": "f00d", "round": "3"}
    assert [place.body for place in moved.outcome("web").targets] == [None, None]


LOST = """
nothing was reported:    {status: null,                                              why: "the repository has no status of the copy in cluster m1"}
a part is not there:     {status: {jobStatus: {}, rounds: [1]},                      why: "jsonPath for example.com/job: '.jobStatus.jobID': no member 'jobID'"}
no value for a label:    {status: {jobStatus: {jobID: "a b"}, rounds: [1]},          why: "jsonPath for example.com/job gives 'a b', which is not a valid label value"}
"""  # noqa: E501 - a table


@pytest.mark.parametrize("case", (lost := yaml.safe_load(LOST)).values(), ids=lost)
def test_state_that_cannot_be_preserved_is_reported_and_does_not_stop_the_failover(run: Any, case: dict[str, Any]) -> None:
    moved = fail_over(run, "Directly", case["status"])
    assert (moved.clusters("web"), "preservedLabelState" in task_of(moved)) == ({"m2": 2}, False)
    (finding,) = (f for f in moved.outcome("web").findings if f.code == "state-not-preserved")
    assert finding.message.endswith(f"without the state that its policy preserves: {case['why']}")


# The pieces

REPORT = AggregatedStatus({"a": "Unhealthy", "b": "Healthy", "c": ""}, {}, (), "d")
NINE, TEN = parse_time("2026-01-01T09:00:00Z"), parse_time("2026-01-01T10:00:00Z")
FOLLOWED = """
unhealthy for the first time:     {since: [],     bound: [a],    overdue: [],  now: {a: ten}}
unhealthy for a while:             {since: [a],    bound: [a],    overdue: [],  now: {a: nine}}
healthy:                           {since: [b],    bound: [b],    overdue: [],  now: {}}
not reported again:               {since: [c],    bound: [c],    overdue: [],  now: {c: nine}}
never reported:                   {since: [],     bound: [c],    overdue: [],  now: {}}
evicted by a taint:                {since: [a],    bound: [],     overdue: [],  now: {}}
evicted for it:                    {since: [a],    bound: [b],    overdue: [a], now: {a: nine}}
no report about it:               {since: [x],    bound: [x],    overdue: [],  now: {x: nine}}
removed, not reported:            {since: [x],    bound: [],     overdue: [],  now: {}}
"""


@pytest.mark.parametrize("case", (followed := yaml.safe_load(FOLLOWED)).values(), ids=followed)
def test_an_unhealthy_timer(case: dict[str, Any]) -> None:
    assert NINE
    assert TEN
    now = update_unhealthy_since(REPORT, dict.fromkeys(case["since"], NINE), case["bound"], case["overdue"], TEN)
    assert now == {name: {"nine": NINE, "ten": TEN}[text] for name, text in case["now"].items()}


def test_suppress_deletion_applies_only_to_the_matching_task() -> None:
    written = AggregatedStatus(
        {}, {}, ({"fromCluster": "a", "suppressDeletion": False}, {"fromCluster": "b", "suppressDeletion": "yes"}), ""
    )
    tasks = [{"fromCluster": name} for name in "abc"]
    assert apply_suppress_deletion(tasks, written) == (
        {"fromCluster": "a", "suppressDeletion": False},
        {"fromCluster": "b"},
        {"fromCluster": "c"},
    )


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"m1":"soon"}', '{"m1":7}'])
def test_malformed_annotations_are_ignored(text: str) -> None:
    assert read_unhealthy_since({"gitsched.io/unhealthy-since": text}) == {}
