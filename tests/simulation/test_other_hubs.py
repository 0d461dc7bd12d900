"""Simulations and counterfactuals for Open Cluster Management and Krake."""

from __future__ import annotations

import pytest

from tests.builders.knative import node
from tests.builders.krake import application_yaml, cluster_yaml
from tests.scenarios.vreplicas import VreplicaFleet
from tests.simulation.conftest import Explain, Fleet, Simulate, effects, places

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
    told = effects(simulate("--lose", "ash", "-o", "json"))["cache"]
    assert (places(told["before"]).keys(), places(told["after"]).keys()) == ({"ash", "bru"}, {"bru", "cph"})


@pytest.mark.usefixtures("managed_fleet")
def test_zones_are_known_by_label_and_a_drained_cluster_is_left(simulate: Simulate) -> None:
    assert places(effects(simulate("--lose", "zone/a", "-o", "json"))["cache"]["after"]).keys() == {"cph"}
    assert places(effects(simulate("--drain", "bru", "-o", "json"))["cache"]["after"]).keys() == {"ash", "cph"}


@pytest.mark.usefixtures("managed_fleet")
def test_a_copy_of_a_cluster_can_be_chosen(simulate: Simulate) -> None:
    found = simulate("--lose", "ash", "--lose", "cph", "--add-like", "bru=bru2", "-o", "json")
    assert places(effects(found)["cache"]["after"]).keys() == {"bru", "bru2"}


@pytest.mark.parametrize(
    ("rival", "told", "mended"),
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
            managed("dub", score=10, disk="hdd"),
            "its label disk were ssd (dub.yaml:5) and its score default/cpu were 21 instead of 10 (dub.yaml:11)",
            managed("dub", score=21),
            id="label and score",
        ),
    ],
)
def test_what_would_bring_a_placement_to_a_cluster_does(
    managed_fleet: Fleet, explain: Explain, rival: str, told: str, mended: str
) -> None:
    managed_fleet.commit({"dub.yaml": rival}, hour=1)
    managed_fleet.reconcile(1)
    assert "dub" not in managed_fleet.where("shop/configmap-cache")
    answer = explain("cm/shop/cache", "--why-not", "dub", "-o", "json")["advice"][0]
    assert (" and ".join(f"{c['text']} ({c['location']})" for c in answer["changes"]), answer["enough"]) == (told, True)
    managed_fleet.commit({"dub.yaml": mended}, hour=1.5)
    managed_fleet.reconcile(1.5)
    assert "dub" in managed_fleet.where("shop/configmap-cache")


def test_without_a_score_to_raise_more_clusters_would_have_to_be_wanted(managed_fleet: Fleet, explain: Explain) -> None:
    plain = PLACEMENT.partition("  prioritizerPolicy")[0]
    managed_fleet.commit({"fast.yaml": plain}, hour=1)
    managed_fleet.reconcile(1)
    told = explain("cm/shop/cache", "--why-not", "cph")
    assert "cph: numberOfClusters were 3 instead of 2 (fast.yaml:5)" in told


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
def test_a_lost_cluster_of_krake_leaves_an_application_without_a_place(simulate: Simulate) -> None:
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


@pytest.fixture
def stage(fleet: Fleet) -> VreplicaFleet:
    """Six vreplicas of `orders`: two pods of zone east have four of them, one of zone west has two."""
    return VreplicaFleet(fleet)


@pytest.mark.usefixtures("stage")
def test_vreplicas_on_the_pods_of_a_lost_zone_are_short_and_stay_there(simulate: Simulate) -> None:
    told = effects(simulate("--lose", "zone/east", "-o", "json"))["orders"]
    assert (told["replicas"], told["short"], places(told["after"])) == (6, 4, {"kafkasource-mt-adapter-2": 2})
    assert told["why"] == "4 of them stay on pods that are down until their node is back"


@pytest.mark.usefixtures("stage")
def test_a_source_that_grows_while_a_node_is_lost_goes_to_the_others(simulate: Simulate) -> None:
    told = effects(simulate("--lose", "node/n1", "--scale", "orders=2", "-o", "json"))["orders"]
    assert (told["replicas"], told["short"], sum(count or 0 for count in places(told["after"]).values())) == (12, 2, 10)


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize(("sweep", "shorts"), [("nodes", [2, 2, 2]), ("zones", [4, 2])])
def test_every_node_and_every_zone_is_lost_once(simulate: Simulate, sweep: str, shorts: list[int]) -> None:
    assert [row["short"] for row in simulate("--sweep", sweep, "-o", "json")["losses"]] == shorts


def test_nodes_without_anything_on_them_are_nothing_to_lose(shop: Fleet, simulate: Simulate) -> None:
    shop.commit({"node.yaml": node("n1", "wa")}, hour=1)
    assert "there is no node 'n1'" in simulate("--lose", "node/n1", code=1)


@pytest.mark.usefixtures("managed_fleet")
def test_a_managed_cluster_that_does_not_answer_has_its_hubs_taint(simulate: Simulate) -> None:
    told = effects(simulate("--lose", "ash", "--lost", "silent", "-o", "json"))["cache"]
    assert places(told["after"]).keys() == {"bru", "cph"}


@pytest.mark.usefixtures("krake")
def test_an_application_of_krakes_has_no_place_while_its_cluster_is_offline(simulate: Simulate) -> None:
    assert simulate("--lose", "tenant-a.one", "--lost", "silent", "-o", "json")["homeless"] == 1
