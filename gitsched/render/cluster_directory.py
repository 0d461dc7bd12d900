"""The files of a cluster's directory, with the Namespaces that gitsched adds to it.

An added Namespace has annotations with which Flux and Argo CD never delete it: it may hold objects of others, and it stays when the last
workload leaves. Namespaces of Kubernetes and of the delivery tools are protected: gitsched neither adds nor removes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final

from gitsched.model.document import Body, Document, InsertionPoint, Key, as_object, get_field, read_annotations
from gitsched.model.planned_files import ClusterInfo, EditedBlob, ExistingBlob, NewBlob, PlannedFile, TextEdit
from gitsched.render.output_files import (
    CLUSTER_JSON,
    KUSTOMIZATION,
    STUB_FILE,
    STUB_MANIFEST_PATH,
    STUB_NAME,
    plan_changed_manifest,
    plan_manifest,
    relative_path,
)
from gitsched.render.yaml import dump, quote

_FLUX_PRUNE: Final = "kustomize.toolkit.fluxcd.io/prune"
_ARGOCD_SYNC: Final = "argocd.argoproj.io/sync-options"
_ARGOCD_COMPARE: Final = "argocd.argoproj.io/compare-options"
_SYNC_OPTIONS: Final = ("Prune=false", "Delete=false")
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def complete_directory(
    cluster: ClusterInfo, files: Mapping[str, PlannedFile], protected: Collection[str]
) -> dict[str, PlannedFile]:
    """Return all files of `clusters/<cluster>/` by relative path, given the manifests placed there (`relative_path` → file).

    A Namespace is added for each used namespace, except those among the files and the `protected` ones. Without manifests, as for a
    cluster that is being retired, the stub remains.
    """
    directory = {path: file for path, file in files.items() if path != STUB_MANIFEST_PATH}
    for namespace in sorted({path.partition("/")[0] for path in directory}):
        if namespace in protected or not _DNS_LABEL.fullmatch(namespace):
            continue  # "_" and escaped names are not valid namespaces
        directory.setdefault(namespace_path(namespace), write_namespace(namespace))
    directory[KUSTOMIZATION] = write_kustomization(directory)
    directory[STUB_FILE] = write_stub(cluster.name)
    directory[CLUSTER_JSON] = write_cluster_json(cluster)
    return directory


def write_cluster_json(facts: ClusterInfo) -> NewBlob:
    """Return `cluster.json` with all members, because Argo CD's templates fail on a missing one; and `atLeast` if the replicas are only the
    least number."""
    members = {
        "labels": dict(facts.labels),
        "name": facts.name,
        "provider": facts.provider,
        "region": facts.region,
        "replicas": facts.replicas,
        "workloads": facts.workloads,
        **({"atLeast": True} if facts.marked else {}),
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
def namespace_path(name: str) -> str:
    """Return the path of a Namespace, relative to the directory of a cluster."""
    return relative_path(Key("", "Namespace", "", name))


@lru_cache(maxsize=1 << 14)
def write_namespace(name: str) -> NewBlob:
    """Return a Namespace that delivery tools do not delete, for a namespace that the source does not declare."""
    return NewBlob(dump(_make_namespace(name)).encode())


def _make_namespace(name: str) -> Body:
    metadata = {"name": name, "annotations": _list_missing_annotations({})}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def is_added_namespace(body: Body) -> bool:
    """Return whether a Namespace is one that `write_namespace` writes."""
    return body == _make_namespace(str(get_field(body, "metadata", "name")))


def plan_namespace(document: Document) -> PlannedFile:
    """Return the manifest of a Namespace of the source with the annotations of those that gitsched adds.

    They are one line of the source text if that has a place for them. What the source says about pruning takes precedence.
    """
    missing = _list_missing_annotations(read_annotations(document.body))
    if not missing:
        return plan_manifest(document)
    return _insert_annotations(document, missing) or plan_changed_manifest(document, _add_annotations(document.body, missing))


def add_prune_options(body: Body) -> Body:
    """Return an object with the annotations that keep Flux and Argo CD from deleting it; the same object if it has them."""
    missing = _list_missing_annotations(read_annotations(body), keep_own=False)
    return _add_annotations(body, missing) if missing else body


def is_never_pruned(namespace: Body) -> bool:
    """Return whether the annotations of a Namespace keep Flux or Argo CD from deleting it."""
    annotations = read_annotations(namespace)
    return annotations.get(_FLUX_PRUNE) == "disabled" or "Prune=false" in _split_options(annotations.get(_ARGOCD_SYNC, ""))


def _list_missing_annotations(present: Mapping[str, str], *, keep_own: bool = True) -> dict[str, str]:
    """Return the annotations to add or to extend, so that neither Flux nor Argo CD deletes an object. With `keep_own`, what it says itself
    about pruning takes precedence.

    IgnoreExtraneous keeps an Application in sync whose object is left behind.
    """
    options = _split_options(present.get(_ARGOCD_SYNC, ""))
    if not keep_own:
        contrary = {option for option in options if option.partition("=")[0] in ("Prune", "Delete")}.difference(_SYNC_OPTIONS)
        options = [option for option in options if option not in contrary]
        present = {name: value for name, value in present.items() if name != _FLUX_PRUNE or value == "disabled"}
    names = {option.partition("=")[0] for option in options}
    added = [option for option in _SYNC_OPTIONS if option.partition("=")[0] not in names]
    missing = {_ARGOCD_SYNC: ",".join((*options, *added))} if added else {}
    missing |= {
        name: value for name, value in ((_ARGOCD_COMPARE, "IgnoreExtraneous"), (_FLUX_PRUNE, "disabled")) if name not in present
    }
    return dict(sorted(missing.items()))


def _split_options(text: str) -> list[str]:
    return [option.strip() for option in text.split(",") if option.strip()]


def _add_annotations(body: Body, missing: Mapping[str, str]) -> Body:
    metadata = as_object(body.get("metadata"))
    return {**body, "metadata": {**metadata, "annotations": {**as_object(metadata.get("annotations")), **missing}}}


def _insert_annotations(document: Document, missing: Mapping[str, str]) -> EditedBlob | None:
    """Return the edit that inserts annotations into the source text; None if a new text is needed."""
    planned, origin = plan_manifest(document), document.origin
    if origin is None or origin.spans is None or not isinstance(planned, ExistingBlob | EditedBlob):
        return None
    annotations = get_field(document.body, "metadata", "annotations")
    parent = "metadata" if annotations is None else "metadata.annotations"
    point = next((point for point in origin.spans.insertions if point.parent == parent), None)
    metadata = as_object(document.body.get("metadata"))
    if point is None or (
        "annotations" in metadata if annotations is None else _ARGOCD_SYNC in annotations and _ARGOCD_SYNC in missing
    ):
        return None
    text = _format_annotations(point, missing, nested=annotations is None)
    edits = planned.edits if isinstance(planned, EditedBlob) else ()
    if any(edit.start < point.offset < edit.end for edit in edits):
        return None
    return EditedBlob(origin.blob, tuple(sorted((*edits, TextEdit(point.offset, point.offset, text)))))


def _format_annotations(point: InsertionPoint, missing: Mapping[str, str], nested: bool) -> str:
    """Return the text of annotations at an insertion point; `nested` ones are inserted with their map."""
    if point.after.strip():  # a flow mapping
        members = {"annotations": dict(missing)} if nested else missing
        return "".join(f"{point.before}{name}{point.separator}{json.dumps(value)}{point.after}" for name, value in members.items())
    head, pad = (f"{point.before}annotations:{point.after}", "  ") if nested else ("", "")
    return head + "".join(f"{pad}{point.before}{name}: {quote(value)}{point.after}" for name, value in missing.items())
