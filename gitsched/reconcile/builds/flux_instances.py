"""The Flux objects that Flux Operator makes of a FluxInstance. Source: controlplaneio-fluxcd/flux-operator/internal/builder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gitsched.build.flux import KIND
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.model.document import Body, as_object, get_field, list_objects
from gitsched.model.finding import Finding, locate_origin
from gitsched.model.tool_groups import INSTANCE_GROUP, KUSTOMIZE_GROUP, SOURCE_GROUP

INSTANCE = "FluxInstance"
RESOURCE_SET = "ResourceSet"
UNREAD_DOCUMENT = "unread-document"
"""The code of the finding about documents of Flux Operator that gitsched does not read."""
_SOURCE_KINDS = frozenset(("GitRepository", "OCIRepository", "Bucket"))
_CONTENT_FIELD = re.compile(r"(?:/spec/|^\s*)(?:url|ref|ignore|include|layerSelector)\b", re.MULTILINE)
"""The fields of a source that say what it has."""


def add_instances(documents: Iterable[RawDocument]) -> list[RawDocument]:
    """Return documents with the source and the Kustomization that each FluxInstance has for its `spec.sync`."""
    found: list[RawDocument] = []
    for document in documents:
        found.append(document)
        if (document.group, document.kind) == (INSTANCE_GROUP, INSTANCE):
            found += (make_raw_document(body, document.origin) for body in _list_sync_objects(document))
    return found


def _list_sync_objects(instance: RawDocument) -> Iterator[Body]:
    sync = as_object(get_field(instance.body, "spec", "sync"))
    if not sync.get("url") or not isinstance(sync.get("path"), str):
        return
    namespace = instance.namespace or "flux-system"
    metadata = {"name": str(sync.get("name") or namespace), "namespace": namespace}
    kind, reference = str(sync.get("kind") or "GitRepository"), str(sync.get("ref") or "")
    branch = reference.removeprefix("refs/heads/")
    ref = {"branch": branch} if kind == "GitRepository" and branch != reference else {"name": reference}
    spec = {"url": sync["url"], **({"ref": ref} if reference else {})}
    yield {"apiVersion": f"{SOURCE_GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}
    yield {
        "apiVersion": f"{KUSTOMIZE_GROUP}/v1",
        "kind": KIND,
        "metadata": metadata,
        "spec": {"path": sync["path"], "prune": True, "sourceRef": {"kind": kind, "name": metadata["name"]}},
    }


def find_unread(document: RawDocument) -> Finding | None:
    """Return a warning about what a document of Flux Operator does, and what gitsched does not read."""
    if document.group != INSTANCE_GROUP or document.origin is None:
        return None
    name = f"{document.kind} {document.namespace}/{document.name}" if document.namespace else f"{document.kind} {document.name}"
    location = locate_origin(document.origin)
    if document.kind == INSTANCE and get_field(document.body, "spec", "sync", "url"):
        patches = list_objects(get_field(document.body, "spec", "kustomize", "patches"))
        if any(map(_changes_sync, patches)):
            text = (
                f"{name} patches the Kustomization and the source that it makes of spec.sync (spec.kustomize.patches): gitsched reads them "
                "without these patches. If they change what is built, commit the Kustomization itself in place of spec.sync"
            )
            return Finding("warning", UNREAD_DOCUMENT, text, location)
    if document.kind == RESOURCE_SET and any(
        _names_path(body) for body in list_objects(get_field(document.body, "spec", "resources"))
    ):
        text = (
            f"{name} makes Flux Kustomizations, and gitsched does not read its templates: objects in their directories are placed as files "
            "have them. Commit the Kustomizations, or name the directories in source.deliveryTools.ignore"
        )
        return Finding("warning", UNREAD_DOCUMENT, text, location)
    return None


def _changes_sync(patch: Body) -> bool:
    """Return whether a patch may change what the Kustomization of a FluxInstance builds."""
    kind = str(get_field(patch, "target", "kind") or "")
    return kind in ("", KIND) or (kind in _SOURCE_KINDS and _CONTENT_FIELD.search(str(patch.get("patch"))) is not None)


def _names_path(body: Body) -> bool:
    return body.get("kind") == KIND and str(body.get("apiVersion") or "").startswith(f"{KUSTOMIZE_GROUP}/")
