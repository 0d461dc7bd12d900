"""Records of decisions: bindings and PlacementDecisions, marked as local configuration."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from gitsched.model.document import Key
from gitsched.render.output_files import placement_path, write_placement_decision, write_record
from gitsched.render.yaml import dump_fragment

WEB = Key("apps", "Deployment", "shop", "web")


def test_a_record_has_only_the_documented_members() -> None:
    body = {
        "status": {"observedGeneration": 1},
        "data": {"password": "hunter2"},
        "kind": "Application",
        "api": "kubernetes",
        "metadata": {"name": "web", "annotations": {"z": "1", "a": "2"}},
        "spec": dump_fragment({"replicas": 3}),
    }
    assert write_record(body).data.decode() == (
        'api: kubernetes\nkind: Application\nmetadata:\n  name: web\n  annotations:\n    a: "2"\n'
        '    config.kubernetes.io/local-config: "true"\n    z: "1"\nspec:\n  replicas: 3\nstatus:\n  observedGeneration: 1\n'
    )
    assert body["metadata"] == {"name": "web", "annotations": {"z": "1", "a": "2"}}


def test_writing_a_parsed_record_again_gives_the_same_bytes() -> None:
    once = write_record({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "annotations": {"x": "1"}}, "status": {}})
    assert write_record(yaml.safe_load(once.data)) == once


def test_complete_placement_decision() -> None:
    (text,) = write_placement_decision(
        WEB, [("eu-1", 3, 80, "most room"), ("us-1", 1, None, "")], "karmada", "fleet", "web-key"
    ).values()
    assert (
        text.data.decode()
        == """\
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: PlacementDecision
metadata:
  name: deployment-web-0
  namespace: shop
  labels:
    multicluster.x-k8s.io/decision-key: shop.deployment-web
    multicluster.x-k8s.io/placement-key: web-key
  annotations:
    config.kubernetes.io/local-config: "true"
    gitsched.io/replicas: "{\\"eu-1\\":3,\\"us-1\\":1}"
    gitsched.io/scores: "{\\"eu-1\\":80}"
schedulerName: karmada
decisions:
- clusterProfileRef:
    name: eu-1
    namespace: fleet
  reason: most room
- clusterProfileRef:
    name: us-1
    namespace: fleet
"""
    )


@pytest.mark.parametrize(("count", "sizes"), [(0, [0]), (1, [1]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])])
def test_a_slice_has_at_most_a_hundred_clusters(count: int, sizes: list[int]) -> None:
    files = write_placement_decision(WEB, [(f"c{n}", n, None, "") for n in range(count)], "karmada")
    assert list(files) == [placement_path(WEB)] == ["placements/shop/deployment-web.yaml"]
    slices = list(yaml.safe_load_all(files[placement_path(WEB)].data))
    assert [len(one["decisions"]) for one in slices] == sizes
    assert [d["clusterProfileRef"]["name"] for one in slices for d in one["decisions"]] == [f"c{n}" for n in range(count)]
    assert len({one["metadata"]["name"] for one in slices}) == len(sizes)
    assert len({one["metadata"]["labels"]["multicluster.x-k8s.io/decision-key"] for one in slices}) == 1
    indices = [one["metadata"]["labels"].get("multicluster.x-k8s.io/decision-index") for one in slices]
    assert indices == ([None] if len(sizes) == 1 else [str(n) for n in range(len(sizes))])
    for one in slices:
        assert "status" not in one
        replicas = json.loads(one["metadata"]["annotations"].get("gitsched.io/replicas", "{}"))
        assert list(replicas) == sorted(d["clusterProfileRef"]["name"] for d in one["decisions"])


@pytest.mark.parametrize(
    "key",
    [
        Key("rbac.authorization.k8s.io", "ClusterRole", "", "system:foo"),
        Key("", "ConfigMap", "n" * 63, "x" * 253),
        Key("", "ConfigMap", "shop", "ends-with-."),
        Key("", "ConfigMap", "../x", "a\nb: c"),
    ],
    ids=str,
)
def test_names_and_labels_are_valid_for_any_workload_name(key: Key) -> None:
    (file,) = write_placement_decision(key, [("eu-1", None, None, "")], "gitsched").values()
    metadata: dict[str, Any] = yaml.safe_load(file.data)["metadata"]
    assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", metadata["name"])
    assert all(re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", value) for value in metadata["labels"].values())


def test_decisions_of_different_workloads_have_different_names() -> None:
    keys = [
        WEB,
        WEB._replace(name="web-0"),
        WEB._replace(namespace="shop2"),
        Key("", "Deployment", "shop", "web"),
        WEB._replace(name="web-0-0"),
    ]
    names, labels = set(), set()
    for key in keys:
        (file,) = write_placement_decision(key, [("eu-1", 1, None, "")], "gitsched").values()
        metadata = yaml.safe_load(file.data)["metadata"]
        names.add((metadata["namespace"], metadata["name"]))
        labels.add(metadata["labels"]["multicluster.x-k8s.io/decision-key"])
    assert len(names) == len(labels) == len(keys)
