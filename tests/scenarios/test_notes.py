"""Informational findings: reported once, and only for what affects decisions."""

from __future__ import annotations

from gitsched.reconcile import RunResult
from tests.scenarios.conftest import Fleet, cluster, deployment, policy

TENANT = "apiVersion: example.com/v1\nkind: Tenant\nmetadata: {name: acme}\n"
CHOICE = policy("", name="tenants", kind="Tenant").replace("apps/v1", "example.com/v1").replace("  namespace: default\n", "")


def messages(run: RunResult, code: str) -> list[str]:
    return [finding.message for finding in run.plan.findings if finding.code == code]


def test_clusters_without_facts_share_one_note(fleet: Fleet) -> None:
    fleet.commit({f"c{number}.yaml": cluster(f"c{number}") for number in range(6)})
    run = fleet.preview()
    assert messages(run, "cluster-apis-assumed") == [
        "6 Clusters have no status.apiEnablements: assuming support for every API (c0, c1, c2 and 3 more)"
    ]
    assert messages(run, "cluster-room-assumed") == [
        "6 Clusters have no status.resourceSummary: assuming unlimited capacity (c0, c1, c2 and 3 more)"
    ]


def test_one_cluster_without_facts_is_the_resource_of_its_note(fleet: Fleet) -> None:
    fleet.commit({"one.yaml": cluster("one")})
    found = [finding for finding in fleet.preview().plan.findings if finding.code == "cluster-apis-assumed"]
    assert [finding.resource for finding in found] == [("Cluster", "", "one")]


def test_a_guessed_scope_matters_only_for_what_a_policy_selects(fleet: Fleet) -> None:
    fleet.commit({"one.yaml": cluster("one"), "tenant.yaml": TENANT})
    assert messages(fleet.preview(), "scope-guessed") == []
    fleet.commit({"policy.yaml": CHOICE.replace("PropagationPolicy", "ClusterPropagationPolicy")})
    (message,) = messages(fleet.preview(), "scope-guessed")
    assert message.startswith("Tenant of example.com is assumed to be cluster-scoped")


def test_a_commit_from_the_future_does_not_start_a_timer_in_the_future(fleet: Fleet) -> None:
    tolerating = "    clusterTolerations: [{key: power, effect: NoExecute, operator: Exists, tolerationSeconds: 3600}]\n"
    fleet.commit({"web.yaml": deployment("web"), "policy.yaml": policy("one", "two", more=tolerating)})
    fleet.commit({"one.yaml": cluster("one"), "two.yaml": cluster("two")})
    fleet.reconcile(0)
    fleet.commit({"one.yaml": cluster("one", "power:NoExecute")}, hour=1000)
    fleet.reconcile(1)
    assert fleet.where("default/deployment-web") == ["one"], "tolerated for an hour"
    fleet.reconcile(2.1)
    assert "two" in fleet.where("default/deployment-web"), "and no longer, whatever the commit's date"
