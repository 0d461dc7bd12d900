"""The user stories in Open Cluster Management's proposal for extensible scheduling, with its own YAML."""

from __future__ import annotations

import json
from collections.abc import Callable
from textwrap import indent
from typing import Any

import pytest
import yaml

import gitsched
from tests.builders.ocm import Body, bound_global_set, managed_cluster, taint, to_yaml

Make = Callable[[str], Any]
"""The fixture make_fleet: creates a Fleet with a name."""

SETS = to_yaml(*bound_global_set("ns1"))
SCORES = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata:
  name: default
  namespace: cluster1
status:
  conditions:
  - lastTransitionTime: "2021-10-28T08:31:39Z"
    message: AddOnPlacementScore updated successfully
    reason: AddOnPlacementScoreUpdated
    status: "True"
    type: AddOnPlacementScoreUpdated
  validUntil: "2021-10-29T18:31:39Z"
  scores:
  - name: "cpuratio"
    value: 88
  - name: "memratio"
    value: 77
  - name: "cpu"
    value: 66
  - name: "mem"
    value: 55
"""
OLDEST = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata:
  name: placement
  namespace: ns1
spec:
  numberOfClusters: 3
  prioritizerPolicy:
    mode: Exact
    configurations:
      - scoreCoordinate:
          type: BuildIn
          buildIn: Steady
        weight: 3
      - scoreCoordinate:
          type: AddOn
          addOn:
            resourceName: default
            scoreName: cpuratio
        weight: 1
"""
TEMPLATE = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata:
  name: default
  namespace: {managed cluster namespace}
status:
  conditions:
  - lastTransitionTime: "2021-10-28T08:31:39Z"
    message: AddOnPlacementScore updated successfully
    reason: AddOnPlacementScoreUpdated
    status: "True"
    type: AddOnPlacementScoreUpdated
  validUntil: "2021-10-29T18:31:39Z"
  scores:
  - name: "cpuratio"
    value: 88
  - prioritizer: "memratio"
    value: 77
"""
MOST = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata:
  name: placement
  namespace: ns1
spec:
  numberOfClusters: 3
  prioritizerPolicy:
    mode: Exact
    configurations:
      - scoreCoordinate:
          type: AddOn
          addOn:
            resourceName: default
            scoreName: cpuratio
        weight: 1
"""
LEAST = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata:
  name: placement
  namespace: ns1
spec:
  numberOfClusters: 1
  prioritizerPolicy:
    mode: Exact
    configurations:
      - scoreCoordinate:
          type: AddOn
          addOn:
            resourceName: default
            scoreName: cpuratio
        weight: -1
"""
PRIMARY_SCORE = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata:
  name: disasterrecovery
  namespace: primary
status:
  conditions:
  - lastTransitionTime: "2021-10-28T08:31:39Z"
    message: AddOnPlacementScore updated successfully
    reason: AddOnPlacementScoreUpdated
    status: "True"
    type: AddOnPlacementScoreUpdated
  scores:
  - name: "workload"
    value: 100
"""
BACKUP_SCORE = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata:
  name: disasterrecovery
  namespace: backup
status:
  conditions:
  - lastTransitionTime: "2021-10-28T08:31:39Z"
    message: AddOnPlacementScore updated successfully
    reason: AddOnPlacementScoreUpdated
    status: "True"
    type: AddOnPlacementScoreUpdated
  scores:
  - name: "workload"
    value: 0
"""
RECOVERY = """\
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: Placement
metadata:
  name: placement
  namespace: ns1
spec:
  numberOfClusters: 1
  prioritizerPolicy:
    mode: Exact
    configurations:
      - scoreCoordinate:
          type: AddOn
          addOn:
            resourceName: disasterrecovery
            scoreName: workload
        weight: 1
"""
LOST = "cluster.open-cluster-management.io/unavailable"
WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: ns1
  annotations:
    cluster.open-cluster-management.io/placement: placement
spec:
  replicas: 2 # as many as it takes
"""


