"""Failback to an earlier group: never, on a rebalance, before a workload is left without any cluster, or after a stabilization time."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.apis.karmada.failover.failback import read_failback_timers, write_failback_timers
from gitsched.model.time import format_time, parse_duration, parse_time
from tests.search_depth import count_examples

MORNING = "2026-01-01T08:00:00Z"
WEB = "{kind: Deployment, metadata: {name: web}, spec: {replicas: 4}}"
STABLE = {"failback": {"AfterStabilization": "30m"}}
UNPLACED = {"failback": "WhenUnschedulable"}
NOTE = "gitsched.io/failback"


def policy(scheduling: str = "Duplicated", more: str = "", groups: str = "abc", spec: str = "") -> str:
    """Groups a, b and c, of one cluster each."""
    terms = ", ".join(f"{{affinityName: {name}, clusterNames: [{name}]}}" for name in groups)
    placement = f"{{clusterAffinities: [{terms}], replicaScheduling: {{replicaSchedulingType: {scheduling}}}{more}}}"
    selects = "[{apiVersion: apps/v1, kind: Deployment}]"
    return (
        f"{{kind: PropagationPolicy, metadata: {{name: p}}, spec: {{resourceSelectors: {selects}, placement: {placement}{spec}}}}}"
    )


def cluster(name: str, up: bool = True, taint: str = "NoExecute") -> str:
    taints = "" if up else f", spec: {{taints: [{{key: power, effect: {taint}, timeAdded: '2026-01-01T00:00:00Z'}}]}}"
    return f"{{kind: Cluster, metadata: {{name: {name}}}{taints}}}"


def repository(up: str, *more: str, rules: str = "", known: str = "abc") -> str:
    """The clusters that are `up`, the others of `known` being down; the workload and its policy."""
    return "\n---\n".join((*(cluster(name, name in up) for name in known), WEB, rules or policy(), *more))


def at(minute: float) -> str:
    """Minutes after noon."""
    start = parse_time("2026-01-01T12:00:00Z")
    assert start is not None
    return format_time(start + timedelta(minutes=minute))


def timers(result: Any) -> dict[str, str]:
    timers: dict[str, str] = json.loads(result.binding("web")["metadata"]["annotations"].get(NOTE, "{}"))
    return timers


def evicting(result: Any) -> list[str]:
    return [task["fromCluster"] for task in result.binding("web")["spec"].get("gracefulEvictionTasks", [])]


def where(result: Any) -> str:
    """The names of the clusters; each group has one."""
    return "".join(result.clusters("web"))


def wakeup(result: Any) -> str | None:
    time = result.outcome("web").wakeup
    return format_time(time) if time else None


def failed_over(run: Any, karmada: Any, **more: Any) -> Any:
    """On b since a failed at noon, the eviction being over."""
    placed = run(repository("abc", **more), at=MORNING, karmada=karmada)
    assert where(placed) == "a"
    result = run(repository("bc", **more), placed, at(0), at(20), karmada)
    assert (where(result), evicting(result)) == ("b", [])
    return result


@pytest.mark.parametrize(
    "karmada",
    [{}, {"failback": "Never"}, {"failback": "OnRebalance"}, UNPLACED],
    ids=["default", "Never", "OnRebalance", "WhenUnschedulable"],
)
def test_a_recovered_earlier_group_does_not_move_the_workload(run: Any, karmada: Any) -> None:
    before = failed_over(run, karmada)
    result = run(repository("abc"), before, at(60), at(10_000), karmada)
    assert result.binding("web") == before.binding("web")
    assert wakeup(result) is None


@pytest.mark.parametrize("scheduling", ["Duplicated", "Divided"])
def test_a_workload_returns_to_an_earlier_group_after_the_stabilization_time(run: Any, scheduling: str) -> None:
    rules = policy(scheduling)
    recovered = run(repository("abc", rules=rules), failed_over(run, STABLE, rules=rules), at(60), karmada=STABLE)
    assert (where(recovered), timers(recovered), wakeup(recovered)) == ("b", {"a": at(60)}, at(90))
    assert run(repository("abc", rules=rules), recovered, at(60), at(89), STABLE).binding("web") == recovered.binding("web")
    back = run(repository("abc", rules=rules), recovered, at(60), at(90), STABLE)
    assert (where(back), timers(back), back.outcome("web").group) == ("a", {}, "a")
    assert back.clusters("web") == {"a": 4}
    assert back.binding("web")["status"]["lastScheduledTime"] == at(90)


def test_old_copies_stay_until_the_new_ones_have_had_time_to_start(run: Any) -> None:
    back = run(repository("abc"), failed_over(run, STABLE), at(60), at(90), STABLE)
    assert back.binding("web")["spec"]["gracefulEvictionTasks"] == [
        {
            "fromCluster": "b",
            "purgeMode": "Gracefully",
            "replicas": 4,
            "reason": "Failback",
            "producer": "gitsched",
            "creationTimestamp": at(90),
        }
    ]
    assert [(place.cluster, place.evicting) for place in back.outcome("web").targets] == [("a", False), ("b", True)]
    assert wakeup(back) == at(100)
    done = run(repository("abc"), back, at(90), at(100), STABLE)
    assert (where(done), evicting(done), wakeup(done)) == ("a", [], None)


@pytest.mark.parametrize(
    ("karmada", "spec"),
    [
        ({"evictionPurgeMode": "Directly"}, ""),
        ({}, ", failover: {cluster: {purgeMode: Directly}}"),
    ],
    ids=["in the configuration", "in the policy"],
)
def test_purge_mode_directly_removes_the_old_copy_at_once(run: Any, karmada: Any, spec: str) -> None:
    rules = policy(spec=spec)
    before = failed_over(run, STABLE | karmada, rules=rules)
    back = run(repository("abc", rules=rules), before, at(60), at(90), STABLE | karmada)
    assert [(place.cluster, place.evicting) for place in back.outcome("web").targets] == [("a", False)]


def test_the_timer_of_a_group_that_fails_again_restarts(run: Any) -> None:
    first = run(repository("abc"), failed_over(run, STABLE), at(60), karmada=STABLE)
    failed = run(repository("bc"), first, at(80), karmada=STABLE)
    assert (where(failed), timers(failed), wakeup(failed)) == ("b", {}, None)
    again = run(repository("abc"), failed, at(85), at(100), STABLE)
    assert (where(again), timers(again), wakeup(again)) == ("b", {"a": at(85)}, at(115))


def test_an_unrelated_change_does_not_restart_the_timer(run: Any) -> None:
    first = run(repository("abc"), failed_over(run, STABLE), at(60), karmada=STABLE)
    second = run(repository("abc", cluster("d")), first, at(75), karmada=STABLE)
    assert (timers(second), wakeup(second)) == ({"a": at(60)}, at(90))


def test_a_group_does_not_fit_while_the_workload_is_evicted_from_it(run: Any) -> None:
    placed = run(repository("abc"), at=MORNING, karmada=STABLE)
    failed = run(repository("bc"), placed, at(0), karmada=STABLE)
    recovered = run(repository("abc"), failed, at(5), karmada=STABLE)
    assert (timers(recovered), wakeup(recovered)) == ({}, at(10))
    assert timers(run(repository("abc"), recovered, at(5), at(12), STABLE)) == {"a": at(10)}


def test_each_earlier_group_has_its_own_timer(run: Any) -> None:
    both = run(repository("c"), failed_over(run, STABLE), at(30), at(45), STABLE)
    assert where(both) == "c"
    second = run(repository("bc"), both, at(60), karmada=STABLE)
    all_up = run(repository("abc"), second, at(80), karmada=STABLE)
    assert (timers(all_up), wakeup(all_up)) == ({"a": at(80), "b": at(60)}, at(90))
    closer = run(repository("abc"), all_up, at(80), at(90), STABLE)
    assert (where(closer), timers(closer)) == ("b", {"a": at(80)})
    assert where(run(repository("abc"), closer, at(90), at(110), STABLE)) == "a"


def test_the_first_of_several_groups_whose_timers_ended_is_used(run: Any) -> None:
    on_c = run(repository("c"), failed_over(run, STABLE), at(30), at(45), STABLE)
    assert where(run(repository("abc"), on_c, at(60), at(90), STABLE)) == "a"


def test_an_unplaced_workload_does_not_wait(run: Any) -> None:
    first = run(repository("abc"), failed_over(run, STABLE), at(60), karmada=STABLE)
    nowhere_else = run(repository("a"), first, at(70), karmada=STABLE)
    assert (where(nowhere_else), nowhere_else.outcome("web").state, evicting(nowhere_else)) == ("a", "placed", ["b"])
    assert where(run(repository("a"), failed_over(run, {}), at(70))) == "", "by itself Karmada's search never returns"


@pytest.mark.parametrize("scheduling", ["Duplicated", "Divided"])
@pytest.mark.parametrize(("up", "group"), [("ab", "b"), ("a", "a"), ("abc", "c")])
def test_an_unplaced_workload_returns_to_the_first_group_that_fits(run: Any, scheduling: str, up: str, group: str) -> None:
    rules = policy(scheduling, groups="abc" if group != "b" else "bac")
    order = "abc" if group != "b" else "bac"
    before = run(repository("abc", rules=rules), at=MORNING, karmada=UNPLACED)
    for minute, available in ((0, order[1:]), (20, order[2:])):
        before = run(repository(available, rules=rules), before, at(minute), at(minute + 15), UNPLACED)
    assert where(before) == "c"
    back = run(repository(up, rules=rules), before, at(60), at(75), UNPLACED)
    assert (where(back), back.outcome("web").group, back.codes("web")) == (group, group, [])
    if group != "c":
        assert back.outcome("web").trigger == f"group c and later ones cannot run it, but group {group} can"
    again = run(repository(up, rules=rules), back, at(60), at(200), UNPLACED)
    assert again.binding("web")["spec"]["clusters"] == back.binding("web")["spec"]["clusters"]


def test_a_workload_that_was_left_unplaced_returns_when_the_setting_is_added(run: Any) -> None:
    lost = run(repository("a"), failed_over(run, {}), at(60), at(80))
    assert where(lost) == ""
    assert where(run(repository("a"), lost, at(90), karmada=UNPLACED)) == "a"


def test_old_copies_of_a_workload_that_returns_unplaced_stay_for_a_time(run: Any) -> None:
    """The cluster still runs the copies, but no longer belongs to a group."""
    before = failed_over(run, UNPLACED)
    moved = policy().replace("{affinityName: b, clusterNames: [b]}", "{affinityName: b, clusterNames: [other]}")
    back = run(repository("ab", rules=moved), before, at(60), karmada=UNPLACED)
    assert (where(back), evicting(back)) == ("a", ["b"])


@pytest.mark.parametrize("karmada", [{}, {"failback": "OnRebalance"}], ids=["Never", "OnRebalance"])
@pytest.mark.parametrize("scheduling", ["Duplicated", "Divided"])
def test_an_earlier_group_that_could_run_an_unplaced_workload_is_reported(run: Any, karmada: Any, scheduling: str) -> None:
    rules = policy(scheduling)
    lost = run(repository("a", rules=rules), failed_over(run, karmada, rules=rules), at(60), at(80), karmada)
    assert (where(lost), lost.codes("web")) == ("", ["unschedulable", "earlier-group-fits"])
    message = lost.outcome("web").findings[1].message
    assert "affinity group a can run it" in message
    assert "set spec.karmada.failback: WhenUnschedulable, or commit a WorkloadRebalancer" in message
    asking = "kind: WorkloadRebalancer\nmetadata: {name: back}\n"
    asking += "spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}]}"
    cured = run(repository("a", asking, rules=rules), lost, at(90), karmada=karmada)
    assert (where(cured), cured.codes("web")) == ("a", [])


def test_an_earlier_group_that_cannot_run_an_unplaced_workload_is_not_reported(run: Any) -> None:
    assert run(repository(""), failed_over(run, {}), at(60), at(80)).codes("web") == ["unschedulable"]


@pytest.mark.parametrize(
    ("karmada", "returns"),
    [
        ({}, "so does spec.karmada.failback: WhenUnschedulable when neither b nor a later group can run it"),
        (UNPLACED, "it returns when neither b nor a later group can run it"),
        (STABLE, "it returns when the time of karmada.failback is over"),
    ],
    ids=["Never", "WhenUnschedulable", "AfterStabilization"],
)
def test_explain_says_what_returns_a_workload_to_an_earlier_group(run: Any, karmada: Any, returns: str) -> None:
    recovered = run(repository("abc"), failed_over(run, karmada), at(60), karmada=karmada)
    (first, *_) = recovered.explain("web").attempts
    assert first.verdict == "not tried"
    assert "scheduling resumes at b, which was used last; tried now it would be scheduled" in first.message
    assert returns in first.message
    assert "WorkloadRebalancer" in first.message


def test_explain_lists_the_clusters_that_a_returning_workload_left_for_their_own_group(run: Any) -> None:
    back = run(repository("a"), failed_over(run, UNPLACED), at(60), karmada=UNPLACED)
    entries = {c.result.name: (c.group, c.result.eligible, c.result.reason) for c in back.explain("web").candidates}
    assert entries["a"][:2] == ("a", True)
    assert entries["b"][:2] == ("b", False)
    assert "power:NoExecute" in entries["b"][2]


def test_a_stabilization_time_of_zero_is_immediate(run: Any) -> None:
    karmada = {"failback": {"AfterStabilization": "0s"}}
    back = run(repository("abc"), failed_over(run, karmada), at(60), karmada=karmada)
    assert (where(back), evicting(back), timers(back)) == ("a", ["b"], {})


@pytest.mark.parametrize(
    "rules", [policy(spec=", schedulerName: mine"), policy(groups="ba")], ids=["another scheduler", "it is in the first group"]
)
def test_no_timer_without_an_earlier_group(run: Any, rules: str) -> None:
    before = failed_over(run, STABLE)
    result = run(repository("abc", rules=rules), before, at(60), karmada=STABLE)
    assert (where(result), timers(result), wakeup(result)) == ("b", {}, None)


def test_a_suspended_workload_has_no_timer(run: Any) -> None:
    before = failed_over(run, STABLE)
    before.binding("web")["spec"]["suspension"] = {"scheduling": True}
    result = run(repository("abc"), before, at(60), at(200), STABLE)
    assert (where(result), timers(result), wakeup(result)) == ("b", {}, None)


def test_the_timers_are_removed_with_the_setting(run: Any) -> None:
    first = run(repository("abc"), failed_over(run, STABLE), at(60), karmada=STABLE)
    assert timers(run(repository("abc"), first, at(70))) == {}
    shorter = {"failback": {"AfterStabilization": "15m"}}
    assert wakeup(run(repository("abc"), first, at(70), karmada=shorter)) == at(75)


def test_an_invalid_cluster_that_runs_the_workload_does_not_make_other_groups_fit(run: Any) -> None:
    before = failed_over(run, STABLE)
    broken = repository("c", known="ac") + "\n---\n" + "{kind: Cluster, metadata: {name: b}, spec: {syncMode: Sideways}}"
    result = run(broken, before, at(60), karmada=STABLE)
    assert (where(result), timers(result)) == ("b", {})


def test_a_rebalance_needs_no_timer(run: Any) -> None:
    asking = """
