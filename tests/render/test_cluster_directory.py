"""The directory of a cluster: its files, the stub, and namespaces."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from gitsched.apis.gitsched.output_config import BUILT_IN_NAMESPACES
from gitsched.edits.manifest_edits import edit_manifest
from gitsched.git.trees import apply_edits
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Document, Key, Origin
from gitsched.model.planned_files import ClusterInfo, EditedBlob, ExistingBlob, NewBlob, PatchedBlob, PlannedFile
from gitsched.render.cluster_directory import (
    complete_directory,
    is_never_pruned,
    plan_namespace,
    write_cluster_json,
    write_kustomization,
    write_namespace,
)
from gitsched.render.output_files import STUB_MANIFEST_PATH, plan_manifest, relative_path

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
  annotations:
    argocd.argoproj.io/compare-options: IgnoreExtraneous
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
    kustomize.toolkit.fluxcd.io/prune: disabled
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
    directory = complete_directory(EU, manifests(), BUILT_IN_NAMESPACES)
    assert {path: file.data.decode() for path, file in directory.items() if isinstance(file, NewBlob)} == GOLDEN
    assert directory.keys() == GOLDEN.keys()


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize("files", [manifests(), {}], ids=["with workloads", "with the stub alone"])
def test_kustomize_builds_the_directory(files: dict[str, PlannedFile], tmp_path: Path) -> None:
    for path, file in complete_directory(EU, files, BUILT_IN_NAMESPACES).items():
        assert isinstance(file, NewBlob)
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(file.data)
    built = subprocess.run(["kubectl", "kustomize", str(tmp_path)], capture_output=True, text=True, check=True)
    objects = list(yaml.safe_load_all(built.stdout))
    assert len(objects) == (5 if files else 1)
    assert "gitsched-placement" in {o["metadata"]["name"] for o in objects}


def test_a_cluster_without_workloads_has_the_stub() -> None:
    directory = complete_directory(ClusterInfo("eu-2", {}), {}, BUILT_IN_NAMESPACES)
    assert sorted(directory) == ["cluster.json", "gitsched-placement.yaml", "kustomization.yaml"]
    assert yaml.safe_load(_data(directory["kustomization.yaml"]))["resources"] == ["gitsched-placement.yaml"]


def test_a_namespace_of_the_source_is_not_replaced() -> None:
    directory = complete_directory(EU, {"_/namespace-shop.yaml": BLOB, "shop/deployment-web.yaml": BLOB}, BUILT_IN_NAMESPACES)
    assert directory["_/namespace-shop.yaml"] == BLOB


@pytest.mark.parametrize("namespace", ["default", "kube-system", "kube-public", "kube-node-lease", "", "Shop", "../x", "a.b"])
def test_no_manifest_is_written_for_system_and_invalid_namespaces(namespace: str) -> None:
    path = relative_path(Key("", "ConfigMap", namespace, "a"))
    assert set(complete_directory(EU, {path: BLOB}, BUILT_IN_NAMESPACES)) == {
        path,
        "cluster.json",
        "gitsched-placement.yaml",
        "kustomization.yaml",
    }


def test_an_object_with_the_path_of_the_stub_is_left_out() -> None:
    directory = complete_directory(EU, {STUB_MANIFEST_PATH: BLOB, "shop/configmap-a.yaml": BLOB}, BUILT_IN_NAMESPACES)
    assert STUB_MANIFEST_PATH not in directory
    assert STUB_MANIFEST_PATH not in yaml.safe_load(_data(directory["kustomization.yaml"]))["resources"]


def test_a_kustomization_does_not_depend_on_the_order_of_files() -> None:
    paths = ["b/x.yaml", "a/x.yaml", "gitsched-placement.yaml"]
    assert write_kustomization(paths) == write_kustomization(reversed(paths))
    assert yaml.safe_load(write_kustomization(paths).data)["resources"] == ["a/x.yaml", "b/x.yaml", "gitsched-placement.yaml"]


def test_cluster_json_always_has_all_members() -> None:
    assert set(json.loads(write_cluster_json(ClusterInfo("a", {})).data)) == {
        "labels",
        "name",
        "provider",
        "region",
        "replicas",
        "workloads",
    }


def test_a_namespace_that_looks_like_a_number_is_a_string() -> None:
    assert yaml.safe_load(write_namespace("123").data)["metadata"]["name"] == "123"


ADDED = """\
  annotations:
    argocd.argoproj.io/compare-options: IgnoreExtraneous
    argocd.argoproj.io/sync-options: Prune=false,Delete=false
    kustomize.toolkit.fluxcd.io/prune: disabled
