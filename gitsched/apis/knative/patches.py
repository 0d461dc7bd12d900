"""Decisions as JSON merge patches and kubectl commands, since placements are in status, which GitOps tools do not apply."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gitsched.apis.knative.names import UNSCHEDULABLE
from gitsched.model.document import Body, Document, Key, get_field, parse_api_group

_KIND_ORDER = {"Pod": 0, "StatefulSet": 2}
"""Pods are marked before sources leave them; replicas come last."""


class MergePatch(NamedTuple):
    """A JSON merge patch; `subresource` is "" for the object itself."""

    target: Key
    api_version: str
    subresource: str
    body: Body


def make_patches(records: Iterable[tuple[Key, Body]], documents: Iterable[Document]) -> list[MergePatch]:
    """What has to be patched so that objects that are as the documents say become what was decided. What they say already is left out."""
    known = {document.key: document.body for document in documents}
    patches = (patch for key, record in records if (patch := _make_patch(key, record, known.get(key, {}))) is not None)
    return sorted(patches, key=lambda patch: (_KIND_ORDER.get(patch.target.kind, 1), patch.target))


def _make_patch(key: Key, record: Body, said: Body) -> MergePatch | None:
    path: tuple[str, ...] = ("status", "placements")
    if key.kind == "Pod":
        path = ("metadata", "annotations", UNSCHEDULABLE)
    elif key.kind == "StatefulSet":
        path = ("spec", "replicas")
    value = get_field(record, *path)
    if value is None or value == get_field(said, *path) or (value == [] and not get_field(said, *path)):
        return None
    body = value
    for name in reversed(path):
        body = {name: body}
    return MergePatch(key, str(record.get("apiVersion")), "status" if path[0] == "status" else "", body)


def format_kubectl_commands(patches: Iterable[MergePatch]) -> str:
    """A kubectl command for each patch, fit for a shell."""
    return "".join(f"{shlex.join(_make_kubectl_command(patch))}\n" for patch in patches)


def make_patch_list(patches: Iterable[MergePatch]) -> Body:
    """A list of patches as plain data."""
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
