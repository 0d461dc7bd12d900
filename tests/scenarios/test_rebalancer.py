"""The example and the four user stories of Karmada's proposal "Introduce a rebalance mechanism", with commits."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

import gitsched
from gitsched.manifests.parser import parse_file
from gitsched.reconcile import Reconciler

from .conftest import Fleet, at_hour, cluster, deployment, policy

APPLY = """\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata:
  name: demo
spec:
  workloads:
    - apiVersion: apps/v1
      kind: Deployment
      name: demo-deploy-1
      namespace: default
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: ClusterRole
      name: demo-role
    - apiVersion: apps/v1
      kind: Deployment
      name: demo-deploy-2
      namespace: default
"""
BINDING = """\
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata:
  name: demo-deploy-1-deployment
  namespace: default
spec:
  rescheduleTriggeredAt: "2024-04-17T15:04:05Z"
status:
  lastScheduledTime: "2024-04-17T15:04:05Z"
"""
RESULT = """\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata:
  creationTimestamp: "2024-04-17T15:04:05Z"
  name: demo
spec:
  workloads:
    - apiVersion: apps/v1
      kind: Deployment
      name: demo-deploy-1
      namespace: default
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: ClusterRole
      name: demo-role
    - apiVersion: apps/v1
      kind: Deployment
      name: demo-deploy-2
      namespace: default
status:
  observedWorkloads:
    - result: Successful
      workload:
        apiVersion: apps/v1
        kind: Deployment
        name: demo-deploy-1
        namespace: default
    - reason: ReferencedBindingNotFound
      result: Failed
      workload:
        apiVersion: apps/v1
        kind: Deployment
        name: demo-deploy-2
        namespace: default
    - result: Successful
      workload:
        apiVersion: rbac.authorization.k8s.io/v1
        kind: ClusterRole
        name: demo-role
"""
ROLE = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: demo-role}}"
ROLE_POLICY = """\
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: roles}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}]
  placement: {}
"""
RECORD = "status/apps.karmada.io/workloadrebalancer/_/demo.yaml"
WEB = "default/deployment-web"
MINUTE = 1 / 60


def make_rebalancer(*names: str, ttl: int | None = None) -> str:
    """Return a rebalancer `demo` for Deployments of the namespace `default`."""
    entries = "".join(f"\n  - {{apiVersion: apps/v1, kind: Deployment, namespace: default, name: {name}}}" for name in names)
    tail = "" if ttl is None else f"  ttlSecondsAfterFinished: {ttl}\n"
    return f"apiVersion: apps.karmada.io/v1alpha1\nkind: WorkloadRebalancer\nmetadata:\n  name: demo\nspec:\n  workloads:{entries}\n{tail}"


def make_cluster(name: str, pods: int, *taints: str, used: int = 0) -> str:
    """Return a cluster with capacity for a number of pods, beside those that it has."""
    amounts = f"allocatable: {{cpu: '1000', pods: '{pods + used}'}}, allocated: {{pods: '{used}'}}"
    return cluster(name, *taints) + f"status:\n  resourceSummary: {{{amounts}}}\n"


def prefer(preference: str) -> str:
    """Return a policy that divides replicas over all clusters."""
    weighted = "Weighted, weightPreference: {dynamicWeight: AvailableReplicas}"
    choice = {"dynamic": weighted, "aggregated": "Aggregated", "static": "Weighted"}[preference]
    return policy(scheduling="Divided").replace("replicaDivisionPreference: Weighted", f"replicaDivisionPreference: {choice}")


def shares(fleet: Fleet) -> dict[str, int]:
    """Return the replicas that the binding of the workload assigns to clusters."""
    return {entry["name"]: entry["replicas"] for entry in fleet.binding("web-deployment")["spec"]["clusters"]}


def parse(text: str) -> dict[str, Any]:
    (document,) = parse_file(text.encode(), path="example.yaml", validate=None).documents
    return document.body


def contains(whole: Any, part: Any) -> bool:
    """Return whether a document contains all fields of another one."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and contains(whole[name], value) for name, value in part.items())
    return bool(whole == part)


