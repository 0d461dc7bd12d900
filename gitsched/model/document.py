"""Documents: Kubernetes-style objects with their identity (Key) and origin, the scope of built-in kinds, and fields owned by the
API server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

from gitsched.named_tuples import NamedTuple

Body = dict[str, Any]
"""A JSON object: str keys; values are None, bool, int, float, str, list or another Body. Never modified after parsing."""


class Key(NamedTuple):
    """The identity of an object. `group` is "" for Kubernetes' core; `namespace` is "" for cluster-scoped objects."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind}/{self.namespace}/{self.name}" if self.namespace else f"{kind}/{self.name}"

    @property
    def title(self) -> str:
        """Kind, namespace and name, without the group."""
        return f"{self.kind}/{self.namespace}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"

    @property
    def resource(self) -> tuple[str, str, str]:
        """The value of `Finding.resource`."""
        return (self.kind, self.namespace, self.name)


class InsertionPoint(NamedTuple):
    """Where a member can be inserted into the source text of the mapping at the path `parent`.

    The inserted text is `before`, the name, `separator`, the value and `after`.
    """

    parent: str
    offset: int
    before: str
    separator: str
    after: str


class SourceSpans(NamedTuple):
    """The spans of a document's source text that rendering needs. Offsets count characters of the decoded file, byte order mark
    included.

    `whole_file` means that the file holds only this document (comments around it stay). `start` and `end` are the extent of the
    document in a file of several, without its `---` line. `server_owned` are the extents of fields that a server owns, or None
    when they cannot be removed from the text (flow style, an item of a List): such a document is written as new text. `editable`
    are the extents of the scalars that scheduling can change, each with its path ("spec.replicas"). `insertions` are the places for
    those that are missing.
    """

    whole_file: bool
    start: int
    end: int
    server_owned: tuple[tuple[int, int], ...] | None
    editable: tuple[tuple[str, int, int], ...]
    insertions: tuple[InsertionPoint, ...] = ()


class Origin(NamedTuple):
    """The file and position from which a document was read.

    `blob` is the Git object id (hex) of the file, `index` counts the YAML documents of the file from 0, `item` is the position in
    a `kind: List` or -1, `line` and `column` count from 1 and are those of the document's first key.

    `root` is the directory that kustomize builds the document from, or "". If it is set, `path`, `line` and `column` are those of the
    document in the base, and `blob` is the document as it is built. `tool` is the file of the Flux Kustomization or Argo CD Application
    that says how it is built, or ""; `changed_by` is the position of the change that kustomize makes last, such as
    overlays/prod/replicas.yaml:1, or "".
    """

    path: str
    blob: str
    index: int  # type: ignore[assignment]  # the document number; hides tuple.index, which is not used for origins
    item: int
    line: int
    column: int
    spans: SourceSpans | None = None
    root: str = ""
    tool: str = ""
    changed_by: str = ""


def workload_sort_key(key: Key) -> tuple[str, str, Key]:
    """Return what workloads are sorted by."""
    return key.namespace, key.name, key


class Document(NamedTuple):
    """An object with its resolved identity: a namespaced object without a namespace is in `default`."""

    key: Key
    api_version: str
    body: Body
    origin: Origin | None = None

    @property
    def path(self) -> str:
        """The path of the file that has the document; "" for one that no file has."""
        return self.origin.path if self.origin is not None else ""


@lru_cache(maxsize=1024)
def parse_api_group(api_version: str) -> str:
    """Return the API group of an apiVersion ("" for "v1", "apps" for "apps/v1") or of the member `api` of an unversioned group."""
    group, slash, version = api_version.rpartition("/")
    return group if slash or version not in _unversioned_groups else version


def get_field(body: Body, *path: str) -> Any:
    """Return the value at a path of object members, or None when a part is missing or not an object."""
    value: Any = body
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def get_text(body: Body, *path: str) -> str:
    """Return the text at a path of object members; "" when a part is missing, or the value is of another type."""
    value = get_field(body, *path)
    return value if isinstance(value, str) else ""


def list_texts(value: Any) -> list[str]:
    """Return the texts of a list, without other values; [] for a value that is not a list."""
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def as_object(value: Any) -> Body:
    """Return a value if it is an object, else an empty object."""
    return value if isinstance(value, dict) else {}


