"""What is placed on a cluster counts for what is placed next: in one run, over several runs, and for all APIs together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from textwrap import dedent, indent
from typing import Any, NamedTuple

import pytest

from gitsched.apis.gitsched.config import parse_config
from gitsched.apis.karmada.topology import TOPOLOGY
from gitsched.cli import main
from gitsched.decide.catalog import make_raw_document
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.model.document import Body, Key
from gitsched.model.errors import Permanent
from gitsched.model.explanation import ClusterExplanation
from gitsched.model.fleet_topology import ResourceUse
from gitsched.model.simulation import FailureDomain
from gitsched.model.time import EPOCH
from gitsched.reconcile import Reconciler, preview
from gitsched.reconcile.incremental.planned_clusters import read_planned_clusters
from gitsched.reconcile.output import output_commit
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.reconcile.run import RunResult
from gitsched.reconcile.run_settings import RunSettings
from gitsched.report.fleet_status import write_fleet_status
from gitsched.simulate.baseline import make_baseline
from gitsched.simulate.scenario import Scenario
from gitsched.simulate.simulation import simulate
from tests.builders.ocm import bound_global_set, managed_cluster, placement, to_yaml
from tests.search_depth import DEEP, list_variants
from tests.simulate.conftest import effects, replicas_by_cluster

from .conftest import Fleet, at_hour

Placement = dict[str, dict[str, int]]


def cluster(name: str, observed: str = "", taint: str = "", **allocatable: Any) -> str:
    amounts = {"pods": 110, **{key.replace("_", "/"): value for key, value in allocatable.items() if key != "used"}}
    used = allocatable.get("used", 0)
    annotations = f'{{gitsched.io/observed-at: "{observed}"}}' if observed else "{}"
    taints = f"[{{key: {taint}, effect: NoExecute}}]" if taint else "[]"
    return dedent(f"""\
        ---
        apiVersion: cluster.karmada.io/v1alpha1
        kind: Cluster
        metadata: {{name: {name}, annotations: {annotations}}}
        spec: {{syncMode: Pull, taints: {taints}}}
        status:
          resourceSummary:
            allocatable: {{{", ".join(f'{key}: "{value}"' for key, value in amounts.items())}}}
            allocated: {{cpu: "{used}"}}
        """)


def deployment(name: str, replicas: int, requests: str = "cpu: 1", kind: str = "Deployment", labels: str = "{}") -> str:
    return dedent(f"""\
        ---
        apiVersion: {"batch/v1" if kind == "Job" else "apps/v1"}
        kind: {kind}
        metadata: {{name: {name}, namespace: shop, labels: {labels}}}
        spec:
          {f"parallelism: {replicas}" if kind == "Job" else f"replicas: {replicas}"}
          {"" if kind == "Job" else f"selector: {{matchLabels: {{app: {name}}}}}"}
          template:
            metadata: {{labels: {{app: {name}}}}}
            spec:
              {"restartPolicy: Never" if kind == "Job" else ""}
              containers:
                - name: main
                  image: registry.example.com/{name}
                  resources: {{requests: {{{requests}}}, limits: {{{requests}}}}}
        """)


def policy(placement: str, name: str = "all", more: str = "{}", selector: str = "{}") -> str:
    selectors = "".join(
        f"    - {{apiVersion: {version}, kind: {kind}, labelSelector: {selector}}}\n"
        for version, kind in (("apps/v1", "Deployment"), ("batch/v1", "Job"))
    )
    return (
        f"---\napiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {{name: {name}, namespace: shop}}\n"
        f"spec:\n  resourceSelectors:\n{selectors}  schedulePriority: {more}\n  placement:\n" + indent(dedent(placement), "    ")
    ).replace("  schedulePriority: {}\n", "")


AGGREGATED = "replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}\n"
BY_CAPACITY = dedent("""\
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {dynamicWeight: AvailableReplicas}
    """)
DUPLICATED = "replicaScheduling: {replicaSchedulingType: Duplicated}\n"
ONE_CLUSTER = "spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]\n"
GROUPS = dedent("""\
    clusterAffinities:
      - {affinityName: prem, clusterNames: [prem]}
      - {affinityName: cloud, clusterNames: [cloud]}
    """)
OFF = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  karmada: {overcommitProtection: false}
"""


def list_bound(fleet: Fleet, *names: str, kind: str = "deployment") -> Placement:
    bindings = {name: fleet.binding(f"{name}-{kind}", "shop") for name in names}
    return {
        name: {one["name"]: one.get("replicas", 0) for one in body["spec"].get("clusters", ())} for name, body in bindings.items()
    }


def list_messages(run: RunResult, code: str) -> list[str]:
    return [finding.message for finding in run.plan.findings if finding.code == code]


TWO = {"clusters.yaml": cluster("a", cpu=10), "policy.yaml": policy(AGGREGATED)}
EIGHT = {"apps.yaml": deployment("auth", 8) + deployment("mail", 8)}


def test_two_workloads_that_fit_alone_and_not_together_are_not_both_placed(fleet: Fleet) -> None:
    fleet.commit({**TWO, **EIGHT})
    planned = fleet.preview()
    run = fleet.reconcile()
    assert list_bound(fleet, "auth", "mail") == {"auth": {"a": 8}, "mail": {}}
    assert list_messages(planned, "unschedulable") == list_messages(run, "unschedulable")
    [message] = list_messages(run, "unschedulable")
    assert "alone it would be placed on a, but this run places Deployment.apps/shop/auth there before it" in message


def test_without_the_setting_each_is_placed_alone(fleet: Fleet) -> None:
    fleet.commit({**TWO, **EIGHT, "gitsched.yaml": OFF})
    run = fleet.reconcile()
    assert list_bound(fleet, "auth", "mail") == {"auth": {"a": 8}, "mail": {"a": 8}}
    assert list_messages(run, "unschedulable") == []