# The example of the proposal


def test_the_example_of_the_proposal_gives_its_binding_and_status() -> None:
    static = [
        *map(yaml.safe_load, (cluster("member1"), cluster("member2"), policy(), ROLE, ROLE_POLICY)),
        yaml.safe_load(deployment("demo-deploy-1")),
    ]
    before = gitsched.schedule(
        static, at=datetime(2024, 4, 17, 15, 0, 5, tzinfo=UTC), now=datetime(2024, 4, 17, 15, 0, 5, tzinfo=UTC)
    )
    now = datetime(2024, 4, 17, 15, 4, 5, tzinfo=UTC)
    after = gitsched.schedule([*static, parse(APPLY)], previous=before.documents, at=now, now=now)
    shown = {(body["kind"], body["metadata"]["name"]): body for body in after.documents}
    assert contains(shown["ResourceBinding", "demo-deploy-1-deployment"], parse(BINDING))
    result = parse(RESULT)
    del result["spec"]  # a record repeats no spec: the document itself is in the repository
    assert contains(shown["WorkloadRebalancer", "demo"], result)
    assert shown["WorkloadRebalancer", "demo"]["status"]["finishTime"] == "2024-04-17T15:04:05Z"


# The user stories


def test_story_1_a_recovered_cluster_is_used_again(fleet: Fleet) -> None:
    fleet.commit({"web.yaml": deployment("web", 4), "policy.yaml": prefer("static"), "2.yaml": cluster("member2")})
    fleet.commit({"1.yaml": cluster("member1")})
    fleet.reconcile()
    assert shares(fleet) == {"member1": 2, "member2": 2}
    fleet.commit({"1.yaml": cluster("member1", "power:NoExecute")}, hour=1)
    fleet.reconcile(2)
    assert shares(fleet) == {"member2": 4}
    fleet.commit({"1.yaml": cluster("member1")}, hour=3)
    fleet.reconcile(4)
    assert shares(fleet) == {"member2": 4}, "Karmada leaves what runs"
    fleet.commit({"demo.yaml": make_rebalancer("web")}, hour=5)
    fleet.reconcile(5)
    assert shares(fleet) == {"member1": 2, "member2": 2}


def test_story_2_a_workload_in_one_cluster_spreads_again_when_there_is_capacity(fleet: Fleet) -> None:
    files = {"web.yaml": deployment("web", 6), "policy.yaml": prefer("dynamic")}
    fleet.commit({**files, "1.yaml": make_cluster("member1", 0), "2.yaml": make_cluster("member2", 10)})
    fleet.reconcile()
    assert shares(fleet) == {"member2": 6}
    fleet.commit({"1.yaml": make_cluster("member1", 10), "2.yaml": make_cluster("member2", 4, used=6)}, hour=1)
    fleet.reconcile(1)
    assert shares(fleet) == {"member2": 6}
    fleet.commit({"demo.yaml": make_rebalancer("web")}, hour=2)
    fleet.reconcile(2)
    assert shares(fleet) == {"member1": 3, "member2": 3}, "its own six count as free room"


def test_story_3_one_cluster_with_enough_capacity_gets_all_replicas(fleet: Fleet) -> None:
    files = {"web.yaml": deployment("web", 6), "policy.yaml": prefer("aggregated")}
    fleet.commit({**files, "1.yaml": make_cluster("member1", 4), "2.yaml": make_cluster("member2", 3)})
    fleet.reconcile()
    assert len(shares(fleet)) == 2
    fleet.commit({"1.yaml": make_cluster("member1", 20)}, hour=1)
    fleet.reconcile(1)
    assert len(shares(fleet)) == 2
    fleet.commit({"demo.yaml": make_rebalancer("web")}, hour=2)
    fleet.reconcile(2)
    assert shares(fleet) == {"member1": 6}


