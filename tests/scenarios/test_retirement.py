"""A cluster whose document is removed: its workloads are pruned first, and its directory is removed later."""

from __future__ import annotations

from .conftest import Fleet, at_hour, cluster, deployment, policy

WEB = "default/deployment-web"
STUB = ["cluster.json", "gitsched-placement.yaml", "kustomization.yaml"]

DIVIDED = policy("", scheduling="Divided")


def bound(fleet: Fleet) -> list[str]:
    return sorted(entry["name"] for entry in fleet.binding("web-deployment")["spec"]["clusters"])


def left(fleet: Fleet, name: str) -> list[str]:
    return sorted(path.removeprefix(f"clusters/{name}/") for path in fleet.files() if path.startswith(f"clusters/{name}/"))


def test_the_directory_of_a_removed_cluster_keeps_the_stub_for_a_day(pair: Fleet) -> None:
    pair.reconcile()
    assert len(left(pair, "first")) > len(STUB)
    pair.commit({"clusters/first.yaml": None}, hour=1)
    run = pair.reconcile(1)
    assert left(pair, "first") == STUB
    assert run.plan.next_wakeup == at_hour(25)
    assert pair.load("clusters/first/kustomization.yaml")["resources"] == ["gitsched-placement.yaml"]

    assert pair.reconcile(24.9).after is None
    assert pair.reconcile(25).after is not None
    assert left(pair, "first") == []
    assert pair.reconcile(25).after is None
    assert pair.reconcile(25).plan.next_wakeup is None


def test_the_commit_that_removes_a_directory_has_the_time_of_the_deadline(pair: Fleet) -> None:
    pair.reconcile()
    pair.commit({"clusters/first.yaml": None}, hour=1)
    pair.reconcile(1)
    pair.reconcile(70)
    assert pair.git("log", "-1", "--format=%ct", "placements") == str(int(at_hour(25).timestamp()))
    assert pair.trailers()["Gitsched-Cause"] == "deadline"


def test_the_retirement_time_counts_from_the_commit_that_removed_the_document(pair: Fleet) -> None:
    pair.reconcile()
    pair.commit({"clusters/first.yaml": None}, hour=1)
    assert pair.reconcile(20).plan.next_wakeup == at_hour(25)
    pair.commit({"other.yaml": deployment("other")}, hour=21)
    assert pair.reconcile(21).plan.next_wakeup == at_hour(25)


def test_the_retirement_time_is_a_setting(pair: Fleet) -> None:
    settings = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {output: {retireAfter: 90m}}\n"
    pair.commit({"gitsched.yaml": settings})
    pair.reconcile()
    pair.commit({"clusters/first.yaml": None}, hour=1)
    assert pair.reconcile(1).plan.next_wakeup == at_hour(2.5)
    pair.reconcile(2.5)
    assert left(pair, "first") == []


def test_a_cluster_restored_in_time_keeps_its_directory(pair: Fleet) -> None:
    pair.commit({"policies/all.yaml": DIVIDED})
    pair.reconcile()
    before = left(pair, "first")
    pair.commit({"clusters/first.yaml": None}, hour=1)
    pair.reconcile(1)
    pair.commit({"clusters/first.yaml": cluster("first")}, hour=2)
    run = pair.reconcile(2)
    assert left(pair, "first") == before
    assert (run.plan.retiring, run.plan.next_wakeup) == ({}, None)


def test_a_binding_keeps_a_removed_cluster_and_a_finding_names_it(pair: Fleet) -> None:
    pair.commit({"policies/all.yaml": DIVIDED})
    pair.reconcile()
    pair.commit({"clusters/first.yaml": None}, hour=1)
    run = pair.reconcile(1)
    assert bound(pair) == ["first", "second"]
    (finding,) = [finding for finding in run.plan.findings if finding.code == "cluster-gone"]
    assert finding.resource == ("Deployment", "default", "web")
    assert finding.message == (
        "Deployment.apps/default/web has 1 of its 2 replicas on first, without a Cluster document: no manifest is written there; "
        "a WorkloadRebalancer that names the workload reschedules them"
    )
    assert pair.where(WEB) == ["second"], "nothing is rendered for a cluster without a document"


def test_a_rescheduled_workload_uses_existing_clusters(pair: Fleet) -> None:
    pair.commit({"policies/all.yaml": DIVIDED})
    pair.reconcile()
    pair.commit({"clusters/first.yaml": None}, hour=1)
    pair.reconcile(1)
    pair.commit({"apps/web.yaml": deployment("web", 3)}, hour=2)
    run = pair.reconcile(2)
    assert bound(pair) == pair.where(WEB) == ["second"]
    assert "cluster-gone" not in {finding.code for finding in run.plan.findings}


def test_a_duplicated_workload_moves_at_once(pair: Fleet) -> None:
    pair.reconcile()
    pair.commit({"clusters/first.yaml": None}, hour=1)
    pair.reconcile(1)
    assert bound(pair) == pair.where(WEB) == ["second"]


def test_the_rebalance_named_in_the_finding_restores_the_replicas(pair: Fleet) -> None:
    pair.commit({"policies/all.yaml": DIVIDED})
    pair.reconcile()
    rebalancer = (
        "apiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata: {name: back}\nspec:\n  workloads:\n"
        "  - {apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}\n"
    )
    pair.commit({"clusters/first.yaml": None, "back.yaml": rebalancer}, hour=1)
    assert "cluster-gone" not in {finding.code for finding in pair.reconcile(1).plan.findings}
    assert pair.binding("web-deployment")["spec"]["clusters"] == [{"name": "second", "replicas": 2}]
