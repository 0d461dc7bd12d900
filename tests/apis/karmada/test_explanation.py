"""Explanations of a decision: policy, groups, clusters, division and trigger."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.model.explanation import GroupAttempt, ReplicaShare

FLEET = """
kind: Cluster
metadata: {name: m1, labels: {tier: gold}}
---
kind: Cluster
metadata: {name: m2}
spec: {taints: [{key: power, value: "off", effect: NoSchedule}]}
---
kind: Cluster
metadata: {name: m3, labels: {tier: gold}}
"""
WEB = """
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec: {replicas: 5}
"""
DUPLICATED = """
kind: PropagationPolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {exclude: [m3]}}
"""
GROUPS = """
kind: PropagationPolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterAffinities:
    - {affinityName: first, clusterNames: [m2]}
    - {affinityName: second, clusterNames: [m1, m3]}
    - {affinityName: third, clusterNames: [m1]}
"""


def files(*policies: str, fleet: str = FLEET, workload: str = WEB) -> dict[str, str]:
    return {"fleet.yaml": fleet, "web.yaml": workload, **{f"p{i}.yaml": policy for i, policy in enumerate(policies)}}


def test_each_cluster_has_the_first_filter_that_rejects_it_and_its_location(run: Any) -> None:
    explanation = run(files(DUPLICATED)).explain("web")
    assert explanation.workload == "Deployment.apps/default/web"
    assert explanation.location == "web.yaml:2"
    assert [(c.result.name, c.result.eligible, c.result.reason, c.location) for c in explanation.candidates] == [
        ("m1", True, "", ""),
        ("m2", False, "TaintToleration: cluster(s) had untolerated taint {power=off:NoSchedule}", "fleet.yaml:5"),
        ("m3", False, "ClusterAffinity: cluster(s) did not match the placement cluster affinity constraint", "p0.yaml:2"),
    ]
    assert explanation.result == (ReplicaShare("m1", None, 5),)
    assert explanation.attempts == (GroupAttempt("", "scheduled"),)
    assert explanation.trigger == "Scheduled because it was never scheduled before."


def test_groups_are_listed_in_the_order_in_which_they_were_tried(run: Any) -> None:
    first = run(files(GROUPS))
    assert [(a.name, a.verdict) for a in first.explain("web").attempts] == [
        ("first", "no-fit"),
        ("second", "scheduled"),
        ("third", "not tried"),
    ]
    assert first.explain("web").attempts[0].message.startswith("0/3 clusters are available: 1 cluster(s) had untolerated taint")
    assert [(c.group, c.result.name, c.result.eligible) for c in first.explain("web").candidates] == [
        ("first", "m2", False),
        ("second", "m1", True),
        ("second", "m2", False),
        ("second", "m3", True),
    ]
    later = run(files(GROUPS, fleet=FLEET.replace("power", "noise")), after=first).explain("web")
    assert [(a.name, a.verdict) for a in later.attempts] == [
        ("first", "not tried"),
        ("second", "scheduled"),
        ("third", "not tried"),
    ]
    assert later.attempts[0].message.startswith(
        "scheduling resumes at second, which was used last; tried now it would be no-fit: 0/3"
    )


def test_if_every_group_fails_the_clusters_of_the_first_one_are_shown(run: Any) -> None:
    nowhere = GROUPS.replace("[m1, m3]", "[m8]").replace("[m1]", "[m9]")
    explanation = run(files(nowhere)).explain("web")
    assert [a.verdict for a in explanation.attempts] == ["no-fit", "no-fit", "no-fit"]
    assert explanation.candidates[1].result.reason.startswith("TaintToleration")
    assert explanation.result == ()
    assert [finding.code for finding in explanation.findings] == ["unschedulable"]


@pytest.mark.parametrize(
    ("winner", "loser", "reason", "why_not"),
    [
        pytest.param("priority: 2", "priority: 1", "the next priority is 1", "its priority 1 is lower than 2", id="priority"),
        pytest.param(
            "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]",
            "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {}}]",
            "with the same priority, by name is more specific than by labels",
            "it selects the workload by labels, which is less specific than by name",
            id="specificity",
        ),
        pytest.param(
            "priority: 0",
            "priority: 0",
            "with the same priority and specificity, its name comes first",
            "its name comes after alpha, with the same priority and specificity",
            id="name",
        ),
    ],
)
def test_the_policy_is_explained_with_its_precedence_over_the_next(
    run: Any, winner: str, loser: str, reason: str, why_not: str
) -> None:
    explanation = run(files(_policy("alpha", winner), _policy("beta", loser))).explain("web")
    assert explanation.policy == "PropagationPolicy/default/alpha"
    assert explanation.policy_reason.endswith(f"; {reason}")
    assert [(entry.policy, entry.why) for entry in explanation.rejected_policies] == [("PropagationPolicy/default/beta", why_not)]


def test_a_cluster_policy_comes_after_every_policy_of_the_namespace(run: Any) -> None:
    other = _policy("beta", "priority: 9").replace("kind: Prop", "kind: ClusterProp")
    explanation = run(files(_policy("alpha", "priority: 0"), other)).explain("web")
    assert explanation.policy_reason.endswith("a PropagationPolicy comes before every ClusterPropagationPolicy")
    (loser,) = explanation.rejected_policies
    assert loser == (
        "ClusterPropagationPolicy/beta",
        "a ClusterPropagationPolicy comes after every PropagationPolicy of the workload's namespace",
    )


def test_a_claim_explains_why_a_policy_of_higher_priority_is_not_used(run: Any) -> None:
    first = run(files(_policy("alpha", "priority: 0")))
    explanation = run(files(_policy("alpha", "priority: 0"), _policy("beta", "priority: 9")), after=first).explain("web")
    assert explanation.policy == "PropagationPolicy/default/alpha"
    assert explanation.claim.startswith("PropagationPolicy/default/alpha claimed it in an earlier run")
    assert "regardless of priorities" in explanation.rejected_policies[0].why


KIND = "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]"


@pytest.mark.parametrize(
    ("beta", "enabled", "advice"),
    [
        (
            "priority: 9",
            False,
            "give PropagationPolicy/default/beta preemption: Always, and set spec.karmada.preemption to true in gitsched.yaml; or let ",
        ),
        ("priority: 0", True, "give PropagationPolicy/default/beta preemption: Always and a priority above 0; or let "),
        (
            f"priority: 9\n  {KIND}",
            True,
            "give PropagationPolicy/default/beta preemption: Always and a selector with its name; or let ",
        ),
        ("priority: 9\n  preemption: Always", False, "set spec.karmada.preemption to true in gitsched.yaml; or let "),
    ],
)
def test_what_lets_a_policy_take_over_a_claimed_workload(run: Any, beta: str, enabled: bool, advice: str) -> None:
    first, alpha = run(files(_policy("alpha", "priority: 0"))), _policy("alpha", "priority: 0")
    found = run(files(alpha, _policy("beta", beta)), after=first, karmada={"preemption": enabled}).explain("web")
    assert found.rejected_policies[0].why.endswith(f"; to change that, {advice}PropagationPolicy/default/alpha no longer select it")
    followed = run(
        files(alpha, _policy("beta", "priority: 9\n  preemption: Always")), after=first, karmada={"preemption": True}
    ).explain("web")
    assert followed.policy == "PropagationPolicy/default/beta"


@pytest.mark.parametrize(
    ("second", "claim"),
    [
        pytest.param("", "the claim of PropagationPolicy/default/alpha has ended: that policy was deleted", id="deleted"),
        pytest.param(
            "resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: other}]",
            "the claim of PropagationPolicy/default/alpha has ended: it no longer selects the workload",
            id="does-not-select",
        ),
    ],
)
def test_a_claim_that_has_ended_is_explained_without_any_policy(run: Any, second: str, claim: str) -> None:
    first = run(files(_policy("alpha", "priority: 0")))
    explanation = run(files(*[_policy("alpha", second)] if second else []), after=first).explain("web")
    assert (explanation.policy, explanation.claim) == ("", claim)
    assert explanation.result == ()


def test_a_workload_that_no_policy_ever_selected_has_no_explanation(run: Any) -> None:
    result = run(files())
    assert result.engine.explain(result.template("web")) is None


def test_an_invalid_policy_explains_why_the_previous_decision_stays(run: Any) -> None:
    first = run(files(_policy("alpha", "priority: 0")))
    explanation = run(files(_policy("alpha", "priority: high")), after=first).explain("web")
    assert explanation.policy == "PropagationPolicy/default/alpha"
    assert explanation.policy_reason == "it claimed the workload in an earlier run, but its document is invalid now"
    assert [share.cluster for share in explanation.result] == ["m1", "m3"]
    assert [finding.code for finding in explanation.findings] == ["stale-decision"]


@pytest.mark.parametrize(
    ("uid", "tie"),
    [
        ("", "to the first name, because it has no uid"),
        ("a", "to the first name, because the hash of its uid is even"),
        ("b", "to the last name, because the hash of the workload's uid is odd"),
    ],
)
def test_weights_and_shares_are_listed_with_the_order_of_ties(run: Any, uid: str, tie: str) -> None:
    placement = """placement: {replicaScheduling: {replicaSchedulingType: Divided, weightPreference: {staticWeightList: [
        {targetCluster: {clusterNames: [m1]}, weight: 1}, {targetCluster: {clusterNames: [m3]}, weight: 1}]}}}"""
    workload = WEB.replace("{name: web,", f"{{name: web, uid: '{uid}',")
    explanation = run(files(_policy("alpha", placement), workload=workload)).explain("web")
    one, other = (3, 2) if "first" in tie else (2, 3)
    assert explanation.division == (ReplicaShare("m1", 1, one), ReplicaShare("m3", 1, other))
    assert explanation.result == (ReplicaShare("m1", None, one), ReplicaShare("m3", None, other))
    rule, *rounds = explanation.division_rule
    assert rule.endswith(f"a tie goes to fewer replicas, then {tie}.")
    winner = explanation.division[0 if one > other else 1].cluster
    assert rounds[-2:] == [f"replica 5: {winner}, 1 / 5 = 0.2", f"More than the exact proportion: {winner}"]


def test_a_workload_that_is_not_rescheduled_shows_its_clusters(run: Any) -> None:
    placement = "placement: {replicaScheduling: {replicaSchedulingType: Divided}}"
    first = run(files(_policy("alpha", placement)))
    explanation = run(files(_policy("alpha", placement)), after=first).explain("web")
    assert explanation.trigger.startswith("Not scheduled again")
    assert explanation.attempts == (GroupAttempt("", "kept"),)
    assert explanation.result == (ReplicaShare("m1", None, 3), ReplicaShare("m3", None, 2))


def test_a_workload_that_no_cluster_had_is_not_called_rescheduled_for_its_replicas(run: Any) -> None:
    placement = "placement: {{clusterAffinity: {{clusterNames: [{}]}}, replicaScheduling: {{replicaSchedulingType: Divided}}}}"
    nowhere = run(files(_policy("alpha", placement.format("m1")), fleet=FIRE))
    assert nowhere.explain("web").result == ()
    explanation = run(files(_policy("alpha", placement.format("m1")), fleet=CALM), after=nowhere).explain("web")
    assert explanation.trigger == "Scheduled because no cluster has it."
    assert [share.cluster for share in explanation.result] == ["m1"]


def test_an_eviction_is_listed_with_the_trigger(run: Any) -> None:
    first = run(files(_policy("alpha", "priority: 0")))
    hot = FLEET.replace("{name: m1, labels: {tier: gold}}", "{name: m1}\nspec: {taints: [{key: fire, effect: NoExecute}]}")
    explanation = run(files(_policy("alpha", "priority: 0"), fleet=hot), after=first).explain("web")
    assert explanation.trigger == "Scheduled because it is evaluated on every run. Evicted by a NoExecute taint: m1."
    assert explanation.candidates[0].result.eligible is False


def test_another_scheduler_is_named(run: Any) -> None:
    explanation = run(files(_policy("alpha", "schedulerName: mine"))).explain("web")
    assert explanation.trigger == "Not scheduled: it is for scheduler mine."
    assert (explanation.attempts, explanation.division) == ((GroupAttempt("", "not tried"),), ())


def _policy(name: str, spec: str) -> str:
    selectors = "" if "resourceSelectors" in spec else "\n  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]"
    placement = "" if "placement" in spec else "\n  placement: {}"
    return f"\nkind: PropagationPolicy\nmetadata: {{name: {name}}}\nspec:\n  {spec}{selectors}{placement}\n"


FIRE = "kind: Cluster\nmetadata: {name: m1}\nspec: {taints: [{key: fire, effect: NoExecute, timeAdded: '2026-01-01T00:00:00Z'}]}\n"
CALM = FIRE.replace("spec: {taints: [{key: fire, effect: NoExecute, timeAdded: '2026-01-01T00:00:00Z'}]}\n", "")
OTHER = "kind: Cluster\nmetadata: {name: m2}\n"
BEARING = """
kind: PropagationPolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    clusterTolerations: [{key: fire, operator: Exists, tolerationSeconds: 300}]
    replicaScheduling: {replicaSchedulingType: Divided}
"""


def test_explain_says_when_a_toleration_expires_and_when_the_eviction_ends(run: Any) -> None:
    repository = "\n---\n".join((FIRE, OTHER, WEB, BEARING))
    first = run("\n---\n".join((CALM, OTHER, WEB, BEARING)), at="2026-01-01T00:00:00Z")
    bears = run(repository, first, at="2026-01-01T00:01:00Z")
    assert bears.explain("web").trigger.endswith(
        " It is evicted from m1 at 2026-01-01T00:05:00Z unless the NoExecute taint is removed."
    )

    def why(at: str) -> str:
        found = run(repository, bears, at="2026-01-01T00:01:00Z", now=at).explain("web")
        return next(c.result.reason for c in found.candidates if c.result.name == "m1")

    assert why("2026-01-01T00:06:00Z") == "ClusterEviction: cluster(s) is in the process of eviction until 2026-01-01T00:15:00Z"
    assert why("2026-01-01T00:16:00Z") == "ClusterEviction: the workload's toleration of a NoExecute taint has expired there"
    assert "It leaves" not in run(repository, bears, at="2026-01-01T00:16:00Z").explain("web").trigger
