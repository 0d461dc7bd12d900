"""References of workloads to other objects: the operation GetDependencies of Karmada's resource interpreter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gitsched.kinds.kind import Kind
from gitsched.kinds.references import find_written_secret, list_pod_specs, list_references
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Document, Key, get_field, get_text, list_objects, parse_api_group, read_labels
from gitsched.named_tuples import NamedTuple

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


_SECRET_KIND = ("", "Secret")


_KIND_ORDER = (_CONFIG_MAP, _SECRET, _SERVICE_ACCOUNT, _VOLUME_CLAIM)


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
        """Return whether the reference is to this object, in any version of its API, or to the Secret that its controller writes."""
        if self.name:
            key = self.key
            return key == template.key or (key[:2] == _SECRET_KIND and key == find_written_secret_key(template))
        if self.key[:3] != template.key[:3]:
            return False
        labels = read_labels(template.body)
        return all(labels.get(name) == value for name, value in self.labels)


def read_references(template: Document, pod_path: tuple[str, ...] = ()) -> tuple[DependentObjectReference, ...]:
    """GetDependencies: return what an object refers to, sorted by kind and name.

    A pod spec refers to ConfigMaps, Secrets, its ServiceAccount and PersistentVolumeClaims, the kinds of other operators to what the table
    of kinds says. `pod_path` is the path of the pod spec of a kind that gitsched.yaml declares.
    """
    row = find_kind(template.key.group, template.key.kind)
    if row is not None:
        return _read_references_by_row(template, row, pod_path)
    if not template.key.namespace:
        return ()
    kind = (template.api_version, template.key.kind)
    path = pod_path or _POD_SPEC_PATHS.get(kind)
    if path is None:
        read = _REFERENCE_READERS.get(kind)
        return read(template) if read else ()
    found = set(_read_pod_references(get_field(template.body, *path)))
    if kind == ("apps/v1", "StatefulSet"):
        claims = get_field(template.body, "spec", "volumeClaimTemplates")
        found -= {(_VOLUME_CLAIM, str(get_field(claim, "metadata", "name"))) for claim in list_objects(claims)}
    return sort_references(DependentObjectReference(*kind, template.key.namespace, name) for kind, name in found)


def depends_on(template: Document, key: Key, pod_path: tuple[str, ...] = ()) -> bool:
    """Return whether an object is a dependency of a workload by its name."""
    return any(reference.name and reference.key == key for reference in read_references(template, pod_path))


def _read_references_by_row(template: Document, row: Kind, pod_path: tuple[str, ...]) -> tuple[DependentObjectReference, ...]:
    """GetDependencies of a kind of the table; a cluster-scoped object refers only to objects whose namespace is known."""
    namespace, body = template.key.namespace, template.body
    found = {DependentObjectReference(*reference[:4]) for reference in list_references(body, row, namespace)}
    pods = [get_field(body, *pod_path)] if pod_path else list_pod_specs(body, row)
    if namespace:
        found |= {DependentObjectReference(*kind, namespace, name) for pod in pods for kind, name in _read_pod_references(pod)}
    return sort_references(found)


def sort_references(references: Iterable[DependentObjectReference]) -> tuple[DependentObjectReference, ...]:
    """Sort references: the kinds that pods refer to first, in Karmada's order, then the others by name of the kind."""
    order = {kind: index for index, kind in enumerate(_KIND_ORDER)}
    return tuple(
        sorted(references, key=lambda found: (order.get((found.api_version, found.kind), len(order)), found[1:], found[0]))
    )


def find_written_secret_key(template: Document) -> Key | None:
    """Return the key of the Secret that the controller of an object writes, such as that of a SealedSecret; None for none."""
    row = find_kind(template.key.group, template.key.kind)
    if row is None or not row.secrets or not template.key.namespace:
        return None
    name = find_written_secret(template.body, row)
    return Key(*_SECRET_KIND, template.key.namespace, name) if name else None


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
    names = {get_text(entry, "secretName") for entry in list_objects(get_field(template.body, "spec", "tls"))}
    chosen = sorted(filter(None, names))
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
