"""The examples of Karmada's proposal "Multiple scheduling group" give the results that it describes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import pytest

import gitsched
from gitsched.decide.validation import validate_document
from gitsched.manifests.parser import parse_file

ONE_GROUP = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: foo
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: foo
  placement:
    clusterAffinity:
      clusterNames:
        - member1
        - member2
"""
ORDERED_GROUPS = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: nginx
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
  placement:
    clusterAffinities:
      - affinityName: dc-shanghai
        clusterNames:
          - unavailable
      - affinityName: dc-beijing
        clusterNames:
          - member1
      - affinityName: dc-hongkong
        clusterNames:
          - member2
"""
STATUS = """\
status:
  aggregatedStatus:
  - applied: true
    clusterName: member1
    health: Healthy
    status:
      availableReplicas: 2
      readyReplicas: 2
      replicas: 2
      updatedReplicas: 2
  conditions:
  - lastTransitionTime: "2023-02-04T09:38:20Z"
    message: All works have been successfully applied
    reason: FullyAppliedSuccess
    status: "True"
    type: FullyApplied
  - lastTransitionTime: "2023-02-04T09:38:20Z"
    message: Binding has been scheduled
    reason: BindingScheduled
    status: "True"
    type: Scheduled
  schedulerObservedGeneration: 2
  SchedulerObservedAffinityName: ds-hongkong
"""
ALTERNATIVE = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
 name: foo
spec:
 resourceSelectors:
   - apiVersion: apps/v1
     kind: Deployment
     name: foo
 placement:
   clusterAffinity:
     clusterNames:
       - member1
       - member2
     propagatePriority:
       - weight: 30
         preference:
           matchExpressions:
             - key: topology
               operator: In
               values:
                 - us 
       - weight: 20
         preference:
           matchExpressions:
             - key: topology
               operator: In
               values:
                 - cn 
"""  # noqa: W291 - word for word, spaces at the end of lines included
START = datetime(2023, 2, 4, tzinfo=UTC)
LATER = START + timedelta(hours=1)


def parse(text: str) -> list[dict[str, Any]]:
    return [document.body for document in parse_file(text.encode(), path="example.yaml", validate=None).documents]


def cluster(name: str, *taints: dict[str, str]) -> dict[str, Any]:
    spec: dict[str, Any] = {"syncMode": "Push", "taints": list(taints)}
    return {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}, "spec": spec}


