"""What a workload refers to: Karmada's default interpreter of dependencies, plus kinds declared in gitsched.yaml.

ConfigMaps, Secrets, ServiceAccounts and PersistentVolumeClaims of pod templates; the Secrets of an Ingress; what stands behind a
ServiceImport. References of references are not followed, as upstream does not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from gitsched.model.document import Body, Document, Key, group_of, list_objects, member, text_map

_SERVICE_LABEL = "kubernetes.io/service-name"
_POD_KINDS = {
    ("apps/v1", "DaemonSet"): ("spec", "template", "spec"),
    ("apps/v1", "Deployment"): ("spec", "template", "spec"),
    ("apps/v1", "ReplicaSet"): ("spec", "template", "spec"),
    ("apps/v1", "StatefulSet"): ("spec", "template", "spec"),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
    ("batch/v1", "Job"): ("spec", "template", "spec"),
    ("v1", "Pod"): ("spec",),
}
_CONFIG_MAP, _SECRET, _ACCOUNT, _CLAIM = (
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "ServiceAccount"),
    ("v1", "PersistentVolumeClaim"),
)
_SERVICE, _SLICE = ("v1", "Service"), ("discovery.k8s.io/v1", "EndpointSlice")
_ORDER = (_CONFIG_MAP, _SECRET, _ACCOUNT, _CLAIM)
NEEDED_KINDS = frozenset((*_ORDER, _SERVICE, _SLICE))
"""What can be needed; such an object needs nothing itself, so that needs never go round in a circle."""
_VOLUMES: tuple[tuple[tuple[str, str], tuple[str, ...]], ...] = (
    (_CONFIG_MAP, ("configMap", "name")),
    (_SECRET, ("secret", "secretName")),
    (_SECRET, ("azureFile", "secretName")),
    (_SECRET, ("csi", "nodePublishSecretRef", "name")),
    *(
        (_SECRET, (volume, "secretRef", "name"))
        for volume in ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
    ),
    (_CLAIM, ("persistentVolumeClaim", "claimName")),
)


class Reference(NamedTuple):
    """One thing that a workload needs: by name, or, where `name` is "", everything of a kind with these labels."""

    api_version: str
    kind: str
    namespace: str
    name: str
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> Key:
        return Key(group_of(self.api_version), self.kind, self.namespace, self.name)

    def names(self, template: Document) -> bool:
        """Whether it means this object."""
        if (self.api_version, self.kind, self.namespace) != (template.api_version, template.key.kind, template.key.namespace):
            return False
        if self.name:
            return self.name == template.key.name
        labels = text_map(member(template.body, "metadata", "labels"))
        return all(labels.get(name) == value for name, value in self.labels)


def read_references(template: Document, pod_path: tuple[str, ...] = ()) -> tuple[Reference, ...]:
    """Everything that a workload refers to, each once, by kind and name; nothing for what is in no namespace.

    `pod_path` is where a kind declared in gitsched.yaml keeps its pod template's spec.
    """
    kind = (template.api_version, template.key.kind)
    if not template.key.namespace or kind in NEEDED_KINDS:
        return ()
    path = pod_path or _POD_KINDS.get(kind)
    if path is None:
        read = _READERS.get(kind)
        return read(template) if read else ()
    found = set(_read_pod(member(template.body, *path)))
    if kind == ("apps/v1", "StatefulSet"):
        made = member(template.body, "spec", "volumeClaimTemplates")
        found -= {(_CLAIM, str(member(claim, "metadata", "name"))) for claim in list_objects(made)}
    ordered = sorted(found, key=lambda entry: (_ORDER.index(entry[0]), entry[1]))
    return tuple(Reference(*kind, template.key.namespace, name) for kind, name in ordered)


def show_references(references: Iterable[Reference]) -> str:
    """The JSON that Karmada keeps in the annotation of a binding."""
    return json.dumps([_show(reference) for reference in references], separators=(",", ":"), ensure_ascii=False)


def _show(reference: Reference) -> Body:
    shown: Body = {"apiVersion": reference.api_version, "kind": reference.kind, "namespace": reference.namespace}
    if reference.name:
        return {**shown, "name": reference.name}
    return {**shown, "labelSelector": {"matchLabels": dict(reference.labels)}}


def _read_pod(pod: Any) -> Iterator[tuple[tuple[str, str], str]]:
    """Kind and name of all that a pod refers to; what has not the shape of a pod refers to nothing."""
    if not isinstance(pod, dict):
        return
    account = pod.get("serviceAccountName") or pod.get("serviceAccount")
    named = [(_SECRET, secret.get("name")) for secret in list_objects(pod.get("imagePullSecrets"))]
    named += [(_ACCOUNT, account)] if account != "default" else []
    for containers in ("initContainers", "containers", "ephemeralContainers"):
        for container in list_objects(pod.get(containers)):
            named += _read_environment(container)
    for volume in list_objects(pod.get("volumes")):
        named += [(kind, member(volume, *path)) for kind, path in _VOLUMES]
        for source in list_objects(member(volume, "projected", "sources")):
            named += [(_CONFIG_MAP, member(source, "configMap", "name")), (_SECRET, member(source, "secret", "name"))]
    yield from ((kind, name) for kind, name in named if isinstance(name, str) and name)


def _read_environment(container: Body) -> list[tuple[tuple[str, str], Any]]:
    named = []
    for source in list_objects(container.get("envFrom")):
        named += [(_CONFIG_MAP, member(source, "configMapRef", "name")), (_SECRET, member(source, "secretRef", "name"))]
    for variable in list_objects(container.get("env")):
        named.append((_CONFIG_MAP, member(variable, "valueFrom", "configMapKeyRef", "name")))
        named.append((_SECRET, member(variable, "valueFrom", "secretKeyRef", "name")))
    return named


def _read_ingress(template: Document) -> tuple[Reference, ...]:
    names = {entry.get("secretName") for entry in list_objects(member(template.body, "spec", "tls"))}
    chosen = sorted(name for name in names if isinstance(name, str) and name)
    return tuple(Reference(*_SECRET, template.key.namespace, name) for name in chosen)


def _read_import(template: Document) -> tuple[Reference, ...]:
    """Karmada derives a Service from a ServiceImport, and endpoint slices carry that Service's name as a label."""
    service, namespace = f"derived-{template.key.name}", template.key.namespace
    return (Reference(*_SERVICE, namespace, service), Reference(*_SLICE, namespace, "", ((_SERVICE_LABEL, service),)))


_READERS: dict[tuple[str, str], Callable[[Document], tuple[Reference, ...]]] = {
    ("networking.k8s.io/v1", "Ingress"): _read_ingress,
    ("multicluster.x-k8s.io/v1alpha1", "ServiceImport"): _read_import,
}
