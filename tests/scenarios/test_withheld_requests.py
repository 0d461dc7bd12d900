"""What the guard, a freeze or a Tenant withholds stays requested: no record says that it is done, each run proposes it again, and it takes
effect once, when it is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gitsched.reconcile import RunResult
from gitsched.reconcile.output.freeze import set_freeze
from tests.builders.knative import settings, source

from .conftest import UNGUARDED, Fleet, cluster, deployment, policy
from .histories import SCALER, settings_of
from .test_dependencies import workload
from .test_rebalancer import make_rebalancer
from .vreplicas import VreplicaFleet

RECORD = "status/apps.karmada.io/workloadrebalancer/_/demo.yaml"
GUARD = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec: {guard: {%s}}
"""
Files = dict[str, str | bytes | None]


def place_in_backup(fleet: Fleet, names: list[str], **more: str | bytes | None) -> None:
    """Place Deployments in the cluster `backup`, because `primary` was down, which is ready again now."""
    files: Files = {f"apps/{name}.yaml": deployment(name) for name in names}
    files |= {"policy.yaml": policy("primary", "backup"), "backup.yaml": cluster("backup"), "gitsched.yaml": UNGUARDED, **more}
    fleet.commit({**files, "primary.yaml": cluster("primary", "down:NoExecute")})
    fleet.reconcile()
    fleet.commit({"primary.yaml": cluster("primary")}, hour=1)
    fleet.reconcile(1)


def list_results(fleet: Fleet) -> dict[str, str]:
    """Return the result of each workload of the rebalancer, "" while it is pending."""
    observed = fleet.load(RECORD)["status"]["observedWorkloads"]
    return {entry["workload"]["name"]: entry.get("result", "") for entry in observed}


def list_withheld(run: RunResult) -> list[str]:
    return [move.key.name for move in run.plan.withheld.moves]


def where(fleet: Fleet, name: str) -> list[str]:
    return [entry["name"] for entry in fleet.binding(f"{name}-deployment")["spec"]["clusters"]]


# What withholds the moves, and what makes them: each a commit, options of a run, or an edit of the output branch.
NAMES = [f"app-{number}" for number in range(11)]


def allow(fleet: Fleet, digest: str) -> dict[str, Any]:
    return {"allowed": (digest,)}


def allow_by_trailer(fleet: Fleet, digest: str) -> dict[str, Any]:
    fleet.commit({"README.md": "approved\n"}, hour=9, message=f"Approve\n\nGitsched-Allow: {digest}")
    return {}


def loosen(fleet: Fleet, digest: str) -> dict[str, Any]:
    fleet.commit({"gitsched.yaml": UNGUARDED}, hour=9)
    return {}


def lift(fleet: Fleet, digest: str) -> dict[str, Any]:
    set_freeze(fleet.settings(8), "")
    return {}


Release = Callable[[Fleet, str], dict[str, Any]]


@pytest.mark.parametrize(
    ("guard", "release", "fresh"),
    [
        ("fleet: {moved: 30}", allow, False),
        ("fleet: {moved: 30}", allow_by_trailer, True),
        ("cluster: {removed: 50}", loosen, True),
        ("namespace: {moved: 20}", allow, False),
        ("freeze: audit", loosen, False),
        ("freeze: audit", allow, True),
        ("", lift, False),
    ],
    ids=["moves", "moves, by trailer", "a cluster, loosened", "a namespace", "frozen", "frozen, allowed", "FREEZE"],
)
def test_a_withheld_rebalance_takes_effect_once_when_it_is_allowed(
    fleet: Fleet, tmp_path: Path, guard: str, release: Release, fresh: bool
) -> None:
    """With `fresh`, every run makes a complete plan; else each starts from the state of the last one."""

    def reconcile(hour: float, **more: Any) -> RunResult:
        return fleet.reconcile(hour, **(more | ({"cache": tmp_path / f"cache-{hour}"} if fresh else {})))

    place_in_backup(fleet, NAMES)
    fleet.commit({"gitsched.yaml": GUARD % guard if guard else UNGUARDED}, hour=2)
    reconcile(2)
    if not guard:
        set_freeze(fleet.settings(2), "the network is migrated")
    fleet.commit({"demo.yaml": make_rebalancer(*NAMES, ttl=1200)}, hour=3)
    bindings = {name: fleet.binding(f"{name}-deployment") for name in NAMES}
    first = reconcile(3)
    assert list_withheld(first) == sorted(NAMES)
    assert list_results(fleet) == dict.fromkeys(NAMES, ""), "nothing was rebalanced"
    assert {name: fleet.binding(f"{name}-deployment") for name in NAMES} == bindings
    assert "finishTime" not in fleet.load(RECORD)["status"]
    for hour in (3, 6):
        again = reconcile(hour)
        assert (again.after, list_withheld(again)) == (None, sorted(NAMES)), "each run proposes the same, and commits nothing"
        assert again.plan.withheld.digest == first.plan.withheld.digest
    done = reconcile(9, **release(fleet, first.plan.withheld.digest))
    assert (list_withheld(done), [move.key.name for move in done.plan.moves]) == ([], sorted(NAMES))
    assert {name: where(fleet, name) for name in NAMES} == {name: ["primary"] for name in NAMES}
    assert list_results(fleet) == dict.fromkeys(NAMES, "Successful")
    assert "allowance-unused" not in [finding.code for finding in done.plan.findings]
    record = fleet.load(RECORD)
    assert record["status"]["finishTime"] == "2026-03-02T17:00:00Z", "ttlSecondsAfterFinished starts when it takes effect"
    assert "gitsched.io/expired-at" not in record["metadata"]["annotations"]
    assert not reconcile(9).plan.moves, "it is carried out once"
    assert [finding.code for finding in reconcile(9.4).plan.findings if finding.code.startswith("rebalance")] == [
        "rebalancer-expired"
    ]