def test_explain_says_what_is_left_and_who_took_the_rest(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.commit({**TWO, **EIGHT})
    explain = ["-C", str(fleet.path), "explain", "-n", "shop", "deployment/mail"]
    assert main(explain) == 0
    before = capsys.readouterr().out
    assert "capacity for 2: 102 pods, cpu 2 / 1 = 2" in before
    assert "a        8 cpu, 8 pods  Deployment.apps/shop/auth, this run" in before
    fleet.reconcile()
    assert main(explain) == 0
    after = capsys.readouterr().out
    assert "a        8 cpu, 8 pods  Deployment.apps/shop/auth, earlier runs" in after


def test_what_waits_is_placed_when_it_fits(fleet: Fleet) -> None:
    fleet.commit({**TWO, **EIGHT})
    fleet.reconcile()
    head = fleet.head
    fleet.reconcile(0.1)
    assert fleet.head == head, "nothing changes while it waits"
    fleet.commit({"apps.yaml": deployment("mail", 8)}, hour=1)
    fleet.reconcile(1)
    assert list_bound(fleet, "mail") == {"mail": {"a": 8}}


def test_a_higher_priority_comes_first(fleet: Fleet) -> None:
    urgent = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 1000\n"
    named = policy(
        AGGREGATED,
        "a-urgent",
        "{priorityClassSource: KubePriorityClass, priorityClassName: urgent}",
        "{matchLabels: {urgent: 'yes'}}",
    )
    fleet.commit(
        {
            "clusters.yaml": cluster("a", cpu=10),
            "policy.yaml": policy(AGGREGATED) + named,
            "class.yaml": urgent,
            "apps.yaml": deployment("auth", 8) + deployment("mail", 8, labels="{urgent: 'yes'}"),
        }
    )
    fleet.reconcile()
    assert list_bound(fleet, "auth", "mail") == {"auth": {}, "mail": {"a": 8}}


GPU = "example.com/gpu: 1"
GPU_CLUSTERS = cluster("prem", cpu=64, **{"example.com_gpu": 1}) + cluster("cloud", cpu=64, **{"example.com_gpu": 8})


@pytest.mark.parametrize("together", [True, False], ids=["in one commit", "in three commits"])
def test_jobs_go_to_the_next_group_when_the_only_gpu_is_taken(fleet: Fleet, together: bool) -> None:
    fleet.commit({"clusters.yaml": GPU_CLUSTERS, "policy.yaml": policy(GROUPS + AGGREGATED)})
    for hour, name in enumerate(("j1", "j2", "j3")):
        fleet.commit({f"{name}.yaml": deployment(name, 1, GPU, kind="Job")}, hour=hour)
        if not together:
            fleet.reconcile(hour)
    fleet.reconcile(3)
    assert list_bound(fleet, "j1", "j2", "j3", kind="job") == {"j1": {"prem": 1}, "j2": {"cloud": 1}, "j3": {"cloud": 1}}


def test_what_stays_is_explained_with_what_is_left_and_who_took_it(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = deployment("j0", 1, GPU, kind="Job") + deployment("j1", 1, GPU, kind="Job")
    fleet.commit({"clusters.yaml": GPU_CLUSTERS, "policy.yaml": policy(AGGREGATED + GROUPS), "apps.yaml": jobs})
    fleet.reconcile()
    assert main(["-C", str(fleet.path), "explain", "-n", "shop", "job/j1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "tried now it would be unschedulable" in printed
    assert "capacity for 0: 109 pods, example.com/gpu 0 / 1 = 0" in printed
    assert "prem 1 example.com/gpu, 1 pods Job.batch/shop/j0, earlier runs" in printed
    assert "prem: a WorkloadRebalancer rescheduled it and it had capacity for 1 replica (allocatable: " in printed
    assert main(["-C", str(fleet.path), "simulate", "--lose", "cloud"]) == 0
    assert "affinity group prem can run it" not in capsys.readouterr().out


def test_a_cluster_for_a_hundred_pods_gets_no_more(fleet: Fleet) -> None:
    names = ("p0", "p1", "p2")
    fleet.commit(
        {
            "clusters.yaml": cluster("a", pods=100),
            "policy.yaml": policy(AGGREGATED),
            "apps.yaml": "".join(deployment(name, 80, "") for name in names),
        }
    )
    run = fleet.reconcile()
    assert list_bound(fleet, *names) == {"p0": {"a": 80}, "p1": {}, "p2": {}}
    assert len(list_messages(run, "unschedulable")) == 2


@pytest.mark.parametrize("scheduling", [AGGREGATED + ONE_CLUSTER, BY_CAPACITY + ONE_CLUSTER], ids=["aggregated", "by weight"])
def test_what_leaves_a_lost_cluster_is_spread_over_what_is_free(
    fleet: Fleet, scheduling: str, capsys: pytest.CaptureFixture[str]
) -> None:
    others, names = cluster("b", cpu=10) + cluster("c", cpu=5), ("w0", "w1", "w2")
    fleet.commit(
        {
            "clusters.yaml": cluster("a", cpu=100) + others,
            "policy.yaml": policy(scheduling),
            "apps.yaml": "".join(deployment(name, 5) for name in names),
        }
    )
    fleet.reconcile()
    assert list_bound(fleet, *names) == {name: {"a": 5} for name in names}
    assert main(["-C", str(fleet.path), "simulate", "--lose", "a", "-o", "json"]) == 0
    simulated = json.loads(capsys.readouterr().out)
    fleet.commit({"clusters.yaml": cluster("a", cpu=100, taint="gone") + others}, hour=1)
    planned = fleet.preview(1)
    assert fleet.reconcile(1).tree == planned.tree
    placed = list_bound(fleet, *names)
    assert sum((Counter(clusters) for clusters in placed.values()), Counter[str]()) == {"b": 10, "c": 5}
    moved = {name: replicas_by_cluster(effect["after"]) for name, effect in effects(simulated).items()}
    assert moved == placed
    assert (simulated["short"], simulated["waiting"]) == (0, 0)


def test_nothing_that_runs_moves_where_a_cluster_has_too_little(fleet: Fleet) -> None:
    fleet.commit({**TWO, "gitsched.yaml": OFF, **EIGHT})
    fleet.reconcile()
    before = list_bound(fleet, "auth", "mail")
    fleet.commit({"gitsched.yaml": None}, hour=1)
    run = fleet.reconcile(1)
    assert list_bound(fleet, "auth", "mail") == before
    [message] = list_messages(run, "cluster-overcommitted")
    assert "cluster a lacks capacity for what is placed there: 16 cpu requested, 10 allocatable" in message
    fleet.commit({"apps.yaml": deployment("auth", 9) + deployment("mail", 8)}, hour=2)
    fleet.reconcile(2)
    assert list_bound(fleet, "auth", "mail") == before, "not one more fits"


def test_a_rebalance_that_waits_for_capacity_says_so(fleet: Fleet) -> None:
    cloud = cluster("cloud", cpu=20)
    fleet.commit({"clusters.yaml": cluster("prem", "", "gone", cpu=8) + cloud, "policy.yaml": policy(AGGREGATED + GROUPS)})
    fleet.commit({"apps.yaml": deployment("auth", 5) + deployment("mail", 5)})
    fleet.reconcile()
    assert list_bound(fleet, "auth", "mail") == {"auth": {"cloud": 5}, "mail": {"cloud": 5}}
    workloads = [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": name} for name in ("auth", "mail")]
    request = {"apiVersion": "apps.karmada.io/v1alpha1", "kind": "WorkloadRebalancer", "metadata": {"name": "again"}}
    fleet.commit(
        {"clusters.yaml": cluster("prem", cpu=8) + cloud, "again.yaml": to_yaml({**request, "spec": {"workloads": workloads}})},
        hour=1,
    )
    run = fleet.reconcile(1)
    assert list_bound(fleet, "auth", "mail") == {"auth": {"prem": 5}, "mail": {"cloud": 5}}
    [message] = list_messages(run, "rebalance-without-effect")
    assert "does not move apps/v1 Deployment shop mail: group prem:" in message
    assert "Clusters available replicas 3 are not enough" in message


def test_the_cause_of_a_placement_is_what_frees_capacity(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    fleet.commit({**TWO, **EIGHT})
    fleet.reconcile()
    fleet.commit({"clusters.yaml": cluster("a", cpu=20), "more.yaml": deployment("more", 1)}, hour=1)
    assert main(["-C", str(fleet.path), "plan", "HEAD~1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert 'Cluster/a: status.resourceSummary.allocatable.cpu "10" -> "20" (clusters.yaml:8)' in printed
    assert "changed with it" not in printed, "the cause is proved"


def test_what_ignores_capacity_takes_it_and_is_reported_over_several_commits(fleet: Fleet) -> None:
    fleet.commit({"clusters.yaml": cluster("a", cpu=10), "policy.yaml": policy(DUPLICATED), "apps.yaml": deployment("auth", 8)})
    assert list_messages(fleet.reconcile(), "cluster-overcommitted") == []
    fleet.commit({"more.yaml": deployment("mail", 8)}, hour=1)
    runs = [fleet.reconcile(1), fleet.reconcile(2)]
    for run in runs:
        [message] = list_messages(run, "cluster-overcommitted")
        assert "16 cpu requested, 10 allocatable" in message
    assert list_bound(fleet, "auth", "mail") == {"auth": {"a": 8}, "mail": {"a": 8}}


def test_what_ignores_capacity_counts_for_what_follows_it(fleet: Fleet) -> None:
    fleet.commit(
        {
            "clusters.yaml": cluster("a", cpu=10),
            "policy.yaml": policy(DUPLICATED, "copies", selector="{matchLabels: {copied: 'yes'}}") + policy(AGGREGATED, "divided"),
            "apps.yaml": deployment("auth", 8, labels="{copied: 'yes'}") + deployment("mail", 8),
        }
    )
    fleet.reconcile()
    assert list_bound(fleet, "auth", "mail") == {"auth": {"a": 8}, "mail": {}}


@pytest.mark.parametrize(("scheduling", "placed"), [(DUPLICATED, {"a": 1}), (AGGREGATED, {})], ids=["ignored", "followed"])
def test_an_incremental_plan_decides_what_lacks_capacity(fleet: Fleet, scheduling: str, placed: dict[str, int]) -> None:
    policies = policy(DUPLICATED, "fill", selector="{matchLabels: {role: fill}}") + policy(
        scheduling, "more", selector="{matchLabels: {role: more}}"
    )
    fleet.commit({"clusters.yaml": cluster("a", cpu=4), "policy.yaml": policies})
    fleet.commit({"fill.yaml": deployment("fill", 8, labels="{role: fill}")})
    fleet.reconcile()
    fleet.reconcile(1)
    fleet.commit({"more.yaml": deployment("extra", 1, labels="{role: more}")}, hour=2)
    run = fleet.reconcile(2)
    assert not run.plan.complete
    assert list_bound(fleet, "extra") == {"extra": placed}
    fleet.commit({"fill.yaml": deployment("fill", 2, labels="{role: fill}")}, hour=3)
    fleet.reconcile(3)
    run = fleet.reconcile(4)
    assert not run.plan.complete
    assert list_bound(fleet, "extra") == {"extra": {"a": 1}}, "it is tried in each run"


WITH_GATE = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec: {karmada: {quotaEnforcement: true}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: shop, namespace: shop}
spec: {overall: {cpu: "100"}}
"""


@pytest.mark.parametrize("settings", ["", WITH_GATE], ids=["alone", "in the order of a queue"])
def test_placements_of_another_api_count_for_the_same_cluster(
    fleet: Fleet, settings: str, capsys: pytest.CaptureFixture[str]
) -> None:
    placed = deployment("zeta", 8).replace(
        "namespace: shop, labels: {}",
        "namespace: shop, annotations: {cluster.open-cluster-management.io/placement: everywhere}",
    )
    config, _, quota = settings.partition("---")
    fleet.commit(
        {
            **({"gitsched.yaml": config, "quota.yaml": quota} if settings else {}),
            "clusters.yaml": cluster("a", cpu=10),
            "ocm.yaml": to_yaml(*bound_global_set("shop"), placement("everywhere", "shop"), managed_cluster("a")),
            "policy.yaml": policy(AGGREGATED, selector="{matchLabels: {divided: 'yes'}}"),
            "apps.yaml": placed
            + deployment("auth", 8, labels="{divided: 'yes'}")
            + deployment("mail", 1, labels="{divided: 'yes'}"),
        }
    )
    run = fleet.reconcile()
    assert fleet.where("shop/deployment-zeta") == ["a"], run.plan.findings
    assert list_bound(fleet, "auth", "mail") == {"auth": {}, "mail": {"a": 1}}
    assert settings or "Deployment.apps/shop/zeta" in list_messages(run, "unschedulable")[0]
    for name, left in (("auth", 1), ("mail", 1)):
        assert main(["-C", str(fleet.path), "explain", "-n", "shop", f"deployment/{name}"]) == 0
        printed = " ".join(capsys.readouterr().out.split())
        assert f"cpu {left} / 1 = {left}" in printed
        assert "a 8 cpu, 8 pods Deployment.apps/shop/zeta, earlier runs" in printed
    fleet.reconcile(1)
    assert list_bound(fleet, "auth", "mail") == {"auth": {}, "mail": {"a": 1}}
    fleet.commit(
        {"apps.yaml": placed + deployment("auth", 8, labels="{divided: 'yes'}") + deployment("mail", 2, labels="{divided: 'yes'}")},
        hour=2,
    )
    fleet.reconcile(2)
    assert list_bound(fleet, "mail") == {"mail": {"a": 2}}


def make_replica_set(replicas: int) -> Body:
    pod = {"containers": [{"name": "main", "image": "registry.example.com/zeta", "resources": {"requests": {"cpu": "1"}}}]}
    template = {"metadata": {"labels": {"app": "zeta"}}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "zeta"}}, "template": template}
    deployed = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "zeta", "namespace": "shop"}, "spec": spec}
    return {
        "apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "zeta", "namespace": "shop"},
        "spec": {"manifestWorkTemplate": {"workload": {"manifests": [deployed]}}, "placementRefs": [{"name": "everywhere"}]},
    }


def test_what_other_apis_scale_up_counts_in_the_same_run(fleet: Fleet) -> None:
    fleet.commit(
        {
            "clusters.yaml": cluster("a", cpu=20, used=12),
            "ocm.yaml": to_yaml(*bound_global_set("shop"), placement("everywhere", "shop"), managed_cluster("a")),
            "policy.yaml": policy(AGGREGATED, selector="{matchLabels: {divided: 'yes'}}"),
            "zeta.yaml": to_yaml(make_replica_set(2)),
        }
    )
    fleet.reconcile()
    fleet.commit({"zeta.yaml": to_yaml(make_replica_set(8)), "auth.yaml": deployment("auth", 4, labels="{divided: 'yes'}")}, hour=1)
    run = fleet.reconcile(1)
    assert list_bound(fleet, "auth") == {"auth": {}}, "6 of 8 are taken"
    assert "shop/zeta there before it" in list_messages(run, "unschedulable")[0]
    fleet.commit({"zeta.yaml": to_yaml(make_replica_set(3))}, hour=2)
    fleet.reconcile(2)
    assert sum(list_bound(fleet, "auth")["auth"].values()) == 4


def test_what_was_placed_since_the_facts_were_observed_counts_until_they_include_it(fleet: Fleet) -> None:
    observed = fleet.settings(0).now
    assert observed is not None
    before, after = (observed.replace(hour=observed.hour + more).isoformat() for more in (0, 3))
    fleet.commit({"clusters.yaml": cluster("a", before, cpu=20, used=10), "policy.yaml": policy(AGGREGATED)})
    fleet.commit({"auth.yaml": deployment("auth", 8)}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"mail.yaml": deployment("mail", 4)}, hour=2)
    fleet.reconcile(2)
    assert list_bound(fleet, "auth", "mail") == {"auth": {"a": 8}, "mail": {}}, "2 of 10 are left, though 12 of 20 are unused"
    [entry] = fleet.load("gitsched.json")["placed"]["a"]
    assert entry["requests"] == {"cpu": "8", "pods": "8"}
    fleet.commit({"clusters.yaml": cluster("a", after, cpu=20, used=16)}, hour=4)
    fleet.reconcile(4)
    assert list_bound(fleet, "mail") == {"mail": {"a": 4}}, "the new facts have what was placed, and 4 more are free"
    fleet.commit({"late.yaml": deployment("late", 1)}, hour=5)
    fleet.reconcile(5)
    assert list_bound(fleet, "late") == {"late": {}}


def test_what_was_placed_counts_again_when_the_time_of_observation_is_known_again(fleet: Fleet) -> None:
    observed = cluster("a", "2026-01-01T00:00:00Z", cpu=20, used=10)
    fleet.commit({"clusters.yaml": observed, "policy.yaml": policy(AGGREGATED), "auth.yaml": deployment("auth", 8)})
    fleet.reconcile()
    fleet.commit({"clusters.yaml": cluster("a", cpu=20, used=10)}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"clusters.yaml": observed}, hour=2)
    fleet.reconcile(2)
    fleet.commit({"mail.yaml": deployment("mail", 4)}, hour=3)
    fleet.reconcile(3)
    assert list_bound(fleet, "mail") == {"mail": {}}, "2 of 10 are left since the facts were observed"


class Level(NamedTuple):
    """How full a cluster of 20 cores is, in percent: on the page of a plan before and after it, on that of the next plan, and in status."""

    before: float
    after: float
    later: float
    status: float
    is_least: bool = False


@pytest.mark.parametrize(
    ("observed", "scheduling", "second", "level"),
    [
        pytest.param("", AGGREGATED, 4, Level(50, 60, 60, 60, is_least=True), id="more is placed than was reported"),
        pytest.param("", AGGREGATED, 1, Level(50, 50, 50, 50, is_least=True), id="reported at an unknown time"),
        pytest.param("2026-01-01T00:00:00Z", AGGREGATED, 2, Level(90, 100, 100, 100), id="placed since the report"),
        pytest.param("2026-03-02T08:30:00Z", AGGREGATED, 4, Level(50, 70, 70, 70), id="reported with what was placed"),
        pytest.param("", DUPLICATED, 14, Level(50, 110, 110, 110, is_least=True), id="more than the cluster has"),
        pytest.param("2026-01-01T00:00:00Z", DUPLICATED, 4, Level(90, 110, 110, 110), id="more than was free"),
    ],
)
@pytest.mark.parametrize("complete", [False, True], ids=["incremental", "complete"])
def test_how_full_a_cluster_is_counts_what_is_placed_and_stays_after_the_run(
    fleet: Fleet, observed: str, scheduling: str, second: int, level: Level, complete: bool
) -> None:
    fleet.commit({"clusters.yaml": cluster("a", observed, cpu=20, used=10), "policy.yaml": policy(scheduling)})
    fleet.commit({"auth.yaml": deployment("auth", 8)}, hour=0.25)
    fleet.reconcile(0.25)
    fleet.commit({"mail.yaml": deployment("mail", second)}, hour=1)

    def view(hour: float, *, written: bool = False) -> tuple[RunResult, ResourceUse]:
        reconciler = Reconciler(fleet.settings(hour))
        run = reconciler.run(at_hour(hour), preview=not written, complete=complete)
        return run, read_planned_clusters(run, run.plan.moves).sites["a"].resources[0]

    def count(use: ResourceUse, amount: int) -> float:
        return 100 * amount / use.allocatable

    _, planned = view(1)
    assert (planned.used, planned.reported is not None) == (level.before * 200, level.is_least)
    run, shown = view(1, written=True)
    assert (count(shown, shown.used or 0), count(shown, (shown.used or 0) + shown.change)) == (level.before, level.after)
    assert planned == shown
    assert bool(list_messages(run, "cluster-overcommitted")) == (level.after > 100)
    _, later = view(1.5)
    assert (count(later, later.used or 0), later.change) == (level.later, 0)
    found = read_fleet_status(fleet.settings(1.5))
    tables = {width: write_fleet_status(found, width).split("\n\n")[1].splitlines() for width in (80, 32)}
    assert tables[80][:2] == ["CLUSTER  READY    WORKLOADS  REQUESTED", f"a        Unknown  2          cpu {level.status:g} %"]
    assert "REQUESTED" not in tables[32][0], "it would be too wide"
    [status] = found.clusters
    assert status.fullest is not None
    assert (status.fullest.resource, status.fullest.share) == ("cpu", level.status)
    explained = explain_resource(fleet.settings(1.5), "cluster", None, "a")
    assert isinstance(explained, ClusterExplanation)
    assert [one.left for one in explained.free_resources or () if one.resource == "cpu"] == [f"{20 - level.status / 5:g}"]


def test_what_leaves_a_cluster_is_not_requested_there_after_the_plan(fleet: Fleet) -> None:
    def describe(taint: str) -> str:
        return cluster("a", "2026-03-02T08:30:00Z", taint, cpu=20, used=10) + cluster("b", cpu=6)

    fleet.commit({"policy.yaml": policy(AGGREGATED), "auth.yaml": deployment("auth", 8), "clusters.yaml": describe("")})
    fleet.reconcile(0.25)
    fleet.commit({"clusters.yaml": describe("down")}, hour=1)
    run = preview(fleet.settings(1), complete=True)
    use = read_planned_clusters(run, run.plan.moves).sites["a"].resources[0]
    [move] = run.plan.moves
    assert (use.used, use.change) == (10_000, -1000 * ((move.before["a"] or 0) - (move.after.get("a") or 0)))
    assert use.change


def test_a_note_says_which_clusters_do_not_say_when_they_were_observed(fleet: Fleet) -> None:
    fleet.commit(
        {"clusters.yaml": cluster("a", cpu=10) + cluster("b", "2026-01-01T00:00:00Z", cpu=10), "policy.yaml": policy(AGGREGATED)}
    )
    [message] = list_messages(fleet.reconcile(), "capacity-time-unknown")
    assert "Cluster a has status.resourceSummary, and nothing says when it was observed" in message


def test_a_time_of_observation_in_the_future_is_not_known_until_it_has_come(fleet: Fleet, tmp_path: Path) -> None:
    noon = "2026-03-02T12:00:00Z"  # hour 4
    fleet.commit({"clusters.yaml": cluster("a", noon, cpu=20, used=10), "policy.yaml": policy(AGGREGATED)})
    for hour, name in enumerate(("auth", "mail")):
        fleet.commit({f"{name}.yaml": deployment(name, 8)}, hour=hour)
        [message] = list_messages(fleet.reconcile(hour), "capacity-time-unknown")
        assert f"gitsched.io/observed-at says {noon}, which is in the future" in message
    assert list_bound(fleet, "auth", "mail") == {"auth": {"a": 8}, "mail": {"a": 8}}, "as without a time"
    assert "placed" not in fleet.load("gitsched.json")
    resident = Reconciler(fleet.settings(cache=tmp_path / "resident"))
    for hour, counted in ((3.9, False), (3.95, True), (4.5, True)):  # clocks may differ by five minutes
        name = f"w{hour * 100:.0f}"
        fleet.commit({f"{name}.yaml": deployment(name, 1)}, hour=hour)
        empty = fleet.preview(hour, cache=tmp_path / name)
        resident.settings = fleet.settings(hour, cache=tmp_path / "resident")
        kept, run = resident.run(resident.settings.now, preview=True), fleet.reconcile(hour)
        assert run.tree == kept.tree == empty.tree
        assert bool(list_messages(run, "capacity-time-unknown")) != counted
        assert list_bound(fleet, name) == {name: {"a": 1}}
        assert ("placed" in fleet.load("gitsched.json")) == counted


def test_copies_that_stay_for_an_overlap_count_while_they_stay(fleet: Fleet) -> None:
    clusters = {"policy.yaml": policy(AGGREGATED + ONE_CLUSTER)}
    fleet.commit({**clusters, "clusters.yaml": cluster("a", cpu=10), "auth.yaml": deployment("auth", 8)})
    fleet.reconcile()
    tainted = cluster("a", cpu=10, taint="gone") + cluster("b", cpu=10)
    fleet.commit({"clusters.yaml": tainted}, hour=1)
    fleet.reconcile(1)
    assert list_bound(fleet, "auth") == {"auth": {"b": 8}}
    fleet.commit({"clusters.yaml": cluster("a", cpu=10) + cluster("b", cpu=10), "mail.yaml": deployment("mail", 8)}, hour=1.05)
    fleet.reconcile(1.05)
    assert list_bound(fleet, "mail") == {"mail": {}}, "auth still runs on a"
    fleet.reconcile(2)
    fleet.reconcile(2.1)
    assert list_bound(fleet, "mail") == {"mail": {"a": 8}}


@pytest.mark.parametrize("limit", ["MAX_UNSTABLE", "MIN_KEYED_ROWS"])
def test_the_run_after_the_first_decision_decides_nothing_again(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(output_commit, limit, 0)  # as in a large source
    fleet.commit({"clusters.yaml": cluster("a", cpu=10) + cluster("b", cpu=10), "policy.yaml": policy(AGGREGATED), **EIGHT})
    fleet.reconcile()
    assert list_bound(fleet, "auth", "mail") == {"auth": {"a": 8}, "mail": {"b": 8}}, "each of them alone fits on a"
    second = fleet.reconcile()
    assert second.update is not None
    assert not second.update.incremental.decided.outcomes


def test_a_run_without_its_cache_decides_alike(fleet: Fleet, tmp_path: Path) -> None:
    fleet.commit({"clusters.yaml": cluster("a", cpu=10) + cluster("b", cpu=6), "policy.yaml": policy(BY_CAPACITY)})
    fleet.commit({"apps.yaml": "".join(deployment(f"w{number}", 3) for number in range(4))})
    fleet.reconcile()
    for hour, change in enumerate(
        (
            {"more.yaml": deployment("more", 2)},
            {"more.yaml": deployment("more", 6)},
            {"apps.yaml": deployment("w0", 3)},
            {"clusters.yaml": cluster("a", cpu=12) + cluster("b", cpu=6)},
        ),
        start=1,
    ):
        fleet.commit(change, hour=hour)
        empty = fleet.preview(hour, cache=tmp_path / str(hour)).tree
        assert fleet.preview(hour).tree == empty
        assert fleet.reconcile(hour).tree == empty


EVERYTHING = """\
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata: {name: gitsched}
spec:
  karmada:
    quotaEnforcement: true
    spread: strict
    failback: {AfterStabilization: 2h}
    featureGates: {WorkloadAffinity: true, MultiplePodTemplatesScheduling: true}
---
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: shop, namespace: shop}
spec: {overall: {cpu: "18"}}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 100
"""


class SharedHistory:
    """Random commits to a repository whose clusters are nearly full; with `everything` also quotas, priorities, groups of workloads and
    returns to earlier affinity groups."""

    def __init__(self, fleet: Fleet, seed: int, *, everything: bool) -> None:
        self.fleet, self.random, self.hour = fleet, Random(seed), 0.0
        scheduling = {
            "aggregated": AGGREGATED,
            "weighted": BY_CAPACITY,
            "single": AGGREGATED + ONE_CLUSTER,
            "groups": AGGREGATED + GROUPS,
            "copied": DUPLICATED + "clusterAffinity: {clusterNames: [cloud]}\n",
        }
        if everything:
            scheduling["apart"] = AGGREGATED + "workloadAffinity: {antiAffinity: {groupByLabelKey: team}}\n"
        self.ways = tuple(scheduling)
        urgent = "{priorityClassSource: KubePriorityClass, priorityClassName: urgent}" if everything else "{}"
        policies = (
            policy(how, name, urgent if name == "single" else "{}", f"{{matchLabels: {{way: {name}}}}}")
            for name, how in scheduling.items()
        )
        self.files: dict[str, str | None] = {"policy.yaml": "".join(policies)}
        if everything:
            config, _, quota = EVERYTHING.partition("---\n")
            self.files |= {"gitsched.yaml": config, "quota.yaml": quota}
        for number in range(5):
            self.add(f"w{number}")
        self.resize()

    def add(self, name: str) -> None:
        labels = f"{{way: {self.random.choice(self.ways)}, team: {self.random.choice('ab')}}}"
        self.files[f"{name}.yaml"] = deployment(name, self.random.randrange(1, 6), labels=labels)

    def resize(self) -> None:
        """Give the clusters other capacities, and at times a taint."""
        names, taint = ("prem", "cloud", "more"), self.random.choice(("", "", "gone"))
        observed = "2026-01-01T00:00:00Z" if self.random.random() < 0.5 else ""
        self.files["clusters.yaml"] = "".join(
            cluster(name, observed, taint if name == "prem" else "", cpu=self.random.randrange(3, 12)) for name in names
        )

    def step(self) -> float:
        """Commit a change, and return its time."""
        known = sorted(path for path, text in self.files.items() if path.startswith("w") and text is not None)
        before = dict(self.files)
        change = self.random.randrange(6)
        if change == 0:
            self.resize()
        elif change == 1 and known:
            self.files[self.random.choice(known)] = None
        elif change < 5:
            self.add(self.random.choice((*(path.removesuffix(".yaml") for path in known), f"w{self.random.randrange(20)}")))
        self.hour += self.random.choice((0.02, 1, 3))
        self.fleet.commit({path: text for path, text in self.files.items() if before.get(path) != text}, hour=self.hour)
        return self.hour


def explain_all(settings: RunSettings, history: SharedHistory) -> dict[str, object]:
    """Return the explanations of all workloads, or why there is none."""
    found: dict[str, object] = {}
    for path, text in sorted(history.files.items()):
        if path.startswith("w") and text is not None:
            try:
                found[path] = explain_resource(settings, "deployment", "shop", path.removesuffix(".yaml"))
            except Permanent as error:
                found[path] = str(error)
    return found


@pytest.mark.search
@pytest.mark.parametrize("everything", [False, True], ids=["capacity", "everything"])
@pytest.mark.parametrize("seed", range(100) if DEEP else list_variants(range(2), (0,)))
def test_runs_with_and_without_a_state_share_capacity_alike(fleet: Fleet, tmp_path: Path, seed: int, everything: bool) -> None:
    history, is_complete = SharedHistory(fleet, seed, everything=everything), list[bool]()
    fleet.commit(history.files)
    fleet.reconcile()
    resident = Reconciler(fleet.settings(cache=tmp_path / "resident"))
    for number in range(8):
        hour = history.step()
        empty = fleet.preview(hour, cache=tmp_path / str(number))
        assert explain_all(fleet.settings(hour), history) == explain_all(
            fleet.settings(hour, cache=tmp_path / f"e{number}"), history
        )
        resident.settings = fleet.settings(hour, cache=tmp_path / "resident")
        kept, run = resident.run(resident.settings.now, preview=True), fleet.reconcile(hour)
        assert run.tree == kept.tree == empty.tree
        assert run.plan.findings == kept.plan.findings == empty.plan.findings
        is_complete.append(run.plan.complete)
    assert not all(is_complete)


SCHEDULING: tuple[dict[str, Any], ...] = (
    {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"},
    {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    },
)


class RandomFleet:
    """Clusters with few cpus and pods, and workloads that are divided by capacity in several ways."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clusters = {f"c{number}": (self.random.randrange(30), self.random.randrange(20)) for number in range(4)}
        self.requests = {f"w{number}": self.random.randrange(5) for number in range(8)}

    def make_documents(self, names: Iterable[str]) -> list[Body]:
        """Return the Clusters, a policy for each workload, and the workloads with some replicas."""
        random = self.random
        found: list[Body] = [
            {
                "apiVersion": "cluster.karmada.io/v1alpha1",
                "kind": "Cluster",
                "metadata": {"name": name},
                "spec": {"syncMode": "Pull"},
                "status": {"resourceSummary": {"allocatable": {"cpu": str(cpu), "pods": str(pods)}}},
            }
            for name, (cpu, pods) in self.clusters.items()
        ]
        for name in names:
            placement: Body = {"replicaScheduling": random.choice(SCHEDULING)}
            if random.random() < 0.3:
                placement["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": random.randrange(1, 3)}]
            if random.random() < 0.3:
                groups = random.sample(sorted(self.clusters), 2)
                placement["clusterAffinities"] = [{"affinityName": one, "clusterNames": [one]} for one in groups]
            request = {"cpu": str(self.requests[name])} if self.requests[name] else {}
            metadata = {"name": name, "namespace": "shop"}
            selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
            found.append(
                {
                    "apiVersion": "policy.karmada.io/v1alpha1",
                    "kind": "PropagationPolicy",
                    "metadata": metadata,
                    "spec": {"resourceSelectors": [selector], "placement": placement},
                }
            )
            pod = {"containers": [{"name": "main", "image": "a", "resources": {"requests": request}}]}
            labels = {"app": name}
            template = {"metadata": {"labels": labels}, "spec": pod}
            spec = {"replicas": random.randrange(1, 9), "selector": {"matchLabels": labels}, "template": template}
            found.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
        return found

    def list_exceeded(self, decisions: DecisionSet) -> list[str]:
        """Return the clusters that have more than their capacity."""
        pods, cpu = Counter[str](), Counter[str]()
        for key, outcome in decisions.outcomes.items():
            for cluster, replicas in outcome.replicas_by_cluster.items():
                pods[cluster] += replicas or 0
                cpu[cluster] += (replicas or 0) * self.requests[key.name]
        return [name for name, (cpus, slots) in self.clusters.items() if pods[name] > slots or cpu[name] > cpus]


@pytest.mark.search
@pytest.mark.parametrize("seed", range(3_000 if DEEP else 40))
def test_no_division_by_capacity_exceeds_what_a_cluster_has(seed: int) -> None:
    fleet, config = RandomFleet(seed), parse_config({})
    names, previous = sorted(fleet.requests), dict[Key, Body]()
    for part in (names[:5], names):
        documents = [make_raw_document(body, None) for body in fleet.make_documents(part)]
        decisions = decide(documents, previous, config, EPOCH, EPOCH)
        assert fleet.list_exceeded(decisions) == []
        previous = {key: body for outcome in decisions.outcomes.values() for key, body in outcome.records}


def make_tenant(team: str) -> str:
    return dedent(f"""\
        ---
        apiVersion: gitsched.io/v1alpha1
        kind: Tenant
        metadata: {{name: {team}}}
        spec: {{paths: [{team}], namespaces: [{team}]}}
        """)


def test_of_other_tenants_the_amounts_are_shown_without_names(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"clusters.yaml": cluster("a", cpu=10), "tenants.yaml": make_tenant("first") + make_tenant("second")}
    for team in ("first", "second"):
        own = policy(AGGREGATED) + deployment(f"{team}-app", 8)
        files[f"{team}/all.yaml"] = own.replace("namespace: shop", f"namespace: {team}")
    fleet.commit(files)
    run = fleet.reconcile()
    assert fleet.where("first/deployment-first-app") == ["a"]
    [message] = list_messages(run, "unschedulable")
    assert "this run places workloads of other tenants there before it" in message
    assert "first" not in message.partition("could not be scheduled")[2]
    assert main(["-C", str(fleet.path), "explain", "-n", "second", "deployment/second-app"]) == 0
    printed = capsys.readouterr().out
    assert "8 cpu, 8 pods  workloads of other tenants, earlier runs" in printed
    assert "first-app" not in printed


@pytest.mark.search
@pytest.mark.parametrize("seed", range(400 if DEEP else 8))
def test_a_simulated_loss_places_what_the_next_run_does(seed: int) -> None:
    fleet, config = RandomFleet(seed), parse_config({})
    bodies = fleet.make_documents(sorted(fleet.requests))
    first = decide([make_raw_document(body, None) for body in bodies], {}, config, EPOCH, EPOCH)
    previous = {key: body for outcome in first.outcomes.values() for key, body in outcome.records}
    decided = decide([make_raw_document(body, None) for body in bodies], previous, config, EPOCH, EPOCH)
    records = {key: body for outcome in decided.outcomes.values() for key, body in outcome.records}
    baseline = make_baseline(decided, config, EPOCH, {})
    for name in fleet.clusters:
        lost = [TOPOLOGY.mark_lost(body, EPOCH) if body["metadata"]["name"] == name else body for body in bodies]
        after = decide([make_raw_document(body, None) for body in lost if body], records, config, EPOCH, EPOCH).outcomes
        placed = {key: one.replicas_by_cluster for key, one in decided.outcomes.items()}
        simulated = simulate(baseline, Scenario(lose=(FailureDomain("cluster", name),)))
        for effect in simulated.effects:
            placed[effect.key] = effect.after
        left = {
            key: {one: count for one, count in found.replicas_by_cluster.items() if one != name} for key, found in after.items()
        }
        assert placed == left
        assert simulated.waiting == 0


LIMITED = """\
---
apiVersion: gitsched.io/v1alpha1
kind: Tenant
metadata: {name: shop}
spec: {paths: [shop], namespaces: [shop], priorityClasses: [urgent], limits: {replicas: %d}}
"""
URGENT = "{priorityClassSource: KubePriorityClass, priorityClassName: urgent}"
CLASS = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 100\n"
QUOTA = """\
---
apiVersion: policy.karmada.io/v1alpha1
kind: FederatedResourceQuota
metadata: {name: all, namespace: shop}
spec: {overall: {cpu: "8"}}
"""
ENFORCED = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {karmada: {quotaEnforcement: true}}\n"


def replicas_of(run: RunResult) -> dict[str, dict[str, int | None]]:
    assert run.plan.details is not None
    outcomes = run.plan.details.decisions.outcomes.items()
    return {key.name: dict(one.replicas_by_cluster) for key, one in outcomes if one.targets}


def list_refused(run: RunResult) -> list[str]:
    return [one.resource[2] for one in run.plan.findings if one.code == "tenant-limit" and one.resource is not None]


def test_the_limit_of_a_tenant_goes_to_its_higher_priority(fleet: Fleet) -> None:
    own = policy(AGGREGATED, "low", selector="{matchLabels: {way: low}}")
    own += policy(AGGREGATED, "high", URGENT, selector="{matchLabels: {way: high}}")
    own += deployment("a", 4, labels="{way: low}") + deployment("z", 4, labels="{way: high}")
    fleet.commit({"clusters.yaml": cluster("one", cpu=50), "tenants.yaml": LIMITED % 4 + CLASS, "shop/all.yaml": own})
    run = fleet.reconcile()
    assert list_refused(run) == ["a"]
    assert replicas_of(run) == {"z": {"one": 4}}


def test_what_only_its_turn_places_stays_within_the_limit_of_its_tenant(fleet: Fleet, tmp_path: Path) -> None:
    files = {"gitsched.yaml": ENFORCED, "clusters.yaml": cluster("one", cpu=50) + QUOTA, "shop/policy.yaml": policy(AGGREGATED)}
    fleet.commit({**files, "tenants.yaml": LIMITED % 6, "shop/big.yaml": deployment("big", 6)})
    assert replicas_of(fleet.reconcile()) == {"big": {"one": 6}}
    # Alone, the quota refuses both new ones. Once the first has given back what it used, it allows both, and the limit only one.
    new = {"shop/new.yaml": deployment("new", 4), "shop/next.yaml": deployment("next", 2)}
    fleet.commit({"shop/big.yaml": deployment("big", 2), **new})
    for hour in (1.0, 2.0):
        cold = fleet.preview(hour, cache=tmp_path / str(hour))
        run = fleet.reconcile(hour)
        assert run.tree == cold.tree
        assert list_refused(run) == ["next"]
        assert replicas_of(run) == {"big": {"one": 2}, "new": {"one": 4}}
        fleet.commit({"note.txt": str(hour)})


def test_what_a_tenant_must_not_have_takes_no_capacity(fleet: Fleet) -> None:
    own = policy(AGGREGATED, "high", URGENT) + deployment("app", 8)
    others = (policy(AGGREGATED) + deployment("other", 8)).replace("namespace: shop", "namespace: platform")
    fleet.commit({"all.yaml": cluster("one", cpu=10) + others, "tenants.yaml": LIMITED % 4 + CLASS, "shop/all.yaml": own})
    run = fleet.reconcile()
    assert list_refused(run) == ["app"]
    assert replicas_of(run) == {"other": {"one": 8}}
