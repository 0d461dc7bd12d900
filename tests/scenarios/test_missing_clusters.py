"""Karmada's policies in a source whose clusters belong to another API: one finding says so."""

from __future__ import annotations

from .conftest import Fleet, cluster, deployment, policy

MANAGED = "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: %s}\nspec: {hubAcceptsClient: true}\n"
KRAKE = """\
api: kubernetes
kind: Cluster
metadata: {name: site, namespace: tenant}
spec: {tosca: {topology_template: {outputs: {kubeconfig: {value: x}}}}}
"""
WORKLOADS = {f"apps/{number}.yaml": deployment(f"web{number}") for number in range(9)}
OTHERS = {"managed.yaml": "---\n".join(MANAGED % name for name in ("ash", "bru")), "krake.yaml": KRAKE}


def messages(fleet: Fleet, hour: float = 0) -> list[tuple[str, str]]:
    findings = [finding for finding in fleet.reconcile(hour).plan.findings if finding.code == "unschedulable"]
    found = [(finding.message, str(finding.location)) for finding in findings]
    return [(message, where) for message, where in found if "could not be bound" not in message]  # Krake's Cluster has no cloud


def test_clusters_of_other_apis_are_counted_once(fleet: Fleet) -> None:
    fleet.commit({**WORKLOADS, **OTHERS, "policy.yaml": policy("")})
    ((message, where),) = messages(fleet)
    assert where == "policy.yaml:1:1"
    assert message.startswith(
        "no workload that a policy of Karmada selects can be scheduled, such as Deployment.apps/default/web0 of "
        "PropagationPolicy/default/all: the source has 2 ManagedClusters of cluster.open-cluster-management.io and 1 Cluster of kubernetes"
    )
    assert "no Cluster of cluster.karmada.io" in message
    (condition,) = fleet.binding("web1-deployment")["status"]["conditions"]
    assert condition["message"] == "0/0 clusters are available: no cluster exists.", "the record is Karmada's"
    fleet.commit({"apps/1.yaml": deployment("web1", 7)}, hour=1)
    assert messages(fleet, 1) == [(message, where)]


def test_without_any_cluster_each_workload_is_reported(fleet: Fleet) -> None:
    fleet.commit({**WORKLOADS, "policy.yaml": policy("")})
    assert len(messages(fleet)) == len(WORKLOADS)


def test_a_cluster_of_karmada_ends_the_finding(fleet: Fleet) -> None:
    fleet.commit({**WORKLOADS, **OTHERS, "policy.yaml": policy(""), "cluster.yaml": cluster("ash")})
    assert messages(fleet) == []


def test_policies_that_select_nothing_miss_no_cluster(fleet: Fleet) -> None:
    fleet.commit({**WORKLOADS, **OTHERS, "policy.yaml": policy("", kind="StatefulSet")})
    assert messages(fleet) == []


def test_broken_clusters_are_named_as_the_reason(fleet: Fleet) -> None:
    broken = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: ash}\n"
    fleet.commit({"app.yaml": deployment("web"), "policy.yaml": policy(""), "cluster.yaml": broken})
    ((message, _),) = messages(fleet)
    assert "0/1 clusters are available: 1 cluster(s) document is broken." in message