"""
PROTECTED = {
    "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
    "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}
OWN = "# The shop's.\napiVersion: v1\nkind: Namespace\nmetadata:  # us\n  # called\n  name: shop\n  labels: {team: shop}\n"


def add_to(source: str) -> str:
    """Return the text of a Namespace of the source that gitsched adds to a cluster."""
    (parsed,) = parse_file(source.encode(), path="namespace.yaml", validate=None).documents
    origin = Origin("namespace.yaml", "b" * 40, parsed.index, parsed.item, parsed.line, parsed.column, parsed.spans)
    file = plan_namespace(Document(Key("", "Namespace", "", "shop"), "v1", parsed.body, origin))
    if isinstance(file, EditedBlob):
        return apply_edits(source.encode(), file.edits).decode()
    if isinstance(file, PatchedBlob):
        return edit_manifest(source, file).file.data.decode()
    return source


def test_an_added_namespace_of_the_source_keeps_its_text() -> None:
    assert add_to(OWN) == OWN.replace("# us\n", f"# us\n{ADDED}")
    annotated = OWN + "  annotations:\n      owner: shop  # us\n"
    lines = ADDED.replace("  annotations:\n", "").replace("    ", "      ")
    assert add_to(annotated) == annotated.replace("annotations:\n", f"annotations:\n{lines}")


@pytest.mark.parametrize(
    ("metadata", "annotations"),
    [
        pytest.param("{name: shop}", PROTECTED, id="flow style"),
        pytest.param('{"name": "shop", "annotations": {"a": "b"}}', {**PROTECTED, "a": "b"}, id="JSON style"),
        pytest.param("{name: shop, annotations: }", PROTECTED, id="an empty value"),
        pytest.param("{name: shop, annotations: {}}", PROTECTED, id="an empty map"),
        pytest.param(
            "{name: shop, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}'}, uid: a}", PROTECTED, id="a dump"
        ),
        pytest.param(
            "\n  name: shop\n  annotations:\n    kubectl.kubernetes.io/last-applied-configuration: '{}'\n  uid: a",
            PROTECTED,
            id="a dump in block style",
        ),
        pytest.param(
            "{name: shop, annotations: {argocd.argoproj.io/sync-options: 'ServerSideApply=true, Prune=confirm'}}",
            {**PROTECTED, "argocd.argoproj.io/sync-options": "ServerSideApply=true,Prune=confirm,Delete=false"},
            id="own options",
        ),
        pytest.param(
            "{name: shop, annotations: {kustomize.toolkit.fluxcd.io/prune: Enabled}}",
            {**PROTECTED, "kustomize.toolkit.fluxcd.io/prune": "Enabled"},
            id="the source takes precedence",
        ),
    ],
)
def test_an_added_namespace_is_never_pruned(metadata: str, annotations: dict[str, str]) -> None:
    body = yaml.safe_load(add_to(f"apiVersion: v1\nkind: Namespace\nmetadata: {metadata}\n"))
    assert body == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "annotations": annotations}}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, False),
        ({"kustomize.toolkit.fluxcd.io/prune": "disabled"}, True),
        ({"kustomize.toolkit.fluxcd.io/prune": "enabled"}, False),
        ({"argocd.argoproj.io/sync-options": "ServerSideApply=true, Prune=false"}, True),
        ({"argocd.argoproj.io/sync-options": "Delete=false"}, False),
    ],
)
def test_a_namespace_says_that_it_is_never_pruned(annotations: dict[str, str], expected: bool) -> None:
    assert is_never_pruned({"metadata": {"name": "shop", "annotations": annotations}}) is expected


def _data(file: PlannedFile) -> bytes:
    assert isinstance(file, NewBlob)
    return file.data
