"""Files of the output branch: their paths, the directories of clusters, the records under status/ and the PlacementDecisions.

Paths are built from escaped segments, so that no name can leave its directory. They are unique per identity also on case-insensitive file
systems: they are lower-case ASCII, and other characters are escaped.

Records are what the upstream API server would store; PlacementDecisions are those of SIG-Multicluster. Delivery tools must not apply them:
they have the annotation `config.kubernetes.io/local-config`, with which kustomize omits an object.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from gitsched.model.document import Body, Document, Key, SourceSpans, is_encrypted, remove_server_owned
from gitsched.model.planned_files import (
    END_OF_TEXT,
    EditedBlob,
    ExistingBlob,
    NewBlob,
    PatchedBlob,
    PlannedFile,
    TextEdit,
)
from gitsched.model.scheduling import encode_replicas
from gitsched.render.yaml import Fragment, dump, dump_fragment, quote

README, RUN_METADATA, HYDRATOR_METADATA, GITATTRIBUTES_FILE = "README.md", "gitsched.json", "hydrator.metadata", ".gitattributes"
FREEZE = "FREEZE"
"""A file that freezes placements while it exists; its first line says why. Operators write it."""
METADATA_FILES = frozenset((README, RUN_METADATA, HYDRATOR_METADATA))
"""Files that only change in a commit that another change causes."""
CLUSTERS, STATUS, PLACEMENTS, KEPT, APPROVED = "clusters", "status", "placements", "kept", "approved"
HUB = "hub/argocd"
CLUSTER_JSON, KUSTOMIZATION, STUB_FILE = "cluster.json", "kustomization.yaml", "gitsched-placement.yaml"

_LIMIT, _SHORTENED_LENGTH, _DIGEST_LENGTH = 200, 180, 16
_UNSAFE = re.compile(r"[^a-z0-9.-]|^\.")
# A name that looks like the shortened form of a longer name is shortened itself, so that the two paths cannot collide.
_SHORTENED = re.compile(r".{180}-[0-9a-f]{16}")
APPS_KINDS = frozenset(("controllerrevision", "daemonset", "deployment", "replicaset", "statefulset"))
"""Kinds of the group apps, which names of objects leave out."""
REPLICAS_ANNOTATION, SCORES_ANNOTATION = "gitsched.io/replicas", "gitsched.io/scores"
_TOP_LEVEL_DOMAINS = frozenset(("app", "cloud", "com", "dev", "io", "net", "org", "sh"))


@lru_cache(maxsize=1 << 17)
def escape_segment(text: str) -> str:
    """Return a path segment of at most 200 bytes: [a-z0-9.-], other bytes as `_xx`, "" as `_`, a leading dot escaped."""
    return _shorten(_UNSAFE.sub(_escape, text)) if text else "_"


def is_shortened(segment: str) -> bool:
    """Return whether a path segment ends with a digest, so that it does not tell the text that it was made from."""
    return _SHORTENED.fullmatch(segment) is not None


def object_name(key: Key) -> str:
    """Return `<kind>[.<group>]-<name>` as one segment, without the group for core and apps."""
    return _object_name(key.group, key.kind, key.name)


def object_path(cluster: str, key: Key) -> str:
    """Return the path of a manifest: `clusters/<cluster>/<namespace or _>/<kind>[.<group>]-<name>.yaml`."""
    return f"{CLUSTERS}/{escape_segment(cluster)}/{relative_path(key)}"


def relative_path(key: Key) -> str:
    """Return `object_path` relative to the directory of the cluster."""
    return f"{escape_segment(key.namespace)}/{_object_name(key.group, key.kind, key.name)}.yaml"


def cluster_path(cluster: str, relative: str) -> str:
    """Return the path of a file in the directory of a cluster."""
    return f"{CLUSTERS}/{escape_segment(cluster)}/{relative}"


def hub_path(cluster: str, key: Key) -> str:
    """Return the path of an object for the hub: `hub/argocd/<cluster>/<kind>[.<group>]-<name>.yaml`."""
    return f"{HUB}/{escape_segment(cluster)}/{object_name(key)}.yaml"


def status_path(key: Key) -> str:
    """Return the path of a record: `status/<group or core>/<kind>/<namespace or _>/<name>.yaml`."""
    group = key.group.lower()
    # A document may use "core" as its group; its record must not collide with those of the core group "".
    head = "core" if not group else "_63ore" if group == "core" else escape_segment(group)
    return f"{STATUS}/{head}/{escape_segment(key.kind.lower())}/{escape_segment(key.namespace)}/{escape_segment(key.name)}.yaml"


def placement_path(key: Key) -> str:
    """Return the path of a PlacementDecision: `placements/<namespace or _>/<kind>[.<group>]-<name>.yaml`."""
    return f"{PLACEMENTS}/{relative_path(key)}"


def kept_path(path: str) -> str:
    """Return the path of the last valid version of a broken source file: `kept/<path>`, each segment escaped."""
    return f"{KEPT}/{'/'.join(map(escape_segment, path.split('/')))}"


def approved_path(path: str) -> str:
    """Return where the output branch keeps the content that a cluster had at a path before a rollout: `approved/<path>`."""
    return f"{APPROVED}/{path}"


def _escape(match: re.Match[str]) -> str:
    # Python decodes a byte that is not UTF-8 as a lone surrogate.
    return "".join(f"_{byte:02x}" for byte in match[0].encode("utf-8", "surrogatepass"))


def _shorten(escaped: str) -> str:
    if len(escaped) <= _LIMIT and not _SHORTENED.fullmatch(escaped):
        return escaped
    return f"{escaped[:_SHORTENED_LENGTH]}-{hashlib.sha256(escaped.encode()).hexdigest()[:_DIGEST_LENGTH]}"


@lru_cache(maxsize=1 << 17)
def _object_name(group: str, kind: str, name: str) -> str:
    kind = _UNSAFE.sub(_escape, kind.lower()).replace("-", "_2d").replace(".", "_2e")
    group = _UNSAFE.sub(_escape, group.lower())
    name = _UNSAFE.sub(_escape, name)
    # `apiVersion: v1, kind: Deployment` is a frequent mistake and must not get the path of the Deployment in apps.
    if group == ("apps" if kind in APPS_KINDS else ""):
        return _shorten(f"{kind}-{name}")
    tail = f"{group or '_'}-{name}"
    if tail.count("-") > 1 and _find_group_end(tail) != len(group or "_"):
        tail = f"{group.replace('-', '_2d')}-{name.replace('-', '_2d')}"
    return _shorten(f"{kind}.{tail}")


def _find_group_end(tail: str) -> int:
    """Return where the group of `<group>-<name>` ends: at the first dash after a well-known domain, else at the first dash.

    Groups and names may contain dots and dashes, so `a.b-c.io-d` is ambiguous. If this rule does not find the actual group, the dashes
    of both parts are escaped. Common groups such as cert-manager.io and open-cluster-management.io need no escaping.
    """
    index = tail.find("-")
    first = index
    while index >= 0:
        head, dot, label = tail[:index].rpartition(".")
        if dot and head and label in _TOP_LEVEL_DOMAINS:
            return index
        index = tail.find("-", index + 1)
    return first


def plan_manifest(document: Document, *counts: tuple[str, int]) -> PlannedFile:
    """Return the manifest of a document for one cluster; `counts` are pairs of a field path ("spec.replicas") and its value.

    Without a change, the result is the source blob, shared by all clusters. If the source text can be edited, only the numbers change,
    a missing number or namespace is inserted as the first member of its mapping, and comments, order and line ends stay. Where parsing has
    found no place for it (a missing, empty or shared mapping), the result is a patch of the document.
    """
    needed = [(path, count) for path, count in counts if not _is_count(read_path(document.body, path), count)]
    origin = document.origin
    if origin is not None and origin.spans is not None and origin.item < 0:
        members: list[tuple[str, int | str]] = [*needed]
        if is_namespace_added(document):
            members.append(("metadata.namespace", document.key.namespace))
        spans = _plan_edits(origin.spans, members, document.body)
        if spans is not None:
            return EditedBlob(origin.blob, spans) if spans else ExistingBlob(origin.blob)
        if origin.spans.end:
            return plan_changed_manifest(document, set_counts(document.body, needed))
    return write_manifest(_add_namespace(document, set_counts(document.body, needed)))


def plan_changed_manifest(document: Document, body: Body) -> PlannedFile:
    """Return the manifest of a document that has another value in a cluster: a patch of its source text if it has any."""
    body = _add_namespace(document, body)
    if document.origin is None or document.origin.spans is None:
        return write_manifest(body)
    return PatchedBlob(document.origin, document.body, remove_server_owned(body))


def lacks_namespace(document: Document) -> bool:
    """Return whether a namespaced object does not say its namespace, so that Flux and Argo CD refuse a directory with it."""
    metadata = document.body.get("metadata")
    return bool(document.key.namespace) and not (isinstance(metadata, dict) and metadata.get("namespace"))


def is_namespace_added(document: Document) -> bool:
    """Return whether the manifest of an object gets the namespace that the object lacks. What kustomize builds is delivered as it is
    built, and what SOPS encrypted as it is: its message authentication code covers a namespace."""
    is_built = document.origin is not None and document.origin.root != ""
    return lacks_namespace(document) and not is_built and not is_encrypted(document.body)


def _add_namespace(document: Document, body: Body) -> Body:
    if not is_namespace_added(document):
        return body
    return {**body, "metadata": {**(body.get("metadata") or {}), "namespace": document.key.namespace}}


def set_counts(body: Body, counts: Iterable[tuple[str, int]]) -> Body:
    """Return the body with the numbers set; the given body is not modified."""
    for path, count in counts:
        if not _is_count(read_path(body, path), count):
            body = _set_field(body, path.split("."), count)
    return body


def write_manifest(body: Body) -> NewBlob:
    """Return the body as YAML without the fields that an API server owns, because Flux rejects them.

    An annotation without a value is written as an empty text, because kustomize reads null as a text.
    """
    metadata = body.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(annotations, dict) and None in annotations.values():
        filled = {name: "" if text is None else text for name, text in annotations.items()}
        body = {**body, "metadata": {**metadata, "annotations": filled}}
    return NewBlob(dump(remove_server_owned(body)).encode())


def _plan_edits(text: SourceSpans, members: list[tuple[str, int | str]], body: Body) -> tuple[TextEdit, ...] | None:
    if text.server_owned is None:
        return None
    spans = [TextEdit(start, end, "") for start, end in text.server_owned]
    marks = {path: (start, end) for path, start, end in text.editable}
    insertions = {point.parent: point for point in text.insertions}
    for path, value in members:
        if path in marks:
            spans.append(TextEdit(*marks[path], str(value)))
            continue
        parent, _, name = path.rpartition(".")
        point = insertions.get(parent)
        if point is None or name in (read_path(body, parent) or ()):
            return None  # the member is missing together with its mapping, or it is there without a scalar to replace
        written = value if isinstance(value, int) else json.dumps(value) if point.before.endswith('"') else quote(value)
        new = f"{point.before}{name}{point.separator}{written}{point.after}"
        spans.append(TextEdit(point.offset, point.offset, new))
    if not text.whole_file:
        spans += (
            [TextEdit(0, text.start, ""), TextEdit(text.end, END_OF_TEXT, "")]
            if text.start
            else [TextEdit(text.end, END_OF_TEXT, "")]
        )
    return tuple(sorted(spans))


def _is_count(value: Any, count: int) -> bool:
    return type(value) is int and value == count


def read_path(body: Body, path: str) -> Any:
    """Return the value at a path, in which a number is the index of a list entry; None where a part is missing."""
    value: Any = body
    for name in path.split("."):
        if isinstance(value, list):
            value = value[int(name)] if name.isdecimal() and len(name) < 10 and int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _set_field(body: Any, path: list[str], value: int) -> Any:
    """Return a copy of the body with one field set; missing parents are added."""
    name, *rest = path
    if isinstance(body, list):
        return [_set_field(entry, rest, value) if str(index) == name else entry for index, entry in enumerate(body)]
    if not rest:
        return {**body, name: value}
    inner = body.get(name)
    return {**body, name: _set_field(inner if isinstance(inner, dict | list) else {}, rest, value)}


STUB_NAME = "gitsched-placement"


STUB_MANIFEST_PATH = relative_path(Key("", "ConfigMap", "default", STUB_NAME))
"""The path of a source object with the same identity as the stub. The stub replaces it, because kustomize rejects duplicates."""


LOCAL_CONFIG: Final = "config.kubernetes.io/local-config"
API_VERSION: Final = "multicluster.x-k8s.io/v1alpha1"
DECISION_KEY: Final = "multicluster.x-k8s.io/decision-key"
DECISION_INDEX: Final = "multicluster.x-k8s.io/decision-index"
PLACEMENT_KEY: Final = "multicluster.x-k8s.io/placement-key"
MAX_SLICE_DECISIONS = 100
"""The maximum number of decisions in one PlacementDecision, as in the upstream schema."""

_MAPPINGS = ("metadata", "spec", "status")
_RECORD_FIELDS = ("apiVersion", "api", "kind", "metadata", "spec", "status")
_RECORD_FIELD_SET = frozenset(_RECORD_FIELDS)
_encode_compact = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,239}[a-z0-9])?")


ClusterDecision = tuple[str, int | None, int | float | None, str]
"""One cluster of a decision: its name, replicas and score, which are None if they do not apply, and the reason."""


def write_record(body: Body) -> NewBlob:
    """Return the file under status/ with apiVersion (Krake: api), kind, metadata, spec if present, and status.

    Annotations are sorted by name, so that a record has the same bytes whether it is new or read from an earlier run.
    """
    return NewBlob(dump(make_record(body)).encode())


def make_record(body: Body) -> Body:
    """Return the body of a record. Annotations that are serialized already have all that a record has."""
    record = {name: body[name] for name in _RECORD_FIELDS if name in body}
    metadata = body.get("metadata") or {}
    annotations = metadata.get("annotations")
    if not isinstance(annotations, Fragment):
        annotations = mark_local_config(annotations if isinstance(annotations, dict) else {})
    return {**record, "metadata": {**metadata, "annotations": annotations}}


def read_back(body: Body) -> Body:
    """Return a record that a plan writes as the next run reads it."""
    metadata = body.get("metadata") or {}
    annotations = metadata.get("annotations")
    is_kept = annotations and isinstance(annotations, dict) and LOCAL_CONFIG not in annotations and body.keys() <= _RECORD_FIELD_SET
    if is_kept and all(isinstance(body.get(name, {}), dict) for name in _MAPPINGS):
        return body
    return strip_record(make_record(body))


def strip_record(body: Body) -> Body:
    """Remove from a record the annotation that only its file has, and members of a wrong type, which other tools may have written."""
    body = {name: value for name, value in body.items() if isinstance(value, dict) or name not in _MAPPINGS}
    metadata = body.get("metadata") or {}
    annotations = metadata.get("annotations")
    kept = {name: text for name, text in annotations.items() if name != LOCAL_CONFIG} if isinstance(annotations, dict) else {}
    # The order of the members stays: an unchanged record is written with the same bytes.
    metadata = {name: kept if name == "annotations" else value for name, value in metadata.items()}
    return {**body, "metadata": {name: value for name, value in metadata.items() if value or name != "annotations"}}


def write_placement_decision(
    key: Key, decisions: Sequence[ClusterDecision], scheduler: str, profile_namespace: str = "", placement_key: str = ""
) -> dict[str, NewBlob]:
    """Return the PlacementDecision of a workload by path: one file with a document for each 100 clusters.

    Without decisions, the file has one empty document. Decisions keep their order. `profile_namespace` is that of the ClusterProfiles; with
    "", references have none, which means the namespace of the decision. `placement_key` is the workload's label of that name. Replicas and
    scores are JSON in annotations: the type has no fields for them. Source: KEP-5313, kubernetes-sigs/cluster-inventory-api v0.1.2.
    """
    slices = [decisions[start : start + MAX_SLICE_DECISIONS] for start in range(0, len(decisions), MAX_SLICE_DECISIONS)] or [()]
    texts = []
    for index, part in enumerate(slices):
        has_scores = any(score is not None for _, _, score, _ in part)  # 1 and 1.0 are equal, but not written alike
        annotations, entries = (_write_part if has_scores else _cached_part)(tuple(part), profile_namespace)
        body = {
            "apiVersion": API_VERSION,
            "kind": "PlacementDecision",
            "metadata": _make_metadata(key, annotations, index, len(slices), placement_key),
            "schedulerName": scheduler,
        }
        texts.append(f"{dump(body)}decisions:{entries}\n")
    return {placement_path(key): NewBlob("---\n".join(texts).encode())}


def mark_local_config(annotations: Mapping[str, Any]) -> Body:
    """Return the annotations of a record, sorted by name, with the one that keeps delivery tools from applying it."""
    return dict(sorted({**annotations, LOCAL_CONFIG: "true"}.items()))


def _make_metadata(key: Key, annotations: Fragment, index: int, count: int, placement_key: str) -> Body:
    namespace, base = key.namespace or "default", object_name(key)
    labels = {DECISION_KEY: _make_label(f"{namespace}.{base}")}
    if count > 1:
        labels[DECISION_INDEX] = str(index)
    if placement_key:
        labels[PLACEMENT_KEY] = placement_key
    # The KEP's deterministic naming: base and index of the slice. A base that is not a valid object name (system:foo) becomes a digest.
    name = base if _NAME.fullmatch(base) else _digest(base)
    return {"name": f"{name}-{index}", "namespace": namespace, "labels": dict(sorted(labels.items())), "annotations": annotations}


def _write_part(part: tuple[ClusterDecision, ...], namespace: str) -> tuple[Fragment, str]:
    """Write the annotations of a PlacementDecision, and what follows `decisions:`, an item for each cluster."""
    annotations = {LOCAL_CONFIG: "true"}
    for name, values in (
        (REPLICAS_ANNOTATION, {cluster: _encode(replicas) for cluster, replicas, _, _ in part if replicas is not None}),
        (SCORES_ANNOTATION, {cluster: score for cluster, _, score, _ in part if score is not None}),
    ):
        if values:
            annotations[name] = _encode_compact(values)
    entries = "".join([_write_decision(cluster, namespace, reason) for cluster, _, _, reason in part])
    return dump_fragment(annotations), entries or " []"


def _encode(replicas: int) -> int | str:
    return replicas if type(replicas) is int else encode_replicas(replicas)  # most have no mark


_cached_part = lru_cache(maxsize=1 << 12)(_write_part)  # many workloads go to the same clusters for the same reasons


@lru_cache(maxsize=1 << 14)
def _write_decision(cluster: str, namespace: str, reason: str) -> str:
    """Write an item of `decisions` on new lines: the ClusterProfile with its namespace, and the reason; either may be ""."""
    profile = f"\n- clusterProfileRef:\n    name: {quote(cluster)}"
    profile = f"{profile}\n    namespace: {quote(namespace)}" if namespace else profile
    return f"{profile}\n  reason: {quote(reason)}" if reason else profile


def _make_label(text: str) -> str:
    """Return the text if it is a valid label value, else its digest."""
    return text if len(text) <= 63 and _NAME.fullmatch(text) else _digest(text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]
