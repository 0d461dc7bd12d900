"""Taints that conditions and ClusterTaintPolicies add to Clusters: which, from when and until when."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import gitsched
from gitsched.apis.added_taints import AddedTaint, read_added_taints, write_added_taints
from gitsched.apis.karmada.cluster.taints import (
    ClusterTaintPolicy,
    MatchCondition,
    TaintChanges,
    apply_taints,
    derive_readiness_taints,
    derive_taints,
    read_conditions,
)
from gitsched.model.taints import Taint
from gitsched.model.time import parse_time

NOON, LATER = "2026-01-01T12:00:00Z", "2026-01-02T12:00:00Z"
NOT_READY, UNREACHABLE = "cluster.karmada.io/not-ready:NoSchedule", "cluster.karmada.io/unreachable:NoSchedule"
READINESS = f"""
it is ready:                     {{status: {{conditions: [{{type: Ready, status: "True"}}]}},    taints: []}}
it is not:                       {{status: {{conditions: [{{type: Ready, status: "False"}}]}},   taints: ["{NOT_READY}"]}}
unknown:                         {{status: {{conditions: [{{type: Ready, status: Unknown}}]}},   taints: ["{UNREACHABLE}"]}}
a person wrote it:               {{status: {{}},                                               taints: []}}
it says something else only:     {{status: {{conditions: [{{type: Disk, status: "False"}}]}},    taints: []}}
false without quotes:            {{status: {{conditions: [{{type: Ready, status: false}}]}},     taints: ["{NOT_READY}"]}}
an unknown status:               {{status: {{conditions: [{{type: Ready, status: Maybe}}]}},     taints: []}}
silence, strictly read:          {{status: {{}}, facts: strict,                                taints: ["{NOT_READY}"]}}
something else, strictly read:   {{status: {{conditions: [{{type: Disk, status: "True"}}]}}, facts: strict, taints: ["{NOT_READY}"]}}
strictly read, it is ready:      {{status: {{conditions: [{{type: Ready, status: "True"}}]}}, facts: strict, taints: []}}
its document has the taint:      {{status: {{conditions: [{{type: Ready, status: "False"}}]}}, own: {{key: cluster.karmada.io/not-ready, effect: NoSchedule}}, taints: []}}
with another effect:             {{status: {{conditions: [{{type: Ready, status: "False"}}]}}, own: {{key: cluster.karmada.io/not-ready, effect: NoExecute}}, taints: ["{NOT_READY}"]}}
conditions that are none:        {{status: {{conditions: [{{}}, {{type: 1, status: 2}}, {{type: Ready}}]}}, taints: []}}
"""  # noqa: E501 - a table


@pytest.mark.parametrize("case", (readiness := yaml.safe_load(READINESS)).values(), ids=readiness)
def test_the_ready_condition_taints_a_cluster(run: Any, case: dict[str, Any]) -> None:
    spec = {"taints": [case["own"]]} if "own" in case else {}
    cluster = yaml.safe_dump({"kind": "Cluster", "metadata": {"name": "m1"}, "spec": spec, "status": case["status"]})
    done = run(cluster, karmada={"missingFacts": case.get("facts", "assume")})
    assert list(done.added("m1")) == case["taints"]
    assert all(since == "2026-01-01T00:00:00Z" for since, _ in done.added("m1").values())


def test_a_cluster_that_is_not_ready_keeps_its_workloads_and_gets_no_new_ones(run: Any) -> None:
    ready, unready = fleet("Ready: 'True'"), fleet("Ready: 'False'")
    assert run(stream(ready, WEB, EVERYWHERE)).clusters("web") == {"m1": 2, "m2": 2}
    second = run(stream(unready, WEB, EVERYWHERE), run(stream(ready, WEB, EVERYWHERE)))
    assert second.clusters("web") == {"m1": 2, "m2": 2}
    assert run(stream(unready, WEB, EVERYWHERE)).clusters("web") == {"m2": 2}
    (refused,) = (c for c in run(stream(unready, WEB, EVERYWHERE)).explain("web").candidates if c.result.name == "m1")
    assert refused.result.reason == (
        "TaintToleration: cluster(s) had untolerated taint {cluster.karmada.io/not-ready:NoSchedule} (its condition Ready is False)"
    )
    again = run(stream(ready, WEB, EVERYWHERE), second, LATER)
    assert again.added("m1") == {}


FAILOVER = {"failover": "cluster"}
LIMITED = """
kind: PropagationPolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterTolerations: [{key: cluster.karmada.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]
"""


@pytest.mark.parametrize(
    ("status", "taint"), [("'False'", NOT_READY), ("Unknown", UNREACHABLE), ("'True'", ""), ("Maybe", "")], ids=str
)
def test_with_failover_a_cluster_that_is_not_ready_evicts(run: Any, status: str, taint: str) -> None:
    before = run(stream(fleet("Ready: 'True'"), WEB, EVERYWHERE), karmada=FAILOVER)
    after = run(stream(fleet(f"Ready: {status}"), WEB, EVERYWHERE), before, NOON, karmada=FAILOVER)
    expected = {
        name: (NOON, f"its condition Ready is {status.strip(chr(39))}") for name in (taint.replace("Schedule", "Execute"), taint)
    }
    assert after.added("m1") == (expected if taint else {})
    assert after.clusters("web") == ({"m2": 2} if taint else {"m1": 2, "m2": 2})
    assert "cluster-failover-off" not in after.codes("web")
    back = run(stream(fleet("Ready: 'True'"), WEB, EVERYWHERE), after, LATER, karmada=FAILOVER)
    assert (back.added("m1"), back.clusters("web")) == ({}, {"m1": 2, "m2": 2})


def test_with_failover_a_missing_condition_evicts_nothing(run: Any) -> None:
    strict = FAILOVER | {"missingFacts": "strict"}
    assert list(run(stream(fleet(), WEB, EVERYWHERE), karmada=strict).added("m1")) == [NOT_READY]
    assert run(stream(fleet(), WEB, EVERYWHERE), karmada=FAILOVER).added("m1") == {}


def test_with_failover_a_toleration_delays_the_eviction(run: Any) -> None:
    before = run(stream(fleet("Ready: 'True'"), WEB, LIMITED), karmada=FAILOVER)
    unready = run(stream(fleet("Ready: 'False'"), WEB, LIMITED), before, NOON, karmada=FAILOVER)
    assert unready.clusters("web") == {"m1": 2, "m2": 2}
    end = "2026-01-01T12:05:00Z"
    assert run(stream(fleet("Ready: 'False'"), WEB, LIMITED), unready, NOON, end, FAILOVER).clusters("web") == {"m2": 2}
    recovered = run(stream(fleet("Ready: 'True'"), WEB, LIMITED), unready, "2026-01-01T12:04:00Z", LATER, FAILOVER)
    assert recovered.clusters("web") == {"m1": 2, "m2": 2}


def test_the_taints_end_with_the_setting(run: Any) -> None:
    unready = stream(fleet("Ready: 'False'"), WEB, EVERYWHERE)
    tainted = run(unready, NOTHING, NOON, karmada=FAILOVER)
    assert list(run(unready, tainted, LATER).added("m1")) == [NOT_READY]


NOTHING = "{kind: Cluster, metadata: {name: m1}}"
EVICTING = """
kind: ClusterTaintPolicy
metadata: {name: dead}
spec:
  addOnConditions: [{conditionType: Ready, operator: NotIn, statusValues: ["True"]}]
  taints: [{key: dead, effect: NoExecute}]
"""
UNREADY = """
off:                          {expected: "no NoExecute taint evicts them; set spec.karmada.failover: cluster, or set spec.karmada.allowNoExecuteTaintPolicy: true and commit a ClusterTaintPolicy"}
unknown:                      {status: Unknown, expected: "its condition Ready is Unknown, and no NoExecute taint evicts them"}
ready:                        {status: "'True'"}
failover:                     {karmada: {failover: cluster}}
a ClusterTaintPolicy:         {karmada: {allowNoExecuteTaintPolicy: true}, policy: true}
no eviction:                  {karmada: {taintEviction: false}, expected: "remove spec.karmada.taintEviction: false, and set spec.karmada.failover: cluster"}
a policy without eviction:    {karmada: {allowNoExecuteTaintPolicy: true, taintEviction: false}, policy: true, expected: "so NoExecute taints evict nothing; remove spec.karmada.taintEviction: false"}
no workload:                  {workload: false}
"""  # noqa: E501 - a table


@pytest.mark.parametrize("case", (unready := yaml.safe_load(UNREADY)).values(), ids=unready)
def test_a_cluster_that_is_not_ready_and_keeps_workloads_is_reported(run: Any, case: dict[str, Any]) -> None:
    karmada, workload = case.get("karmada", {}), WEB if case.get("workload", True) else "kind: ConfigMap\nmetadata: {name: other}"
    before = run(stream(fleet("Ready: 'True'"), workload, EVERYWHERE), karmada=karmada)
    files = stream(fleet(f"Ready: {case.get('status', chr(39) + 'False' + chr(39))}"), workload, EVERYWHERE)
    after = run(stream(files, EVICTING) if case.get("policy") else files, before, NOON, karmada=karmada)
    findings = {f for outcome in after.decisions.outcomes.values() for f in outcome.findings if f.code == "cluster-failover-off"}
    if "expected" not in case:
        assert findings == set()
        return
    (finding,) = findings
    assert case["expected"] in finding.message
    assert (finding.severity, finding.resource) == ("warning", ("Cluster", "", "m1"))


WEB = "kind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}"
EVERYWHERE = """
kind: PropagationPolicy
metadata: {name: p}
spec: {resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}], placement: {}}
"""
POLICY = """
kind: ClusterTaintPolicy
metadata: {name: disks%s}
spec:
  targetClusters: %s
  addOnConditions: [{conditionType: DiskHealthy, operator: NotIn, statusValues: ["True"]}]
  removeOnConditions: [{conditionType: DiskHealthy, operator: In, statusValues: ["True"]}]
  taints: [{key: disk, value: bad, effect: %s}]
