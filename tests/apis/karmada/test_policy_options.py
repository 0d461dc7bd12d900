"""Options of a policy besides placement: preemption, Lazy activation, suspension, priority."""

from __future__ import annotations

from typing import Any

import pytest

CLUSTERS = "\n---\n".join(f"kind: Cluster\nmetadata: {{name: m{i}}}" for i in (1, 2, 3))
WEB = "kind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}"
EDITED = WEB.replace("replicas: 2", "replicas: 3")


def policy(name: str, clusters: str, spec: str = "", kind: str = "PropagationPolicy", selects: str = ", name: web") -> str:
    return f"""
kind: {kind}
metadata: {{name: {name}}}
spec:
  resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment{selects}}}]
  placement: {{clusterAffinity: {{clusterNames: [{clusters}]}}}}
  {spec}
"""


def repository(*documents: str) -> str:
    return "\n---\n".join((CLUSTERS, *documents))


# Preemption

ALWAYS = "preemption: Always\n  "
CPP = "ClusterPropagationPolicy"
ON = {"preemption": True}


@pytest.mark.parametrize(
    ("claimed", "rivals", "winner"),
    [
        (policy("old", "m1"), [policy("new", "m2", ALWAYS + "priority: 1")], "new"),
        (policy("old", "m1", "priority: 1"), [policy("new", "m2", ALWAYS + "priority: 1")], "old"),
        (policy("old", "m1"), [policy("new", "m2", "priority: 9")], "old"),
        (policy("old", "m1", "priority: 9", CPP), [policy("new", "m2", ALWAYS)], "new"),
        (policy("old", "m1"), [policy("new", "m2", ALWAYS + "priority: 9", CPP)], "old"),
        (policy("old", "m1", "", CPP), [policy("new", "m2", ALWAYS + "priority: 1", CPP)], "new"),
        (policy("old", "m1", "priority: 1", CPP), [policy("new", "m2", ALWAYS + "priority: 1", CPP)], "old"),
        (
            policy("old", "m1"),
            [
                policy("a", "m2", ALWAYS + "priority: 3"),
                policy("b", "m2", ALWAYS + "priority: 5"),
                policy("c", "m2", "priority: 9"),
            ],
            "b",
        ),
        (policy("old", "m1"), [policy("b", "m2", ALWAYS + "priority: 3"), policy("a", "m3", ALWAYS + "priority: 3")], "a"),
        (
            policy("old", "m1", "", CPP),
            [policy("a", "m2", ALWAYS + "priority: 9", CPP), policy("b", "m3", ALWAYS)],
            "b",
        ),
        (policy("old", "m1"), [policy("new", "m2", ALWAYS + "priority: 9", selects=", name: other")], "old"),
    ],
    ids=[
        "higher priority",
        "equal priority",
        "does not ask for it",
        "a policy takes any cluster policy",
        "a cluster policy never takes a policy",
        "cluster policies by priority",
        "cluster policies of equal priority",
        "the highest that asks",
        "of equals the first name",
        "a policy before a cluster policy",
        "names something else",
    ],
)
def test_which_policy_preempts(run: Any, claimed: str, rivals: list[str], winner: str) -> None:
    first = run(repository(WEB, claimed), karmada=ON)
    second = run(repository(WEB, claimed, *rivals), first, karmada=ON)
    assert second.policy("web").rpartition("/")[2] == winner
    assert run(repository(WEB, claimed, *rivals), second, karmada=ON).binding("web") == second.binding("web")


def test_preemption_must_be_enabled(run: Any) -> None:
    documents = repository(WEB, policy("old", "m1"), policy("new", "m2", ALWAYS + "priority: 9"))
    second = run(documents, run(repository(WEB, policy("old", "m1"))))
    assert second.policy("web") == "PropagationPolicy/default/old"
    assert [finding.code for finding in second.engine.findings].count("karmada-preemption-off") == 1
    assert "karmada-preemption-off" not in [finding.code for finding in run(documents, karmada=ON).engine.findings]