def managed(name: str, *taints: Body) -> str:
    return to_yaml(managed_cluster(name, taints=taints))


def scored(cluster: str, value: int, until: str | None = None) -> str:
    """Return the scores of the proposal for another cluster, with another cpuratio."""
    text = SCORES.replace("namespace: cluster1", f"namespace: {cluster}").replace("value: 88", f"value: {value}")
    line = '  validUntil: "2021-10-29T18:31:39Z"\n'
    return text.replace(line, f'  validUntil: "{until}"\n' if until else "")


RATIOS = {"cluster1": 88, "cluster2": 66, "cluster3": 40, "cluster4": 10, "cluster5": -5}
FLEET = {"sets.yaml": SETS, **{f"clusters/{name}.yaml": managed(name) for name in RATIOS}, "web.yaml": WORKLOAD}
PAIR = {
    "sets.yaml": SETS,
    "clusters/primary.yaml": managed("primary"),
    "clusters/backup.yaml": managed("backup"),
    "scores/primary.yaml": PRIMARY_SCORE,
    "scores/backup.yaml": BACKUP_SCORE,
    "placement.yaml": RECOVERY,
    "web.yaml": WORKLOAD,
}


def codes(run: Any) -> list[str]:
    return [finding.code for finding in run.plan.findings if finding.severity != "info"]


def decided(fleet: Any) -> list[str]:
    document = fleet.load("status/cluster.open-cluster-management.io/placementdecision/ns1/placement-decision-1.yaml")
    return [entry["clusterName"] for entry in document["status"]["decisions"]]


@pytest.mark.parametrize("text", [SCORES, OLDEST, MOST, LEAST, PRIMARY_SCORE, BACKUP_SCORE, RECOVERY])
def test_the_documents_of_the_proposal_are_valid(text: str) -> None:
    assert gitsched.validate([yaml.safe_load(text)]) == []