def keep_identity(body: Body) -> Body:
    """Return an object with only its type, its name and its namespace, where these are texts."""
    kept: Body = {name: body[name] for name in ("api", "apiVersion", "kind") if isinstance(body.get(name), str)}
    metadata = as_object(body.get("metadata"))
    return {**kept, "metadata": {name: metadata[name] for name in ("name", "namespace") if isinstance(metadata.get(name), str)}}


def list_objects(value: Any) -> list[Body]:
    """Return the objects of a list, without other values; [] for a value that is not a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def as_string_map(value: Any) -> dict[str, str]:
    """Return labels or annotations as Kubernetes reads them: entries that are not strings are left out."""
    if not isinstance(value, dict):
        return {}
    return {k: v for k, v in value.items() if isinstance(k, str) and isinstance(v, str)}


def read_annotations(body: Body) -> dict[str, str]:
    """Return the annotations of an object that are texts."""
    return _read_map(body, "annotations")


def read_labels(body: Body) -> dict[str, str]:
    """Return the labels of an object that are texts."""
    return _read_map(body, "labels")


def _read_map(body: Body, name: str) -> dict[str, str]:
    metadata = body.get("metadata")
    value = metadata.get(name) if isinstance(metadata, dict) else None
    return as_string_map(value) if value else {}


_CLUSTER_SCOPED_BY_GROUP = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "admissionregistration.k8s.io": (
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration "
        "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
    ),
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "gitsched.io": "ClusterFacts ClusterReport Config OperatorConfig Rollout Tenant",
    "networking.k8s.io": "IngressClass IPAddress ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "policy": "PodSecurityPolicy",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
}
_cluster_scoped = {(group, kind) for group, kinds in _CLUSTER_SCOPED_BY_GROUP.items() for kind in kinds.split()}
_known_groups = {
    *_CLUSTER_SCOPED_BY_GROUP,
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
}


_unversioned_groups: dict[str, str] = {}
_secret_fields: set[str] = set()
_config_map_data: dict[str, str] = {}
_templates: set[tuple[str, str]] = set()
_priority_classes: dict[tuple[str, str], tuple[str, ...]] = {}


class ApiKinds(NamedTuple):
    """What a policy API adds to the tables of this module.

    `groups` are its API groups: their kinds are namespaced unless they are in `cluster_scoped`. Documents of the `unversioned_groups` have
    the member `api` in place of apiVersion; the text is what their schemas have as version. `secret_fields` are members of documents
    whose content is never written or shown. `config_map_data` are keys of ConfigMaps that the API reads, with the name of the ConfigMap.
    `templates` are kinds of its groups that the API does not read: policies select them like any other object. `priority_classes` are
    the fields in which kinds of policies name the PriorityClass by which their workloads are decided before others.
    """

    groups: frozenset[str] = frozenset()
    cluster_scoped: frozenset[tuple[str, str]] = frozenset()
    unversioned_groups: Mapping[str, str] = {}
    secret_fields: frozenset[str] = frozenset()
    config_map_data: Mapping[str, str] = {}
    templates: frozenset[tuple[str, str]] = frozenset()
    priority_classes: Mapping[tuple[str, str], tuple[str, ...]] = {}


def add_kinds(kinds: ApiKinds) -> None:
    """Add the groups and kinds of a policy API; called by gitsched.decide.registry.register."""
    _known_groups.update(kinds.groups)
    _cluster_scoped.update(kinds.cluster_scoped)
    _unversioned_groups.update(kinds.unversioned_groups)
    _secret_fields.update(kinds.secret_fields)
    _config_map_data.update(kinds.config_map_data)
    _templates.update(kinds.templates)
    _priority_classes.update(kinds.priority_classes)
    for function in (parse_api_group, is_known_group, is_namespaced):
        function.cache_clear()


def find_priority_class(group: str, kind: str) -> tuple[str, ...]:
    """Return the field in which a kind of policies names a PriorityClass; () if it has none."""
    return _priority_classes.get((group, kind), ())


def is_unread_kind(group: str, kind: str) -> bool:
    """Return whether a kind is in a group of a policy API that does not read it."""
    return (group, kind) in _templates


def find_unversioned_group(name: str) -> str | None:
    """Return what the schemas of a group without versions have as version; None for any other text."""
    return _unversioned_groups.get(name)


def find_config_map(data: Any) -> str:
    """Return the name of the ConfigMap that a policy API reads and that has these data; "" if there is none."""
    if not isinstance(data, dict):
        return ""
    return next((name for key, name in _config_map_data.items() if isinstance(data.get(key), str)), "")


def mentions_config_map_data(text: str) -> bool:
    """Return whether a text may contain the data of a ConfigMap that a policy API reads."""
    return "data:" in text and any(f"{key}:" in text for key in _config_map_data)


SECRET_VALUES: Final = frozenset(("data", "stringData"))
"""Members of Secrets whose content is never shown, of whatever type it is."""


def is_secret_value(body: Any, path: Iterable[str | int]) -> bool:
    """Return whether a path of members and indices leads to content that is never written or shown: a secret field of a policy API, or the
    data of a Secret, also of one that another object contains."""
    for part in path:
        if part in _secret_fields or (part in SECRET_VALUES and isinstance(body, dict) and body.get("kind") == "Secret"):
            return True
        try:
            body = body[part]
        except (KeyError, IndexError, TypeError):  # a part that is missing
            body = None
    return False


@lru_cache(maxsize=1024)
def is_known_group(group: str) -> bool:
    """Return whether an API group is one of Kubernetes or of a policy API."""
    return group in _known_groups


@lru_cache(maxsize=1024)
def is_namespaced(group: str, kind: str) -> bool | None:
    """Return whether a kind of a known group is namespaced; None for any other kind."""
    return (group, kind) not in _cluster_scoped if is_known_group(group) else None


SERVER_OWNED: Final = frozenset(
    (
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    )
)
"""Fields of metadata that only an API server writes; the top-level status is also server-owned."""
FieldPath = tuple[str | int, ...]
"""The names of members and the indices of entries that lead to a field."""
_SERVER_ANNOTATIONS: Final = frozenset(
    (
        "deployment.kubernetes.io/revision",
        "deployment.kubernetes.io/revision-history",
        "kubernetes.io/service-account.uid",
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "volume.kubernetes.io/selected-node",
    )
)
"""Annotations that only controllers of a cluster set."""
_OFTEN_GENERATED = ("Job", "PersistentVolume")
"""Kinds that may show a uid of a server outside of their metadata."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def is_encrypted(body: Body) -> bool:
    """Return whether SOPS has encrypted a document: it has the member `sops` with a message authentication code."""
    metadata = body.get("sops")
    return isinstance(metadata, dict) and "mac" in metadata


