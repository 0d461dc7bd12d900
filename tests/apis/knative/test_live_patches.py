"""Which records of the output are applied to which cluster, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.apis.knative.live_patches import list_live_patches
from gitsched.model.document import Key
from gitsched.model.errors import Permanent

Record = tuple[Key, dict[str, Any]]


def adapter(name: str, cluster: str, replicas: Any = 2) -> Record:
    annotations = {"gitsched.io/source-replicas": "1", **({"gitsched.io/cluster": cluster} if cluster else {})}
    key = Key("apps", "StatefulSet", "knative-eventing", name)
    return key, {"apiVersion": "apps/v1", "metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}


def source(name: str, cluster: str, pods: Any, group: str = "sources.knative.dev") -> Record:
    annotations = {"gitsched.io/cluster": cluster} if cluster else {}
    entries = [{"podName": pod, "vreplicas": 1} for pod in pods] if isinstance(pods, list) else pods
    body = {"apiVersion": f"{group}/v1", "metadata": {"annotations": annotations}, "status": {"placements": entries}}
    return Key(group, "KafkaSource", "shop", name), body


TWO_CLUSTERS = [
    adapter("kafka-eu", "eu"),
    adapter("kafka-us", "us"),
    source("orders", "eu", ["kafka-eu-0"]),
    source("clicks", "us", ["kafka-us-0"]),
    source("old", "", ["kafka-us-1"]),
    source("idle", "eu", []),
]


@pytest.mark.parametrize(("cluster", "names"), [("eu", ["idle", "orders"]), ("us", ["clicks", "old"])])
def test_a_cluster_gets_its_own_sources_and_statefulset(cluster: str, names: list[str]) -> None:
    patches = list_live_patches(TWO_CLUSTERS, cluster, frozenset())
    assert [patch.target.name for patch in patches.updates] == names
    assert [patch.target.name for patch in patches.replicas] == [f"kafka-{cluster}"]
    assert patches.refused == ()


def test_one_of_several_clusters_must_be_chosen() -> None:
    with pytest.raises(Permanent, match="several clusters, eu, us: choose the one"):
        list_live_patches(TWO_CLUSTERS, "", frozenset())


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (source("orders", "eu", [], group="apps"), "apps is no API group of knative.dev"),
        (source("orders", "eu", [], group="example.com"), "add --group example.com"),
        (source("Orders!", "eu", []), "invalid name or namespace"),
        (source("--all", "eu", []), "invalid name or namespace"),
        (source("orders", "eu", "all"), "status.placements is not a list"),
        (source("orders", "eu", ["kafka-eu"]), "a placement has a podName without an ordinal"),
        (source("orders", "eu", ["web-0"]), "Pod web-0 belongs to no StatefulSet"),
        (adapter("kafka", "eu", replicas="many"), "spec.replicas is not an integer"),
        (adapter("kafka", "eu", replicas=10**9), "spec.replicas is not an integer"),
    ],
)
def test_a_record_that_names_something_else_is_refused(record: Record, reason: str) -> None:
    patches = list_live_patches([adapter("kafka-eu", "eu"), record], "eu", frozenset())
    (refused,) = patches.refused
    assert refused.target == record[0]
    assert reason in refused.reason
    assert patches.updates == ()


def test_sources_of_another_group_are_applied_on_request() -> None:
    records = [adapter("kafka-eu", "eu"), source("orders", "eu", ["kafka-eu-0"], group="example.com")]
    assert len(list_live_patches(records, "", frozenset({"example.com"})).updates) == 1
