"""Default (native) resource interpreter: the operations GetReplicas, ReviseReplica and GetDependencies of a workload."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from gitsched.model.document import Body, Document, Key, as_string_map, get_field, list_objects, parse_api_group
from gitsched.model.quantity import Quantity, add_quantities, count_quantity, parse_quantity
from gitsched.model.scheduling import Assignment
from gitsched.schedule.dispenser import dispense

_NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")


class WorkloadPaths(NamedTuple):
    """The paths of a kind's replicas and pod spec, as member names."""

    replicas: tuple[str, ...]
    pod_spec: tuple[str, ...]


class ReplicaRequirements(NamedTuple):
    """Replicas and requirements of a workload.

    `replicas` is None for a kind without replicas. `requirements` is spec.replicaRequirements of the binding; `resource_request` is what
    one replica requests (see `Request`). `invalid_replicas` says that the manifest has something else than a number at
    `replicas_path`.
    """

    replicas: int | None
    requirements: Body | None
    replicas_path: str | None
    invalid_replicas: bool = False
    resource_request: tuple[tuple[str, int], ...] | None = None

    @property
    def is_workload(self) -> bool:
        """Whether Karmada schedules it with replicas: it has replicas or requirements."""
        return bool(self.replicas) or self.requirements is not None


POD_TEMPLATE_SPEC = ("spec", "template", "spec")


DEFAULT_PATHS: dict[tuple[str, str], WorkloadPaths] = {
    ("apps/v1", "Deployment"): WorkloadPaths(("spec", "replicas"), POD_TEMPLATE_SPEC),
    ("apps/v1", "ReplicaSet"): WorkloadPaths(("spec", "replicas"), POD_TEMPLATE_SPEC),
    ("apps/v1", "StatefulSet"): WorkloadPaths(("spec", "replicas"), POD_TEMPLATE_SPEC),
    ("batch/v1", "Job"): WorkloadPaths(("spec", "parallelism"), POD_TEMPLATE_SPEC),
    ("v1", "Pod"): WorkloadPaths((), ("spec",)),
}


def read_replica_requirements(template: Document, declared: Mapping[tuple[str, str], WorkloadPaths]) -> ReplicaRequirements:
    """GetReplicas: return replicas and requirements by the kind of a workload; missing replicas are 1, an unknown kind has none.

    `declared` are the kinds that gitsched.yaml declares.
    """
    kind = (template.api_version, template.key.kind)
    paths = declared.get(kind) or DEFAULT_PATHS.get(kind)
    if paths is None:
        return ReplicaRequirements(None, None, None)
    requirements, request = _read_requirements(get_field(template.body, *paths.pod_spec)) if paths.pod_spec else (None, None)
    if not paths.replicas:
        return ReplicaRequirements(1, requirements, None, resource_request=request)
    path = ".".join(paths.replicas)
    value = get_field(template.body, *paths.replicas)
    if value is not None and not _is_count(value):
        return ReplicaRequirements(None, None, path, invalid_replicas=True)
    replicas = 1 if value is None else int(value)
    if kind == ("batch/v1", "Job"):
        completions = get_field(template.body, "spec", "completions")
        replicas = min(replicas, int(completions)) if _is_count(completions) else replicas
    return ReplicaRequirements(replicas, requirements, path, resource_request=request)


def revise_replicas(
    template: Document, requirements: ReplicaRequirements, targets: Sequence[Assignment], descending: bool
) -> dict[str, tuple[tuple[str, int], ...]]:
    """ReviseReplica: return the changes to the manifest of each cluster when replicas are divided: its replicas, and a Job's completions.

    Completions are divided in proportion to the replicas, with the same dispenser and tie-breaking.
    """
    if requirements.replicas_path is None:
        return {}
    edits = {target.name: ((requirements.replicas_path, target.replicas),) for target in targets if target.replicas}
    completions = get_field(template.body, "spec", "completions")
    if (template.api_version, template.key.kind) == ("batch/v1", "Job") and _is_count(completions):
        names = sorted(edits)
        shares = dispense(completions, [edits[name][0][1] for name in names], descending)
        return {name: (*edits[name], ("spec.completions", share)) for name, share in zip(names, shares, strict=True)}
    return dict(edits)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _read_requirements(pod: object) -> tuple[Body | None, tuple[tuple[str, int], ...] | None]:
    if not isinstance(pod, dict):
        return None, None
    request = _sum_resource_requests(pod)
    claim = _read_node_claim(pod)
    requirements: Body = {}
    if claim:
        requirements["nodeClaim"] = claim
    if request:
        requirements["resourceRequest"] = {name: str(request[name]) for name in sorted(request)}
    if not requirements:
        return None, None
    return requirements, tuple((name, count_quantity(name, request[name])) for name in sorted(request) if request[name].value > 0)