def test_story_4_a_recovered_primary_takes_over_from_the_backup(fleet: Fleet) -> None:
    files = {"web.yaml": deployment("web", 2), "policy.yaml": policy("primary", "backup")}
    fleet.commit({**files, "1.yaml": cluster("primary"), "2.yaml": cluster("backup")})
    fleet.reconcile()
    fleet.commit({"1.yaml": cluster("primary", "power:NoExecute")}, hour=1)
    fleet.reconcile(2)
    assert fleet.where(WEB) == ["backup"]
    fleet.commit({"1.yaml": cluster("primary")}, hour=3)
    fleet.reconcile(3)
    assert fleet.where(WEB) == ["backup"]
    fleet.commit({"demo.yaml": make_rebalancer("web")}, hour=4)
    run = fleet.reconcile(4)
    assert fleet.where(WEB) == ["primary"], "with the default, as upstream does, at once"
    (move,) = run.plan.moves
    assert (move.before, move.after) == ({"backup": 2}, {"primary": 2})
    assert move.reason == (
        "PropagationPolicy/default/all in group group-0; a rebalance was requested by WorkloadRebalancer demo at 2026-03-02T12:00:00Z"
    )
    assert "rebalance" not in fleet.read("placements/default/deployment-web.yaml"), (
        "what is written says where it is, not how it came"
    )


def test_story_2_an_unhealthy_workload_that_moved_is_spread_again(fleet: Fleet) -> None:
    """With application failover; the health is committed as a ResourceBinding."""
    rules = "  propagateDeps: true\n  failover: {application: {decisionConditions: {tolerationSeconds: 60}, purgeMode: Directly}}\n"
    health = BINDING.partition("spec:")[0].replace("demo-deploy-1", "web") + (
        "spec: {resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}}\n"
        "status: {aggregatedStatus: [{clusterName: member1, health: %s}, {clusterName: member2, health: Healthy}]}\n"
    )
    files = {"web.yaml": deployment("web", 4), "policy.yaml": prefer("static") + rules, "1.yaml": cluster("member1")}
    fleet.commit({**files, "2.yaml": cluster("member2"), "health.yaml": health % "Unhealthy"})
    fleet.reconcile()
    fleet.reconcile(1)
    assert shares(fleet) == {"member2": 4}
    fleet.commit({"health.yaml": health % "Healthy"}, hour=2)
    fleet.reconcile(3)
    assert shares(fleet) == {"member2": 4}
    fleet.commit({"demo.yaml": make_rebalancer("web")}, hour=4)
    fleet.reconcile(4)
    assert shares(fleet) == {"member1": 2, "member2": 2}


# What is kept and what is recalculated


@pytest.mark.parametrize(
    ("edit", "kept", "fresh"),
    [
        pytest.param({"web.yaml": deployment("web", 6)}, {"member2": 6}, {"member1": 3, "member2": 3}, id="nothing"),
        pytest.param({"web.yaml": deployment("web", 8)}, {"member1": 1, "member2": 7}, {"member1": 4, "member2": 4}, id="replicas"),
        pytest.param(
            {"policy.yaml": "    clusterTolerations: [{key: power, operator: Exists}]\n"},
            {"member2": 6},
            {"member1": 3, "member2": 3},
            id="placement",
        ),
    ],
)
def test_an_edit_keeps_the_distribution_and_a_rebalance_does_not(
    fleet: Fleet, edit: dict[str, str], kept: dict[str, int], fresh: dict[str, int]
) -> None:
    edit = {name: prefer("dynamic") + text if name == "policy.yaml" else text for name, text in edit.items()}
    files = {"web.yaml": deployment("web", 6), "policy.yaml": prefer("dynamic")}
    fleet.commit({**files, "1.yaml": make_cluster("member1", 0), "2.yaml": make_cluster("member2", 10)})
    fleet.reconcile()
    fleet.commit({"1.yaml": make_cluster("member1", 10), "2.yaml": make_cluster("member2", 4, used=6), **edit}, hour=1)
    fleet.reconcile(1)
    assert shares(fleet) == kept
    fleet.commit({"demo.yaml": make_rebalancer("web")}, hour=2)
    fleet.reconcile(2)
    assert shares(fleet) == fresh


