"""Event sources as vpods, and the Pods and Nodes of the StatefulSet."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.apis.knative.vpods import (
    CONSUMERS_PATH,
    make_placements,
    read_adapter_pods,
    read_desired_vreplicas,
    read_placements,
    read_replicas,
    validate_kafka_source,
)
from gitsched.model.document import Document, Key
from tests.builders.knative import ADAPTER, NAMESPACE, UNREACHABLE, node, parse, pod, source

ADAPTER_KEY = Key("apps", "StatefulSet", NAMESPACE, ADAPTER)


def index(*texts: str) -> dict[Key, Document]:
    """Return core documents by key."""
    keys = (
        (Key("", body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]), body) for body in parse(*texts)
    )
    return {key: Document(key, "v1", body) for key, body in keys}


def test_cordoned_and_unreachable_nodes_are_not_usable() -> None:
    nodes = (node("n0", "east"), node("n1", "east", cordoned=True), node("n2", "west", taints=[f"{UNREACHABLE}:NoExecute"]))
    pods = read_adapter_pods(index(*nodes, pod(0, "n0"), pod(1, "n1")), ADAPTER_KEY)
    assert pods.zones == {"n0": "east"}
    assert set(pods.make_adapter(4, 2, frozenset()).pods) == {0}


def test_pods_of_missing_nodes_are_listed() -> None:
    pods = read_adapter_pods(index(pod(0, "gone"), pod(1, "gone"), pod(2, None)), ADAPTER_KEY)
    assert pods.missing_nodes == {"gone": (0, 1)}


def test_marked_pods_are_not_schedulable() -> None:
    pods = read_adapter_pods(index(node("n0", "east"), pod(0, "n0", marked=True)), ADAPTER_KEY)
    assert pods.marked == {0}
    assert set(pods.make_adapter(4, 1, pods.marked).pods) == set()


@pytest.mark.parametrize(("spec", "replicas"), [({"replicas": 3}, 3), ({}, 1), ({"replicas": -1}, 1), ({"replicas": True}, 1)])
def test_replicas_are_1_by_default(spec: dict[str, Any], replicas: int) -> None:
    assert read_replicas({"spec": spec}) == replicas


def test_a_source_has_1_vreplica_by_default() -> None:
    (body,) = parse(source("orders", 6))
    assert read_desired_vreplicas(body, CONSUMERS_PATH) == 6
    assert read_desired_vreplicas({}, CONSUMERS_PATH) == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"spec": {"consumers": -1}}, "knative-vreplicas"),
        ({"spec": {"consumers": "3"}}, "knative-vreplicas"),
        ({"status": {"placements": {}}}, "knative-placements"),
        ({"status": {"placements": [{"podName": "adapter"}]}}, "knative-placements"),
        ({"status": {"placements": [{"podName": f"{ADAPTER}-0", "vreplicas": 1.5}]}}, "knative-placements"),
    ],
)
def test_invalid_sources_are_reported(change: dict[str, Any], code: str) -> None:
    (body,) = parse(source("orders", 6))
    assert [issue.code for issue in validate_kafka_source({**body, **change})] == [code]


def test_placements_are_read_as_they_are_written() -> None:
    status = {"status": {"placements": make_placements({1: 2, 0: 3}, ADAPTER_KEY)}}
    assert list(read_placements(status, ADAPTER_KEY).items()) == [(1, 2), (0, 3)]
    assert read_placements(status, ADAPTER_KEY._replace(name="other")) == {}