def _sum_resource_requests(pod: Body) -> dict[str, Quantity]:
    """Return the sum over containers, at least that of each init container, plus overhead; limits replace missing requests."""
    total: dict[str, Quantity] = {}
    for container in list_objects(pod.get("containers")):
        for name, quantity in _read_container(container).items():
            total[name] = add_quantities(total[name], quantity) if name in total else quantity
    for container in list_objects(pod["initContainers"]) if pod.get("initContainers") else ():
        for name, quantity in _read_container(container).items():
            if name not in total or quantity.nano > total[name].nano:
                total[name] = quantity
    for name, quantity in _parse_quantities(pod.get("overhead")).items():
        total[name] = add_quantities(total[name], quantity) if name in total else quantity
    return {
        name: quantity
        for name, quantity in total.items()
        if quantity.nano and (name in _NATIVE_RESOURCES or _is_scalar_resource(name))
    }


def _read_container(container: object) -> dict[str, Quantity]:
    resources = container.get("resources") if isinstance(container, dict) else None
    if not isinstance(resources, dict):
        return {}
    return {**_parse_quantities(resources.get("limits")), **_parse_quantities(resources.get("requests"))}


def _parse_quantities(value: object) -> dict[str, Quantity]:
    if not isinstance(value, dict):
        return {}
    parsed = {str(name): parse_quantity(text) for name, text in value.items()}
    return {name: quantity for name, quantity in parsed.items() if quantity is not None}


def _is_scalar_resource(name: str) -> bool:
    """Return whether it is an extended resource, huge pages, attachable volumes or another prefixed native resource."""
    return "/" in name or name.startswith(("hugepages-", "attachable-volumes-"))


