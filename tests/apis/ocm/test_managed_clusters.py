"""ManagedClusters, cluster sets and bindings."""

from __future__ import annotations

import pytest

from tests.apis.ocm.chosen_clusters import list_chosen
from tests.builders.ocm import Body, binding, bound_global_set, cluster_set, global_set, managed_cluster, placement

FLEET = [managed_cluster("ash", cluster_set="prod"), managed_cluster("bru", cluster_set="test"), managed_cluster("cph")]
SETS = [cluster_set("prod"), cluster_set("test"), global_set()]


def test_a_claim_needs_no_name() -> None:
    body = managed_cluster("dub")
    body["status"] = {"clusterClaims": [{"value": "x"}, {"name": "y"}]}
    assert list_chosen([*bound_global_set("ns"), body, placement("p", "ns")]) == ["dub"]


@pytest.mark.parametrize(
    ("bindings", "spec", "chosen"),
    [
        ([], {}, []),
        ([("prod", "other")], {}, []),
        ([("prod", "ns")], {}, ["ash"]),
        ([("prod", "ns"), ("test", "ns")], {}, ["ash", "bru"]),
        ([("prod", "ns"), ("test", "ns")], {"clusterSets": ["test", "global"]}, ["bru"]),
        ([("global", "ns")], {}, ["ash", "bru", "cph"]),
        ([("missing", "ns")], {}, []),
    ],
)
def test_a_placement_chooses_from_the_sets_bound_to_its_namespace(
    bindings: list[tuple[str, str]], spec: Body, chosen: list[str]
) -> None:
    documents = [*FLEET, *SETS, *(binding(name, namespace) for name, namespace in bindings)]
    assert list_chosen([*documents, placement("p", "ns", **spec)]) == chosen


def test_a_cluster_that_is_being_deleted_is_not_chosen() -> None:
    deleting = managed_cluster("dub")
    deleting["metadata"] |= {"deletionTimestamp": "2026-03-02T07:00:00Z", "finalizers": ["example.com/cleanup"]}
    assert list_chosen([*bound_global_set("ns"), deleting, managed_cluster("par"), placement("p", "ns")]) == ["par"]