def test_a_rebalance_that_finds_no_cluster_is_carried_out_when_one_fits(fleet: Fleet) -> None:
    tainted = {name: cluster(name[:-5], "work:NoSchedule") for name in ("first.yaml", "second.yaml")}
    files = {"web.yaml": deployment("web"), "policy.yaml": policy("first", "second", scheduling="Divided")}
    fleet.commit({**files, **{name: cluster(name[:-5]) for name in tainted}})
    fleet.reconcile()
    fleet.commit({**tainted, "first.yaml": cluster("first", "power:NoExecute")}, hour=1)
    fleet.reconcile(1.5)
    assert fleet.where(WEB) == []
    fleet.commit({"demo.yaml": make_rebalancer("web")}, hour=2)
    for hour in (2, 2.5):
        fleet.reconcile(hour)
        assert fleet.binding("web-deployment")["status"]["lastScheduledTime"] == "2026-03-02T08:00:00Z"
    fleet.commit({"first.yaml": cluster("first"), "second.yaml": cluster("second")}, hour=3)
    fleet.reconcile(3)
    binding = fleet.binding("web-deployment")
    assert fleet.where(WEB) == ["first"], "the first group, although the second one could be the next"
    assert (binding["spec"]["rescheduleTriggeredAt"], binding["status"]["lastScheduledTime"]) == (
        "2026-03-02T10:00:00Z",
        "2026-03-02T11:00:00Z",
    )


def test_the_binding_has_the_conditions_of_the_proposal_when_its_clusters_report(fleet: Fleet) -> None:
    report = BINDING.partition("spec:")[0].replace("demo-deploy-1", "web") + (
        "spec: {resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}}\n"
        "status: {aggregatedStatus: [{clusterName: member1, applied: true}, {clusterName: member2, applied: true}]}\n"
    )
    files = {"web.yaml": deployment("web", 3), "policy.yaml": prefer("static"), "1.yaml": cluster("member1")}
    fleet.commit({**files, "2.yaml": cluster("member2")})
    fleet.reconcile()
    fleet.commit({"demo.yaml": make_rebalancer("web")}, hour=1)
    fleet.reconcile(1)
    fleet.commit({"report.yaml": report}, hour=2)
    fleet.reconcile(2)
    conditions = fleet.binding("web-deployment")["status"]["conditions"]
    assert conditions == [
        {
            "lastTransitionTime": "2026-03-02T08:00:00Z",
            "message": "Binding has been scheduled successfully.",
            "reason": "Success",
            "status": "True",
            "type": "Scheduled",
        },
        {
            "lastTransitionTime": "2026-03-02T10:00:00Z",
            "message": "All works have been successfully applied",
            "reason": "FullyAppliedSuccess",
            "status": "True",
            "type": "FullyApplied",
        },
    ]


# The document


INVALID = """
# the member that is removed or set, and the finding
no workloads:            {edit: {workloads: []}, code: out-of-range}
workloads without value: {edit: {workloads: null}, code: missing-field}
workloads are missing:   {without: workloads, code: missing-field}
no apiVersion:           {without: apiVersion, code: missing-field}
no kind:                 {without: kind, code: missing-field}
no name:                 {without: name, code: missing-field}
"""


@pytest.mark.parametrize("case", (invalid := yaml.safe_load(INVALID)).values(), ids=invalid)
def test_what_a_rebalancer_must_have(case: dict[str, Any]) -> None:
    body = parse(APPLY)
    for holder in (body["spec"], body["spec"]["workloads"][1]):
        holder.pop(case.get("without"), None)
    body["spec"] |= case.get("edit", {})
    (finding,) = (finding for finding in gitsched.validate([body]) if finding.severity == "error")
    assert finding.code == case["code"]


def test_the_document_of_the_proposal_is_valid() -> None:
    assert gitsched.validate([parse(APPLY)]) == []


# In the life of a repository


@pytest.fixture
def rebalanced(pair: Fleet) -> Fleet:
    """`web` runs on the second cluster after a failure of the first; a rebalancer with a TTL of an hour is committed at hour 3."""
    pair.reconcile()
    pair.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=1)
    pair.reconcile(1.5)
    pair.commit({"clusters/first.yaml": cluster("first")}, hour=2)
    pair.reconcile(2)
    assert pair.where(WEB) == ["second"]
    pair.commit({"demo.yaml": make_rebalancer("web", ttl=3600)}, hour=3)
    return pair


