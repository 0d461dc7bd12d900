"""The kinds of Kubernetes with their schemas, and which of its versions and kinds are wrong or removed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gitsched.kinds.field_relations import RELATIONS
from gitsched.kinds.field_values import FIELD_VALUES, OPTIONAL_FIELDS
from gitsched.manifests.field_relations import RelationTree
from gitsched.manifests.object_schema import DEFINITIONS, ObjectSchema, make_object_schema
from gitsched.model.document import get_field, is_encrypted
from gitsched.model.finding import Issue, Severity
from gitsched.model.similar_names import find_similar

if TYPE_CHECKING:
    from gitsched.model.document import Body

_SEVERITIES: Mapping[str, Severity] = {"missing-field": "warning"}
_CHECKED_GROUPS = frozenset(("", "apps", "autoscaling", "batch", "networking.k8s.io", "policy", "rbac.authorization.k8s.io"))
"""Groups for whose kinds a missing field is an error: every API server refuses the object. In other groups it may have a default."""
_VALIDATED = frozenset(("apps", "autoscaling", "batch", "core", "meta", "networking", "policy", "rbac"))
"""The first part of the names of the definitions whose required fields every API server demands."""
_NO_SELECTOR = "'spec' lacks 'selector', which is required"
"""A warning in every group: versions of the API before apps/v1 set a selector, so that many manifests of today's objects have none."""
_REQUIRED: Mapping[tuple[str, str], tuple[str, ...]] = {
    **{("apps", kind): ("spec",) for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")},
    **{("", kind): ("spec",) for kind in ("PersistentVolume", "PersistentVolumeClaim", "Pod", "ReplicationController", "Service")},
    ("", "PodTemplate"): ("template",),
    **{("batch", kind): ("spec",) for kind in ("CronJob", "Job")},
    ("autoscaling", "HorizontalPodAutoscaler"): ("spec",),
    ("networking.k8s.io", "Ingress"): ("spec",),
}
"""Members that API servers refuse to be absent or null; the OpenAPI document does not list most of them as required, because they default
to an empty object, in which required fields are missing. Source: the validation of each kind in kubernetes/pkg/apis."""
_RECENTLY_SERVED = frozenset(
    (
        *(("admissionregistration.k8s.io", version) for version in ("v1alpha1", "v1beta1")),
        *(("authentication.k8s.io", version) for version in ("v1alpha1", "v1beta1")),
        *(("certificates.k8s.io", version) for version in ("v1alpha1", "v1beta1")),
        *(("coordination.k8s.io", version) for version in ("v1alpha1", "v1alpha2")),
        *(("flowcontrol.apiserver.k8s.io", version) for version in ("v1beta2", "v1beta3")),
        *(("networking.k8s.io", version) for version in ("v1alpha1", "v1beta1")),
        *(("resource.k8s.io", version) for version in ("v1alpha2", "v1alpha3", "v1beta1", "v1beta2")),
        *(("scheduling.k8s.io", version) for version in ("v1alpha1", "v1alpha2")),
        *(("storage.k8s.io", version) for version in ("v1alpha1", "v1beta1")),
        *(("storagemigration.k8s.io", version) for version in ("v1alpha1", "v1beta1")),
    )
)
"""Groups with versions that releases since Kubernetes 1.28 have served for some kinds, so that clusters may have them. Other versions
before those of the OpenAPI document were removed earlier."""
_STABLE_KINDS = frozenset(
    (
        *(("admissionregistration.k8s.io", kind) for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")),
        ("authentication.k8s.io", "TokenReview"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("coordination.k8s.io", "Lease"),
        *(("networking.k8s.io", kind) for kind in ("Ingress", "IngressClass", "NetworkPolicy")),
        ("scheduling.k8s.io", "PriorityClass"),
        *(("storage.k8s.io", kind) for kind in ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment")),
    )
)
"""Kinds of these groups of which every release since 1.28 has served only the stable version. Source: the deprecated API migration guide of
Kubernetes, kubernetes.io/docs/reference/using-api/deprecation-guide."""
_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STABLE = 3
_KIND_SIMILARITY, _GROUP_SIMILARITY = 0.85, 0.9
_REMOVED_GROUPS = frozenset(("auditregistration.k8s.io", "extensions", "settings.k8s.io"))
_REMOVED_KINDS = {
    "PodSecurityPolicy": "Pod Security Admission, with labels of the Namespace, takes its place",
    "PodPreset": "it has no successor",
    "AuditSink": "audit webhooks are flags of the API server",
}
"""Kinds that no group has any more."""
_PARTS = {"[]": "items", ".*": "additionalProperties"}
"""The keyword of the schema of the parts of a field, by the end of its name in `FIELD_VALUES`."""


class BuiltInKinds:
    """The kinds of one version of Kubernetes. Each schema is compiled for the first object of its kind."""

    def __init__(self, version: str, names: Mapping[tuple[str, str, str], str], definitions: Mapping[str, Body]) -> None:
        self._version, self._names, self.definitions = version, names, definitions
        self._versions: dict[tuple[str, str], list[str]] = {}
        self._groups: dict[str, list[str]] = {}
        for group, api_version, kind in names:
            self._versions.setdefault((group, kind), []).append(api_version)
            self._groups.setdefault(kind, []).append(group)
        self.groups = frozenset(group for group, _, _ in names) | _REMOVED_GROUPS
        self._by_lower = {kind.lower(): kind for kind in self._groups}
        self._checks: dict[tuple[str, str, str], tuple[ObjectSchema, RelationTree]] = {}

    def lacks(self, group: str, kind: str) -> bool:
        """Return whether Kubernetes has a group, and no kind of this name in it."""
        return group in self.groups and group not in self._groups.get(kind, ())

    def check_kind(self, key: tuple[str, str, str]) -> list[Issue]:
        """Report a group, version and kind that this version of Kubernetes does not have; nothing about custom resources."""
        if key in self._names:
            return []
        return self._check_kind(*key) if key[0] in self.groups else self.check_group(key)

    def check_group(self, key: tuple[str, str, str]) -> list[Issue]:
        """Report a misspelled group, such as `app` of a Deployment; nothing about kinds that Kubernetes does not have."""
        group, version, kind = key
        groups = self._groups.get(self._by_lower.get(kind.lower(), ""))
        if not groups or group in self.groups:
            return []
        if "." in group:  # of a custom resource, unless it is nearly the same
            similar = find_similar(group, [name for name in groups if "." in name], _GROUP_SIMILARITY)
        else:
            similar = find_similar(group, [name.partition(".")[0] or "core" for name in groups])
        return [self._suggest(group, version, kind, "apiVersion")] if similar else []

    def _suggest(self, group: str, version: str, kind: str, member: str) -> Issue:
        """Return the error that a kind, which another group or other letters has, is not in this group."""
        right = self._by_lower[kind.lower()]
        versions = " or ".join(_join(name, max(self._versions[name, right], key=_rank_version)) for name in self._groups[right])
        shown = f"kind {kind[:60]!r}" if kind != right else kind
        advice = f"write {right}" if kind != right and group in self._groups[right] else f"write {versions}"
        advice += f" {right}" if kind != right and group not in self._groups[right] else ""
        message = f"Kubernetes {self._version} has no {shown} in {_join(group, version)[:100]}: {advice}"
        return Issue("error", "unknown-kind", message, (member,))

    def find_issues(self, key: tuple[str, str, str], body: Body, *, may_be_patch: bool = True) -> list[Issue]:
        """Return the issues of an object with this group, version and kind; a patch may lack fields."""
        checks = self._checks.get(key)
        if checks is None:
            name = self._names.get(key)
            if name is None:
                return self._check_kind(*key)
            checks = self._checks[key] = self._compile(key, name)
        schema, relations = checks
        found = [
            issue._replace(severity="warning") if issue.message == _NO_SELECTOR else issue
            for issue in schema.find_issues(body, may_be_patch=may_be_patch)
        ]
        if not is_encrypted(body) and not any(issue.severity == "error" for issue in found):
            relations.find_issues(body, not may_be_patch or _is_whole_object(body), found)
        return found

    def _compile(self, key: tuple[str, str, str], name: str) -> tuple[ObjectSchema, RelationTree]:
        """Return the schema of a kind with the values that its fields may have, and the rules for several fields."""
        kind = key[0], key[2]
        described = f"is unknown to Kubernetes {self._version}, which refuses or drops it"
        object_schema = make_object_schema(name, self._limited, _REQUIRED.get(kind, ()))
        schema = ObjectSchema(object_schema, described, {} if key[0] in _CHECKED_GROUPS else _SEVERITIES)
        return schema, RelationTree(RELATIONS.get(kind, ()))

    @cached_property
    def _limited(self) -> Mapping[str, Body]:
        return _limit_values(self.definitions)

    def _check_kind(self, group: str, version: str, kind: str) -> list[Issue]:
        """Report a kind or version that this version of Kubernetes does not have, unless a newer one may have it."""
        written = _join(group, version)
        versions = self._versions.get((group, kind))
        if versions is not None:
            newest = max(versions, key=_rank_version)
            if _may_follow(version, newest):
                return []
            code: str = "removed-version" if _rank_version(version) < _rank_version(newest) else "unknown-version"
            is_recent = (group, version) in _RECENTLY_SERVED and (group, kind) not in _STABLE_KINDS
            severity: Severity = "warning" if is_recent else "error"
            message = f"Kubernetes {self._version} has no {kind} in {written[:100]}: write {_join(group, newest)}"
            return [Issue(severity, code, message, ("apiVersion",))]
        if kind in _REMOVED_KINDS:
            message = f"Kubernetes {self._version} has no {kind}: {_REMOVED_KINDS[kind]}"
            return [Issue("error", "removed-version", message, ("kind",))]
        groups = self._groups.get(self._by_lower.get(kind.lower(), ""))
        if groups:
            issue = self._suggest(group, version, kind, "apiVersion" if kind in self._groups else "kind")
            return [issue._replace(code="removed-version") if group in _REMOVED_GROUPS else issue]
        known = {name.lower(): name for known_group, _, name in self._names if known_group == group}
        similar = find_similar(kind.lower(), known, _KIND_SIMILARITY)
        if not similar:
            return []
        message = f"Kubernetes {self._version} has no kind {kind[:60]!r} in {written[:100]}; did you mean {known[similar]}?"
        return [Issue("error", "unknown-kind", message, ("kind",))]


_SELECTING_KINDS = frozenset(("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"))
"""Kinds of workloads that no API server accepts without a selector."""


def _is_whole_object(body: Body) -> bool:
    """Return whether an object is no patch of one.

    The containers of a pod template have images, or a selector is beside it, which workloads need; a Service has more than a selector, and
    a claim more than its size.
    """
    spec: Any = body.get("spec")
    if not isinstance(spec, dict):
        return False
    if body.get("kind") == "Service":
        return bool(spec.get("selector")) and len(spec) > 1
    if body.get("kind") == "PersistentVolumeClaim":
        return "resources" in spec and len(spec) > 1
    if "selector" in spec and "template" in spec:
        return True
    if body.get("kind") in _SELECTING_KINDS:
        return False
    pod = get_field(spec, "jobTemplate", "spec", "template", "spec") or get_field(spec, "template", "spec") or spec
    containers = pod.get("containers") if isinstance(pod, dict) else None
    if body.get("kind") == "Pod" and isinstance(containers, list):
        return any(isinstance(entry, dict) and entry.get("image") for entry in containers) or not containers
    return isinstance(containers, list) and all(isinstance(entry, dict) and entry.get("image") for entry in containers)


def _limit_values(definitions: Mapping[str, Body]) -> Mapping[str, Body]:
    """Return the definitions with the values that their fields may have. An entry of a list is null only where a value is optional."""
    limited = {name: _require(name, definition, definitions) for name, definition in definitions.items()}
    limited = {name: _refuse_null_entries(name, definition, limited) for name, definition in limited.items()}
    for row in FIELD_VALUES:
        known = limited.get(row.definition)
        if known is None:
            continue
        if not row.fields:
            limited[row.definition] = {**known, **row.limit}
            continue
        properties = dict(known["properties"])
        for field in row.fields.split():
            name, inner = next(((field.removesuffix(end), key) for end, key in _PARTS.items() if field.endswith(end)), (field, ""))
            own = properties[name]
            if inner == "items" and "enum" in row.limit:
                row = row._replace(limit={**row.limit, "enum": [value for value in row.limit["enum"] if value is not None]})
            properties[name] = {**own, inner: {**own[inner], **row.limit}} if inner else {**own, **row.limit}
        limited[row.definition] = {**known, "properties": properties}
    return limited


def _require(name: str, definition: Body, definitions: Mapping[str, Body]) -> Body:
    """Return a definition whose required fields are those that a validation demands, where it may not be null either."""
    optional = OPTIONAL_FIELDS.get(name, ())
    required = [field for field in definition.get("required", ()) if field not in optional]
    if not required or name.partition(".")[0] not in _VALIDATED:
        return definition
    properties = dict(definition["properties"])
    for field in required:
        own = properties[field]
        types = (
            own.get("type") or definitions[own["$ref"].removeprefix(DEFINITIONS)].get("type")
            if "type" in own or "$ref" in own
            else None
        )
        if isinstance(types, list):
            properties[field] = {**own, "type": [kind for kind in types if kind != "null"]}
    return {**definition, "required": required, "properties": properties}


def _refuse_null_entries(name: str, definition: Body, definitions: Mapping[str, Body]) -> Body:
    """Return a definition in whose lists objects with required fields are not null: Kubernetes reads an empty object there."""
    if name.partition(".")[0] not in _VALIDATED or "properties" not in definition:
        return definition
    properties = dict(definition["properties"])
    for field, own in properties.items():
        target = own.get("items", {}).get("$ref", "").removeprefix(DEFINITIONS)
        if target and definitions[target].get("required"):
            properties[field] = {**own, "items": {**own["items"], "type": "object"}}
    return {**definition, "properties": properties}


def _join(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _may_follow(version: str, newest: str) -> bool:
    """Return whether a newer Kubernetes may serve a version of a kind whose newest one is alpha or beta: the next one, or a stable one.

    A kind with a stable version keeps it, so that any other one is a mistake.
    """
    (level, major, minor), (known, known_major, known_minor) = _rank_version(version), _rank_version(newest)
    if known == _STABLE or major != known_major:
        return False
    return level == _STABLE or (level == known and minor == known_minor + 1) or (level > known and minor == 1)


def _rank_version(version: str) -> tuple[int, int, int]:
    """Return the rank of a version as Kubernetes orders them: stable ones before beta before alpha; any other text comes first."""
    match = _VERSION.fullmatch(version[:20])
    if match is None:
        return (_STABLE + 1, 0, 0)
    major, stage, minor = match.groups()
    return ({"alpha": 1, "beta": 2}.get(stage or "", _STABLE), int(major), int(minor or 0))
