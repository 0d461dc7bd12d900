"""Files of a cluster's directory: the manifests of its workloads, missing namespaces, kustomization.yaml, cluster.json and the stub
ConfigMap."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from gitsched.model.document import Body, Document, Key, SourceSpans, get_field, remove_server_owned
from gitsched.model.planned_files import END_OF_TEXT, ClusterInfo, EditedBlob, ExistingBlob, NewBlob, PlannedFile, TextEdit
from gitsched.render.layout import CLUSTER_JSON, KUSTOMIZATION, STUB_FILE, relative_path
from gitsched.render.yaml import dump, quote


def plan_manifest(document: Document, *counts: tuple[str, int]) -> PlannedFile:
    """Return the manifest of a document for one cluster; `counts` are pairs of a field path ("spec.replicas") and its value.

    Without a change, the result is the source blob, shared by all clusters. If the source text can be edited, only the numbers change
    and comments, order and line ends stay. Otherwise (an item of a List, flow style, a missing field, no source text) the result is
    newly written YAML.
    """
    needed = [(path, count) for path, count in counts if not _is_count(get_field(document.body, *path.split(".")), count)]
    origin = document.origin
    if origin is not None and origin.spans is not None and origin.item < 0:
        spans = _plan_edits(origin.spans, needed)
        if spans is not None:
            return EditedBlob(origin.blob, spans) if spans else ExistingBlob(origin.blob)
    return write_manifest(set_counts(document.body, needed))


def set_counts(body: Body, counts: Iterable[tuple[str, int]]) -> Body:
    """Return the body with the numbers set; the given body is not modified."""
    for path, count in counts:
        if not _is_count(get_field(body, *path.split(".")), count):
            body = _set_field(body, path.split("."), count)
    return body


def write_manifest(body: Body) -> NewBlob:
    """Return the body as YAML without the fields that an API server owns, because Flux rejects them."""
    return NewBlob(dump(remove_server_owned(body)).encode())


def _plan_edits(text: SourceSpans, counts: list[tuple[str, int]]) -> tuple[TextEdit, ...] | None:
    if text.server_owned is None:
        return None
    spans = [TextEdit(start, end, "") for start, end in text.server_owned]
    marks = {path: (start, end) for path, start, end in text.editable}
    for path, count in counts:
        if path not in marks:
            return None
        spans.append(TextEdit(*marks[path], str(count)))
    if not text.whole_file:
        spans += (
            [TextEdit(0, text.start, ""), TextEdit(text.end, END_OF_TEXT, "")]
            if text.start
            else [TextEdit(text.end, END_OF_TEXT, "")]
        )
    return tuple(sorted(spans))


def _is_count(value: Any, count: int) -> bool:
    return type(value) is int and value == count


def _set_field(body: Body, path: list[str], value: int) -> Body:
    """Return a copy of the body with one field set; missing parents are added."""
    name, *rest = path
    if not rest:
        return {**body, name: value}
    inner = body.get(name)
    return {**body, name: _set_field(inner if isinstance(inner, dict) else {}, rest, value)}


STUB_NAME = "gitsched-placement"


def write_cluster_json(
    name: str, labels: Mapping[str, str], region: str = "", provider: str = "", replicas: int = 0, workloads: int = 0
) -> NewBlob:
    """Return `cluster.json` with all members, because Argo CD's templates fail on a missing one."""
    members = {
        "labels": dict(labels),
        "name": name,
        "provider": provider,
        "region": region,
        "replicas": replicas,
        "workloads": workloads,
    }
    return NewBlob((json.dumps(members, indent=2, sort_keys=True) + "\n").encode())


def write_kustomization(paths: Iterable[str]) -> NewBlob:
    """Return `kustomization.yaml` with the given files of the directory and the stub, sorted."""
    resources = "".join(f"- {quote(path)}\n" for path in sorted({*paths, STUB_FILE}))
    return NewBlob(f"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{resources}".encode())


def write_stub(cluster: str) -> NewBlob:
    """Return a ConfigMap with the name of the cluster. It keeps the directory from being empty: Flux fails on an empty directory and
    prunes nothing."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": STUB_NAME, "namespace": "default"},
        "data": {"cluster": cluster},
    }
    return NewBlob(dump(body).encode())


@lru_cache(maxsize=1 << 14)
def write_namespace(name: str) -> NewBlob:
    """Return a Namespace manifest, for a namespace that the source does not declare."""
    return NewBlob(dump({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).encode())


STUB_MANIFEST_PATH = relative_path(Key("", "ConfigMap", "default", STUB_NAME))
"""The path of a source object with the same identity as the stub. The stub replaces it, because kustomize rejects duplicates."""

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_BUILT_IN_NAMESPACES = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))


def complete_directory(cluster: ClusterInfo, files: Mapping[str, PlannedFile]) -> dict[str, PlannedFile]:
    """Return all files of `clusters/<cluster>/` by relative path, given the manifests placed there (`relative_path` → file).

    A Namespace is added for each used namespace, except those among the files and the built-in ones. Without manifests, as for a
    cluster that is being retired, the stub remains.
    """
    directory = {path: file for path, file in files.items() if path != STUB_MANIFEST_PATH}
    for namespace in sorted({path.partition("/")[0] for path in directory}):
        if namespace in _BUILT_IN_NAMESPACES or not _DNS_LABEL.fullmatch(namespace):
            continue  # "_" and escaped names are not valid namespaces
        directory.setdefault(f"_/namespace-{namespace}.yaml", write_namespace(namespace))
    directory[KUSTOMIZATION] = write_kustomization(directory)
    directory[STUB_FILE] = write_stub(cluster.name)
    directory[CLUSTER_JSON] = write_cluster_json(*cluster)
    return directory