def test_a_rebalance_runs_once_and_is_recorded_with_the_time_of_its_commit(rebalanced: Fleet) -> None:
    rebalanced.reconcile(3.5)
    assert rebalanced.where(WEB) == ["first"]
    run = rebalanced.reconcile(3.7)
    assert rebalanced.delivered(WEB) == ["first"]
    record = rebalanced.load(RECORD)
    assert (record["metadata"]["creationTimestamp"], record["status"]["finishTime"]) == ("2026-03-02T11:00:00Z",) * 2
    assert run.plan.next_wakeup == at_hour(4)
    assert rebalanced.reconcile(3.9).after is None
    rebalanced.commit({"clusters/first.yaml": cluster("first", "power:NoExecute")}, hour=3.95)
    rebalanced.reconcile(3.95)
    assert rebalanced.load(RECORD) == record, "the date stays, whatever is committed later"
    rebalanced.commit({"clusters/first.yaml": cluster("first")}, hour=5)
    rebalanced.reconcile(5.5)
    assert rebalanced.where(WEB) == ["second"], "the request was carried out before"


def test_an_expired_rebalancer_gives_one_commit_with_the_time_of_expiry(rebalanced: Fleet) -> None:
    rebalanced.reconcile(3)
    run = rebalanced.reconcile(9)
    assert run.after is not None
    assert "gitsched.io/expired-at" in rebalanced.load(RECORD)["metadata"]["annotations"]
    assert rebalanced.load(RECORD)["status"]["observedWorkloads"][0]["result"] == "Successful"
    assert (rebalanced.trailers()["Gitsched-Cause"], run.plan.time) == ("deadline", at_hour(4))
    assert rebalanced.git("log", "-1", "--format=%ct", "placements") == str(int(at_hour(4).timestamp()))
    (finding,) = [finding for finding in run.plan.findings if finding.code == "rebalancer-expired"]
    assert (str(finding.location), finding.severity) == ("demo.yaml:1:1", "info")
    assert [rebalanced.reconcile(hour).after for hour in (9, 10, 1000)] == [None] * 3
    assert [finding.code for finding in rebalanced.preview(11).plan.findings].count("rebalancer-expired") == 1
    rebalanced.commit({"demo.yaml": None}, hour=12)
    rebalanced.reconcile(12)
    assert RECORD not in rebalanced.files()
    assert rebalanced.where(WEB) == ["first"]


def test_without_a_ttl_a_rebalancer_never_expires(rebalanced: Fleet) -> None:
    rebalanced.commit({"demo.yaml": make_rebalancer("web")}, hour=3)
    rebalanced.reconcile(3)
    run = rebalanced.reconcile(3.2)
    assert (run.plan.next_wakeup, rebalanced.delivered(WEB)) == (None, ["first"])
    assert rebalanced.reconcile(100_000).after is None
    assert "gitsched.io/expired-at" not in rebalanced.load(RECORD)["metadata"]["annotations"]


def test_with_a_ttl_of_zero_a_rebalancer_expires_when_it_has_finished(rebalanced: Fleet) -> None:
    rebalanced.commit({"demo.yaml": make_rebalancer("web", ttl=0)}, hour=3)
    rebalanced.reconcile(3)
    record = rebalanced.load(RECORD)
    assert record["status"]["finishTime"] == record["metadata"]["annotations"]["gitsched.io/expired-at"] == "2026-03-02T11:00:00Z"


@pytest.mark.parametrize("hour", [3.5, 4], ids=["before the expiry", "at the time of the expiry"])
def test_an_edit_before_the_expiry_is_handled_and_defers_it(rebalanced: Fleet, hour: float) -> None:
    rebalanced.reconcile(3)
    rebalanced.commit({"demo.yaml": make_rebalancer("web", "other", ttl=3600), "other.yaml": deployment("other")}, hour=hour)
    run = rebalanced.reconcile(hour + 0.1)
    record = rebalanced.load(RECORD)
    assert [entry["workload"]["name"] for entry in record["status"]["observedWorkloads"]] == ["other", "web"]
    assert "gitsched.io/expired-at" not in record["metadata"]["annotations"]
    assert (record["status"]["observedGeneration"], run.plan.next_wakeup) == (2, at_hour(hour + 1))