def _read_node_claim(pod: Body) -> Body:
    affinity = pod.get("affinity")
    required = get_field(affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution") if affinity else None
    claim = {"hardNodeAffinity": required, "nodeSelector": pod.get("nodeSelector"), "tolerations": pod.get("tolerations")}
    return {name: value for name, value in claim.items() if value}


_SERVICE_LABEL = "kubernetes.io/service-name"


_POD_SPEC_PATHS = {
    ("apps/v1", "DaemonSet"): ("spec", "template", "spec"),
    ("apps/v1", "Deployment"): ("spec", "template", "spec"),
    ("apps/v1", "ReplicaSet"): ("spec", "template", "spec"),
    ("apps/v1", "StatefulSet"): ("spec", "template", "spec"),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
    ("batch/v1", "Job"): ("spec", "template", "spec"),
    ("v1", "Pod"): ("spec",),
}


_CONFIG_MAP, _SECRET, _SERVICE_ACCOUNT, _VOLUME_CLAIM = (
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
)


_SERVICE, _ENDPOINT_SLICE = ("v1", "Service"), ("discovery.k8s.io/v1", "EndpointSlice")


_KIND_ORDER = (_CONFIG_MAP, _SECRET, _SERVICE_ACCOUNT, _VOLUME_CLAIM)


DEPENDENCY_KINDS = frozenset((*_KIND_ORDER, _SERVICE, _ENDPOINT_SLICE))
"""Kinds that workloads can depend on; these have no dependencies themselves, so there are no cycles."""


_VOLUME_REFERENCES: tuple[tuple[tuple[str, str], tuple[str, ...]], ...] = (
    (_CONFIG_MAP, ("configMap", "name")),
    (_SECRET, ("secret", "secretName")),
    (_SECRET, ("azureFile", "secretName")),
    (_SECRET, ("csi", "nodePublishSecretRef", "name")),
    *(
        (_SECRET, (volume, "secretRef", "name"))
        for volume in ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
    ),
    (_VOLUME_CLAIM, ("persistentVolumeClaim", "claimName")),
)


class DependentObjectReference(NamedTuple):
    """A dependency of a workload: an object by name or, when `name` is "", every object of a kind with these labels."""

    api_version: str
    kind: str
    namespace: str
    name: str
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> Key:
        return Key(parse_api_group(self.api_version), self.kind, self.namespace, self.name)

    def matches(self, template: Document) -> bool:
        """Return whether the reference is to this object."""
        if (self.api_version, self.kind, self.namespace) != (template.api_version, template.key.kind, template.key.namespace):
            return False
        if self.name:
            return self.name == template.key.name
        labels = as_string_map(get_field(template.body, "metadata", "labels"))
        return all(labels.get(name) == value for name, value in self.labels)


def read_references(template: Document, pod_path: tuple[str, ...] = ()) -> tuple[DependentObjectReference, ...]:
    """GetDependencies: return the dependencies of a workload, sorted by kind and name; none for a cluster-scoped object.

    A pod spec refers to ConfigMaps, Secrets, its ServiceAccount and PersistentVolumeClaims. `pod_path` is the path of the pod spec of a
    kind that gitsched.yaml declares.
    """
    kind = (template.api_version, template.key.kind)
    if not template.key.namespace or kind in DEPENDENCY_KINDS:
        return ()
    path = pod_path or _POD_SPEC_PATHS.get(kind)
    if path is None:
        read = _REFERENCE_READERS.get(kind)
        return read(template) if read else ()
    found = set(_read_pod_references(get_field(template.body, *path)))
    if kind == ("apps/v1", "StatefulSet"):
        claims = get_field(template.body, "spec", "volumeClaimTemplates")
        found -= {(_VOLUME_CLAIM, str(get_field(claim, "metadata", "name"))) for claim in list_objects(claims)}
    ordered = sorted(found, key=lambda entry: (_KIND_ORDER.index(entry[0]), entry[1]))
    return tuple(DependentObjectReference(*kind, template.key.namespace, name) for kind, name in ordered)


def format_references(references: Iterable[DependentObjectReference]) -> str:
    """Return the JSON of the annotation that Karmada writes into a binding."""
    return json.dumps([_format_reference(reference) for reference in references], separators=(",", ":"), ensure_ascii=False)


def _format_reference(reference: DependentObjectReference) -> Body:
    body: Body = {"apiVersion": reference.api_version, "kind": reference.kind, "namespace": reference.namespace}
    if reference.name:
        return {**body, "name": reference.name}
    return {**body, "labelSelector": {"matchLabels": dict(reference.labels)}}


def _read_pod_references(pod: Any) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield kind and name of every object that a pod spec refers to; a malformed pod spec refers to nothing."""
    if not isinstance(pod, dict):
        return
    account = pod.get("serviceAccountName") or pod.get("serviceAccount")
    found = [(_SECRET, secret.get("name")) for secret in list_objects(pod.get("imagePullSecrets"))]
    found += [(_SERVICE_ACCOUNT, account)] if account != "default" else []
    for containers in ("initContainers", "containers", "ephemeralContainers"):
        for container in list_objects(pod.get(containers)):
            found += _read_environment_references(container)
    for volume in list_objects(pod.get("volumes")):
        found += [(kind, get_field(volume, *path)) for kind, path in _VOLUME_REFERENCES]
        for source in list_objects(get_field(volume, "projected", "sources")):
            found += [(_CONFIG_MAP, get_field(source, "configMap", "name")), (_SECRET, get_field(source, "secret", "name"))]
    yield from ((kind, name) for kind, name in found if isinstance(name, str) and name)


def _read_environment_references(container: Body) -> list[tuple[tuple[str, str], Any]]:
    found = []
    for source in list_objects(container.get("envFrom")):
        found += [(_CONFIG_MAP, get_field(source, "configMapRef", "name")), (_SECRET, get_field(source, "secretRef", "name"))]
    for variable in list_objects(container.get("env")):
        found.append((_CONFIG_MAP, get_field(variable, "valueFrom", "configMapKeyRef", "name")))
        found.append((_SECRET, get_field(variable, "valueFrom", "secretKeyRef", "name")))
    return found


def _read_ingress_references(template: Document) -> tuple[DependentObjectReference, ...]:
    names = {entry.get("secretName") for entry in list_objects(get_field(template.body, "spec", "tls"))}
    chosen = sorted(name for name in names if isinstance(name, str) and name)
    return tuple(DependentObjectReference(*_SECRET, template.key.namespace, name) for name in chosen)


def _read_service_import_references(template: Document) -> tuple[DependentObjectReference, ...]:
    """Karmada derives a Service from a ServiceImport; EndpointSlices have its name in a label."""
    service, namespace = f"derived-{template.key.name}", template.key.namespace
    return (
        DependentObjectReference(*_SERVICE, namespace, service),
        DependentObjectReference(*_ENDPOINT_SLICE, namespace, "", ((_SERVICE_LABEL, service),)),
    )


_REFERENCE_READERS: dict[tuple[str, str], Callable[[Document], tuple[DependentObjectReference, ...]]] = {
    ("networking.k8s.io/v1", "Ingress"): _read_ingress_references,
    ("multicluster.x-k8s.io/v1alpha1", "ServiceImport"): _read_service_import_references,
}


def read_uid(template: Document) -> str:
    """Return the uid of a workload, "" without one; it breaks ties of the dispenser."""
    return str((template.body.get("metadata") or {}).get("uid") or "")
