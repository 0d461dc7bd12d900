"""Workloads of Open Cluster Management: ManifestWorkReplicaSets, and templates annotated with a Placement."""

from __future__ import annotations

import hashlib
import json

from gitsched.apis.ocm import names
from gitsched.kinds.table import is_namespaced
from gitsched.model.document import Body, Document, Key, get_field, get_text, parse_api_group, read_annotations
from gitsched.named_tuples import NamedTuple


class OcmWorkload(NamedTuple):
    """A ManifestWorkReplicaSet, or a template annotated with a Placement.

    `references` are its Placements with their rollout strategies. `manifests` are its objects by key, None for a template. `revision` is
    a hash of the manifests, "" for a template, which changes in all clusters at once.
    """

    document: Document
    record: Key
    references: tuple[tuple[Key, Body], ...]
    manifests: tuple[tuple[Key, Body], ...] | None
    revision: str

    @property
    def objects(self) -> tuple[Key, ...]:
        return (self.document.key,) if self.manifests is None else tuple(key for key, _ in self.manifests)


def read_replica_set(document: Document) -> OcmWorkload:
    """Read a ManifestWorkReplicaSet; of manifests with the same key, the last is used. A removed one that stays in its clusters has no
    content."""
    manifests = {read_manifest_key(body): body for body in list_manifests(document.body)}
    references = tuple(
        (names.placement_key(document.key.namespace, reference["name"]), reference.get("rolloutStrategy") or {})
        for reference in get_field(document.body, "spec", "placementRefs") or ()
    )
    return OcmWorkload(document, document.key, references, tuple(manifests.items()), _hash_manifests(list(manifests.values())))


def list_manifests(replica_set: Body) -> list[Body]:
    """Return the objects in a ManifestWorkReplicaSet, which may be invalid."""
    manifests = get_field(replica_set, "spec", "manifestWorkTemplate", "workload", "manifests")
    return [body for body in manifests if isinstance(body, dict)] if isinstance(manifests, list) else []


def read_template(template: Document) -> OcmWorkload | None:
    """Read a template annotated with a Placement; None for other templates."""
    placement = read_placement_annotation(template)
    if placement is None:
        return None
    return OcmWorkload(template, template_record(template.key, placement.namespace), ((placement, {}),), None, "")


def template_record(key: Key, namespace: str) -> Key:
    """Return the key of the record of a template in the namespace of its Placement."""
    return Key(names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET, namespace, record_name(key))


def read_placement_annotation(template: Document) -> Key | None:
    """Return the Placement in the annotation of a template: `name` in its own namespace, or `namespace/name`."""
    text = read_annotations(template.body).get(names.PLACEMENT_LABEL)
    if not text:
        return None
    namespace, _, name = text.rpartition("/")
    return names.placement_key(namespace or template.key.namespace or "default", name)


def record_name(key: Key) -> str:
    """Return the record name of a template, such as `web.deployment.apps`."""
    return f"{key.name}.{key.kind.lower()}{f'.{key.group}' if key.group else ''}"


def read_manifest_key(body: Body) -> Key:
    """Return the key of a manifest in a ManifestWorkReplicaSet."""
    group, kind = parse_api_group(get_text(body, "apiVersion")), get_text(body, "kind")
    namespaced = is_namespaced(group, kind)
    namespace = get_text(body, "metadata", "namespace") or ("default" if namespaced else "")
    return Key(group, kind, "" if namespaced is False else namespace, get_text(body, "metadata", "name"))


def _hash_manifests(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
