"""Workloads that a revert does not move back: the plan lists them with a remedy that works."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping

import pytest

from gitsched.model.changes import RetainedWorkload
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.report.markdown import write_markdown
from gitsched.report.saved_plan import parse_saved_plan, serialize_saved_plan
from gitsched.report.text import write_plan
from tests.scenarios import test_shared_capacity as shared_capacity
from tests.scenarios.conftest import Fleet, cluster, deployment, policy
from tests.scenarios.test_dependencies import config, workload
from tests.scenarios.test_shared_capacity import AGGREGATED

Files = Mapping[str, str | bytes | None]
DOWN: Files = {"clusters/first.yaml": cluster("first", "power:NoExecute")}
UP: Files = {"clusters/first.yaml": cluster("first")}
SPREAD = "    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]\n"
DYNAMIC = "Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}"
FAILBACK = (
    "so does spec.karmada.failback: {AfterStabilization: 10m} in gitsched.yaml, when the earlier group could run it for that time"
)
BACK = "a WorkloadRebalancer that names it brings it there"
REBALANCER = """\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: back}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}]}
"""

DATABASE = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: databases, namespace: default}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: StatefulSet}]
  placement: {clusterAffinity: {clusterNames: [%s]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: default}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: db, envFrom: [{configMapRef: {name: settings}}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def setting(text: str) -> Files:
    return {"gitsched.yaml": f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: c}}\nspec: {{karmada: {text}}}\n"}


def list_stays(fleet: Fleet, hour: float) -> tuple[RetainedWorkload, ...]:
    return tuple(compare_plans(fleet.settings(hour)).review.retained)


def fail_over(fleet: Fleet, rules: str, more: Files | None = None) -> None:
    """Web runs in `first`, which fails at hour 1 and recovers at hour 3; the last commit is not planned yet."""
    files = {"apps/web.yaml": deployment("web"), "policy.yaml": rules, "clusters/second.yaml": cluster("second")}
    fleet.commit({**files, **UP, **(more or {})})
    fleet.reconcile()
    fleet.commit(DOWN, hour=1)
    fleet.reconcile(1)
    fleet.reconcile(2)
    fleet.commit(UP, hour=3)


@pytest.mark.parametrize(
    ("rules", "more", "remedy"),
    [
        (
            policy("first", "second"),
            {},
            f"{BACK}; {FAILBACK}",
        ),
        (
            policy("first", "second"),
            setting("{failback: {AfterStabilization: 30m}}"),
            f"{BACK}; by itself it returns when the time of karmada.failback is over",
        ),
        (policy(more=SPREAD), {}, "a WorkloadRebalancer that names it would leave it where it is"),
    ],
    ids=["groups", "groups that call back", "what runs already comes first"],
)
def test_the_proposed_remedy_moves_the_workload(fleet: Fleet, rules: str, more: Files, remedy: str) -> None:
    fail_over(fleet, rules, more)
    (stay,) = list_stays(fleet, 3)
    assert stay._replace(causes=()) == RetainedWorkload(stay.key, {"second": 2}, {"first": 2}, remedy)
    assert [one.text.partition(":")[0] for one in stay.causes] == ["Cluster/first"]
    fleet.reconcile(3)
    fleet.commit({"back.yaml": REBALANCER}, hour=3.1)
    fleet.reconcile(3.1)
    assert list(fleet.binding("web-deployment")["spec"]["clusters"]) == [
        {"name": "first" if remedy.startswith(BACK) else "second", "replicas": 2}
    ]


def capacity(name: str, pods: int) -> str:
    return f"{cluster(name)}status: {{resourceSummary: {{allocatable: {{pods: '{pods}'}}}}}}\n"


def test_a_rebalance_that_only_divides_replicas_otherwise_says_how(fleet: Fleet) -> None:
    """It runs on two of three clusters, of which one has more capacity now; a new one would go to the third as well."""
    spread = policy(more=SPREAD.replace("maxGroups: 1", "maxGroups: 2")).replace("Duplicated", DYNAMIC)
    more = {"clusters/first.yaml": DOWN["clusters/first.yaml"], "clusters/third.yaml": capacity("third", 10)}
    files = {"apps/web.yaml": deployment("web", 20), "policy.yaml": spread, "clusters/second.yaml": capacity("second", 10), **more}
    fleet.commit(files)
    fleet.reconcile()
    assert fleet.where("default/deployment-web") == ["second", "third"]
    fleet.commit({"clusters/first.yaml": capacity("first", 500), "clusters/second.yaml": capacity("second", 18)}, hour=1)
    (stay,) = list_stays(fleet, 1)
    divided = "a WorkloadRebalancer that names it would leave it on these clusters, and divide its replicas as second "
    assert stay.remedy.startswith(divided)
    fleet.reconcile(1)
    fleet.commit({"back.yaml": REBALANCER}, hour=1.1)
    fleet.reconcile(1.1)
    placed = {one["name"]: one["replicas"] for one in fleet.binding("web-deployment")["spec"]["clusters"]}
    assert stay.remedy.endswith(" as " + ", ".join(f"{name} {count}" for name, count in sorted(placed.items())))
    assert stay.current != placed


def test_the_expected_replicas_are_those_of_the_rebalance(fleet: Fleet) -> None:
    """Of equal weights, the cluster that has replicas gets the odd one; for a new workload the name decides."""
    fail_over(fleet, policy().replace("Duplicated", DYNAMIC), {"apps/web.yaml": deployment("web", replicas=3)})
    (retained,) = list_stays(fleet, 3)
    assert (retained.current, retained.if_rescheduled) == ({"second": 3}, {"first": 1, "second": 2})
    fleet.reconcile(3)
    fleet.commit({"back.yaml": REBALANCER}, hour=3.1)
    fleet.reconcile(3.1)
    assert {
        each["name"]: each["replicas"] for each in fleet.binding("web-deployment")["spec"]["clusters"]
    } == retained.if_rescheduled


def test_a_rebalance_during_an_eviction_has_no_effect(fleet: Fleet) -> None:
    fail_over(fleet, policy("first", "second"), setting("{gracefulEvictionTimeout: 5h}"))
    (stay,) = list_stays(fleet, 3)
    assert stay.remedy == "a WorkloadRebalancer that names it can bring it there when its eviction from first is over"


def test_an_edit_of_the_workload_moves_it_under_a_lazy_policy(fleet: Fleet) -> None:
    lazy = "  activationPreference: Lazy\n"
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": policy("first", more=lazy), **UP, "2.yaml": cluster("second")})
    fleet.reconcile()
    fleet.commit({"policy.yaml": policy("second", more=lazy)}, hour=1)
    (stay,) = list_stays(fleet, 1)
    assert stay.remedy == "its policy is Lazy: an edit of the workload itself lets the policy act on it"
    fleet.commit({"web.yaml": deployment("web") + "  paused: false\n"}, hour=2)
    fleet.reconcile(2)
    assert fleet.where("default/deployment-web") == ["second"]


def test_a_taint_that_moves_nothing_that_runs_is_named(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": policy("first", "second"), **UP, "2.yaml": cluster("second")})
    fleet.reconcile()
    tainted = {path: cluster("first", "rack:NoSchedule") for path in UP}
    fleet.commit(tainted, hour=1)
    (stay,) = list_stays(fleet, 1)
    taint = "the taint rack:NoSchedule of first"
    assert (stay.current, stay.if_rescheduled) == ({"first": 2}, {"second": 2})
    assert stay.remedy == f"{taint} moves no running workload, and new ones avoid it; gitsched drain moves those that run there"
    fleet.commit({"back.yaml": REBALANCER, "new.yaml": deployment("new")}, hour=1.1)
    run = fleet.reconcile(1.1)
    (found,) = (one for one in run.plan.findings if one.code == "rebalance-without-effect")
    assert f": {taint} does not count for what runs there." in found.message
    assert (fleet.where("default/deployment-web"), fleet.where("default/deployment-new")) == (["first"], ["second"])


def test_a_dependency_is_not_listed_separately(fleet: Fleet) -> None:
    more = {"apps/web.yaml": workload("web", "configmap/conf"), "conf.yaml": config()}
    fail_over(fleet, policy("first", "second", more="  propagateDeps: true\n"), more)
    assert [stay.key.kind for stay in list_stays(fleet, 3)] == ["Deployment"]


def test_a_dependency_with_a_policy_of_its_own_is_not_listed_beside_what_brings_it(fleet: Fleet) -> None:
    """A rebalance of it alone moves nothing."""
    own = policy("third", name="maps", kind="ConfigMap")
    files = {"apps/settings.yaml": config("settings"), "apps/web.yaml": workload("web", "configmap/settings"), "maps.yaml": own}
    rules = policy("first", "second", more="  propagateDeps: true\n")
    fail_over(fleet, rules, {**files, "clusters/third.yaml": cluster("third")})
    assert [stay.key.kind for stay in list_stays(fleet, 3)] == ["Deployment"]
    assert fleet.where("default/configmap-settings") == ["second", "third"]


@pytest.mark.parametrize("has_state", [True, False])
def test_what_a_held_workload_brings_along_is_not_listed(fleet: Fleet, has_state: bool) -> None:
    database = DATABASE % "first"
    rules = {"maps.yaml": policy("third", name="maps", kind="ConfigMap"), "apps/settings.yaml": config("settings")}
    clusters = {f"clusters/{name}.yaml": cluster(name) for name in ("first", "second", "third")}
    fleet.commit({**clusters, **rules, "database.yaml": database})
    fleet.reconcile()
    assert fleet.where("default/configmap-settings") == ["first", "third"]
    fleet.commit({"database.yaml": DATABASE % "second"}, hour=1)
    if not has_state:
        shutil.rmtree(fleet.cache)
    found = compare_plans(fleet.settings(1))
    assert [key.name for key in found.run.plan.totals.held] == ["db"]
    assert found.review.retained == ()


def test_a_dependency_with_other_clusters_of_its_own_is_listed(fleet: Fleet) -> None:
    """Its own policy has two groups as well: a rebalance brings it from the second one to the first one."""
    files = {"apps/settings.yaml": config("settings"), "apps/web.yaml": workload("web", "configmap/settings")}
    rules = policy("first", "second", more="  propagateDeps: true\n")
    groups = policy("first", "third", name="maps", kind="ConfigMap")
    fail_over(fleet, rules, {**files, "maps.yaml": groups, "clusters/third.yaml": cluster("third")})
    assert [(stay.key.kind, stay.current, stay.if_rescheduled) for stay in list_stays(fleet, 3)] == [
        ("ConfigMap", {"second": None, "third": None}, {"first": None}),
        ("Deployment", {"second": 2}, {"first": 2}),
    ]


def test_a_workload_that_moves_is_not_retained(fleet: Fleet) -> None:
    names = ("a", "b", "c", "d")
    spread = SPREAD.replace("maxGroups: 1", "maxGroups: 2")
    files = {f"{name}.yaml": cluster(name, "power:NoExecute") if name in "ab" else cluster(name) for name in names}
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": policy(more=spread), **files})
    fleet.reconcile()
    fleet.commit({"a.yaml": cluster("a"), "b.yaml": cluster("b")}, hour=1)
    assert [(sorted(stay.current), sorted(stay.if_rescheduled)) for stay in list_stays(fleet, 1)] == [(["c", "d"], ["a", "b"])]
    fleet.commit({"d.yaml": cluster("d", "power:NoExecute")}, hour=1)
    review = compare_plans(fleet.settings(1)).review
    assert [sorted(move.after) for move in review.moves] == [["a", "c"]]
    assert list(review.retained) == []


def test_a_workload_without_a_policy_is_removed_for_that_reason_only(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": policy(), **UP, "2.yaml": cluster("second")})
    fleet.reconcile()
    fleet.commit({"policy.yaml": None, "2.yaml": None}, hour=1)
    (move,) = compare_plans(fleet.settings(1)).review.moves
    assert (dict(move.after), move.main_reason) == ({}, "PropagationPolicy/default/all removed (was policy.yaml:1)")


def test_failback_is_not_proposed_where_it_leads_to_a_later_group(fleet: Fleet) -> None:
    """A cluster loses the label of the first group. It was used last, so that what runs there stays."""
    labelled = {
        f"clusters/{name}.yaml": cluster(name).replace("metadata:\n", f"metadata:\n  labels: {{tier: {tier}}}\n")
        for name, tier in (("first", "gold"), ("second", "silver"))
    }
    rules = (
        policy("gold", "silver")
        .replace("Duplicated", "Divided, replicaDivisionPreference: Weighted")
        .replace("clusterNames: [gold]", "labelSelector: {matchLabels: {tier: gold}}")
    )
    rules = rules.replace("clusterNames: [silver]", "labelSelector: {matchLabels: {tier: silver}}")
    fleet.commit({**labelled, "policy.yaml": rules, **{f"{name}.yaml": deployment(name) for name in ("web", "api")}})
    fleet.reconcile()
    fleet.commit({"clusters/first.yaml": labelled["clusters/first.yaml"].replace("gold", "platinum")}, hour=1)
    review = compare_plans(fleet.settings(1)).review
    assert [(stay.current, stay.if_rescheduled, stay.remedy) for stay in review.retained] == 2 * [
        ({"first": 2}, {"second": 2}, BACK)
    ]
    text = write_plan(review, 200)
    number = """\
