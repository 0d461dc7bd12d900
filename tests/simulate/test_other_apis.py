"""Simulations and counterfactuals for Open Cluster Management, Krake and Knative."""

from __future__ import annotations

import pytest

from tests.builders.knative import node
from tests.builders.krake import application_yaml, cluster_yaml
from tests.scenarios.vreplicas import VreplicaFleet
from tests.simulate.conftest import Explain, Fleet, Simulate, effects, replicas_by_cluster

SET = """\
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: prod}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: prod, namespace: shop}
spec: {clusterSet: prod}
"""
PLACEMENT = """\
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: fast, namespace: shop}
spec:
  numberOfClusters: 2
  predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {disk: ssd}}}}]
  prioritizerPolicy:
    mode: Exact
    configurations:
    - {scoreCoordinate: {type: AddOn, addOn: {resourceName: default, scoreName: cpu}}, weight: 2}
"""
CACHE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: cache, namespace: shop, annotations: {cluster.open-cluster-management.io/placement: fast}}
"""


def managed(name: str, *, group: str = "prod", disk: str = "ssd", score: int = 0, zone: str = "a", taint: str = "") -> str:
    return f"""\
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: {name}
  labels: {{cluster.open-cluster-management.io/clusterset: {group}, disk: {disk}, topology.kubernetes.io/zone: {zone}}}