def test_lowering_the_priority_of_the_claiming_policy_allows_preemption(run: Any) -> None:
    rival = policy("new", "m2", ALWAYS + "priority: 5")
    high, low = policy("old", "m1", "priority: 10"), policy("old", "m1", "priority: 1")
    first = run(repository(WEB, high, rival), run(repository(WEB, high), karmada=ON), karmada=ON)
    assert first.policy("web") == "PropagationPolicy/default/old"
    second = run(repository(WEB, low, rival), first, karmada=ON)
    assert (second.policy("web"), list(second.clusters("web"))) == ("PropagationPolicy/default/new", ["m2"])


def test_a_preempted_policy_does_not_get_the_workload_back(run: Any) -> None:
    old, rival = policy("old", "m1"), policy("new", "m2", ALWAYS + "priority: 5")
    second = run(repository(WEB, old, rival), run(repository(WEB, old), karmada=ON), karmada=ON)
    lowered = run(repository(WEB, old, policy("new", "m2", ALWAYS + "priority: -1")), second, karmada=ON)
    assert lowered.policy("web") == "PropagationPolicy/default/new", "the old policy does not ask for preemption"


def test_explain_says_which_policy_preempted_the_claim(run: Any) -> None:
    old, rival = policy("old", "m1"), policy("new", "m2", ALWAYS + "priority: 5")
    second = run(repository(WEB, old, rival), run(repository(WEB, old), karmada=ON), karmada=ON)
    assert (
        second.explain("web").claim == "PropagationPolicy/default/new preempts PropagationPolicy/default/old, which had claimed it"
    )


# Lazy activation

LAZY = "activationPreference: Lazy\n  "


def test_a_new_workload_is_bound_at_once(run: Any) -> None:
    assert list(run(repository(WEB, policy("p", "m1", LAZY))).clusters("web")) == ["m1"]


def test_an_edit_of_the_policy_waits_for_an_edit_of_the_workload(run: Any) -> None:
    first = run(repository(WEB, policy("p", "m1", LAZY)))
    second = run(repository(WEB, policy("p", "m2", LAZY)), first)
    assert second.binding("web") == first.binding("web")
    assert "its last edit waits until then" in second.explain("web").claim
    third = run(repository(EDITED, policy("p", "m2", LAZY)), second)
    assert list(third.clusters("web")) == ["m2"]
    assert run(repository(EDITED, policy("p", "m3", LAZY)), third).binding("web") == third.binding("web")


@pytest.mark.parametrize(
    ("edited", "counts"),
    [
        (WEB.replace("{name: web}", "{name: web, labels: {propagationpolicy.karmada.io/permanent-id: x}}"), False),
        (WEB.replace("{name: web}", "{name: web, annotations: {propagationpolicy.karmada.io/name: p}}"), False),
        (WEB.replace("{name: web}", "{name: web, resourceVersion: '7', generation: 3, uid: abc}"), False),
        (f"{WEB}\nstatus: {{replicas: 1}}", False),
        (f"# A comment\n{WEB}", False),
        (WEB.replace("{name: web}", "{name: web, labels: {tier: front}}"), True),
        (WEB.replace("{name: web}", "{name: web, annotations: {touched: yesterday}}"), True),
        (WEB.replace("replicas: 2", "replicas: 2, paused: true"), True),
    ],
    ids=["claim label", "claim annotation", "server-owned", "status", "comment", "label", "annotation", "spec"],
)
def test_what_counts_as_an_edit_of_the_workload(run: Any, edited: str, counts: bool) -> None:
    first = run(repository(WEB, policy("p", "m1", LAZY)))
    assert list(run(repository(edited, policy("p", "m2", LAZY)), first).clusters("web")) == (["m2"] if counts else ["m1"])


def test_making_a_policy_lazy_is_an_edit_that_waits(run: Any) -> None:
    first = run(repository(WEB, policy("p", "m1")))
    second = run(repository(WEB, policy("p", "m2", LAZY)), first)
    assert list(second.clusters("web")) == ["m1"]
    assert list(run(repository(EDITED, policy("p", "m2", LAZY)), second).clusters("web")) == ["m2"]
    assert list(run(repository(WEB, policy("p", "m2")), second).clusters("web")) == ["m2"], "no longer Lazy"


