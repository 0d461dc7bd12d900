"""Fields that an API server does not let change once an object exists, by kind, and which of them differ between two manifests.

Source: kubernetes/pkg/apis/*/validation. Fields that differ only by a default of the API server count as equal where it is one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gitsched.model.document import Body, get_field, read_annotations
from gitsched.model.json_values import is_same_json
from gitsched.model.quantity import parse_quantity
from gitsched.named_tuples import NamedTuple


class ImmutableFields(NamedTuple):
    """The immutable fields of a kind, by path. `mutable` are the only members of spec that may change, if not None; `defaults` are values
    that a missing member of spec has."""

    paths: tuple[str, ...] = ()
    mutable: frozenset[str] | None = None
    defaults: Mapping[str, Any] = {}


_STATEFUL_SET = frozenset(
    (
        "minReadySeconds",
        "ordinals",
        "persistentVolumeClaimRetentionPolicy",
        "replicas",
        "revisionHistoryLimit",
        "template",
        "updateStrategy",
    )
)
_JOB = (
    "backoffLimitPerIndex",
    "completionMode",
    "completions",
    "managedBy",
    "podFailurePolicy",
    "selector",
    "successPolicy",
    "template",
)
_VOLUME_SOURCES = (
    *(
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "csi",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
    ),
    *("glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume", "quobyte", "rbd", "scaleIO"),
    *("storageos", "vsphereVolume"),
)
_SELECTOR = ImmutableFields(("spec.selector",))
_ROLE_REF = ImmutableFields(("roleRef",))

IMMUTABLE_FIELDS: Final[Mapping[tuple[str, str], ImmutableFields]] = {
    ("", "ConfigMap"): ImmutableFields(),
    ("", "PersistentVolume"): ImmutableFields(
        (*(f"spec.{name}" for name in _VOLUME_SOURCES), "spec.volumeMode"), defaults={"volumeMode": "Filesystem"}
    ),
    ("", "PersistentVolumeClaim"): ImmutableFields(
        mutable=frozenset(("resources", "volumeAttributesClassName")), defaults={"volumeMode": "Filesystem"}
    ),
    ("", "Pod"): ImmutableFields(
        mutable=frozenset(
            (
                "activeDeadlineSeconds",
                "containers",
                "ephemeralContainers",
                "initContainers",
                "terminationGracePeriodSeconds",
                "tolerations",
            )
        ),
    ),
    ("", "ResourceQuota"): ImmutableFields(("spec.scopes",)),
    ("", "Secret"): ImmutableFields(("type",), defaults={"type": "Opaque"}),
    ("", "Service"): ImmutableFields(),
    ("apps", "DaemonSet"): _SELECTOR,
    ("apps", "Deployment"): _SELECTOR,
    ("apps", "ReplicaSet"): _SELECTOR,
    ("apps", "StatefulSet"): ImmutableFields(
        mutable=_STATEFUL_SET, defaults={"podManagementPolicy": "OrderedReady", "serviceName": ""}
    ),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ImmutableFields(("spec.group", "spec.names.kind", "spec.scope")),
    ("batch", "Job"): ImmutableFields(tuple(f"spec.{name}" for name in _JOB), defaults={"completionMode": "NonIndexed"}),
    ("discovery.k8s.io", "EndpointSlice"): ImmutableFields(("addressType",)),
    ("networking.k8s.io", "IngressClass"): ImmutableFields(("spec.controller",)),
    ("node.k8s.io", "RuntimeClass"): ImmutableFields(("handler",)),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _ROLE_REF,
    ("rbac.authorization.k8s.io", "RoleBinding"): _ROLE_REF,
    ("scheduling.k8s.io", "PriorityClass"): ImmutableFields(
        ("preemptionPolicy", "value"), defaults={"preemptionPolicy": "PreemptLowerPriority"}
    ),
    ("storage.k8s.io", "CSIDriver"): ImmutableFields(
        ("spec.attachRequired", "spec.volumeLifecycleModes"),
        defaults={"attachRequired": True, "volumeLifecycleModes": ["Persistent"]},
    ),
    ("storage.k8s.io", "StorageClass"): ImmutableFields(
        ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
        defaults={"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    ),
}


class FieldChange(NamedTuple):
    """An immutable field that differs: its path, and its values before and after, None for a missing one."""

    path: str
    before: Any
    after: Any


def list_immutable_changes(kind: tuple[str, str], before: Body, after: Body) -> list[FieldChange]:
    """Return the immutable fields of a kind that differ between two manifests of one object, by path."""
    rule = IMMUTABLE_FIELDS.get(kind)
    if rule is None:
        return []
    paths = list(rule.paths)
    if rule.mutable is not None:
        members = {**_read_object(before.get("spec")), **_read_object(after.get("spec"))}
        paths += (f"spec.{name}" for name in members if name not in rule.mutable)
    found = [FieldChange(path, _read(before, path, rule), _read(after, path, rule)) for path in sorted(paths)]
    changes = [change for change in found if not _is_same(change.before, change.after)]
    own = _RULES.get(kind)
    return changes if own is None else list(own(changes, before, after))


def replaces_object(body: Body) -> bool:
    """Return whether an annotation has Flux or Argo CD delete and create an object that cannot be updated."""
    annotations = read_annotations(body)
    options = str(annotations.get("argocd.argoproj.io/sync-options", "")).replace(" ", "").split(",")
    return annotations.get("kustomize.toolkit.fluxcd.io/force") == "enabled" or {"Force=true", "Replace=true"} <= set(options)


def _read(body: Body, path: str, rule: ImmutableFields) -> Any:
    value = get_field(body, *path.split("."))
    return rule.defaults.get(path.rpartition(".")[2]) if value is None else value


_QUANTITIES = ("limits", "requests")


def _is_same(before: Any, after: Any) -> bool:
    """Return whether two values are the same, also where quantities of resources are written otherwise."""
    return is_same_json(before, after) or is_same_json(_normalize(before), _normalize(after))


def _normalize(value: Any, *, is_amount: bool = False) -> Any:
    if isinstance(value, dict):
        return {name: _normalize(part, is_amount=is_amount or name in _QUANTITIES) for name, part in value.items()}
    if isinstance(value, list):
        return [_normalize(part) for part in value]
    amount = parse_quantity(value) if is_amount else None
    return value if amount is None else amount.nano


def _read_object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


Changes = list[FieldChange]


def _check_job(changes: Changes, before: Body, after: Body) -> Iterator[FieldChange]:
    """Completions of an Indexed Job may change together with its parallelism, and the template of a suspended one."""
    if all(get_field(body, "spec", "parallelism") is None for body in (before, after)):  # completions are 1 by default then
        changes = [change for change in changes if change.path != "spec.completions" or {change.before, change.after} != {None, 1}]
    indexed = all(get_field(body, "spec", "completionMode") == "Indexed" for body in (before, after))
    elastic = indexed and get_field(after, "spec", "completions") == get_field(after, "spec", "parallelism")
    suspended = get_field(before, "spec", "suspend") is True
    allowed = [path for path, is_allowed in (("spec.completions", elastic), ("spec.template", suspended)) if is_allowed]
    return (change for change in changes if change.path not in allowed)


def _check_data(changes: Changes, before: Body, after: Body) -> Iterator[FieldChange]:
    """The data of a ConfigMap or Secret that is marked as immutable; without the values, which may be secret."""
    yield from changes
    if before.get("immutable") is True:
        for name in ("binaryData", "data", "immutable", "stringData"):
            if not is_same_json(before.get(name), after.get(name)):
                yield FieldChange(name, None, None)


def _check_service(changes: Changes, before: Body, after: Body) -> Iterator[FieldChange]:
    """The cluster IP of a Service that has one before and after, and other fields that the API server sets where the manifest does not."""
    yield from changes
    if "ExternalName" in (get_field(before, "spec", "type"), get_field(after, "spec", "type")):
        return
    one, other = (get_field(body, "spec", "clusterIP") for body in (before, after))
    if other and one != other and (one or other == "None"):
        yield FieldChange("spec.clusterIP", one, other)
    for name in ("healthCheckNodePort", "loadBalancerClass"):
        one, other = (get_field(body, "spec", name) for body in (before, after))
        if one and other and one != other:
            yield FieldChange(f"spec.{name}", one, other)
    first, second = (get_field(body, "spec", "ipFamilies") for body in (before, after))
    if isinstance(first, list) and isinstance(second, list) and first and second and first[0] != second[0]:
        yield FieldChange("spec.ipFamilies", first[0], second[0])


def _check_claim(changes: Changes, before: Body, after: Body) -> Iterator[FieldChange]:
    """The size of a claim, which may only grow, and other resources."""
    yield from changes
    one, other = (_read_object(get_field(body, "spec", "resources", "requests")) for body in (before, after))
    sizes = [parse_quantity(part.get("storage")) for part in (one, other)]
    if sizes[0] is not None and sizes[1] is not None and sizes[1].nano < sizes[0].nano:
        yield FieldChange("spec.resources.requests.storage", one["storage"], other["storage"])
    limits = [get_field(body, "spec", "resources", "limits") for body in (before, after)]
    if not _is_same(*limits):
        yield FieldChange("spec.resources.limits", *limits)


def _check_pod(changes: Changes, before: Body, after: Body) -> Iterator[FieldChange]:
    """Containers of a Pod: only their images may change."""
    yield from changes
    for name in ("containers", "initContainers"):
        one, other = (_drop_images(get_field(body, "spec", name)) for body in (before, after))
        if not is_same_json(one, other):
            yield FieldChange(f"spec.{name}", None, None)


def _drop_images(containers: object) -> Any:
    if not isinstance(containers, list):
        return containers
    return [
        {name: value for name, value in entry.items() if name != "image"} if isinstance(entry, dict) else entry
        for entry in containers
    ]


_RULES: Final[Mapping[tuple[str, str], Callable[[Changes, Body, Body], Iterator[FieldChange]]]] = {
    ("", "ConfigMap"): _check_data,
    ("", "PersistentVolumeClaim"): _check_claim,
    ("", "Pod"): _check_pod,
    ("", "Secret"): _check_data,
    ("", "Service"): _check_service,
    ("batch", "Job"): _check_job,
}
