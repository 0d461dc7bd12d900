"""Decisions as JSON merge patches and kubectl commands: GitOps tools do not apply placements, because these are in status."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator

from gitsched.apis.export import ExportInput, ExportResult
from gitsched.apis.knative.names import UNSCHEDULABLE
from gitsched.model.document import Body, Document, Key, get_field, parse_api_group
from gitsched.model.merge_patch import MergePatch

_KIND_ORDER = {"Pod": 0, "StatefulSet": 2}
"""Order of patches: pods are marked before sources leave them, and replicas change last."""


def make_patches(records: Iterable[tuple[Key, Body]], documents: Iterable[Document]) -> list[MergePatch]:
    """Return the patches from the objects in the documents to the decided state. Values that are already set are left out."""
    documents_by_key = {document.key: document.body for document in documents}
    patches = (patch for key, record in records if (patch := _make_patch(key, record, documents_by_key.get(key, {}))) is not None)
    return sorted(patches, key=lambda patch: (_KIND_ORDER.get(patch.target.kind, 1), patch.target))


def _make_patch(key: Key, record: Body, document: Body) -> MergePatch | None:
    path: tuple[str, ...] = ("status", "placements")
    if key.kind == "Pod":
        path = ("metadata", "annotations", UNSCHEDULABLE)
    elif key.kind == "StatefulSet":
        path = ("spec", "replicas")
    value = get_field(record, *path)
    patch = MergePatch(key, str(record.get("apiVersion")), path, value, "status" if path[0] == "status" else "")
    return patch if value is not None and patch.is_needed(document) else None


def format_kubectl_commands(patches: Iterable[MergePatch]) -> str:
    """Return one kubectl command per patch, quoted for a shell."""
    return "".join(f"{shlex.join(_make_kubectl_command(patch))}\n" for patch in patches)


def make_patch_list(patches: Iterable[MergePatch]) -> Body:
    """Return the patches as a PatchList document."""
    return {
        "apiVersion": "gitsched.io/v1alpha1",
        "kind": "PatchList",
        "items": [
            {
                "target": {"apiVersion": patch.api_version, **patch.target._asdict()},
                "subresource": patch.subresource,
                "type": "merge",
                "patch": patch.body,
            }
            for patch in patches
        ],
    }


def _make_kubectl_command(patch: MergePatch) -> Iterator[str]:
    key, group = patch.target, parse_api_group(patch.api_version)
    version = patch.api_version.rpartition("/")[2]
    yield from ("kubectl", "patch", f"{key.kind.lower()}.{version}.{group}" if group else key.kind.lower(), key.name)
    yield from ("--namespace", key.namespace)
    if patch.subresource:
        yield f"--subresource={patch.subresource}"
    yield from ("--type=merge", "--patch", json.dumps(patch.body, separators=(",", ":")))


def export_patches(found: ExportInput) -> ExportResult:
    """Return decisions as patches, and as kubectl commands."""
    patches = make_patches(found.records, found.templates.values())
    return ExportResult(format_kubectl_commands(patches), make_patch_list(patches))
