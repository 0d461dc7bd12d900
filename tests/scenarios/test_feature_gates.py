"""Features of Karmada behind gates, in commands: what a run places counts for what it places next."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from .conftest import Fleet

ALONE = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  karmada: {overcommitProtection: false}
"""
GATES = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  karmada: {featureGates: {%s: true}}
"""


def cluster(name: str, cpu: int) -> str:
    return dedent(f"""\
        apiVersion: cluster.karmada.io/v1alpha1
        kind: Cluster
        metadata: {{name: {name}}}
        spec: {{syncMode: Pull}}
        status:
          resourceSummary:
            allocatable: {{cpu: "{cpu}", memory: 100Gi, pods: "100"}}
        """)


def deployment(name: str, replicas: int, cpu: int = 1, labels: str = "{}") -> str:
    return dedent(f"""\
        apiVersion: apps/v1
        kind: Deployment
        metadata: {{name: {name}, namespace: shop, labels: {labels}}}
        spec:
          replicas: {replicas}
          selector: {{matchLabels: {{app: {name}}}}}
          template:
            metadata: {{labels: {{app: {name}}}}}
            spec:
              containers: [{{name: main, image: registry.example.com/{name}, resources: {{requests: {{cpu: {cpu}}}}}}}]
        """)


def policy(placement: str) -> str:
    return dedent("""\
        apiVersion: policy.karmada.io/v1alpha1
        kind: PropagationPolicy
        metadata: {name: all, namespace: shop}
        spec:
          resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
          placement:
        """) + indent(dedent(placement), "    ")


AGGREGATED = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}\n"
GROUPS = """\
clusterAffinities:
  - {affinityName: own, clusterNames: [b]}
  - {affinityName: other, clusterNames: [c]}