2 affected workloads keep their placement because of scheduling history:
  although Cluster/first: metadata.labels.tier gold -> platinum (clusters/first.yaml:4): 2 workloads
"""
    assert 0 < text.index(number) < text.index("Deployment default/api stays on first 2\n  if it were new: second 2; ")
    assert text.index(number) < 600, "it comes first, because nothing moves"
    comment = write_markdown(review)
    assert "**2 affected workloads keep their placement because of scheduling history:**\n\n- although Cluster/first: " in comment
    assert tuple(parse_saved_plan(json.dumps(serialize_saved_plan(review, {}))).review.retained) == tuple(review.retained)


def test_what_others_use_counts_for_a_rebalance(fleet: Fleet) -> None:
    """A new web would fill ams alone; the one that runs in bru does not fit beside what runs in ams."""
    clusters = {f"{name}.yaml": shared_capacity.cluster(name, cpu=cpu) for name, cpu in (("ams", 20), ("bru", 10))}
    small = shared_capacity.policy("clusterAffinity: {clusterNames: [bru]}\n" + AGGREGATED, selector="{matchLabels: {app: web}}")
    large = shared_capacity.policy("clusterAffinity: {clusterNames: [ams]}\n", "large", selector="{matchLabels: {app: large}}")
    apps = {
        f"{name}.yaml": shared_capacity.deployment(name, replicas, labels=f"{{app: {name}}}")
        for name, replicas in (("web", 8), ("large", 15))
    }
    fleet.commit({**clusters, **apps, "policy.yaml": small + large})
    fleet.reconcile()
    fleet.commit({"policy.yaml": small.replace("[bru]", "[ams, bru]") + large}, hour=1)
    compared = [compare_plans(fleet.settings(1), complete=complete) for complete in (False, True)]
    assert [one.run.plan.complete for one in compared] == [False, True]
    for one in compared:
        (stay,) = one.review.retained
        assert (stay.current, stay.if_rescheduled) == ({"bru": 8}, {"ams": 8})
        assert stay.remedy == "a WorkloadRebalancer that names it would leave it where it is"
