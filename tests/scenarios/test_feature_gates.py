"""Features of Karmada behind gates, in commands: what a run places counts for what it places next."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from gitsched.cli import main
from gitsched.reconcile.run import RunResult

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


UNUSED = "karmada-workload-affinity-unused"
RAY = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray, namespace: shop}
spec:
  headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: ray, image: ray}]}}}
  workerGroupSpecs:
    - {groupName: small, replicas: 1, rayStartParams: {}, template: {spec: {containers: [{name: ray, image: ray}]}}}
    - {groupName: small, replicas: 1, rayStartParams: {}, template: {spec: {containers: [{name: ray, image: ray}]}}}
"""
COMPONENT_KINDS = "{apiVersion: ray.io/v1, kind: RayCluster}, {apiVersion: sparkoperator.k8s.io/v1beta2, kind: SparkApplication}"
SPARK = """\
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: spark, namespace: shop}
spec: {driver: {cores: 1}, executor: {cores: 1, instances: %s}%s}
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


def test_explain_says_what_a_quota_or_a_group_would_have_to_allow(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    gates = "quotaEnforcement: true, featureGates: {WorkloadAffinity: true}"
    fleet.commit(
        {
            "gitsched.yaml": ALONE.replace("overcommitProtection: false", gates),
            "clusters.yaml": cluster("b", 20),
            "policy.yaml": policy(AGGREGATED + "workloadAffinity: {antiAffinity: {groupByLabelKey: team}}\n"),
            "quota.yaml": QUOTA,
            "auth.yaml": deployment("auth", 5, labels="{team: a}"),
            "mail.yaml": deployment("mail", 5, labels="{team: b}"),
            "news.yaml": deployment("news", 1, labels="{team: a}"),
        }
    )
    fleet.reconcile()
    expected = {
        "mail": "b: FederatedResourceQuota/shop/shop allowed 2 cpu more (quota.yaml:4); it would get 5 replicas",
        "news": "b: at least no other workload of its anti-affinity group were there",
    }
    for name, text in expected.items():
        assert main(["-C", str(fleet.path), "explain", "-n", "shop", f"deployment/{name}"]) == 0
        assert text in " ".join(capsys.readouterr().out.split())


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


TENANT = """\
---
apiVersion: gitsched.io/v1alpha1
kind: Tenant
metadata: {name: %s}
spec: {paths: [%s], namespaces: [%s], priorityClasses: [%s]}
"""
URGENT = "  schedulePriority: {priorityClassSource: KubePriorityClass, priorityClassName: urgent}\n  placement:"
CLASSES = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 100\n"


@pytest.mark.parametrize(("classes", "placed"), [("urgent", "second"), ("", "first")])
def test_all_tenants_have_one_queue_in_which_a_tenant_has_the_priorities_that_it_may_use(
    fleet: Fleet, classes: str, placed: str
) -> None:
    files = {
        "gitsched.yaml": ALONE.replace("overcommitProtection: false", "quotaEnforcement: true"),
        "clusters.yaml": cluster("b", 10),
        "classes.yaml": CLASSES,
        "tenants.yaml": TENANT % ("first", "first", "first", "") + TENANT % ("second", "second", "second", classes),
    }
    for team in ("first", "second"):
        own = {"policy": policy(AGGREGATED), "auth": deployment("auth", 8), "quota": QUOTA}
        files |= {f"{team}/{name}.yaml": text.replace("namespace: shop", f"namespace: {team}") for name, text in own.items()}
    files["second/policy.yaml"] = files["second/policy.yaml"].replace("  placement:", URGENT)
    fleet.commit(files)
    run = fleet.reconcile()
    assert [key.namespace for key, outcome in run.plan.outcomes.items() if outcome.targets] == [placed]
    assert any(one.code == "tenant-priority" for one in run.plan.findings) == (not classes)


def test_a_quota_counts_the_workloads_of_all_owners_of_its_namespace(fleet: Fleet, tmp_path: Path) -> None:
    files = {
        "gitsched.yaml": ALONE.replace("overcommitProtection: false", "quotaEnforcement: true"),
        "clusters.yaml": cluster("b", 100),
        "tenants.yaml": TENANT % ("first", "first", "shop", ""),
        "quota.yaml": QUOTA,
        "policy.yaml": policy(AGGREGATED),
        "auth.yaml": deployment("auth", 5),
        "first/mail.yaml": deployment("mail", 5),
    }
    fleet.commit(files)
    fleet.reconcile()
    assert list_bound(fleet, "auth", "mail") == {"auth": {"b": 5}, "mail": {}}
    for number, (replicas, placed, used) in enumerate([(3, {"b": 5}, "8"), (4, {"b": 5}, "8"), (2, {"b": 5}, "7")], start=1):
        fleet.commit({"auth.yaml": deployment("auth", replicas)}, hour=number)
        empty = fleet.preview(number, cache=tmp_path / str(number))
        assert fleet.reconcile(number).tree == empty.tree
        assert list_bound(fleet, "mail") == {"mail": placed}
        quota = fleet.load("status/policy.karmada.io/federatedresourcequota/shop/shop.yaml")
        assert quota["status"]["overallUsed"] == {"cpu": used}


@pytest.mark.parametrize("amount", ["[10]", "many", "-1"])
def test_an_error_of_a_quota_says_that_it_limits_nothing(fleet: Fleet, amount: str) -> None:
    files = {
        "gitsched.yaml": ALONE.replace("overcommitProtection: false", "quotaEnforcement: true"),
        "clusters.yaml": cluster("b", 100),
        "quota.yaml": QUOTA.replace('"8"', amount),
        "policy.yaml": policy(AGGREGATED),
        "mail.yaml": deployment("mail", 9),
    }
    fleet.commit(files)
    (error,) = (finding for finding in fleet.reconcile().plan.findings if finding.severity == "error")
    assert list_bound(fleet, "mail") == {"mail": {"b": 9}}
    assert error.message.endswith("; a quota that was never valid limits nothing until it is corrected")
    fleet.commit({"quota.yaml": QUOTA}, hour=1)
    assert not [finding for finding in fleet.reconcile(1).plan.findings if finding.severity == "error"]


@pytest.mark.parametrize(
    ("path", "text", "code", "line"),
    [
        ("quota.yaml", QUOTA.replace("cpu", "cpus"), "karmada-quota-resource", 4),
        ("more.yaml", QUOTA.replace("name: shop", "name: more").replace("8", "9"), "karmada-quota-unused", 4),
        (
            "policy.yaml",
            policy(AGGREGATED + "workloadAffinity: {affinity: {groupByLabelKey: nobody}}\n"),
            UNUSED,
            8,
        ),
        ("ray.yaml", RAY, "karmada-component-names", 1),
        ("ray.yaml", RAY.replace("replicas: 1", "replicas: 99999999999", 1), "opaque-replicas", 1),
        ("ray.yaml", RAY.replace("replicas: 1", "replicas: -1", 1), "opaque-replicas", 1),
        ("spark.yaml", SPARK % ("'${EXECUTORS}'", ""), "opaque-replicas", 1),
        ("spark.yaml", SPARK % (1, ", dynamicAllocation: {enabled: true, minExecutors: -1}"), "opaque-replicas", 1),
    ],
)
def test_what_limits_nothing_is_a_finding_with_its_place(fleet: Fleet, path: str, text: str, code: str, line: int) -> None:
    gates = "quotaEnforcement: true, featureGates: {WorkloadAffinity: true, MultiplePodTemplatesScheduling: true}"
    selecting = policy(AGGREGATED + "workloadAffinity: {affinity: {groupByLabelKey: team}}\n")
    fleet.commit(
        {
            "gitsched.yaml": ALONE.replace("overcommitProtection: false", gates),
            "clusters.yaml": cluster("b", 10),
            "policy.yaml": selecting.replace("[{", f"[{COMPONENT_KINDS}, {{", 1),
            "quota.yaml": QUOTA,
            "auth.yaml": deployment("auth", 1, labels="{team: a}"),
        }
    )
    assert not _list_places(fleet.reconcile(), code)
    fleet.commit({path: text}, hour=1)
    empty = fleet.preview(1, cache=fleet.path.parent / "empty")
    run = fleet.reconcile(1)
    assert _list_places(run, code) == _list_places(empty, code) == [(path, line)]


@pytest.mark.parametrize("change", [None, deployment("auth", 1, labels="{team: b}")], ids=["removed", "in another group"])
def test_a_member_that_leaves_a_group_frees_capacity_for_another_in_the_same_run(fleet: Fleet, change: str | None) -> None:
    fleet.commit(
        {
            "gitsched.yaml": GATES % "WorkloadAffinity",
            "clusters.yaml": cluster("b", 10),
            "policy.yaml": policy(AGGREGATED + "workloadAffinity: {antiAffinity: {groupByLabelKey: team}}\n"),
            "auth.yaml": deployment("auth", 1, labels="{team: a}"),
            "mail.yaml": deployment("mail", 1, labels="{team: a}"),
        }
    )
    fleet.reconcile()
    assert list_bound(fleet, "auth", "mail") == {"auth": {"b": 1}, "mail": {}}
    fleet.commit({"auth.yaml": change}, hour=1)
    empty = fleet.preview(1, cache=fleet.path.parent / "empty")
    run = fleet.reconcile(1)
    assert (run.plan.complete, run.tree) == (False, empty.tree)
    assert list_bound(fleet, "mail") == {"mail": {"b": 1}}


def test_the_last_label_of_a_group_that_goes_is_a_finding(fleet: Fleet) -> None:
    fleet.commit(
        {
            "gitsched.yaml": GATES % "WorkloadAffinity",
            "clusters.yaml": cluster("b", 10),
            "policy.yaml": policy(AGGREGATED + "workloadAffinity: {affinity: {groupByLabelKey: team}}\n"),
            "auth.yaml": deployment("auth", 1, labels="{team: a}"),
        }
    )
    assert not _list_places(fleet.reconcile(), UNUSED)
    fleet.commit({"auth.yaml": deployment("auth", 1, labels="{other: a}")}, hour=1)
    empty = fleet.preview(1, cache=fleet.path.parent / "empty")
    run = fleet.reconcile(1)
    assert not run.plan.complete
    assert _list_places(run, UNUSED) == _list_places(empty, UNUSED) == [("policy.yaml", 8)]


def _list_places(run: RunResult, code: str) -> list[tuple[str, int]]:
    """Return the files and lines of the findings with a code."""
    return [(one.location.path, one.location.line) for one in run.plan.findings if one.code == code and one.location]


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
