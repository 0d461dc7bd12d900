"""A cluster whose document is removed: its workloads are pruned first, and its directory is removed later."""

from __future__ import annotations

from .conftest import Fleet, at_hour, cluster, deployment, policy

WEB = "default/deployment-web"
MINUTE = 1 / 60
STUB = ["cluster.json", "gitsched-placement.yaml", "kustomization.yaml"]

DIVIDED = policy("", scheduling="Divided")


def bound(fleet: Fleet) -> list[str]:
    return sorted(entry["name"] for entry in fleet.binding("web-deployment")["spec"]["clusters"])


def left(fleet: Fleet, name: str) -> list[str]:
    return sorted(path.removeprefix(f"clusters/{name}/") for path in fleet.files() if path.startswith(f"clusters/{name}/"))


def test_the_directory_of_a_removed_cluster_keeps_the_stub_for_a_day(pair: Fleet) -> None:
    pair.reconcile()
    assert len(left(pair, "first")) > len(STUB)
    before, facts = left(pair, "first"), pair.read("clusters/first/cluster.json")
    pair.commit({"clusters/first.yaml": None}, hour=1)
    assert pair.reconcile(1).plan.next_wakeup == at_hour(1 + 10 * MINUTE)
    assert (left(pair, "first"), pair.read("clusters/first/cluster.json")) == (before, facts), "the copies stay for the overlap"
    run = pair.reconcile(1 + 10 * MINUTE)
    assert left(pair, "first") == STUB
    assert run.plan.next_wakeup == at_hour(25 + 10 * MINUTE)
    assert pair.load("clusters/first/kustomization.yaml")["resources"] == ["gitsched-placement.yaml"]

    assert pair.reconcile(25).after is None
    assert pair.reconcile(25 + 10 * MINUTE).after is not None
    assert left(pair, "first") == []
    assert pair.reconcile(26).after is None
    assert pair.reconcile(26).plan.next_wakeup is None


def test_the_commit_that_removes_a_directory_has_the_time_of_the_deadline(pair: Fleet) -> None:
    pair.reconcile()
    pair.commit({"clusters/first.yaml": None}, hour=1)
    pair.reconcile(1)
    pair.reconcile(2)
    pair.reconcile(70)
    assert pair.git("log", "-1", "--format=%ct", "placements") == str(int(at_hour(25 + 10 * MINUTE).timestamp()))
    assert pair.trailers()["Gitsched-Cause"] == "deadline"


def test_the_retirement_time_counts_from_the_commit_that_empties_the_directory(pair: Fleet) -> None:
    pair.reconcile()
    pair.commit({"clusters/first.yaml": None}, hour=1)
    assert pair.reconcile(20).plan.next_wakeup == at_hour(20 + 10 * MINUTE), "the overlap counts from the late run"
    assert pair.reconcile(30).plan.next_wakeup == at_hour(30 + 24), "the empty directory is delivered ten hours late"
    pair.commit({"other.yaml": deployment("other")}, hour=31)
    assert pair.reconcile(31).plan.next_wakeup == at_hour(30 + 24)


def test_a_run_two_days_late_keeps_the_copies_and_then_the_directory(pair: Fleet) -> None:
    pair.reconcile()
    pair.commit({"clusters/first.yaml": None}, hour=1)
    pair.reconcile(49)
    assert pair.delivered(WEB) == ["first", "second"]
    pair.reconcile(49.5)
    assert (pair.delivered(WEB), left(pair, "first")) == (["second"], STUB)
    pair.reconcile(73)
    assert left(pair, "first") == STUB
    pair.reconcile(74)
    assert left(pair, "first") == []


def test_the_retirement_time_is_a_setting(pair: Fleet) -> None:
    output = "{retireAfter: 90m, overlap: 0s}"
    settings = f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: gitsched}}\nspec: {{output: {output}}}\n"
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
        "Deployment.apps/default/web has 1 of its 2 replicas on first, without a Cluster document: what it has there is not "
        "changed any more, and stays until it is rescheduled, which no run does by itself: "
        "gitsched rebalance --all-displaced --write requests it"
    )
    assert pair.where(WEB) == ["second"], "nothing is rendered for a cluster without a document"
    assert pair.delivered(WEB) == ["first", "second"], "what it has stays for the overlap"


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