spec: {{hubAcceptsClient: true, taints: [{taint}]}}
---
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata: {{name: default, namespace: {name}}}
status: {{scores: [{{name: cpu, value: {score}}}]}}
"""


FILES = {
    "set.yaml": SET,
    "fast.yaml": PLACEMENT,
    "cache.yaml": CACHE,
    "ash.yaml": managed("ash", score=30, zone="a"),
    "bru.yaml": managed("bru", score=20, zone="a"),
    "cph.yaml": managed("cph", score=10, zone="b"),
}


@pytest.fixture
def managed_fleet(fleet: Fleet) -> Fleet:
    fleet.commit(FILES)
    fleet.reconcile()
    return fleet


@pytest.mark.usefixtures("managed_fleet")
def test_a_lost_managed_cluster_is_replaced_by_the_next_best(simulate: Simulate) -> None:
    result = effects(simulate("--lose", "ash", "-o", "json"))["cache"]
    assert (replicas_by_cluster(result["before"]).keys(), replicas_by_cluster(result["after"]).keys()) == (
        {"ash", "bru"},
        {"bru", "cph"},
    )


@pytest.mark.usefixtures("managed_fleet")
def test_zones_are_read_from_labels_and_a_drained_cluster_is_left(simulate: Simulate) -> None:
    assert replicas_by_cluster(effects(simulate("--lose", "zone/a", "-o", "json"))["cache"]["after"]).keys() == {"cph"}
    assert replicas_by_cluster(effects(simulate("--drain", "bru", "-o", "json"))["cache"]["after"]).keys() == {"ash", "cph"}


@pytest.mark.usefixtures("managed_fleet")
@pytest.mark.parametrize(
    ("verb", "why"),
    [
        ("--lose", "the source has no ManagedCluster; commit those of the hub (kubectl get managedclusters -o yaml)"),
        ("--drain", "of 3 clusters, 3 excluded because their taint gitsched.io/drain:NoSelect is not tolerated"),
    ],
)
def test_a_workload_of_a_placement_without_clusters_has_the_reasons(simulate: Simulate, verb: str, why: str) -> None:
    found = simulate(verb, "ash", verb, "bru", verb, "cph", "-o", "json")
    assert effects(found)["cache"]["why"] == f"Placement.cluster.open-cluster-management.io/shop/fast: {why}"


@pytest.mark.usefixtures("managed_fleet")
def test_a_copy_of_a_cluster_can_be_selected(simulate: Simulate) -> None:
    found = simulate("--lose", "ash", "--lose", "cph", "--add-like", "bru=bru2", "-o", "json")
    assert replicas_by_cluster(effects(found)["cache"]["after"]).keys() == {"bru", "bru2"}


@pytest.mark.parametrize(
    ("competitor", "expected", "fixed"),
    [
        pytest.param(
            managed("dub", score=10),
            "its score default/cpu were 21 instead of 10 (dub.yaml:11)",
            managed("dub", score=21),
            id="score",
        ),
        pytest.param(
            managed("dub", score=90, group="other"),
            "it were in the cluster set prod (dub.yaml:5)",
            managed("dub", score=90),
            id="set",
        ),
        pytest.param(
            managed("dub", score=90, disk="hdd"), "its label disk were ssd (dub.yaml:5)", managed("dub", score=90), id="label"
        ),
        pytest.param(
            managed("dub", score=90, taint="{key: power, effect: NoSelect}"),
            "its Placement tolerated power:NoSelect (fast.yaml:4)",
            managed("dub", score=90),
            id="taint",
        ),
        pytest.param(
            managed("dub", score=90, taint="{key: cluster.open-cluster-management.io/unreachable, effect: NoSelect}"),
            "current facts said that it is ready, so that it had no taint "
            "cluster.open-cluster-management.io/unreachable:NoSelect (dub.yaml:1)",
            managed("dub", score=90),
            id="not observed",
        ),
        pytest.param(
            managed("dub", score=90, taint="{key: gitsched.io/drain, effect: NoSelect}"),
            "gitsched uncordon dub had removed its taint gitsched.io/drain:NoSelect (dub.yaml:6)",
            managed("dub", score=90),
            id="drain",
        ),
        pytest.param(
            managed("dub", score=10, disk="hdd"),
            "its label disk were ssd (dub.yaml:5) and its score default/cpu were 21 instead of 10 (dub.yaml:11)",
            managed("dub", score=21),
            id="label and score",
        ),
    ],
)
def test_the_proposed_change_makes_the_placement_select_the_cluster(
    managed_fleet: Fleet, explain: Explain, competitor: str, expected: str, fixed: str
) -> None:
    managed_fleet.commit({"dub.yaml": competitor}, hour=1)
    managed_fleet.reconcile(1)
    assert "dub" not in managed_fleet.where("shop/configmap-cache")
    answer = explain("cm/shop/cache", "--why-not", "dub", "-o", "json")["advice"][0]
    assert (" and ".join(f"{c['text']} ({c['location']})" for c in answer["changes"]), answer["enough"]) == (expected, True)
    managed_fleet.commit({"dub.yaml": fixed}, hour=1.5)
    managed_fleet.reconcile(1.5)
    assert "dub" in managed_fleet.where("shop/configmap-cache")


def test_without_scores_a_higher_number_of_clusters_is_proposed(managed_fleet: Fleet, explain: Explain) -> None:
    plain = PLACEMENT.partition("  prioritizerPolicy")[0]
    managed_fleet.commit({"fast.yaml": plain}, hour=1)
    managed_fleet.reconcile(1)
    result = explain("cm/shop/cache", "--why-not", "cph")
    assert "cph: numberOfClusters were 3 instead of 2 (fast.yaml:5)" in result


@pytest.fixture
def krake(fleet: Fleet) -> Fleet:
    constrained = "  constraints: {cluster: {labels: [location is DE]}}\n"
    fleet.commit(
        {
            "echo.yaml": application_yaml("echo", constrained),
            "one.yaml": cluster_yaml("one"),
            "two.yaml": cluster_yaml("two").replace("location: DE", "location: FR"),
        }
    )
    fleet.reconcile()
    return fleet


@pytest.mark.usefixtures("krake")
def test_an_application_is_unplaced_if_its_only_krake_cluster_is_lost(simulate: Simulate) -> None:
    found = simulate("--lose", "tenant-a.one", "-o", "json")
    assert (found["homeless"], effects(found)["echo"]["why"]) == (1, "No matching Kubernetes cluster found")
    assert simulate("--sweep", "regions", "-o", "json")["losses"][0]["scope"]["name"] == "DE"
    assert "cannot be drained: its API does not support this" in simulate("--drain", "tenant-a.one", code=1)


def test_the_required_label_of_an_application_is_reported(krake: Fleet, explain: Explain) -> None:
    answer = explain("application/tenant-a/echo", "--why-not", "tenant-a.two", "-o", "json")["advice"][0]
    assert answer["changes"][0]["text"] == "it had the label location=DE"
    krake.commit({"one.yaml": cluster_yaml("one").replace("location: DE", "location: FR"), "two.yaml": cluster_yaml("two")}, hour=1)
    krake.reconcile(1)
    assert "tenant-a.two" in krake.where("shop/deployment-echo")


def test_a_label_constraint_that_is_probably_misspelt_is_corrected(krake: Fleet, explain: Explain) -> None:
    echo = application_yaml("echo", "  constraints: {cluster: {labels: [location is FRA]}}\n")
    krake.commit({"echo.yaml": echo}, hour=1)
    answer = explain("application/tenant-a/echo", "--why-not", "tenant-a.two", "-o", "json")["advice"][0]
    assert (answer["changes"][0]["text"], answer["enough"]) == ("its label constraint were location is FR", True)


@pytest.fixture
def stage(fleet: Fleet) -> VreplicaFleet:
    """Six vreplicas of `orders`: two pods of zone east have four of them, one of zone west has two."""
    return VreplicaFleet(fleet)


@pytest.mark.usefixtures("stage")
def test_vreplicas_on_pods_of_a_lost_zone_are_missing_and_stay_bound(simulate: Simulate) -> None:
    result = effects(simulate("--lose", "zone/east", "-o", "json"))["orders"]
    assert (result["replicas"], result["short"], replicas_by_cluster(result["after"])) == (6, 4, {"kafkasource-mt-adapter-2": 2})
    assert result["why"] == "4 of them stay on pods that are down until their node is back"


@pytest.mark.usefixtures("stage")
def test_new_vreplicas_avoid_a_lost_node(simulate: Simulate) -> None:
    result = effects(simulate("--lose", "node/n1", "--scale", "orders=2", "-o", "json"))["orders"]
    assert (result["replicas"], result["short"], sum(count or 0 for count in replicas_by_cluster(result["after"]).values())) == (
        12,
        2,
        10,
    )


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize(("sweep", "shorts"), [("nodes", [2, 2, 2]), ("zones", [4, 2])])
def test_the_loss_of_each_node_and_each_zone_is_simulated(simulate: Simulate, sweep: str, shorts: list[int]) -> None:
    assert [row["short"] for row in simulate("--sweep", sweep, "-o", "json")["losses"]] == shorts


def test_nodes_without_pods_cannot_be_lost(shop: Fleet, simulate: Simulate) -> None:
    shop.commit({"node.yaml": node("n1", "wa")}, hour=1)
    assert "there is no node 'n1'" in simulate("--lose", "node/n1", code=1)


@pytest.mark.usefixtures("managed_fleet")
def test_an_unreachable_managed_cluster_gets_the_taint_of_its_hub(simulate: Simulate) -> None:
    result = effects(simulate("--lose", "ash", "--lost", "silent", "-o", "json"))["cache"]
    assert replicas_by_cluster(result["after"]).keys() == {"bru", "cph"}


@pytest.mark.usefixtures("krake")
def test_a_krake_application_is_unplaced_while_its_cluster_is_offline(simulate: Simulate) -> None:
    assert simulate("--lose", "tenant-a.one", "--lost", "silent", "-o", "json")["homeless"] == 1
