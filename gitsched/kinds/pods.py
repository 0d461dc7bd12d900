"""What the pods of a workload say: the objects that they require, their labels, and the words of their arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from gitsched.model.document import Body, Key, as_string_map, get_field, list_objects
from gitsched.model.references import RequiredObject
from gitsched.named_tuples import NamedTuple

PodPaths = Mapping[tuple[str, str], tuple[str, ...]]
"""The path of the pod spec by group and kind."""
_TEMPLATE_SPEC = ("spec", "template", "spec")
POD_SPECS: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("", "ReplicationController"): _TEMPLATE_SPEC,
    ("apps", "DaemonSet"): _TEMPLATE_SPEC,
    ("apps", "Deployment"): _TEMPLATE_SPEC,
    ("apps", "ReplicaSet"): _TEMPLATE_SPEC,
    ("apps", "StatefulSet"): _TEMPLATE_SPEC,
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
    ("batch", "Job"): _TEMPLATE_SPEC,
}
ONLY_PODS: Final = frozenset(kind for kind in POD_SPECS if kind[0] and kind[1] != "StatefulSet")
"""Kinds that say nothing about other objects but what their pods say."""
_SECRET_VOLUMES = ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO", "storageos")
_SPECS_WITH_ARGUMENTS: tuple[tuple[str, ...], ...] = ((), ("template", "spec"), ("jobTemplate", "spec", "template", "spec"))
"""Paths below `spec` of the specs of pods whose containers may have arguments."""
_WORD = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")


class PodTemplate(NamedTuple):
    """The objects that the pods of a workload require, their labels, and the words of the arguments of their containers."""

    requires: tuple[RequiredObject, ...]
    labels: dict[str, str]
    words: frozenset[str]


def read_pod_template(key: Key, body: Body) -> PodTemplate:
    """Return what the pods say of a workload of one of the kinds in ONLY_PODS."""
    *path, spec = POD_SPECS[key[:2]]
    template = get_field(body, *path)
    found: list[RequiredObject] = []
    add_pod_requirements(get_field(template, spec), key.namespace, found)
    labels = as_string_map(get_field(template, "metadata", "labels"))
    return PodTemplate(tuple(dict.fromkeys(found)), labels, find_words(list_arguments(body)))


def add_pod_requirements(pod: Any, namespace: str, found: list[RequiredObject]) -> None:
    if not isinstance(pod, dict):
        return
    account = pod.get("serviceAccountName") or pod.get("serviceAccount")
    if account:
        add_requirement(found, "", "ServiceAccount", namespace, account)
    if "priorityClassName" in pod:
        add_requirement(found, "scheduling.k8s.io", "PriorityClass", "", pod["priorityClassName"])
    if "runtimeClassName" in pod:
        add_requirement(found, "node.k8s.io", "RuntimeClass", "", pod["runtimeClassName"])
    for secret in _list_members(pod, "imagePullSecrets"):
        add_requirement(found, "", "Secret", namespace, secret.get("name"))
    for container in (*_list_members(pod, "initContainers"), *_list_members(pod, "containers")):
        for source in _list_members(container, "envFrom"):
            _add_source(found, source, "configMapRef", "secretRef", namespace)
        for variable in _list_members(container, "env"):
            value = variable.get("valueFrom")
            if value is not None:
                _add_source(found, value, "configMapKeyRef", "secretKeyRef", namespace)
    for volume in _list_members(pod, "volumes"):
        _read_volume(volume, namespace, found)


def _list_members(body: Body, name: str) -> list[Body]:
    """Return the objects of a list that most pods do not have."""
    return list_objects(body[name]) if name in body else []


def _read_volume(volume: Body, namespace: str, found: list[RequiredObject]) -> None:
    _add_source(found, volume, "configMap", "secret", namespace)
    for source in list_objects(get_field(volume, "projected", "sources")) if "projected" in volume else ():
        _add_source(found, source, "configMap", "secret", namespace)
    if "persistentVolumeClaim" in volume:
        add_requirement(found, "", "PersistentVolumeClaim", namespace, get_field(volume, "persistentVolumeClaim", "claimName"))
    if "ephemeral" in volume:
        add_storage_class(found, get_field(volume, "ephemeral", "volumeClaimTemplate"))
    if "azureFile" in volume:
        add_requirement(found, "", "Secret", namespace, get_field(volume, "azureFile", "secretName"))
    if "csi" in volume:
        add_requirement(found, "", "Secret", namespace, get_field(volume, "csi", "nodePublishSecretRef", "name"))
    for name in _SECRET_VOLUMES:
        if name in volume:
            add_requirement(found, "", "Secret", namespace, get_field(volume, name, "secretRef", "name"))


def _add_source(found: list[RequiredObject], source: Any, config_map: str, secret: str, namespace: str) -> None:
    """Add the ConfigMap and the Secret at these members of an object, if they are not optional."""
    if not isinstance(source, dict):
        return
    for member, kind in ((config_map, "ConfigMap"), (secret, "Secret")):
        entry = source.get(member)
        if isinstance(entry, dict) and entry.get("optional") is not True:
            add_requirement(found, "", kind, namespace, entry.get("name") or entry.get("secretName"))


def add_storage_class(found: list[RequiredObject], claim: Any) -> None:
    """Add the StorageClass of a claim."""
    add_requirement(found, "storage.k8s.io", "StorageClass", "", get_field(claim, "spec", "storageClassName"))


def add_requirement(found: list[RequiredObject], group: str, kind: str, namespace: str, name: Any, expected: bool = True) -> None:
    """Add an object, if its name is one."""
    if isinstance(name, str) and name:
        found.append(RequiredObject(Key(group, kind, namespace, name), expected))


def find_words(texts: Iterable[Any]) -> frozenset[str]:
    """Return the words of texts that may be names of objects."""
    return frozenset(word for text in texts if isinstance(text, str) for word in _WORD.findall(text))


def list_arguments(body: Body) -> Iterator[Any]:
    """Yield the arguments and commands of the containers of a workload."""
    spec: Any = body.get("spec")
    for path in _SPECS_WITH_ARGUMENTS if isinstance(spec, dict) else ():
        pod = spec if not path else get_field(spec, *path) if path[0] in spec else None
        if not isinstance(pod, dict):
            continue
        for name in ("initContainers", "containers"):
            for container in list_objects(pod[name]) if name in pod else ():
                for member in ("args", "command"):
                    values = container.get(member)
                    yield from values if isinstance(values, list) else ()