"""
ONE_EACH = """\
spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]
workloadAffinity: {antiAffinity: {groupByLabelKey: app.kubernetes.io/part-of}}
"""
QUOTA = """\
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: shop, namespace: shop}
spec: {overall: {cpu: "8"}}
"""


def list_bound(fleet: Fleet, *names: str) -> dict[str, dict[str, int]]:
    bindings = {name: fleet.binding(f"{name}-deployment", "shop") for name in names}
    return {
        name: {one["name"]: one.get("replicas", 0) for one in body["spec"].get("clusters", ())} for name, body in bindings.items()
    }


@pytest.mark.parametrize(
    ("gate", "files", "without", "expected"),
    [
        pytest.param(
            "SchedulingOvercommitProtection",
            {
                "clusters.yaml": f"{cluster('b', 10)}---\n{cluster('c', 5)}",
                "policy.yaml": policy(GROUPS + AGGREGATED),
                "auth.yaml": deployment("auth", 8),
                "mail.yaml": deployment("mail", 5),
            },
            {"auth": {"b": 8}, "mail": {"b": 5}},
            {"auth": {"b": 8}, "mail": {"c": 5}},
            id="the second workload goes to the next group, because the first one fills this one",
        ),
        pytest.param(
            "WorkloadAffinity",
            {
                "clusters.yaml": f"{cluster('b', 10)}---\n{cluster('c', 5)}",
                "policy.yaml": policy(ONE_EACH),
                "auth.yaml": deployment("auth", 1, labels="{app.kubernetes.io/part-of: pair}"),
                "mail.yaml": deployment("mail", 1, labels="{app.kubernetes.io/part-of: pair}"),
            },
            {"auth": {"b": 1}, "mail": {"b": 1}},
            {"auth": {"b": 1}, "mail": {"c": 1}},
            id="two workloads of an anti-affinity group have clusters of their own",
        ),
        pytest.param(
            "FederatedQuotaEnforcement",
            {
                "clusters.yaml": f"{cluster('b', 10)}---\n{cluster('c', 5)}",
                "policy.yaml": policy(AGGREGATED),
                "quota.yaml": QUOTA,
                "auth.yaml": deployment("auth", 5),
                "mail.yaml": deployment("mail", 5),
            },
            {"auth": {"b": 5}, "mail": {"b": 5}},
            {"auth": {"b": 5}, "mail": {}},
            id="the quota of the namespace stops the second workload",
        ),
    ],
)
def test_what_is_placed_counts_for_what_is_placed_next(
    fleet: Fleet,
    tmp_path: Path,
    gate: str,
    files: dict[str, str],
    without: dict[str, dict[str, int]],
    expected: dict[str, dict[str, int]],
) -> None:
    fleet.commit({**files, "gitsched.yaml": ALONE})
    fleet.reconcile()
    assert list_bound(fleet, "auth", "mail") == without
    fleet.git("branch", "-D", "placements")
    fleet.commit({"gitsched.yaml": GATES % gate})
    fleet.reconcile(1)
    assert list_bound(fleet, "auth", "mail") == expected
    head = fleet.head
    fleet.reconcile(1.01)
    assert fleet.head == head, "a run without a change changes nothing"
    fleet.commit({"auth.yaml": files["auth.yaml"] + "# a comment\n"}, hour=1.02)
    cached = fleet.preview(1.02).tree
    assert fleet.preview(1.02, cache=tmp_path).tree == cached, "the cache of the runs does not matter"


def test_a_quota_that_stops_a_workload_is_a_finding_and_has_its_usage(fleet: Fleet) -> None:
    fleet.commit(
        {
            "gitsched.yaml": GATES % "FederatedQuotaEnforcement",
            "clusters.yaml": cluster("b", 10),
            "policy.yaml": policy(AGGREGATED),
            "quota.yaml": QUOTA,
            "auth.yaml": deployment("auth", 5),
            "mail.yaml": deployment("mail", 5),
        }
    )
    run = fleet.reconcile()
    messages = [finding.message for finding in run.plan.findings if finding.code == "unschedulable"]
    assert len(messages) == 1
    assert "FederatedResourceQuota(shop/shop) exceeded for resource cpu: requested sum 10, limit 8." in messages[0]
    assert messages[0].endswith("; FederatedResourceQuota/shop/shop (quota.yaml:1) allows 2 cpu less")
    quota = fleet.load("status/policy.karmada.io/federatedresourcequota/shop/shop.yaml")
    assert quota["status"] == {"overall": {"cpu": "8"}, "overallUsed": {"cpu": "5"}}


def test_the_setting_enforces_quotas_as_the_gate_does(fleet: Fleet) -> None:
    settings = ALONE.replace("overcommitProtection: false", "quotaEnforcement: true")
    apps = {"auth.yaml": deployment("auth", 5), "mail.yaml": deployment("mail", 5)}
    fleet.commit(
        {
            "gitsched.yaml": settings,
            "clusters.yaml": cluster("b", 10),
            "policy.yaml": policy(AGGREGATED),
            "quota.yaml": QUOTA,
            **apps,
        }
    )
    fleet.reconcile()
    assert list_bound(fleet, "auth", "mail") == {"auth": {"b": 5}, "mail": {}}


def test_capacity_is_shared_beside_another_gate(fleet: Fleet) -> None:
    """Decisions that depend on each other are made in the order of the queue; the setting for capacity holds there as well."""
    first = {"auth.yaml": deployment("auth", 8, labels="{team: a}"), "mail.yaml": deployment("mail", 8, labels="{team: b}")}
    placement = AGGREGATED + "workloadAffinity: {affinity: {groupByLabelKey: team}}\n"
    fleet.commit(
        {"gitsched.yaml": GATES % "WorkloadAffinity", "clusters.yaml": cluster("b", 10), "policy.yaml": policy(placement), **first}
    )
    fleet.reconcile()
    assert list_bound(fleet, "auth", "mail") == {"auth": {"b": 8}, "mail": {}}
    fleet.commit(
        {"more.yaml": deployment("more", 2, labels="{team: c}"), "rest.yaml": deployment("rest", 1, labels="{team: d}")}, hour=1
    )
    fleet.reconcile(1)
    assert list_bound(fleet, "auth", "mail", "more", "rest") == {"auth": {"b": 8}, "mail": {}, "more": {"b": 2}, "rest": {}}


def test_a_workload_that_is_held_for_its_data_keeps_its_affinity_groups(fleet: Fleet) -> None:
    placement = "clusterAffinity: {clusterNames: [%s]}\nworkloadAffinity: {affinity: {groupByLabelKey: team}}\n"
    database = (
        deployment("auth", 1, labels="{team: a}")
        .replace("kind: Deployment", "kind: StatefulSet")
        .replace(
            "  replicas: 1\n",
            "  replicas: 1\n  serviceName: auth\n  volumeClaimTemplates: [{metadata: {name: data}, spec: "
            "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]\n",
        )
    )
    selecting = policy(placement % "b").replace("kind: Deployment", "kind: StatefulSet")
    clusters = f"{cluster('b', 10)}---\n{cluster('c', 10)}"
    fleet.commit(
        {"gitsched.yaml": GATES % "WorkloadAffinity", "clusters.yaml": clusters, "policy.yaml": selecting, "db.yaml": database}
    )
    fleet.reconcile()
    fleet.commit({"policy.yaml": selecting.replace("[b]", "[c]")}, hour=1)
    fleet.reconcile(1)
    spec = fleet.binding("auth-statefulset", "shop")["spec"]
    assert [one["name"] for one in spec["clusters"]] == ["b"], "it is held"
    assert spec["workloadAffinityGroups"] == {"affinityGroup": "team=a"}