def test_a_rebalance_is_recorded_for_those_workloads_that_it_moves(fleet: Fleet) -> None:
    others = {f"shop/{name}.yaml": deployment(name, namespace="shop") for name in NAMES}
    everywhere = policy("primary", "backup").replace("kind: Prop", "kind: ClusterProp").replace("  namespace: default\n", "")
    place_in_backup(fleet, ["web"], **others, **{"policy.yaml": everywhere})
    fleet.commit({"gitsched.yaml": GUARD % "fleet: {moved: 100}, cluster: {removed: 100}, namespace: {moved: 20}"}, hour=2)
    fleet.reconcile(2)
    named = (
        make_rebalancer("web", *NAMES, ttl=60)
        .replace("name: app-", "NAME: app-")
        .replace("namespace: default, NAME", "namespace: shop, name")
    )
    fleet.commit({"demo.yaml": named}, hour=3)
    first = fleet.reconcile(3)
    assert [move.key.name for move in first.plan.moves] == ["web"]
    assert list_results(fleet) == {"web": "Successful", **dict.fromkeys(NAMES, "")}
    assert "finishTime" not in fleet.load(RECORD)["status"], "ttlSecondsAfterFinished starts when all are done"
    assert "gitsched.io/expired-at" not in fleet.load(RECORD)["metadata"]["annotations"]
    fleet.commit({"shop/more.yaml": settings_of("conf", 1, "shop")}, hour=4)
    assert fleet.reconcile(4).plan.withheld.digest == first.plan.withheld.digest
    done = fleet.reconcile(5, allowed=(first.plan.withheld.digest,))
    assert sorted(move.key.name for move in done.plan.moves) == sorted(NAMES), "web moved before"
    assert set(list_results(fleet).values()) == {"Successful"}


def test_a_request_is_withdrawn_with_its_document(fleet: Fleet) -> None:
    place_in_backup(fleet, NAMES)
    fleet.commit({"gitsched.yaml": GUARD % "freeze: audit"}, hour=2)
    fleet.reconcile(2)
    fleet.commit({"demo.yaml": make_rebalancer(*NAMES)}, hour=3)
    fleet.reconcile(3)
    fleet.commit({"demo.yaml": None}, hour=4)
    assert not fleet.reconcile(4).plan.withheld.moves
    fleet.commit({"gitsched.yaml": UNGUARDED}, hour=5)
    assert not fleet.reconcile(5).plan.moves


