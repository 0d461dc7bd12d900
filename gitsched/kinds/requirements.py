"""Read from a manifest which objects it requires in its cluster: by its pod specs, by the fields of Kubernetes' kinds, and by the table of
kinds for those of operators.

These are more than the dependencies that Karmada's interpreter reads, and without those that a manifest marks as optional.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from gitsched.kinds.pods import POD_SPECS, PodPaths, add_pod_requirements, add_requirement, add_storage_class
from gitsched.kinds.table import find_kind
from gitsched.kinds.written_objects import list_written_objects
from gitsched.model.document import Body, Key, as_object, get_field, is_known_group, list_objects, parse_api_group
from gitsched.model.finding import Pointer
from gitsched.model.references import NO_REFERENCES, References, RequiredObject

_NO_PATHS: PodPaths = MappingProxyType({})

_RBAC = "rbac.authorization.k8s.io"
BINDING_KINDS: Final = frozenset({(_RBAC, "RoleBinding"), (_RBAC, "ClusterRoleBinding")})
"""The group and kind of objects that grant the rights of a role to ServiceAccounts."""
_MAX_TEXTS = 20
"""Fields with the name of an object among which the one that refers to it is looked for."""
_ISSUER_ANNOTATIONS = ("cert-manager.io/issuer", "cert-manager.io/cluster-issuer", "kubernetes.io/tls-acme")


def read_references(key: Key, body: Body, pod_paths: PodPaths = _NO_PATHS) -> References:
    """Return what an object refers to, in the order of its fields. A malformed field refers to nothing."""
    kind = key[:2]
    path = pod_paths.get(kind) or POD_SPECS.get(kind)
    found: list[RequiredObject] = []
    if path is not None:
        add_pod_requirements(get_field(body, *path), key.namespace, found)
    read = _READERS.get(kind)
    if read is not None:
        found += read(key, body)
    writes: tuple[Key, ...] = ()
    if not is_known_group(key.group):
        _read_operator_kind(key, body, found, path is None)
        writes = list_written_objects(key, body)
    elif not key.group:
        writes = list_written_objects(
            key, body
        )  # of the kinds of Kubernetes, some of the core group have annotations for operators
    if not found and not writes:
        return NO_REFERENCES
    return References(tuple(dict.fromkeys(found)), writes)


def locate_reference(key: Key, body: Body, required: Key, pod_paths: PodPaths = _NO_PATHS) -> Pointer | None:
    """Return the first field that refers to an object: with another name in it, the manifest refers to an object of that name."""
    renamed = required._replace(name=f"{required.name}-")
    for pointer in islice(_find_texts(body, required.name), _MAX_TEXTS):
        references = read_references(key, _replace_value(body, pointer, renamed.name), pod_paths)
        if any(one.key == renamed for one in references.requires):
            return pointer
    return None


def _find_texts(value: Any, text: str, pointer: Pointer = ()) -> Iterator[Pointer]:
    """Yield the fields that have a text, in their order."""
    if value == text:
        yield pointer
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for member, entry in entries:
        yield from _find_texts(entry, text, (*pointer, member))


def _replace_value(value: Any, pointer: Pointer, new: str) -> Any:
    """Return a copy with another value of a field."""
    if not pointer:
        return new
    copy = value.copy()
    copy[pointer[0]] = _replace_value(copy[pointer[0]], pointer[1:], new)
    return copy


def list_subjects(body: Body, namespace: str) -> Iterator[Key]:
    """Yield the ServiceAccounts of a RoleBinding or ClusterRoleBinding."""
    for subject in list_objects(body.get("subjects")):
        name, where = subject.get("name"), subject.get("namespace") or namespace
        if subject.get("kind") == "ServiceAccount" and isinstance(name, str) and isinstance(where, str) and where:
            yield Key("", "ServiceAccount", where, name)


def _read_operator_kind(key: Key, body: Body, found: list[RequiredObject], reads_pods: bool) -> None:
    """Add what a kind of the table refers to."""
    row = find_kind(key.group, key.kind)
    if row is None:
        return
    from gitsched.kinds.references import list_pod_specs, list_references  # only for these kinds

    references = list_references(body, row, key.namespace)
    if _has_issuer(body):  # cert-manager writes the Secrets
        references = [entry for entry in references if entry.kind != "Secret"]
    found += [
        RequiredObject(Key(parse_api_group(entry.api_version), entry.kind, entry.namespace, entry.name))
        for entry in references
        if not entry.optional
    ]
    for pod in list_pod_specs(body, row) if reads_pods else ():
        add_pod_requirements(pod, key.namespace, found)


def _has_issuer(body: Body) -> bool:
    annotations = get_field(body, "metadata", "annotations")
    return isinstance(annotations, dict) and any(name in annotations for name in _ISSUER_ANNOTATIONS)


def _read_stateful_set(key: Key, body: Body) -> list[RequiredObject]:
    found: list[RequiredObject] = []
    for claim in list_objects(get_field(body, "spec", "volumeClaimTemplates")):
        add_storage_class(found, claim)
    add_requirement(found, "", "Service", key.namespace, get_field(body, "spec", "serviceName"), expected=False)
    return found


def _read_claim(_key: Key, body: Body) -> list[RequiredObject]:
    found: list[RequiredObject] = []
    add_storage_class(found, body)
    add_requirement(found, "", "PersistentVolume", "", get_field(body, "spec", "volumeName"), expected=False)
    return found


def _read_service_account(key: Key, body: Body) -> list[RequiredObject]:
    found: list[RequiredObject] = []
    for member, expected in (("imagePullSecrets", True), ("secrets", False)):
        for entry in list_objects(body.get(member)):
            add_requirement(found, "", "Secret", key.namespace, entry.get("name"), expected)
    return found


def _read_ingress(key: Key, body: Body) -> list[RequiredObject]:
    found: list[RequiredObject] = []
    spec = body.get("spec")
    add_requirement(found, "networking.k8s.io", "IngressClass", "", get_field(body, "spec", "ingressClassName"))
    legacy_class = get_field(body, "metadata", "annotations", "kubernetes.io/ingress.class")
    add_requirement(found, "networking.k8s.io", "IngressClass", "", legacy_class, expected=False)
    backends = [get_field(body, "spec", "defaultBackend")]
    for rule in list_objects(get_field(body, "spec", "rules")):
        backends += [path.get("backend") for path in list_objects(get_field(rule, "http", "paths"))]
    for backend in backends:
        add_requirement(
            found, "", "Service", key.namespace, get_field(backend, "service", "name") or get_field(backend, "serviceName")
        )
    for entry in list_objects(spec.get("tls")) if isinstance(spec, dict) and not _has_issuer(body) else ():
        add_requirement(found, "", "Secret", key.namespace, entry.get("secretName"))
    return found


def _read_openshift_route(key: Key, body: Body) -> list[RequiredObject]:
    found: list[RequiredObject] = []
    targets = [get_field(body, "spec", "to"), *list_objects(get_field(body, "spec", "alternateBackends"))]
    for target in targets:
        if isinstance(target, dict) and target.get("kind") in ("Service", None):
            add_requirement(found, "", "Service", key.namespace, target.get("name"))
    return found


def _read_binding(key: Key, body: Body) -> list[RequiredObject]:
    found: list[RequiredObject] = []
    kind, name = get_field(body, "roleRef", "kind"), get_field(body, "roleRef", "name")
    if kind == "ClusterRole" or (kind == "Role" and key.namespace):
        add_requirement(found, _RBAC, kind, key.namespace if kind == "Role" else "", name)
    return [*found, *(RequiredObject(subject, False) for subject in list_subjects(body, key.namespace))]


def _read_autoscaler(key: Key, body: Body) -> list[RequiredObject]:
    return _read_scale_target(key, get_field(body, "spec", "scaleTargetRef"))


def _read_vertical_autoscaler(key: Key, body: Body) -> list[RequiredObject]:
    return _read_scale_target(key, get_field(body, "spec", "targetRef"))


def _read_scaled_object(key: Key, body: Body) -> list[RequiredObject]:
    target = get_field(body, "spec", "scaleTargetRef")
    return _read_scale_target(key, {"kind": "Deployment", "apiVersion": "apps/v1", **as_object(target)})


def _read_scale_target(key: Key, target: Any) -> list[RequiredObject]:
    found: list[RequiredObject] = []
    kind, version = get_field(target, "kind"), get_field(target, "apiVersion")
    if isinstance(kind, str) and isinstance(version, str):
        add_requirement(found, parse_api_group(version), kind, key.namespace, get_field(target, "name"))
    return found


def _read_webhooks(_key: Key, body: Body) -> list[RequiredObject]:
    return _read_services([get_field(webhook, "clientConfig", "service") for webhook in list_objects(body.get("webhooks"))])


def _read_api_service(_key: Key, body: Body) -> list[RequiredObject]:
    return _read_services([get_field(body, "spec", "service")])


def _read_definition(_key: Key, body: Body) -> list[RequiredObject]:
    return _read_services([get_field(body, "spec", "conversion", "webhook", "clientConfig", "service")])


def _read_services(services: list[Any]) -> list[RequiredObject]:
    """Return the Services of webhooks; charts that nobody renders may contain them."""
    found: list[RequiredObject] = []
    for service in services:
        namespace = get_field(service, "namespace")
        if isinstance(namespace, str) and namespace:
            add_requirement(found, "", "Service", namespace, get_field(service, "name"), expected=False)
    return found


_READERS: dict[tuple[str, str], Callable[[Key, Body], list[RequiredObject]]] = {
    ("", "PersistentVolumeClaim"): _read_claim,
    ("", "ServiceAccount"): _read_service_account,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _read_webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _read_webhooks,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _read_definition,
    ("apiregistration.k8s.io", "APIService"): _read_api_service,
    ("apps", "StatefulSet"): _read_stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): _read_autoscaler,
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"): _read_vertical_autoscaler,
    ("keda.sh", "ScaledObject"): _read_scaled_object,
    ("networking.k8s.io", "Ingress"): _read_ingress,
    (_RBAC, "ClusterRoleBinding"): _read_binding,
    (_RBAC, "RoleBinding"): _read_binding,
    ("route.openshift.io", "Route"): _read_openshift_route,
}