def deployment(name: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": 2}}


def down(effect: str) -> dict[str, str]:
    return {"key": "example.com/power", "value": "off", "effect": effect}


def where(binding: dict[str, Any]) -> list[str]:
    return [entry["name"] for entry in binding["spec"].get("clusters", [])]


def observed(binding: dict[str, Any]) -> str | None:
    name: str | None = binding["status"].get("schedulerObservingAffinityName")
    return name


def place(policy: str, *clusters: dict[str, Any], after: dict[str, Any] | None = None, now: datetime = START) -> dict[str, Any]:
    name = parse(policy)[0]["metadata"]["name"]
    bodies = [*parse(policy), deployment(name), *clusters]
    (binding,) = [
        d for d in gitsched.schedule(bodies, previous=[after] if after else [], now=now).documents if "Binding" in d["kind"]
    ]
    return binding


def test_one_group_selects_the_clusters_it_names() -> None:
    assert where(place(ONE_GROUP, cluster("member1"), cluster("member2"), cluster("member3"))) == ["member1", "member2"]


@pytest.mark.parametrize(
    "shanghai",
    [
        pytest.param([], id="its cluster does not exist"),
        pytest.param([cluster("unavailable", down("NoSchedule"))], id="its cluster is tainted"),
        pytest.param([cluster("unavailable", down("NoExecute"))], id="its cluster is down"),
    ],
)
def test_the_first_group_is_skipped_when_no_cluster_fits_and_later_ones_are_not_tried(shanghai: list[Any]) -> None:
    binding = place(ORDERED_GROUPS, *shanghai, cluster("member1"), cluster("member2"))
    assert where(binding) == ["member1"]
    assert observed(binding) == "dc-beijing"


def test_the_first_group_is_used_when_it_fits() -> None:
    binding = place(ORDERED_GROUPS, cluster("unavailable"), cluster("member1"), cluster("member2"))
    assert (where(binding), observed(binding)) == (["unavailable"], "dc-shanghai")


def test_when_the_cluster_fails_the_next_group_is_used_and_stays_in_use() -> None:
    placed = place(ORDERED_GROUPS, cluster("member1"), cluster("member2"))
    failed = place(ORDERED_GROUPS, cluster("member1", down("NoExecute")), cluster("member2"), after=placed, now=LATER)
    assert (where(failed), observed(failed)) == (["member2"], "dc-hongkong")
    (task,) = failed["spec"]["gracefulEvictionTasks"]
    assert (task["fromCluster"], task["producer"], task["replicas"]) == ("member1", "TaintManager", 2)
    for hours in (2, 24):
        now = START + timedelta(hours=hours)
        recovered = place(ORDERED_GROUPS, cluster("unavailable"), cluster("member1"), cluster("member2"), after=failed, now=now)
        assert (where(recovered), observed(recovered)) == (["member2"], "dc-hongkong")
        assert "gracefulEvictionTasks" not in recovered["spec"]
        assert recovered["status"]["lastScheduledTime"] == failed["status"]["lastScheduledTime"]


def test_when_no_group_fits_the_first_group_gives_the_reason() -> None:
    binding = place(ORDERED_GROUPS, cluster("member9"))
    assert (where(binding), observed(binding)) == ([], None)
    (condition,) = binding["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "NoClusterFit")
    assert condition["message"].startswith("0/1 clusters are available: 1 cluster(s) did not match")


def test_a_cluster_may_be_in_several_groups() -> None:
    policy = ORDERED_GROUPS.replace("- unavailable", "- unavailable\n          - member2")
    binding = place(policy, cluster("member1"), cluster("member2"))
    assert (where(binding), observed(binding)) == (["member2"], "dc-shanghai")


def test_the_observed_group_is_independent_of_other_groups_for_a_cluster_policy() -> None:
    policy = ORDERED_GROUPS.replace("kind: Prop", "kind: ClusterProp")
    binding = place(policy, cluster("member1"), cluster("member2"))
    assert (binding["kind"], where(binding), observed(binding)) == ("ResourceBinding", ["member1"], "dc-beijing")


def test_the_excerpt_of_a_status_is_not_a_document() -> None:
    assert parse_file(STATUS.encode(), path="status.yaml", validate=None).status == "not-a-resource"


@pytest.mark.parametrize(
    ("written", "group"),
    [
        pytest.param("SchedulerObservedAffinityName: ds-hongkong", "dc-beijing", id="as given, which is no member of the API"),
        pytest.param("schedulerObservingAffinityName: ds-hongkong", "dc-beijing", id="a group that the policy does not have"),
        pytest.param("schedulerObservingAffinityName: dc-hongkong", "dc-hongkong", id="a group of the policy"),
    ],
)
def test_the_excerpt_completed_to_a_binding_sets_the_observed_group(written: str, group: str) -> None:
    head = "apiVersion: work.karmada.io/v1alpha2\nkind: ResourceBinding\nmetadata: {name: nginx-deployment, namespace: default}\nspec: {}\n"
    (previous,) = parse(head + STATUS.replace("SchedulerObservedAffinityName: ds-hongkong", written))
    binding = place(ORDERED_GROUPS, cluster("member1"), cluster("member2"), after=previous)
    assert observed(binding) == group


def test_the_rejected_alternative_is_read_without_its_unknown_field() -> None:
    (body,) = parse(ALTERNATIVE)
    (issue,) = validate_document(body).issues
    assert (issue.severity, issue.pointer) == ("warning", ("spec", "placement", "clusterAffinity", "propagatePriority"))
    assert where(place(ALTERNATIVE, cluster("member1"), cluster("member2"), cluster("member3"))) == ["member1", "member2"]


def test_groups_and_a_single_affinity_exclude_each_other() -> None:
    both = ORDERED_GROUPS.replace(
        "    clusterAffinities:", "    clusterAffinity: {clusterNames: [member1]}\n    clusterAffinities:"
    )
    errors = [finding for finding in gitsched.validate(parse(both)) if finding.severity == "error"]
    assert ["co-exist" in finding.message for finding in errors] == [True]


def test_names_of_groups_are_unique() -> None:
    errors = [f for f in gitsched.validate(parse(ORDERED_GROUPS.replace("dc-hongkong", "dc-beijing"))) if f.severity == "error"]
    assert ["unique" in finding.message for finding in errors] == [True]


@pytest.mark.parametrize("placement", ["placement: {}", "placement: {clusterAffinity: {}}"])
def test_without_affinity_any_cluster_is_a_candidate(placement: str) -> None:
    policy = ONE_GROUP.partition("  placement:")[0] + f"  {placement}\n"
    assert where(place(policy, cluster("member1"), cluster("member2"), cluster("member3"))) == ["member1", "member2", "member3"]


def test_a_cluster_of_a_skipped_group_is_selected_by_the_next_group() -> None:
    policy = ORDERED_GROUPS.replace("- unavailable", "- member1\n          - member2").replace(
        "  placement:", "  placement:\n    spreadConstraints: [{spreadByField: cluster, minGroups: 2, maxGroups: 2}]"
    )
    policy = policy.replace(
        "          - member1\n      - affinityName: dc-hong",
        "          - member1\n          - member3\n      - affinityName: dc-hong",
    )
    binding = place(policy, cluster("member1"), cluster("member2", down("NoSchedule")), cluster("member3"))
    assert (where(binding), observed(binding)) == (["member1", "member3"], "dc-beijing")


def test_a_group_needs_a_name() -> None:
    findings = gitsched.validate(parse(ORDERED_GROUPS.replace("affinityName: dc-hongkong", "exclude: []")))
    (error,) = [finding for finding in findings if finding.severity == "error"]
    assert "affinityName" in error.message


@pytest.mark.parametrize(
    "affinity",
    [
        pytest.param("clusterNames: [member1, member3]", id="names"),
        pytest.param("exclude: [member2]", id="excluded names"),
        pytest.param("labelSelector: {matchLabels: {tier: main}}", id="labels"),
        pytest.param("fieldSelector: {matchExpressions: [{key: region, operator: In, values: [east]}]}", id="fields"),
    ],
)
def test_a_group_selects_as_a_single_affinity_does(affinity: str) -> None:
    clusters = []
    for name, tier, region in (("member1", "main", "east"), ("member2", "backup", "west"), ("member3", "main", "east")):
        body = cluster(name)
        body["metadata"]["labels"] = {"tier": tier}
        body["spec"] |= {"provider": "local", "region": region}
        clusters.append(body)
    head = ONE_GROUP.partition("    clusterAffinity:")[0]
    single = place(head + f"    clusterAffinity: {{{affinity}}}\n", *clusters)
    group = place(head + f"    clusterAffinities: [{{affinityName: main, {affinity}}}]\n", *clusters)
    assert where(single) == where(group) == ["member1", "member3"]


def test_when_the_cluster_fails_another_one_of_its_group_is_used_first() -> None:
    policy = ORDERED_GROUPS.replace("- member1", "- member1\n          - member3").replace(
        "  placement:", "  placement:\n    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]"
    )
    members = (cluster("member2"), cluster("member3"))
    placed = place(policy, cluster("member1"), *members)
    failed = place(policy, cluster("member1", down("NoExecute")), *members, after=placed, now=LATER)
    assert (where(placed), where(failed), observed(failed)) == (["member1"], ["member3"], "dc-beijing")


@pytest.mark.parametrize(
    "available", [names for size in range(4) for names in combinations(("member1", "member2", "unavailable"), size)]
)
def test_a_policy_never_uses_two_groups_at_once(available: tuple[str, ...]) -> None:
    binding = place(ORDERED_GROUPS, *map(cluster, available))
    assert where(binding) == [name for name in ("unavailable", "member1", "member2") if name in available][:1]


# What the proposal is for


SCHEDULING = {
    "Duplicated": "{replicaSchedulingType: Duplicated}",
    "static weights": "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}",
    "dynamicWeight": (
        "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}"
    ),
    "Aggregated": "{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}",
}
PRIVATE_FIRST = """\
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: shop
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: shop
  placement:
    replicaScheduling: %s
    clusterAffinities:
      - affinityName: private
        labelSelector:
          matchLabels: {ownership: private}
      - affinityName: managed
        labelSelector:
          matchLabels: {ownership: managed}
"""


def owned(name: str, ownership: str, pods: int) -> dict[str, Any]:
    """A cluster with capacity for a number of pods."""
    body = cluster(name)
    body["metadata"]["labels"] = {"ownership": ownership}
    return {**body, "status": {"resourceSummary": {"allocatable": {"cpu": "64", "pods": str(pods)}}}}


@pytest.mark.parametrize(
    ("scheduling", "group"),
    [("Duplicated", "private"), ("static weights", "private"), ("dynamicWeight", "managed"), ("Aggregated", "managed")],
)
def test_managed_clusters_are_the_backup_of_private_ones(scheduling: str, group: str) -> None:
    policy = parse(PRIVATE_FIRST % SCHEDULING[scheduling])
    managed = owned("aws", "managed", 9)

    def schedule(pods: int) -> tuple[str | None, list[str]]:
        result = gitsched.schedule([*policy, deployment("shop"), owned("dc", "private", pods), managed], now=START)
        (binding,) = (body for body in result.documents if "Binding" in body["kind"])
        return observed(binding), [finding.code for finding in result.findings if finding.severity != "info"]

    assert schedule(pods=9) == ("private", [])
    reported = ["capacity-exceeded"] if group == "private" else []
    assert schedule(pods=1) == (group, reported), "Karmada compares capacity only if replicas are divided by it"


@pytest.mark.parametrize("scheduling", SCHEDULING)
def test_every_way_of_scheduling_uses_the_groups_in_their_order_and_fails_over(scheduling: str) -> None:
    policy = ORDERED_GROUPS.replace("  placement:", f"  placement:\n    replicaScheduling: {SCHEDULING[scheduling]}")
    placed = place(policy, cluster("member1"), cluster("member2"))
    failed = place(policy, cluster("member1", down("NoExecute")), cluster("member2"), after=placed, now=LATER)
    assert [(binding["spec"]["clusters"], observed(binding)) for binding in (placed, failed)] == [
        ([{"name": "member1", "replicas": 2}], "dc-beijing"),
        ([{"name": "member2", "replicas": 2}], "dc-hongkong"),
    ]


@pytest.mark.parametrize("kind", ["PropagationPolicy", "ClusterPropagationPolicy"])
def test_a_binding_has_the_groups_of_its_policy_also_after_an_edit(kind: str) -> None:
    policy = ORDERED_GROUPS.replace("kind: PropagationPolicy", f"kind: {kind}")
    edited = policy.replace("dc-hongkong", "dc-shenzhen")
    first = place(policy, cluster("member1"), cluster("member2"))
    second = place(edited, cluster("member1"), cluster("member2"), after=first, now=LATER)
    for binding, text in ((first, policy), (second, edited)):
        assert binding["spec"]["placement"]["clusterAffinities"] == parse(text)[0]["spec"]["placement"]["clusterAffinities"]


def test_a_binding_without_groups_observes_none() -> None:
    binding = place(ONE_GROUP, cluster("member1"), cluster("member2"))
    assert "schedulerObservingAffinityName" not in binding["status"]


def test_the_status_of_the_proposal_is_written_when_clusters_report_it() -> None:
    head = "apiVersion: work.karmada.io/v1alpha2\nkind: ResourceBinding\nmetadata: {name: nginx-deployment, namespace: default}\nspec: {}\n"
    (report,) = parse(head + STATUS)
    bodies = [*parse(ORDERED_GROUPS), deployment("nginx"), cluster("member1"), cluster("member2"), report]
    (binding,) = (body for body in gitsched.schedule(bodies, now=START).documents if body["kind"] == "ResourceBinding")
    assert binding["status"]["aggregatedStatus"] == parse(head + STATUS)[0]["status"]["aggregatedStatus"]
    told = {condition["type"]: (condition["status"], condition["message"]) for condition in binding["status"]["conditions"]}
    assert told == {
        "Scheduled": ("True", "Binding has been scheduled successfully."),
        "FullyApplied": ("True", "All works have been successfully applied"),
    }


def test_a_binding_has_no_generation_because_its_spec_and_its_status_are_written_together() -> None:
    placed = place(ORDERED_GROUPS, cluster("member1"), cluster("member2"))
    failed = place(ORDERED_GROUPS, cluster("member1", down("NoExecute")), cluster("member2"), after=placed, now=LATER)
    for binding in (placed, failed):
        assert "generation" not in binding["metadata"]
        assert "schedulerObservedGeneration" not in binding["status"]
    assert failed["status"]["lastScheduledTime"] > placed["status"]["lastScheduledTime"]