def test_a_rebalance_that_a_tenant_does_not_allow_is_pending(fleet: Fleet) -> None:
    """In the clusters of the first group the workload has more replicas than its Tenant may have."""
    tenant = "apiVersion: gitsched.io/v1alpha1\nkind: Tenant\nmetadata: {name: team}\n"
    tenant += "spec: {paths: [apps], namespaces: [default], limits: {replicas: %d}}\n"
    groups = {"policy.yaml": policy("primary,second", "backup"), "second.yaml": cluster("second", "down:NoExecute")}
    place_in_backup(fleet, ["web"], **groups, **{"tenant.yaml": tenant % 3})
    fleet.commit({"second.yaml": cluster("second"), "demo.yaml": make_rebalancer("web")}, hour=2)
    for hour in (2, 3):
        assert "tenant-limit" in [finding.code for finding in fleet.reconcile(hour).plan.findings]
        assert (list_results(fleet), where(fleet, "web")) == ({"web": ""}, ["backup"])
    fleet.commit({"tenant.yaml": tenant % 4}, hour=4)
    fleet.reconcile(4)
    fleet.reconcile(4)  # what a Tenant allows in addition counts from the next run
    assert (list_results(fleet), where(fleet, "web")) == ({"web": "Successful"}, ["primary", "second"])


def test_what_an_earlier_version_recorded_as_done_is_reported(fleet: Fleet) -> None:
    place_in_backup(fleet, ["web", "api"])
    fleet.commit({"gitsched.yaml": GUARD % "freeze: audit", "demo.yaml": make_rebalancer("web", "api")}, hour=2)
    fleet.reconcile(2)
    record = fleet.load(RECORD)
    for entry in record["status"]["observedWorkloads"]:
        entry["result"] = "Successful"
    path = fleet.path.parent / "output"
    fleet.git("worktree", "add", "-q", "--detach", str(path), "placements")
    (path / RECORD).write_text(yaml.safe_dump(record))
    fleet.git("-C", str(path), "commit", "-qam", "As an earlier version wrote it")
    fleet.git("-C", str(path), "branch", "-qf", "placements", "HEAD")
    fleet.commit({"gitsched.yaml": UNGUARDED}, hour=3)
    run = fleet.reconcile(3)
    (finding,) = [finding for finding in run.plan.findings if finding.code == "rebalance-lost"]
    assert "Successful for apps/v1 Deployment default api, apps/v1 Deployment default web" in finding.message
    assert not run.plan.moves, "nobody may want it any more"
    fleet.commit({"demo.yaml": make_rebalancer("web").replace("name: demo", "name: again")}, hour=4)
    run = fleet.reconcile(4)
    assert [move.key.name for move in run.plan.moves] == ["web"]


# What depends on a workload stays as the workload does


def test_what_a_withheld_workload_brings_along_stays_with_it(fleet: Fleet) -> None:
    files = {"web.yaml": workload("web", "configmap/conf", replicas=20), "conf.yaml": settings_of("conf", 1)}
    brings = policy("a,b", scheduling="Divided", more="  propagateDeps: true\n")
    fleet.commit({**files, "policy.yaml": brings, "a.yaml": cluster("a"), "b.yaml": cluster("b")})
    fleet.reconcile()
    fleet.commit({"gitsched.yaml": GUARD % "workload: {replicasLost: 50}"}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"web.yaml": workload("web", "configmap/conf", replicas=1)}, hour=2)
    run = fleet.reconcile(2)
    assert (list_withheld(run), run.plan.moves) == (["conf", "web"], ())
    fleet.commit({"conf.yaml": settings_of("conf", 2)}, hour=3)
    fleet.reconcile(3)
    assert "2" in str(fleet.load("clusters/a/default/configmap-conf.yaml")["data"]), "it stays only where it is"
    assert fleet.delivered("default/configmap-conf") == ["a", "b"], "web runs in both"
    required = fleet.binding("conf-configmap")["spec"]["requiredBy"]
    assert [entry["name"] for entry in required[0]["clusters"]] == ["a", "b"]
    fleet.reconcile(4, allowed=(run.plan.withheld.digest,))
    assert fleet.where("default/configmap-conf") == ["a"]


def test_the_limits_of_an_autoscaler_follow_what_its_target_keeps(fleet: Fleet) -> None:
    scalers = policy("", name="scalers", kind="HorizontalPodAutoscaler").replace("apps/v1", "autoscaling/v2")
    files = {"web.yaml": deployment("web", 20), "scaler.yaml": SCALER % ("web", 10), "scalers.yaml": scalers}
    files |= {"a.yaml": cluster("a"), "b.yaml": cluster("b"), "policy.yaml": policy("a,b", scheduling="Divided")}
    config = GUARD.replace("{guard: {%s}}", "{guard: {%s}, karmada: {autoscalerLimits: divide}}")
    fleet.commit({**files, "gitsched.yaml": config % ""})
    fleet.reconcile()
    fleet.commit({"gitsched.yaml": config % "freeze: audit", "policy.yaml": policy("a", scheduling="Divided")}, hour=1)
    assert list_withheld(fleet.reconcile(1)) == ["web"]
    path = "clusters/%s/default/horizontalpodautoscaler.autoscaling-scaler.yaml"
    assert [fleet.load(path % name)["spec"]["maxReplicas"] for name in ("a", "b")] == [5, 5]


