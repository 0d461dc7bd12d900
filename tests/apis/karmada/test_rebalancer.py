"""A WorkloadRebalancer is handled once, reports its results and expires."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gitsched.model.time import format_time, parse_time
from tests.search_depth import count_examples

NOON, ONE, TWO, THREE = (f"2026-01-01T{hour}:00:00Z" for hour in (12, 13, 14, 15))
NEXT_DAY = "2026-01-02T12:00:00Z"
DIGEST, EXPIRED = "gitsched.io/spec-digest", "gitsched.io/expired-at"
FLEET = """
kind: Cluster
metadata: {name: m1}
---
kind: Cluster
metadata: {name: m2}
---
kind: PropagationPolicy
metadata: {name: all}
spec:
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment}
  - {apiVersion: v1, kind: ConfigMap}
  placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}
---
kind: ClusterPropagationPolicy
metadata: {name: roles}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}]
  placement: {}
"""
BROKEN = FLEET.replace("  placement: {replica", "  priority: high\n  placement: {replica")
WEB = "{kind: Deployment, metadata: {name: web}, spec: {replicas: 2}}"
API = "{kind: Deployment, metadata: {name: api}, spec: {replicas: 2}}"


def repository(*documents: str) -> str:
    return "\n---\n".join((FLEET, *documents))


def deployment(name: str) -> str:
    return f"{{kind: Deployment, metadata: {{name: {name}}}, spec: {{replicas: 2}}}}"


def refer(text: str) -> dict[str, str]:
    """The reference that "kind name" or "kind namespace/name" stands for."""
    kind, _, rest = text.partition(" ")
    namespace, _, name = rest.rpartition("/")
    versions = {"Deployment": "apps/v1", "ConfigMap": "v1", "ClusterRole": "rbac.authorization.k8s.io/v1"}
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": versions[kind], "kind": kind, "name": name, **place}


def rebalancer(*workloads: str, ttl: int | None = None, created: str = "", status: Any = None, name: str = "back") -> str:
    spec: dict[str, Any] = {"workloads": [refer(text if " " in text else f"Deployment default/{text}") for text in workloads]}
    if ttl is not None:
        spec["ttlSecondsAfterFinished"] = ttl
    metadata = {"name": name, **({"creationTimestamp": created} if created else {})}
    body = {"kind": "WorkloadRebalancer", "metadata": metadata, "spec": spec, **({"status": status} if status else {})}
    return yaml.safe_dump(body, default_style='"')  # quoted, so that a timestamp stays text


def results(run: Any, name: str = "back") -> dict[str, str]:
    """What became of each workload, in the order of the status."""
    observed = run.rebalancer(name)["status"].get("observedWorkloads", [])
    return {entry["workload"]["name"]: entry.get("reason") or entry.get("result", "") for entry in observed}


def triggered(run: Any, workload: str = "web") -> str | None:
    text: str | None = run.binding(workload)["spec"].get("rescheduleTriggeredAt")
    return text


def is_expired(run: Any) -> bool:
    return EXPIRED in run.rebalancer()["metadata"]["annotations"]


def codes(run: Any) -> list[str]:
    return [finding.code for finding in run.engine.findings if finding.code.startswith("rebalance")]


# Who is found


@pytest.mark.parametrize(
    ("named", "result"),
    [
        ("Deployment default/web", "Successful"),
        ("ConfigMap default/settings", "Successful"),
        ("ClusterRole viewer", "Successful"),
        ("ClusterRole system:viewer", "Successful"),
        ("ClusterRole system.viewer", "Successful"),
        ("Deployment default/nobody", "ReferencedBindingNotFound"),
        ("Deployment web", "ReferencedBindingNotFound"),
        ("Deployment other/web", "ReferencedBindingNotFound"),
        ("ClusterRole default/viewer", "ReferencedBindingNotFound"),
        ("Deployment kube-system/hidden", "ReferencedBindingNotFound"),
    ],
)
def test_a_workload_is_found_by_the_name_of_its_binding(run: Any, named: str, result: str) -> None:
    others = [
        "{kind: ConfigMap, metadata: {name: settings}}",
        "{kind: ClusterRole, metadata: {name: viewer}}",
        '{kind: ClusterRole, metadata: {name: "system:viewer"}}',
        "{kind: Deployment, metadata: {name: hidden, namespace: kube-system}}",
    ]
    after = run(repository(WEB, *others, rebalancer(named)), at=NOON)
    assert list(results(after).values()) == [result]
    assert codes(after) == ([] if result == "Successful" else ["rebalance-target-missing"])
    assert after.rebalancer()["status"]["finishTime"] == NOON


def test_a_workload_of_the_same_commit_is_found_and_a_removed_one_is_not(run: Any) -> None:
    first = run(repository(WEB), at=NOON)
    second = run(repository(API, rebalancer("web", "api")), first, ONE)
    assert results(second) == {"api": "Successful", "web": "ReferencedBindingNotFound"}
    assert second.binding("api")["status"]["lastScheduledTime"] == ONE
    assert run(repository(API, rebalancer("web", "api")), second, TWO).binding("api") == second.binding("api"), (
        "a first placement is fresh: there is nothing left to do"
    )


def test_the_finding_says_what_is_wrong_with_a_reference(run: Any) -> None:
    after = run(
        repository(WEB, "{kind: ClusterRole, metadata: {name: viewer}}", rebalancer("Deployment web", "ClusterRole default/viewer"))
    )
    told = sorted(finding.message for finding in after.engine.findings if finding.code == "rebalance-target-missing")
    assert told[0].endswith("Deployment web, which has no binding; a Deployment is namespaced: add the namespace")
    assert told[1].endswith("viewer, which has no binding; a ClusterRole is cluster-scoped: remove the namespace")


def test_a_failure_is_final_until_the_workload_is_named_again(run: Any) -> None:
    first = run(repository(WEB, rebalancer("web", "api")), run(repository(WEB), at=NOON), ONE)
    second = run(repository(WEB, API, rebalancer("web", "api")), first, TWO)
    assert results(second)["api"] == "ReferencedBindingNotFound"
    third = run(repository(WEB, API, rebalancer("web")), second, THREE)
    assert results(third) == {"web": "Successful"}
    assert results(run(repository(WEB, API, rebalancer("web", "api")), third, NEXT_DAY)) == {
        "api": "Successful",
        "web": "Successful",
    }


def test_a_workload_that_is_defined_twice_is_rebalanced_when_it_is_fixed(run: Any) -> None:
    first = run(repository(WEB), at=NOON)
    held = run(repository(WEB, WEB.replace("replicas: 2", "replicas: 3"), rebalancer("web")), first, ONE)
    check_kept_then_fixed(run, first, held)


def test_a_workload_with_an_invalid_policy_is_rebalanced_when_it_is_fixed(run: Any) -> None:
    first = run(repository(WEB), at=NOON)
    held = run("\n---\n".join((BROKEN, WEB, rebalancer("web"))), first, ONE)
    check_kept_then_fixed(run, first, held)


def check_kept_then_fixed(run: Any, first: Any, held: Any) -> None:
    assert results(held) == {"web": ""}
    assert "finishTime" not in held.rebalancer()["status"]
    assert held.binding("web") == first.binding("web")
    mended = run(repository(WEB, rebalancer("web")), held, TWO)
    assert (results(mended), triggered(mended)) == ({"web": "Successful"}, ONE)
    assert mended.binding("web")["status"]["lastScheduledTime"] == TWO


# What is asked for


def test_the_request_has_the_time_of_the_commit_that_added_it(run: Any) -> None:
    first = run(repository(WEB), at=NOON)
    second = run(repository(WEB, rebalancer("web")), first, ONE)
    assert (triggered(second), second.binding("web")["status"]["lastScheduledTime"]) == (ONE, ONE)
    assert second.rebalancer()["metadata"]["creationTimestamp"] == ONE
    third = run(repository(WEB, API, rebalancer("web")), second, TWO)
    assert third.rebalancer() == second.rebalancer()
    assert third.binding("web") == second.binding("web")


def test_a_creation_time_in_the_document_counts(run: Any) -> None:
    first = run(repository(WEB), at=NOON)
    early, late = "2026-01-01T11:00:00Z", "2026-01-01T12:30:00Z"
    assert triggered(run(repository(WEB, rebalancer("web", created=late)), first, ONE)) == late
    too_late = run(repository(WEB, rebalancer("web", created=early)), first, ONE)
    assert (triggered(too_late), codes(too_late)) == (early, ["rebalance-too-late"])
    assert too_late.binding("web")["status"] == first.binding("web")["status"]


@pytest.mark.parametrize("before", [None, NOON], ids=["never placed before", "placed before"])
def test_a_creation_time_after_the_commit_is_handled_at_once(run: Any, before: str | None) -> None:
    files = repository(WEB, rebalancer("web", created=THREE))
    first = run(files, run(repository(WEB), at=before) if before else None, ONE)
    assert first.binding("web")["status"]["lastScheduledTime"] == THREE
    assert run(files, first, TWO).binding("web") == first.binding("web")


def test_a_binding_without_last_scheduled_time_is_not_rebalanced_with_a_warning(run: Any) -> None:
    first = run(repository(WEB), at=NOON)
    del first.binding("web")["status"]["lastScheduledTime"]
    after = run(repository(WEB, rebalancer("web")), first, ONE)
    assert (results(after), codes(after)) == ({"web": "Successful"}, ["rebalance-ignored"])
    assert codes(run(repository(WEB, rebalancer("web")), after, TWO)) == ["rebalance-ignored"], "until it is removed"


def test_a_rebalancer_added_again_after_it_expired_is_created_then(run: Any) -> None:
    old = run(repository(WEB, rebalancer("web", ttl=60, created=ONE)), run(repository(WEB), at=NOON), ONE, TWO)
    assert is_expired(old)
    files = repository(WEB, API, rebalancer("web", "api", ttl=86400, created=ONE))
    anew = run(files, old, THREE)
    assert (anew.rebalancer()["metadata"]["creationTimestamp"], triggered(anew)) == (THREE, THREE)
    assert run(files, anew, THREE, NEXT_DAY).rebalancer()["metadata"] == anew.rebalancer()["metadata"]


def test_the_latest_of_several_requests_counts(run: Any) -> None:
    asking = [rebalancer("web", created=f"2026-01-01T12:{minute}:00Z", name=f"r{minute}") for minute in (10, 30, 20)]
    after = run(repository(WEB, *asking), run(repository(WEB), at=NOON), ONE)
    assert triggered(after) == "2026-01-01T12:30:00Z"
    assert [results(after, f"r{minute}") for minute in (10, 20, 30)] == [{"web": "Successful"}] * 3


def test_an_older_request_does_not_replace_a_later_one(run: Any) -> None:
    first = run(repository(WEB, rebalancer("web", name="later")), run(repository(WEB), at=NOON), TWO)
    second = run(repository(WEB, rebalancer("web", name="later"), rebalancer("web", name="older", created=ONE)), first, THREE)
    assert (triggered(second), results(second, "older")) == (TWO, {"web": "Successful"})


def test_a_suspended_workload_is_rebalanced_when_it_resumes(run: Any) -> None:
    first = run(repository(WEB), at=NOON)
    first.binding("web")["spec"]["suspension"] = {"scheduling": True}
    held = run(repository(WEB, rebalancer("web")), first, ONE)
    assert (results(held), triggered(held)) == ({"web": "Successful"}, ONE)
    assert held.binding("web")["status"]["lastScheduledTime"] == NOON
    (remark,) = [finding.message for finding in held.engine.findings if finding.code == "rebalance-without-effect"]
    assert "its scheduling is suspended. The request stays in the binding" in remark
    del held.binding("web")["spec"]["suspension"]
    assert run(repository(WEB, rebalancer("web")), held, TWO).binding("web")["status"]["lastScheduledTime"] == TWO


def test_a_rebalancer_that_is_being_deleted_is_ignored(run: Any) -> None:
    leaving = rebalancer("web").replace('"name": "back"', '"name": "back"\n  "deletionTimestamp": "2026-01-01T12:30:00Z"')
    after = run(repository(WEB, leaving), run(repository(WEB), at=NOON), ONE)
    assert "deletionTimestamp" in leaving
    assert (triggered(after), list(after.engine.records())) == (None, [])


# Edits of the list

EDITS = """
# now and then: what is named; left: what the status has afterwards, + for Successful, - for ReferencedBindingNotFound
a workload is added:       {now: [a, b], then: [a, b, c], left: [+a, -b, +c], generation: 2}
one that succeeded leaves: {now: [a, c], then: [c],       left: [+a, +c],     generation: 2}
one that failed leaves:    {now: [a, b], then: [a],       left: [+a],         generation: 2}
one takes another's place: {now: [a, b], then: [a, c],    left: [+a, +c],     generation: 2}
another order:             {now: [a, c], then: [c, a],    left: [+a, +c],     generation: 1}
one is named twice:        {now: [a, c], then: [a, c, a], left: [+a, +c],     generation: 1}
nothing:                   {now: [a, b], then: [a, b],    left: [+a, -b],     generation: 1}
"""


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in yaml.safe_load(EDITS).items()])
def test_the_status_follows_the_list(run: Any, case: dict[str, Any]) -> None:
    here = [deployment("a"), deployment("c")]
    first = run(repository(*here, rebalancer(*case["now"])), run(repository(*here), at=NOON), ONE)
    second = run(repository(*here, rebalancer(*case["then"])), first, TWO)
    signs = {"Successful": "+", "ReferencedBindingNotFound": "-"}
    assert [signs[result] + name for name, result in results(second).items()] == case["left"]
    status = second.rebalancer()["status"]
    assert status["observedGeneration"] == case["generation"]
    assert status["finishTime"] == (ONE if case["generation"] == 1 else TWO)


def test_the_digest_of_a_spec_does_not_depend_on_its_order_or_the_process(run: Any) -> None:
    text = '{"ttlSecondsAfterFinished":60,"workloads":[["apps/v1","Deployment","default","a"],["v1","ConfigMap","default","b"]]}'
    named = ["ConfigMap default/b", "a", "ConfigMap default/b"]
    noted = run(repository(rebalancer(*named, ttl=60))).rebalancer()["metadata"]["annotations"][DIGEST]
    assert noted == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def test_an_added_workload_is_rebalanced_with_the_old_time(run: Any) -> None:
    here = [deployment("a"), deployment("c")]
    first = run(repository(*here, rebalancer("a")), run(repository(*here), at=NOON), ONE)
    second = run(repository(*here, rebalancer("a", "c")), first, TWO)
    assert (triggered(second, "a"), triggered(second, "c")) == (ONE, ONE)
    assert (second.binding("a"), second.binding("c")["status"]["lastScheduledTime"]) == (first.binding("a"), TWO)


def test_a_workload_added_after_it_was_scheduled_is_reported(run: Any) -> None:
    first = run(repository(WEB, rebalancer("web")), run(repository(WEB), at=NOON), ONE)
    second = run(repository(WEB, API, rebalancer("web")), first, TWO)
    third = run(repository(WEB, API, rebalancer("web", "api")), second, THREE)
    assert codes(third) == ["rebalance-too-late"]
    assert third.binding("api")["status"] == second.binding("api")["status"]


def test_the_status_is_in_the_order_of_version_kind_namespace_and_name(run: Any) -> None:
    here = [
        "{kind: ConfigMap, metadata: {name: a}}",
        "{kind: ClusterRole, metadata: {name: a}}",
        "{kind: Deployment, metadata: {name: b}}",
        "{kind: Deployment, metadata: {name: a, namespace: zoo}}",
    ]
    named = ["ConfigMap default/a", "Deployment zoo/a", "ClusterRole a", "Deployment default/b"]
    observed = run(repository(*here, rebalancer(*named))).rebalancer()["status"]["observedWorkloads"]
    assert [entry["workload"] for entry in observed] == [refer(named[i]) for i in (3, 1, 2, 0)]


# What a hub knew


def test_the_status_of_the_document_is_used_without_a_record(run: Any) -> None:
    done = {"workload": refer("Deployment default/web"), "result": "Successful"}
    dump = {"observedWorkloads": [done], "observedGeneration": 3, "finishTime": "2026-01-01T12:10:00Z"}
    first = run(repository(WEB), at=NOON)
    second = run(repository(WEB, rebalancer("web", created="2026-01-01T12:05:00Z", status=dump)), first, ONE)
    assert triggered(second) is None, "it was carried out on the hub"
    assert second.rebalancer()["status"]["finishTime"] == "2026-01-01T12:10:00Z"


def test_a_modified_record_is_read_as_it_is(run: Any) -> None:
    first = run(repository(WEB, rebalancer("web")), run(repository(WEB), at=NOON), ONE)
    first.rebalancer()["status"] = {"observedWorkloads": ["web", {"workload": None}, 7], "observedGeneration": "one"}
    assert results(run(repository(WEB, rebalancer("web")), first, TWO)) == {"web": "Successful"}


# The end


def test_an_expired_rebalancer_keeps_its_results_and_has_a_finding(run: Any) -> None:
    asking = rebalancer("web", ttl=3600)
    first = run(repository(WEB, asking), run(repository(WEB), at=NOON), ONE)
    assert format_time(first.engine.wakeup) == TWO
    assert codes(first) == ["rebalance-without-effect"]
    over = run(repository(WEB, asking), first, ONE, TWO)
    assert over.rebalancer() == {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {
            **first.rebalancer()["metadata"],
            "annotations": {**first.rebalancer()["metadata"]["annotations"], EXPIRED: TWO},
        },
        "status": first.rebalancer()["status"],
    }
    reported = ["rebalancer-expired", "rebalance-without-effect"]
    assert (codes(over), over.engine.wakeup, format_time(over.engine.time)) == (reported, None, TWO)
    later = run(repository(WEB, asking), over, NEXT_DAY)
    assert (later.rebalancer(), later.binding("web"), later.engine.time) == (over.rebalancer(), first.binding("web"), None)
    assert codes(later) == reported


@pytest.mark.parametrize("ttl", [0, -5])
def test_a_ttl_of_zero_finishes_and_expires_in_one_run(run: Any, ttl: int) -> None:
    after = run(repository(WEB, rebalancer("web", ttl=ttl)), run(repository(WEB), at=NOON), ONE)
    assert (triggered(after), is_expired(after), results(after)) == (ONE, True, {"web": "Successful"})
    assert "rebalancer-expired" not in codes(after), "the request takes effect with this run: its file is still needed"
    later = run(repository(WEB, rebalancer("web", ttl=ttl)), after, TWO)
    assert (later.rebalancer(), codes(later)) == (after.rebalancer(), ["rebalancer-expired", "rebalance-without-effect"])


def test_a_missing_target_is_reported_until_the_rebalancer_is_removed_even_with_a_ttl_of_zero(run: Any) -> None:
    asking = rebalancer("wbe", ttl=0)
    first = run(repository(WEB, asking), run(repository(WEB), at=NOON), ONE)
    assert (codes(first), results(first)) == (["rebalance-target-missing"], {"wbe": "ReferencedBindingNotFound"})
    second = run(repository(WEB, asking), first, TWO)
    assert (codes(second), results(second)) == (["rebalancer-expired", "rebalance-target-missing"], results(first))


def test_an_expired_record_of_an_earlier_version_stays_as_it_is(run: Any) -> None:
    asking = rebalancer("web", ttl=0)
    first = run(repository(WEB, asking), run(repository(WEB), at=NOON), ONE)
    record = first.rebalancer()
    record["status"] = {}
    record["metadata"] = {"name": "back", "annotations": record["metadata"]["annotations"]}
    assert run(repository(WEB, asking), first, TWO).rebalancer() == record


@pytest.mark.parametrize(
    ("edit", "end"),
    [
        pytest.param(rebalancer("web", "api", ttl=3600), TWO, id="a workload is added: the end moves"),
        pytest.param(rebalancer("web", ttl=600), "2026-01-01T13:10:00Z", id="a shorter time: the latest counts"),
        pytest.param(rebalancer("web", ttl=7200), THREE, id="a longer time: the latest counts"),
        pytest.param(rebalancer("web"), None, id="no time any more"),
        pytest.param(rebalancer("web", ttl=2**31 - 1), "2094-01-19T16:14:07Z", id="the longest time"),
    ],
)
def test_the_latest_spec_decides_the_expiry(run: Any, edit: str, end: str | None) -> None:
    first = run(repository(WEB, API, rebalancer("web", ttl=3600)), run(repository(WEB, API), at=NOON), "2026-01-01T12:30:00Z")
    second = run(repository(WEB, API, edit), first, ONE)
    assert (format_time(second.engine.wakeup) if second.engine.wakeup else None) == end


def test_a_pending_rebalancer_does_not_expire(run: Any) -> None:
    held = run("\n---\n".join((BROKEN, WEB, rebalancer("web", ttl=60))), run(repository(WEB), at=NOON), ONE, NEXT_DAY)
    assert (results(held), held.engine.wakeup) == ({"web": ""}, None)


@pytest.mark.parametrize(
    ("edit", "created"),
    [
        pytest.param(rebalancer("web", "api", ttl=60), THREE, id="another workload"),
        pytest.param(rebalancer("web", ttl=61), THREE, id="another time to live"),
        pytest.param(rebalancer("web", ttl=61, created=ONE), THREE, id="the old creation time is that of what is over"),
        pytest.param(rebalancer("web", ttl=61, created="2026-01-01T14:30:00Z"), "2026-01-01T14:30:00Z", id="a new creation time"),
    ],
)
def test_an_expired_rebalancer_with_another_spec_is_a_new_one(run: Any, edit: str, created: str) -> None:
    first = run(repository(WEB, API, rebalancer("web", ttl=60)), run(repository(WEB, API), at=NOON), ONE, TWO)
    assert is_expired(first)
    second = run(repository(WEB, API, edit), first, THREE)
    assert (triggered(second), results(second)["web"]) == (created, "Successful")
    assert second.rebalancer()["status"]["observedGeneration"] == 1
    assert EXPIRED not in second.rebalancer()["metadata"]["annotations"]


def test_an_expired_rebalancer_in_another_order_stays_expired(run: Any) -> None:
    first = run(repository(WEB, API, rebalancer("web", "api", ttl=0)), run(repository(WEB, API), at=NOON), ONE)
    assert run(repository(WEB, API, rebalancer("api", "web", ttl=0)), first, TWO).rebalancer() == first.rebalancer()


def test_a_deleted_rebalancer_loses_its_record_and_is_new_when_added_again(run: Any) -> None:
    first = run(repository(WEB, rebalancer("web", ttl=0)), run(repository(WEB), at=NOON), ONE)
    gone = run(repository(WEB), first, TWO)
    assert list(gone.engine.records()) == []
    assert triggered(gone) == ONE
    assert triggered(run(repository(WEB, rebalancer("web", ttl=0)), gone, THREE)) == THREE


@pytest.mark.parametrize("ttl", [None, 0], ids=["in force", "over"])
def test_an_invalid_rebalancer_keeps_its_record_and_is_not_repeated_when_fixed(run: Any, ttl: int | None) -> None:
    asking = rebalancer("web", ttl=ttl)
    first = run(repository(WEB, asking), run(repository(WEB), at=NOON), ONE)
    broken = run(repository(WEB, asking.replace('"workloads"', '"workload"')), first, TWO)
    assert broken.rebalancer() == first.rebalancer()
    mended = run(repository(WEB, asking), broken, THREE)
    assert (mended.rebalancer(), mended.binding("web")) == (first.rebalancer(), first.binding("web"))


# Any history


@settings(max_examples=count_examples(25), deadline=None)
@given(
    ttl=st.none() | st.integers(0, 7200),
    named=st.lists(st.sampled_from(["web", "api", "ghost"]), min_size=1, max_size=4),
    delays=st.lists(st.integers(0, 5000), min_size=1, max_size=6),
)
def test_runs_at_any_times_give_the_result_of_one_late_run(run: Any, ttl: int | None, named: list[str], delays: list[int]) -> None:
    files = repository(WEB, API, rebalancer(*named, ttl=ttl))
    before = run(repository(WEB, API), at=NOON)
    start = parse_time(ONE)
    assert start is not None
    last, over, elapsed = before, False, 0
    for delay in delays:
        elapsed += delay
        moment = format_time(start.fromtimestamp(start.timestamp() + elapsed, start.tzinfo))
        last = run(files, last, ONE, moment)
        assert not over or is_expired(last), "what is over stays over"
        over = is_expired(last)
        assert over == (ttl is not None and elapsed >= ttl)
        assert (triggered(last), triggered(last, "api")) == (ONE if "web" in named else None, ONE if "api" in named else None)
    late = run(files, before, ONE, moment)
    assert late.rebalancer() == last.rebalancer()
    assert [late.binding(name) for name in ("web", "api")] == [last.binding(name) for name in ("web", "api")]


# For whoever asks why


def test_explain_names_the_rebalancer_and_its_time(run: Any) -> None:
    first = run(repository(WEB), at=NOON)
    second = run(repository(WEB, rebalancer("web"), rebalancer("web", name="other", created=NOON)), first, ONE)
    assert second.explain("web").trigger == f"Scheduled because a rebalance was requested by WorkloadRebalancer back at {ONE}."
    third = run(repository(WEB, rebalancer("web"), rebalancer("web", name="other", created=NOON)), second, TWO)
    assert third.explain("web").trigger.startswith("Not scheduled again")


def test_explain_names_a_rebalance_next_to_another_trigger_and_after_its_deletion(run: Any) -> None:
    first = run(repository(WEB), at=NOON)
    scaled = run(repository(WEB.replace("2", "3"), rebalancer("web")), first, ONE)
    assert scaled.explain("web").trigger == (
        "Scheduled because the replicas changed, without regard to present replicas because a rebalance was requested by "
        f"WorkloadRebalancer back at {ONE}."
    )
    first.binding("web")["spec"]["rescheduleTriggeredAt"] = ONE
    assert run(repository(WEB), first, TWO).explain("web").trigger == f"Scheduled because a rebalance was requested at {ONE}."