def reject_constant(constant: str) -> NoReturn:
    """Raise ValueError: Python reads NaN and Infinity, which are not JSON. For `parse_constant` of `json.loads`."""
    raise ValueError(f"{constant} is not JSON")


def read_json(text: str) -> Any:
    """Return the value of a JSON text, such as an annotation; ValueError if it is malformed or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON text is nested too deeply") from None


def list_server_owned(body: Body) -> list[FieldPath]:
    """Return the paths of server-owned fields, none inside another; an object or list that would become empty is removed completely.

    A document that shows that a server wrote it also has those that only its cluster may have (`gitsched.model.dumped_fields`). One that
    SOPS encrypted keeps all its fields, because its message authentication code covers them.
    """
    if "sops" in body and is_encrypted(body):
        return []
    metadata = body.get("metadata")
    found: list[FieldPath] = []
    is_annotated = is_owned = False
    if isinstance(metadata, dict):
        is_owned = "ownerReferences" in metadata
        found += [("metadata", name) for name in metadata if name in SERVER_OWNED]
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict):
            found += [("metadata", "annotations", LAST_APPLIED)] if LAST_APPLIED in annotations else []
            is_annotated = LAST_APPLIED in annotations or not _SERVER_ANNOTATIONS.isdisjoint(annotations)
    if "status" in body:
        found.append(("status",))
    if not (found or is_annotated or is_owned or body.get("kind") in _OFTEN_GENERATED):
        return []
    from gitsched.model.dumped_fields import join_paths, list_dumped_fields  # most sources have no dumps

    group = parse_api_group(str(body.get("apiVersion")))
    return join_paths(body, [*found, *list_dumped_fields(group, body, is_annotated=is_annotated)])


def remove_server_owned(body: Body) -> Body:
    """Return the body without server-owned fields; the same object when it has none."""
    for path in reversed(list_server_owned(body)):  # the last entry of a list first
        body = _remove_field(body, path)
    return body


def _remove_field(value: Any, path: FieldPath) -> Any:
    name, *rest = path
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    kept = ((key, _remove_field(entry, tuple(rest)) if key == name else entry) for key, entry in entries if rest or key != name)
    return dict(kept) if isinstance(value, dict) else [entry for _, entry in kept]
