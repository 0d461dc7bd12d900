"""The directory of a cluster: its files, the stub, and namespaces."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from gitsched.model.document import Document, Key
from gitsched.model.planned_files import ClusterInfo, ExistingBlob, NewBlob, PlannedFile
from gitsched.render.output_files import (
    STUB_MANIFEST_PATH,
    complete_directory,
    plan_manifest,
    relative_path,
    write_cluster_json,
    write_kustomization,
    write_namespace,
)

EU = ClusterInfo("eu-1", {"tier": "gold", "env": "prod"}, "eu", "metal", replicas=4, workloads=2)
WEB = Key("apps", "Deployment", "shop", "web")
BLOB = ExistingBlob("b" * 40)

GOLDEN = {
    "cluster.json": """\
{
  "labels": {
    "env": "prod",
    "tier": "gold"
  },
  "name": "eu-1",
  "provider": "metal",
  "region": "eu",
  "replicas": 4,
  "workloads": 2
}
""",
    "kustomization.yaml": """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- _/namespace-shop.yaml
- gitsched-placement.yaml
- kube-system/configmap-dns.yaml
- shop/cronjob.batch-web.yaml
- shop/deployment-web.yaml
""",
    "gitsched-placement.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: gitsched-placement
  namespace: default
data:
  cluster: eu-1
""",
    "_/namespace-shop.yaml": """\
apiVersion: v1
kind: Namespace
metadata:
  name: shop
""",
    "shop/deployment-web.yaml": """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  replicas: 4
""",
    "shop/cronjob.batch-web.yaml": """\
apiVersion: batch/v1
kind: CronJob
metadata:
  name: web
  namespace: shop
spec:
  schedule: "*/5 * * * *"
""",
    "kube-system/configmap-dns.yaml": """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: dns
  namespace: kube-system
""",
}


def manifests() -> dict[str, PlannedFile]:
    documents = [
        Document(WEB, "apps/v1", _object("apps/v1", "Deployment", "shop", "web", {"spec": {"replicas": 1}})),
        Document(
            Key("batch", "CronJob", "shop", "web"),
            "batch/v1",
            _object("batch/v1", "CronJob", "shop", "web", {"spec": {"schedule": "*/5 * * * *"}}),
        ),
        Document(Key("", "ConfigMap", "kube-system", "dns"), "v1", _object("v1", "ConfigMap", "kube-system", "dns", {})),
    ]
    return {relative_path(d.key): plan_manifest(d, *[("spec.replicas", 4)] if d.key == WEB else ()) for d in documents}


def _object(api: str, kind: str, namespace: str, name: str, rest: dict[str, object]) -> dict[str, object]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **rest}


def test_complete_content_of_a_small_directory() -> None:
    directory = complete_directory(EU, manifests())
    assert {path: file.data.decode() for path, file in directory.items() if isinstance(file, NewBlob)} == GOLDEN
    assert directory.keys() == GOLDEN.keys()


@pytest.mark.kubectl
@pytest.mark.parametrize("files", [manifests(), {}], ids=["with workloads", "with the stub alone"])
def test_kustomize_builds_the_directory(files: dict[str, PlannedFile], tmp_path: Path) -> None:
    for path, file in complete_directory(EU, files).items():
        assert isinstance(file, NewBlob)
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(file.data)
    built = subprocess.run(["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, check=True)
    objects = list(yaml.safe_load_all(built.stdout))
    assert len(objects) == (5 if files else 1)
    assert "gitsched-placement" in {o["metadata"]["name"] for o in objects}


def test_a_cluster_without_workloads_has_the_stub() -> None:
    directory = complete_directory(ClusterInfo("eu-2", {}), {})
    assert sorted(directory) == ["cluster.json", "gitsched-placement.yaml", "kustomization.yaml"]
    assert yaml.safe_load(_data(directory["kustomization.yaml"]))["resources"] == ["gitsched-placement.yaml"]


def test_a_namespace_of_the_source_is_not_replaced() -> None:
    directory = complete_directory(EU, {"_/namespace-shop.yaml": BLOB, "shop/deployment-web.yaml": BLOB})
    assert directory["_/namespace-shop.yaml"] == BLOB


@pytest.mark.parametrize("namespace", ["default", "kube-system", "kube-public", "kube-node-lease", "", "Shop", "../x", "a.b"])
def test_no_manifest_is_written_for_system_and_invalid_namespaces(namespace: str) -> None:
    path = relative_path(Key("", "ConfigMap", namespace, "a"))
    assert set(complete_directory(EU, {path: BLOB})) == {path, "cluster.json", "gitsched-placement.yaml", "kustomization.yaml"}


def test_an_object_with_the_path_of_the_stub_is_left_out() -> None:
    directory = complete_directory(EU, {STUB_MANIFEST_PATH: BLOB, "shop/configmap-a.yaml": BLOB})
    assert STUB_MANIFEST_PATH not in directory
    assert STUB_MANIFEST_PATH not in yaml.safe_load(_data(directory["kustomization.yaml"]))["resources"]


def test_a_kustomization_does_not_depend_on_the_order_of_files() -> None:
    paths = ["b/x.yaml", "a/x.yaml", "gitsched-placement.yaml"]
    assert write_kustomization(paths) == write_kustomization(reversed(paths))
    assert yaml.safe_load(write_kustomization(paths).data)["resources"] == ["a/x.yaml", "b/x.yaml", "gitsched-placement.yaml"]


def test_cluster_json_always_has_all_members() -> None:
    assert set(json.loads(write_cluster_json("a", {}).data)) == {"labels", "name", "provider", "region", "replicas", "workloads"}


def test_a_namespace_that_looks_like_a_number_is_a_string() -> None:
    assert yaml.safe_load(write_namespace("123").data)["metadata"]["name"] == "123"


def _data(file: PlannedFile) -> bytes:
    assert isinstance(file, NewBlob)
    return file.data