def test_placements_of_vreplicas_stay_while_the_move_of_their_pods_is_withheld(fleet: Fleet) -> None:
    def configure(name: str) -> str:
        return settings(cluster=name, autoscaler="{attemptScaleDown: false}") + "  guard: {freeze: audit}\n"

    VreplicaFleet(fleet)
    fleet.commit({"gitsched.yaml": configure("events")}, hour=1)
    fleet.reconcile(1)
    before = {path: blob for path, blob in fleet.files().items() if path.startswith("status/")}
    fleet.commit({"gitsched.yaml": configure("other"), "sources/bills.yaml": source("bills", 30)}, hour=2)
    first = fleet.reconcile(2)
    for hour in (2, 3):
        assert list_withheld(fleet.reconcile(hour)) == ["kafkasource-mt-adapter"], "it is not forgotten"
        assert {path: blob for path, blob in fleet.files().items() if path.startswith("status/")} == before
    fleet.reconcile(4, allowed=(first.plan.withheld.digest,))
    assert "status/sources.knative.dev/kafkasource/shop/bills.yaml" in fleet.files()


APPLICATION = """\
api: kubernetes
kind: Application
metadata: {name: echo, namespace: tenant}
spec:
  constraints: {cluster: {labels: ["site is %s"]}}
  manifest: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: echo, namespace: shop}, spec: {replicas: 1}}]
"""
SITE = """\
api: kubernetes
kind: Cluster
metadata: {name: %s, namespace: tenant, labels: {site: %s}}
spec: {auto_generated: %s, kubeconfig: {contexts: [{name: c}], clusters: [{name: c}], users: [{name: u}]}, metrics: []}
status: {state: ONLINE}
"""


def test_a_generated_cluster_is_in_use_while_its_application_may_not_leave(fleet: Fleet) -> None:
    files = {"made.yaml": SITE % ("made", "made", "true"), "own.yaml": SITE % ("own", "own", "false")}
    fleet.commit({**files, "gitsched.yaml": GUARD % "freeze: audit", "app.yaml": APPLICATION % "made"})
    fleet.reconcile()
    fleet.commit({"app.yaml": APPLICATION % "own"}, hour=1)
    run = fleet.reconcile(1)
    assert (list_withheld(run), "krake-cluster-unused" in [finding.code for finding in run.plan.findings]) == (["echo"], False)
    assert "status/kubernetes/cluster/tenant/made.yaml" not in fleet.files()


# A release of a workload with data


@pytest.mark.parametrize("trailer", [True, False], ids=["by a trailer", "by an option"])
def test_a_release_whose_move_is_withheld_is_not_lost(fleet: Fleet, trailer: bool) -> None:
    claims = "  volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 50Gi}}}}]\n"
    database = deployment("db", 1).replace("kind: Deployment", "kind: StatefulSet") + claims
    files = {"db.yaml": database, "a.yaml": cluster("a"), "b.yaml": cluster("b"), "policy.yaml": policy("a", kind="StatefulSet")}
    fleet.commit({**files, "gitsched.yaml": UNGUARDED})
    fleet.reconcile()
    fleet.commit({"policy.yaml": policy("b", kind="StatefulSet")}, hour=1)
    fleet.reconcile(1)
    set_freeze(fleet.settings(2), "audit")
    if trailer:
        fleet.commit({"README.md": "release\n"}, hour=2, message="Release\n\nGitsched-Release: default/db")
    first = fleet.reconcile(2, released_clusters=() if trailer else ("a",))
    assert list_withheld(first) == ["db"]
    for hour in (3, 4):
        again = fleet.reconcile(hour)
        assert (again.after, again.plan.withheld.digest) == (None, first.plan.withheld.digest)
    set_freeze(fleet.settings(5), "")
    assert [move.key.name for move in fleet.reconcile(5).plan.moves] == ["db"]
    fleet.commit({"policy.yaml": policy("a", kind="StatefulSet")}, hour=6)
    assert not fleet.reconcile(6).plan.moves, "it was released once"
