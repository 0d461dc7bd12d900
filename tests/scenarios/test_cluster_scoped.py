"""Cluster-scoped objects under a ClusterPropagationPolicy: rendered, recorded, evicted and guarded like others."""

from __future__ import annotations

from gitsched.model.document import Key
from gitsched.reconcile.review.explanation import explain_resource

from .conftest import Fleet, at_hour, cluster

MINUTE = 1 / 60
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: %s # a colon is no good in a file name
rules:
- {apiGroups: [""], resources: [pods], verbs: [get]}
"""
POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: %s
metadata: {name: roles%s}
spec:
  resourceSelectors:
  - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}
  placement:
    clusterAffinities:
    - {affinityName: one, clusterNames: [first]}
    - {affinityName: two, clusterNames: [second]}
"""
WIDE = POLICY % ("ClusterPropagationPolicy", "")
READER = "_/clusterrole.rbac.authorization.k8s.io-view_3apods"
BINDING = "status/work.karmada.io/clusterresourcebinding/_/view.pods-clusterrole.yaml"


def fill(fleet: Fleet, *names: str) -> None:
    roles = {f"roles/{number}.yaml": ROLE % name for number, name in enumerate(names or ("view:pods",))}
    fleet.commit({**roles, "policy.yaml": WIDE, "first.yaml": cluster("first"), "second.yaml": cluster("second")})
    fleet.reconcile()


def test_a_cluster_scoped_object_is_rendered_and_recorded_without_a_namespace(fleet: Fleet) -> None:
    fill(fleet)
    assert fleet.where(READER) == ["first"]
    assert fleet.files()[f"clusters/first/{READER}.yaml"] == fleet.git("rev-parse", "main:roles/0.yaml")
    binding = fleet.load(BINDING)
    assert (binding["kind"], binding["metadata"]["name"]) == ("ClusterResourceBinding", "view.pods-clusterrole")
    assert "namespace" not in binding["metadata"]
    assert binding["metadata"]["annotations"]["clusterpropagationpolicy.karmada.io/name"] == "roles"
    assert binding["spec"]["clusters"] == [{"name": "first"}]
    assert binding["status"]["schedulerObservingAffinityName"] == "one"
    assert not any("/namespace-" in path for path in fleet.files() if path.startswith("clusters/first/"))


def test_a_namespaced_policy_does_not_select_a_cluster_scoped_object(fleet: Fleet) -> None:
    fleet.commit({"role.yaml": ROLE % "view:pods", "first.yaml": cluster("first")})
    fleet.commit({"policy.yaml": POLICY % ("PropagationPolicy", ", namespace: default")})
    fleet.reconcile()
    assert fleet.where(READER) == []


def test_a_cluster_scoped_object_is_evicted_by_a_taint_and_kept_until_the_deadline(fleet: Fleet) -> None:
    fill(fleet)
    fleet.commit({"first.yaml": cluster("first", "power:NoExecute")}, hour=1)
    assert fleet.reconcile(1).plan.next_wakeup == at_hour(1 + 10 * MINUTE)
    assert fleet.delivered(READER) == ["first", "second"]
    assert [task["fromCluster"] for task in fleet.load(BINDING)["spec"]["gracefulEvictionTasks"]] == ["first"]
    fleet.reconcile(2)
    assert fleet.delivered(READER) == ["second"]


def test_a_cluster_scoped_object_fails_over_by_the_health_in_its_binding(fleet: Fleet) -> None:
    rules = "  propagateDeps: true\n  failover: {application: {decisionConditions: {tolerationSeconds: 60}, purgeMode: Directly}}\n"
    report = (
        "apiVersion: work.karmada.io/v1alpha2\nkind: ClusterResourceBinding\nmetadata: {name: view.pods-clusterrole}\nspec:\n"
        "  resource: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: 'view:pods'}\nstatus:\n"
        "  aggregatedStatus: [{clusterName: first, health: Unhealthy}]\n"
    )
    fill(fleet)
    fleet.commit({"policy.yaml": WIDE + rules, "health.yaml": report}, hour=1)
    fleet.reconcile(1)
    fleet.reconcile(1 + 1 * MINUTE)
    assert fleet.where(READER) == ["second"]
    (task,) = fleet.load(BINDING)["spec"]["gracefulEvictionTasks"]
    assert (task["reason"], task["producer"]) == (
        "ApplicationFailure",
        "cluster-resource-binding-application-failover-controller",
    )


def test_explain_finds_a_cluster_scoped_object_by_name(fleet: Fleet) -> None:
    fill(fleet)
    explanation = explain_resource(fleet.settings(), "clusterrole", "default", "view:pods")
    assert (explanation.workload, explanation.policy) == (
        "ClusterRole.rbac.authorization.k8s.io/view:pods",
        "ClusterPropagationPolicy/roles",
    )
    assert [(attempt.name, attempt.verdict) for attempt in explanation.attempts] == [("one", "scheduled"), ("two", "not tried")]
    assert [share.cluster for share in explanation.result] == ["first"]


def test_the_guard_counts_cluster_scoped_objects(fleet: Fleet) -> None:
    fill(fleet, *(f"role-{number}" for number in range(12)))
    fleet.commit({"policy.yaml": WIDE.replace("first", "nowhere").replace("second", "neither")}, hour=1)
    run = fleet.reconcile(1)
    assert "12 of 12 workloads would be removed from namespace (none) (limit: 50 %)" in map(str, run.plan.withheld.limits)
    assert Key("rbac.authorization.k8s.io", "ClusterRole", "", "role-0") in run.plan.outcomes
    assert fleet.where("_/clusterrole.rbac.authorization.k8s.io-role-0") == ["first"]