def test_all_policy_fields_in_the_binding_wait(run: Any) -> None:
    before = "propagateDeps: true\n  conflictResolution: Overwrite\n  suspension: {dispatching: true}"
    first = run(repository(WEB, policy("p", "m1", LAZY + before)))
    second = run(repository(WEB, policy("p", "m1", LAZY + "schedulerName: mine")), first)
    assert second.binding("web") == first.binding("web")
    third = run(repository(EDITED, policy("p", "m1", LAZY + "schedulerName: mine")), second)
    spec = third.binding("web")["spec"]
    assert (spec["schedulerName"], spec["conflictResolution"], "suspension" in spec) == ("mine", "Abort", False)


# Suspension


def held(found: Any) -> dict[str, bool]:
    return {place.cluster: place.keeps_manifest for place in found.outcome("web").targets}


@pytest.mark.parametrize(
    ("suspension", "expected"),
    [
        ("{dispatching: true}", {"m1": True, "m2": True}),
        ("{dispatching: false}", {"m1": False, "m2": False}),
        ("{dispatchingOnClusters: {clusterNames: [m2, m9]}}", {"m1": False, "m2": True}),
    ],
)
def test_suspension_stops_delivery_and_not_scheduling(run: Any, suspension: str, expected: dict[str, bool]) -> None:
    found = run(repository(WEB, policy("p", "m1, m2", f"suspension: {suspension}")))
    assert held(found) == expected
    assert list(found.clusters("web")) == ["m1", "m2"]
    codes = [finding.code for finding in found.engine.findings]
    assert codes.count("dispatching-suspended") == int(any(expected.values()))


def test_suspended_scheduling_in_the_binding_keeps_the_placement(run: Any) -> None:
    first = run(repository(WEB, policy("p", "m1")))
    binding = first.binding("web")
    binding["spec"]["suspension"] = {"scheduling": True}
    second = run(repository(EDITED, policy("p", "m2", "suspension: {dispatching: true}")), first)
    assert list(second.clusters("web")) == ["m1"]
    assert second.binding("web")["spec"]["suspension"] == {"dispatching": True, "scheduling": True}


# Priority

URGENT = "schedulePriority: {priorityClassSource: KubePriorityClass, priorityClassName: urgent}"


def priority_class(name: str, value: Any) -> str:
    return f"kind: PriorityClass\nmetadata: {{name: {name}}}\nvalue: {value}"


@pytest.mark.parametrize(
    ("name", "classes", "expected"),
    [
        ("urgent", [priority_class("urgent", 1000)], {"priority": 1000}),
        ("urgent", [priority_class("urgent", -5)], {"priority": -5}),
        ("urgent", [priority_class("urgent", 0)], {}),
        ("system-cluster-critical", [], {"priority": 2000000000}),
    ],
    ids=["value", "negative", "zero", "built in"],
)
def test_the_binding_shows_the_value_of_the_class(run: Any, name: str, classes: list[str], expected: Any) -> None:
    found = run(repository(WEB, policy("p", "m1", URGENT.replace("urgent", name)), *classes))
    assert found.binding("web")["spec"]["schedulePriority"] == expected


@pytest.mark.parametrize("classes", [[], [priority_class("urgent", "high")]], ids=["absent", "no number"])
def test_without_the_priority_class_new_workloads_wait_and_others_stay(run: Any, classes: list[str]) -> None:
    waiting = run(repository(WEB, policy("p", "m1", URGENT), *classes))
    assert (waiting.outcome("web").state, waiting.outcome("web").records) == ("pending", ())
    assert waiting.codes("web") == ["karmada-priority-class-missing"]
    assert waiting.explain("web").result == ()
    bound = run(repository(WEB, policy("p", "m1", URGENT), priority_class("urgent", 7)))
    kept = run(repository(EDITED, policy("p", "m2", URGENT), *classes), bound)
    assert kept.binding("web")["spec"] == bound.binding("web")["spec"]
    assert sorted(kept.codes("web")) == ["karmada-priority-class-missing", "stale-decision"]


def test_a_cluster_scoped_workload_has_no_priority(run: Any) -> None:
    role = "kind: ClusterRole\nmetadata: {name: reader}"
    selects = "resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}]"
    found = run(repository(role, f"kind: {CPP}\nmetadata: {{name: wide}}\nspec:\n  {selects}\n  {URGENT}"))
    assert "schedulePriority" not in found.binding("reader")["spec"]
    assert list(found.clusters("reader")) == ["m1", "m2", "m3"]