def test_the_example_with_steady_and_cpuratio_has_its_final_scores(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    scores = {f"scores/{name}.yaml": scored(name, value) for name, value in RATIOS.items()}
    fleet.commit({**FLEET, **scores, "placement.yaml": OLDEST})
    fleet.reconcile()
    path = "status/cluster.open-cluster-management.io/placementdecision/ns1/placement-decision-1.yaml"
    totals = json.loads(fleet.load(path)["metadata"]["annotations"]["gitsched.io/scores"])
    assert totals == {"cluster1": 88, "cluster2": 66, "cluster3": 40}, "nothing is steady before the first decision"
    fleet.commit({"scores/cluster5.yaml": scored("cluster5", 100)}, hour=1)
    fleet.reconcile(hour=1)
    assert decided(fleet) == ["cluster1", "cluster2", "cluster3"], "3 times 100 for Steady is more than a lead of 60"


def test_two_placements_with_opposite_weights_choose_the_first_and_the_last(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    scores = {f"scores/{name}.yaml": scored(name, value) for name, value in RATIOS.items()}
    top = MOST.replace("numberOfClusters: 3", "numberOfClusters: 1")
    last = LEAST.replace("name: placement", "name: last")
    fleet.commit({**FLEET, **scores, "placement.yaml": top, "last.yaml": last})
    fleet.reconcile()
    assert decided(fleet) == ["cluster1"]
    path = "status/cluster.open-cluster-management.io/placementdecision/ns1/last-decision-1.yaml"
    assert [entry["clusterName"] for entry in fleet.load(path)["status"]["decisions"]] == ["cluster5"]


def test_a_list_of_scores_is_read_as_its_items(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    head = "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: AddOnPlacementScoreList\nitems:\n"
    items = "".join("- " + indent(scored(name, value), "  ").lstrip() for name, value in RATIOS.items())
    fleet.commit({**FLEET, "scores.yaml": head + items, "placement.yaml": LEAST})
    assert codes(fleet.reconcile()) == []
    assert decided(fleet) == ["cluster5"]


@pytest.mark.parametrize("placement", [MOST, OLDEST], ids=["cpuratio alone", "Steady beside it"])
def test_stories_1_2_and_4_the_three_clusters_with_the_highest_scores_are_chosen(make_fleet: Make, placement: str) -> None:
    fleet = make_fleet("fleet")
    scores = {f"scores/{name}.yaml": scored(name, value) for name, value in RATIOS.items()}
    fleet.commit({**FLEET, **scores, "placement.yaml": placement})
    run = fleet.reconcile()
    assert codes(run) == []
    assert decided(fleet) == ["cluster1", "cluster2", "cluster3"]
    assert fleet.where("ns1/deployment-web") == ["cluster1", "cluster2", "cluster3"]
    assert fleet.read("clusters/cluster1/ns1/deployment-web.yaml") == WORKLOAD


def test_a_negative_weight_chooses_the_lowest_score(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    scores = {f"scores/{name}.yaml": scored(name, value) for name, value in RATIOS.items()}
    fleet.commit({**FLEET, **scores, "placement.yaml": LEAST})
    fleet.reconcile()
    assert decided(fleet) == ["cluster5"]


def test_a_new_score_moves_the_workload_and_the_same_result_makes_no_commit(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    scores = {f"scores/{name}.yaml": scored(name, value) for name, value in RATIOS.items()}
    fleet.commit({**FLEET, **scores, "placement.yaml": MOST})
    fleet.reconcile()
    first = fleet.head
    fleet.commit({"scores/cluster2.yaml": scored("cluster2", 70)}, hour=1)
    fleet.reconcile(hour=1)
    assert fleet.head == first, "same result, no commit"
    fleet.commit({"scores/cluster5.yaml": scored("cluster5", 90)}, hour=2)
    fleet.reconcile(hour=2)
    assert fleet.where("ns1/deployment-web") == ["cluster1", "cluster2", "cluster5"]


def test_an_expired_score_counts_as_0_directly_after_valid_until(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    until = {"cluster1": "2026-03-02T10:00:00Z"}
    scores = {f"scores/{name}.yaml": scored(name, value, until.get(name)) for name, value in RATIOS.items()}
    fleet.commit({**FLEET, **scores, "placement.yaml": MOST.replace("numberOfClusters: 3", "numberOfClusters: 1")})
    run = fleet.reconcile(hour=1)
    assert decided(fleet) == ["cluster1"]
    assert run.plan.next_wakeup is not None
    assert f"{run.plan.next_wakeup:%H:%M:%S.%f}" == "10:00:00.000001"
    fleet.reconcile(hour=2)
    assert decided(fleet) == ["cluster1"], "the score is valid at validUntil"
    run = fleet.reconcile(hour=2.001)
    assert decided(fleet) == ["cluster2"]
    assert codes(run) == ["ocm-scores-expired"]


def test_empty_and_missing_scores_count_as_0(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    scores = {f"scores/{name}.yaml": scored(name, value) for name, value in RATIOS.items()}
    empty = "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: AddOnPlacementScore\nmetadata:\n  name: default\n"
    scores["scores/cluster1.yaml"] = f"{empty}  namespace: cluster1\nstatus: {{scores: []}}\n"
    del scores["scores/cluster2.yaml"]
    fleet.commit({**FLEET, **scores, "placement.yaml": MOST})
    fleet.reconcile()
    assert decided(fleet) == ["cluster1", "cluster3", "cluster4"]


def test_the_score_template_of_the_proposal_is_invalid_until_completed(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    fleet.commit({**FLEET, "placement.yaml": MOST, "scores/template.yaml": TEMPLATE})
    assert "invalid-namespace" in codes(fleet.reconcile())
    named = TEMPLATE.replace("{managed cluster namespace}", "cluster4")
    fleet.commit({"scores/template.yaml": named}, hour=1)
    run = fleet.reconcile(hour=1)
    assert "missing-field" in codes(run), "the second score has no name"
    fleet.commit({"scores/template.yaml": named.replace("- prioritizer:", "- name:").replace("2021-10-29", "2031-10-29")}, hour=2)
    assert codes(fleet.reconcile(hour=2)) == ["ocm-score-missing"], "only one cluster has a score"
    assert decided(fleet) == ["cluster1", "cluster2", "cluster4"]


def test_story_3_the_workload_moves_to_the_backup_and_back(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    fleet.commit(PAIR)
    assert codes(fleet.reconcile()) == []
    assert fleet.where("ns1/deployment-web") == ["primary"]
    fleet.commit({"clusters/primary.yaml": managed("primary", taint(LOST))}, hour=1)
    fleet.reconcile(hour=1)
    assert fleet.where("ns1/deployment-web") == ["backup"]
    status = fleet.load("status/cluster.open-cluster-management.io/placement/ns1/placement.yaml")["status"]
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [
        ("PlacementMisconfigured", "False"),
        ("PlacementSatisfied", "True"),
    ]
    fleet.commit({"clusters/primary.yaml": managed("primary")}, hour=2)
    fleet.reconcile(hour=2)
    assert fleet.where("ns1/deployment-web") == ["primary"], "mode Exact has no Steady score"


def test_story_3_in_additive_mode_the_workload_stays_on_the_backup(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    fleet.commit({**PAIR, "placement.yaml": RECOVERY.replace("mode: Exact", "mode: Additive")})
    fleet.reconcile()
    assert decided(fleet) == ["primary"]
    fleet.commit({"clusters/primary.yaml": managed("primary", taint(LOST))}, hour=1)
    fleet.reconcile(hour=1)
    fleet.commit({"clusters/primary.yaml": managed("primary")}, hour=2)
    fleet.reconcile(hour=2)
    assert decided(fleet) == ["backup"], "Steady makes the totals equal, backup is first by name"


def test_story_3_a_toleration_delays_the_move_until_it_ends(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    toleration = f"  tolerations:\n  - {{key: {LOST}, operator: Exists, tolerationSeconds: 300}}\n"
    unavailable = {**taint(LOST), "timeAdded": "2026-03-02T09:00:00Z"}
    fleet.commit(
        {**PAIR, "placement.yaml": RECOVERY + toleration, "clusters/primary.yaml": managed("primary", unavailable)}, hour=1
    )
    run = fleet.reconcile(hour=1)
    assert decided(fleet) == ["primary"]
    assert run.plan.next_wakeup is not None
    assert f"{run.plan.next_wakeup:%H:%M:%S}" == "09:05:00"
    late = make_fleet("late")
    late.commit({**PAIR, "placement.yaml": RECOVERY + toleration, "clusters/primary.yaml": managed("primary", unavailable)}, hour=1)
    fleet.reconcile(hour=1 + 299 / 3600)
    assert decided(fleet) == ["primary"]
    fleet.reconcile(hour=1 + 300 / 3600)
    assert fleet.where("ns1/deployment-web") == ["backup"]
    late.reconcile(hour=9)
    assert fleet.git("rev-parse", "placements:status") == late.git("rev-parse", "placements:status"), (
        "a late run writes the same bytes"
    )


def test_story_3_no_select_if_new_keeps_existing_workloads(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    fleet.commit(PAIR)
    fleet.reconcile()
    later = RECOVERY.replace("name: placement", "name: later")
    fleet.commit({"clusters/primary.yaml": managed("primary", taint(LOST, "NoSelectIfNew")), "later.yaml": later}, hour=1)
    fleet.reconcile(hour=1)
    assert decided(fleet) == ["primary"]
    document = fleet.load("status/cluster.open-cluster-management.io/placementdecision/ns1/later-decision-1.yaml")
    assert document["status"]["decisions"] == [{"clusterName": "backup", "reason": ""}]


def test_story_3_no_cluster_is_chosen_if_all_have_the_taint(make_fleet: Make) -> None:
    fleet = make_fleet("fleet")
    fleet.commit(PAIR)
    fleet.reconcile()
    fleet.commit({f"clusters/{name}.yaml": managed(name, taint(LOST)) for name in ("primary", "backup")}, hour=1)
    fleet.reconcile(hour=1)
    assert decided(fleet) == []
    assert fleet.where("ns1/deployment-web") == []