def test_a_late_run_writes_the_tree_of_punctual_ones(make_fleet: Callable[[str], Fleet]) -> None:
    fleets = []
    for name, hours in (("punctual", (3, 4)), ("late", (7,))):
        fleet = make_fleet(name)
        fleet.commit({"web.yaml": deployment("web"), "policy.yaml": policy(), "1.yaml": cluster("first")})
        fleet.reconcile()
        fleet.commit({"demo.yaml": make_rebalancer("web", "ghost", ttl=3600)}, hour=3)
        for hour in hours:
            fleet.reconcile(hour)
        fleets.append(fleet)
    punctual, late = fleets
    assert punctual.files() == late.files()


def test_an_invalid_rebalancer_keeps_its_last_valid_version_and_is_not_repeated(rebalanced: Fleet) -> None:
    rebalanced.reconcile(3)
    before = rebalanced.read(RECORD)
    rebalanced.commit({"demo.yaml": make_rebalancer("web", ttl=3600).replace("workloads", "workload")}, hour=3.1)
    rebalanced.reconcile(3.1)
    assert rebalanced.read(RECORD) == before
    rebalanced.commit({"demo.yaml": make_rebalancer("web", ttl=3600)}, hour=3.2)
    rebalanced.reconcile(3.2)
    assert rebalanced.read(RECORD) == before


@pytest.mark.parametrize(
    "failback", [*(pytest.param(name, marks=pytest.mark.long) for name in ("Never", "OnRebalance")), "{AfterStabilization: 30m}"]
)
def test_a_long_running_process_commits_the_same_as_a_job(make_fleet: Callable[[str], Fleet], failback: str) -> None:
    heads = []
    for name in ("job", "resident"):
        fleet = make_fleet(name)
        config = (
            f"apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {{name: c}}\nspec: {{karmada: {{failback: {failback}}}}}\n"
        )
        files = {"web.yaml": deployment("web"), "policy.yaml": policy("first", "second"), "gitsched.yaml": config}
        fleet.commit({**files, "other.yaml": deployment("other"), "1.yaml": cluster("first"), "2.yaml": cluster("second")})
        session = Reconciler(fleet.settings())
        story: list[tuple[float, dict[str, str | bytes | None]]] = [
            (1, {"1.yaml": cluster("first", "power:NoExecute")}),
            (1.1, {"web.yaml": deployment("web", 3)}),
            (2, {"1.yaml": cluster("first")}),
            (2.2, {"web.yaml": deployment("web", 4)}),
            (3, {"demo.yaml": make_rebalancer("web", "new", ttl=1800)}),
            (3.1, {"web.yaml": deployment("web", 5)}),
            (3.2, {"demo.yaml": make_rebalancer("web", "other", ttl=1800)}),
            (3.3, {"new.yaml": deployment("new")}),
            (4, {"demo.yaml": make_rebalancer("web", "other", "new")}),
            (4.2, {"demo.yaml": make_rebalancer("web", "other")}),
            (4.3, {"late.yaml": deployment("late")}),
            (5, {"demo.yaml": make_rebalancer("web", "other", "late")}),
            (6, {"web.yaml": deployment("web", 1)}),
            (7, {"other.yaml": deployment("other", 7)}),
            (8, {"demo.yaml": make_rebalancer("other", ttl=600)}),
            (8.1, {"web.yaml": deployment("web", 6)}),
        ]
        made = []
        for hour, files in story:
            fleet.commit(files, hour=hour)
            for late in (0, 0.6):
                run = session.run(at_hour(hour + late)) if name == "resident" else fleet.reconcile(hour + late)
                made.append(run.after and fleet.git("rev-parse", f"{run.after}^{{tree}}"))
        heads.append((fleet.head, made))
    assert heads[0] == heads[1]