"""
DISKS = POLICY % ("", "{labelSelector: {matchLabels: {disk: local}}}", "NoSchedule")
ALLOWED = {"allowNoExecuteTaintPolicy": True}


def fleet(conditions: str = "", taints: str = "") -> str:
    """m1 with conditions (as "Type: 'Status', ..."), and m2 without any."""
    entries = [{"type": name, "status": status} for name, status in yaml.safe_load(f"{{{conditions}}}").items()]
    first = {
        "kind": "Cluster",
        "metadata": {"name": "m1", "labels": {"disk": "local"}},
        "spec": {"taints": yaml.safe_load(f"[{taints}]")},
        "status": {"conditions": entries},
    }
    return f"{yaml.safe_dump(first)}---\nkind: Cluster\nmetadata: {{name: m2}}"


HEALTHY, UNHEALTHY = fleet("DiskHealthy: 'True'"), fleet("DiskHealthy: 'False'")


def stream(*documents: str) -> str:
    return "\n---\n".join(documents)


def test_the_taint_of_a_policy_stays_until_its_remove_conditions_match(run: Any) -> None:
    neither = DISKS.replace('operator: NotIn, statusValues: ["True"]', 'operator: In, statusValues: ["False"]')
    healthy = run(stream(HEALTHY, neither), at=NOON)
    assert healthy.added("m1") == {}
    broken = run(stream(UNHEALTHY, neither), healthy, "2026-01-01T13:00:00Z")
    assert broken.added("m1") == {"disk=bad:NoSchedule": ("2026-01-01T13:00:00Z", "ClusterTaintPolicy/disks")}
    unsure = run(stream(fleet("DiskHealthy: Unknown"), neither), broken, "2026-01-01T14:00:00Z")
    assert unsure.added("m1") == broken.added("m1"), "neither condition holds: it stays, and so does its time"
    silent = run(stream(fleet(), neither), unsure, "2026-01-01T15:00:00Z")
    assert silent.added("m1") == broken.added("m1")
    healthy_again = run(stream(HEALTHY, neither), silent, "2026-01-01T16:00:00Z")
    assert healthy_again.added("m1") == {}
    assert run(stream(fleet(), neither), healthy_again, LATER).added("m1") == {}


CONDITIONS = """
one that holds:            {conditions: "A: 'False'",           add: [{conditionType: A, operator: In, statusValues: ["False"]}],   added: true}
one that does not:         {conditions: "A: 'True'",            add: [{conditionType: A, operator: In, statusValues: ["False"]}],   added: false}
none is never:             {conditions: "A: 'False'",           add: [],                                                            added: false}
left out is never:         {conditions: "A: 'False'",                                                                               added: false}
all must hold:             {conditions: "A: 'False', B: 'True'", add: [{conditionType: A, operator: In, statusValues: ["False"]}, {conditionType: B, operator: In, statusValues: ["False"]}], added: false}
all do hold:               {conditions: "A: 'False', B: 'True'", add: [{conditionType: A, operator: In, statusValues: ["False"]}, {conditionType: B, operator: NotIn, statusValues: ["False"]}], added: true}
a missing condition:       {conditions: "B: 'False'",           add: [{conditionType: A, operator: NotIn, statusValues: ["True"]}], added: false}
not in nothing:            {conditions: "A: Unknown",           add: [{conditionType: A, operator: NotIn, statusValues: []}],       added: true}
an operator of its own:    {conditions: "A: 'False'",           add: [{conditionType: A, operator: Exists, statusValues: []}],      added: false}
removal comes second:      {conditions: "A: 'False'",           add: [{conditionType: A, operator: In, statusValues: ["False"]}],   remove: [{conditionType: A, operator: NotIn, statusValues: ["True"]}], added: false}
"""  # noqa: E501 - a table


@pytest.mark.parametrize("case", (conditions := yaml.safe_load(CONDITIONS)).values(), ids=conditions)
def test_a_policy_adds_its_taints_when_all_conditions_match(run: Any, case: dict[str, Any]) -> None:
    spec = {"taints": [{"key": "disk", "effect": "NoSchedule"}]}
    spec |= {name: case[short] for name, short in (("addOnConditions", "add"), ("removeOnConditions", "remove")) if short in case}
    policy = yaml.safe_dump({"kind": "ClusterTaintPolicy", "metadata": {"name": "disks"}, "spec": spec})
    assert bool(run(stream(fleet(case["conditions"]), policy)).added("m1")) is case["added"]


def test_only_the_clusters_that_a_policy_targets_are_tainted(run: Any) -> None:
    both = UNHEALTHY + "\nstatus: {conditions: [{type: DiskHealthy, status: 'False'}]}"
    some = run(stream(both, DISKS))
    assert (list(some.added("m1")), list(some.added("m2"))) == (["disk=bad:NoSchedule"], [])
    for everything in ("null", "{}"):
        every = run(stream(both, POLICY % ("", everything, "NoSchedule")))
        assert list(every.added("m1")) == list(every.added("m2")) == ["disk=bad:NoSchedule"]


def test_policies_apply_in_the_order_of_creation_then_of_names(run: Any) -> None:
    def written(name: str, value: str, created: str = "") -> str:
        policy = yaml.safe_load(POLICY % (name, "null", "NoSchedule"))
        policy["spec"]["taints"][0]["value"] = value
        policy["metadata"] |= {"creationTimestamp": created} if created else {}
        return yaml.safe_dump(policy)

    down = UNHEALTHY
    dated = run(stream(down, written("-a", "young", LATER), written("-b", "old", NOON)))
    assert list(dated.added("m1")) == ["disk=old:NoSchedule"]
    named = run(stream(down, written("-b", "second"), written("-a", "first")), at=NOON)
    assert list(named.added("m1")) == ["disk=first:NoSchedule"]
    # The order stays although the documents have no creation time.
    first = run(stream(fleet(), written("-b", "second")), at=NOON)
    second = run(stream(down, written("-b", "second"), written("-a", "first")), first, LATER)
    assert list(second.added("m1")) == ["disk=second:NoSchedule"]


def test_the_no_execute_taint_of_a_policy_must_be_allowed_and_evicts(run: Any) -> None:
    hot = POLICY % ("", "null", "NoExecute")
    ready = stream(fleet(), WEB, EVERYWHERE)
    down = stream(UNHEALTHY, WEB, EVERYWHERE, hot)
    refused = run(down, run(ready), NOON)
    assert (refused.added("m1"), refused.clusters("web")) == ({}, {"m1": 2, "m2": 2})
    evicted = run(down, run(ready), NOON, karmada=ALLOWED)
    assert evicted.added("m1") == {"disk=bad:NoExecute": (NOON, "ClusterTaintPolicy/disks")}
    assert evicted.clusters("web") == {"m2": 2}
    off = run(down, run(ready), NOON, karmada={**ALLOWED, "taintEviction": False})
    assert (list(off.added("m1")), off.clusters("web")) == (["disk=bad:NoExecute"], {"m1": 2, "m2": 2})


def test_a_toleration_of_an_added_taint_starts_when_the_taint_was_added(run: Any) -> None:
    patient = EVERYWHERE.replace(
        "placement: {}", "placement: {clusterTolerations: [{key: disk, operator: Exists, tolerationSeconds: 600}]}"
    )
    down = stream(UNHEALTHY, WEB, patient, POLICY % ("", "null", "NoExecute"))
    first = run(stream(fleet(), WEB, patient))
    tainted = run(down, first, NOON, karmada=ALLOWED)
    assert tainted.outcome("web").wakeup == parse_time("2026-01-01T12:10:00Z")
    assert run(down, tainted, "2026-01-01T12:09:00Z", karmada=ALLOWED).clusters("web") == {"m1": 2, "m2": 2}
    assert run(down, tainted, "2026-01-01T12:09:00Z", "2026-01-01T12:10:00Z", karmada=ALLOWED).clusters("web") == {"m2": 2}


def codes(done: Any) -> list[tuple[str, str]]:
    return [(finding.severity, finding.code) for finding in done.engine.findings if finding.code.startswith("cluster-taint")]


def test_added_taints_are_reported(run: Any) -> None:
    down = run(stream(fleet("DiskHealthy: 'False', Ready: Unknown"), DISKS))
    assert [f.message for f in down.engine.findings if f.code == "cluster-taint-added"] == [
        "Cluster m1: taint cluster.karmada.io/unreachable:NoSchedule is added: its condition Ready is Unknown",
        "Cluster m1: ClusterTaintPolicy disks adds taint disk=bad:NoSchedule",
    ]
    record = dict(down.engine.records())[next(k for k, _ in down.engine.records() if k.kind == "Cluster")]
    assert [entry["addedBy"] for entry in json.loads(record["metadata"]["annotations"]["gitsched.io/taints-added"])] == [
        "its condition Ready is Unknown",
        "ClusterTaintPolicy/disks",
    ]


def test_a_taint_stays_after_its_policy_is_deleted_with_a_warning(run: Any) -> None:
    down = UNHEALTHY
    orphan = run(down, run(stream(down, DISKS), at=NOON), LATER)
    assert orphan.added("m1") == {"disk=bad:NoSchedule": (NOON, "ClusterTaintPolicy/disks")}
    assert codes(orphan) == [("warning", "cluster-taint-orphaned")]


def test_an_invalid_policy_keeps_its_taints_and_its_order(run: Any) -> None:
    down = UNHEALTHY
    first = run(stream(down, DISKS), at=NOON)
    second = run(stream(down, DISKS.split("  taints")[0]), first, LATER)
    assert second.added("m1") == first.added("m1")
    assert codes(second) == [("info", "cluster-taint-added")]
    assert dict(second.engine.records()) == dict(first.engine.records())


def test_a_taint_of_the_document_is_effective_until_a_policy_removes_it(run: Any) -> None:
    own = "{key: disk, value: mine, effect: NoSchedule}"
    down = run(stream(fleet("DiskHealthy: 'False'", own), DISKS))
    assert (down.added("m1"), codes(down)) == ({}, [])
    healthy = run(stream(fleet("DiskHealthy: 'True'", own), DISKS, WEB, EVERYWHERE))
    assert (healthy.clusters("web"), codes(healthy)) == ({"m1": 2, "m2": 2}, [("info", "cluster-taint-lifted")])
    silent = run(stream(fleet("", own), DISKS, WEB, EVERYWHERE))
    assert silent.clusters("web") == {"m2": 2}


@pytest.mark.parametrize("text", ["", "{", "{}", "null", '["x"]', "[1]"])
def test_a_malformed_record_is_ignored(text: str) -> None:
    assert read_added_taints({"metadata": {"annotations": {"gitsched.io/taints-added": text}}}) == ()


STATUSES = st.sampled_from(["True", "False", "Unknown"])
TAINTS = st.builds(
    Taint,
    st.sampled_from("ab"),
    st.sampled_from(["", "v", "w"]),
    st.sampled_from(["NoSchedule", "NoExecute"]),
    st.just(parse_time("2025-12-31T12:00:00Z")),
)
MATCHES = st.builds(MatchCondition, st.sampled_from(["Ready", "Disk"]), st.sampled_from(["In", "NotIn"]), st.frozensets(STATUSES))
POLICIES = st.builds(
    ClusterTaintPolicy,
    st.just(parse_time(NOON)),
    st.sampled_from("pqr"),
    st.none(),
    st.lists(MATCHES, max_size=2).map(tuple),
    st.lists(MATCHES, max_size=2).map(tuple),
    st.lists(TAINTS, min_size=1, max_size=2).map(tuple),
)


@given(
    own=st.lists(TAINTS, max_size=2, unique_by=lambda taint: (taint.key, taint.effect)),
    conditions=st.dictionaries(st.sampled_from(["Ready", "Disk"]), STATUSES),
    remembered=st.lists(
        st.builds(AddedTaint, TAINTS, st.sampled_from(["ClusterTaintPolicy/x", "its condition Ready is False"])), max_size=2
    ),
    policies=st.lists(POLICIES, max_size=3),
    assume=st.booleans(),
    evict=st.booleans(),
)
def test_the_same_conditions_give_the_same_taints_again(
    own: list[Taint],
    conditions: dict[str, str],
    remembered: list[AddedTaint],
    policies: list[ClusterTaintPolicy],
    assume: bool,
    evict: bool,
) -> None:
    noon, later = parse_time(NOON), parse_time(LATER)
    assert noon
    assert later
    first = derive_taints(own, conditions, remembered, policies, assume, noon, evict)
    second = derive_taints(own, conditions, read_added_taints(record(first)), policies, assume, later, evict)
    assert second == first
    taints = apply_taints(own, first)
    assert len({(taint.key, taint.effect) for taint in taints}) == len(taints), "one taint of a key and effect"
    if conditions.get("Ready") == "True" and not policies and not own:
        assert not derive_readiness_taints(conditions, assume, evict).add
        assert all(entry.added_by.startswith("ClusterTaintPolicy/") for entry in first.added)


def record(tainted: TaintChanges) -> dict[str, Any]:
    return {"metadata": {"annotations": {"gitsched.io/taints-added": write_added_taints(tainted.added)}}}


def test_conditions_are_read_by_their_type() -> None:
    entries = [{"type": "A", "status": "True"}, {"type": "A", "status": "False"}, "x", {"type": "B"}]
    assert read_conditions({"status": {"conditions": entries}}) == {"A": "True"}
    assert read_conditions({"status": {"conditions": {}}}) == read_conditions({}) == {}


CONDITION_STATUSES = [
    ({"status": False}, 'is False, which is no text that Kubernetes knows: write "False" with quotes'),
    ({"status": "Maybe"}, "is 'Maybe', which is no text that Kubernetes knows: use one of True, False, Unknown"),
    ({}, "is missing, which is no text that Kubernetes knows: use one of True, False, Unknown"),
]


@pytest.mark.parametrize(("status", "message"), CONDITION_STATUSES)
def test_a_status_without_a_meaning_is_reported(status: dict[str, Any], message: str) -> None:
    body = {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": "m1"},
        "spec": {"syncMode": "Pull"},
    }
    conditions = [{"type": "Disk", "status": "True"}, {"type": "Ready", **status}]
    found = gitsched.validate([body | {"status": {"conditions": conditions}}])
    assert [finding.message for finding in found if finding.code == "condition-status"] == [
        f"status.conditions[1]: the status of the condition Ready {message}"
    ]