kind: WorkloadRebalancer
metadata: {name: back}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}]}
"""
    for karmada, left in ((STABLE, ["b"]), ({"failback": "OnRebalance"}, ["b"]), ({"failback": "Never"}, [])):
        back = run(repository("abc", asking), failed_over(run, karmada), at(60), karmada=karmada)
        assert (where(back), timers(back), evicting(back)) == ("a", {}, left), karmada
        again = run(repository("abc", asking), back, at(60), at(65), karmada)
        assert again.binding("web") == back.binding("web")


def test_a_rebalance_without_an_earlier_group_creates_no_eviction_task(run: Any) -> None:
    asking = """
kind: WorkloadRebalancer
metadata: {name: again}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}]}
"""
    karmada = {"failback": "OnRebalance"}
    before = run(repository("bc").replace("NoExecute", "NoSchedule"), at=MORNING, karmada=karmada)
    assert where(before) == "b"
    result = run(repository("c", asking).replace("NoExecute", "NoSchedule"), before, at(60), karmada=karmada)
    assert evicting(result) == []


@pytest.mark.parametrize("text", ["", "[]", "7", "{", '{"a": 7}', '{"a": "yesterday"}'])
def test_a_malformed_annotation_gives_no_timers(text: str) -> None:
    assert read_failback_timers({NOTE: text}) == ()


def test_timers_are_read_as_they_are_written() -> None:
    start = parse_time(MORNING)
    assert start is not None
    entries = (("a", start), ("über", start + timedelta(seconds=1)))
    assert read_failback_timers({NOTE: write_failback_timers(entries)}) == entries


def test_explain_says_when_and_why_a_workload_returns(run: Any) -> None:
    waiting = run(
        repository("abc", rules=policy("Divided")), failed_over(run, STABLE, rules=policy("Divided")), at(60), karmada=STABLE
    )
    assert waiting.explain("web").trigger == (
        "Not scheduled again: placement and replicas are unchanged, and no rebalance was requested. It returns to group a at "
        f"{at(90)} if that group can run it until then, as it could since {at(60)}."
    )
    back = run(repository("abc"), failed_over(run, STABLE), at(60), at(90), STABLE)
    assert back.explain("web").trigger.startswith(f"Scheduled because group a comes first and could run it since {at(60)}.")
    done = run(repository("abc"), failed_over(run, STABLE), at(60), at(200), STABLE)
    assert done.outcome("web").trigger == f"group a comes first and could run it since {at(60)}", "also when the eviction is over"


STATES = st.sampled_from(["abc", "bc", "ac", "ab", "a", "b", "c", ""])


@settings(max_examples=count_examples(20), deadline=None)
@given(
    history=st.lists(st.tuples(STATES, st.integers(1, 60)), min_size=1, max_size=5),
    wait=st.sampled_from(["0s", "5m", "10m", "25m", None]),
    scheduling=st.sampled_from(["Duplicated", "Divided"]),
)
def test_late_runs_give_the_result_of_punctual_ones(run: Any, history: list[Any], wait: str | None, scheduling: str) -> None:
    karmada, rules = {"failback": {"AfterStabilization": wait}} if wait else UNPLACED, policy(scheduling)
    late = punctual = run(repository("abc", rules=rules), at=MORNING, karmada=karmada)
    now = 0
    for up, lasts in history:
        files = repository(up, rules=rules)
        late = run(files, late, at(now), at(now + lasts - 0.5), karmada)
        punctual = run(files, punctual, at(now), karmada=karmada)
        for _ in range(32):
            due = wakeup(punctual)
            if due is None or due > at(now + lasts - 0.5):
                break
            assert due > format_time(punctual.outcome("web").time), "what is due has been done"
            earlier, punctual = punctual, run(files, punctual, due, karmada=karmada)
            if wait and punctual.outcome("web").group < earlier.outcome("web").group and earlier.outcome("web").group in up:
                # With a time of 0s a group may be used in the very run in which it first fits, before it has a timer.
                began, wanted = timers(earlier).get(punctual.outcome("web").group, due), parse_duration(wait)
                assert wanted is not None
                assert format_time(parse_time(began) + wanted) == due, "neither earlier nor later than its timer says"
        assert punctual.binding("web") == late.binding("web")
        assert wakeup(punctual) == wakeup(late)
        reached = format_time(late.outcome("web").time)
        assert run(files, late, reached, at(now + lasts - 0.5), karmada).binding("web") == late.binding("web"), (
            "a second run is idle"
        )
        now += lasts
