"""Read from a manifest what its targets are, and by which labels others select it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gitsched.kinds.companion_kinds import COMPANION_KINDS, FOLLOW_ANNOTATION, SHARED_SERVICE_ANNOTATIONS, CompanionKind
from gitsched.kinds.kind import find_values
from gitsched.kinds.pods import POD_SPECS, PodPaths
from gitsched.kinds.table import find_kind
from gitsched.model.document import (
    Body,
    Key,
    as_object,
    as_string_map,
    get_field,
    is_known_group,
    parse_api_group,
    read_annotations,
    read_labels,
)
from gitsched.model.labels import Requirement, Selector, parse_selector
from gitsched.named_tuples import NamedTuple

POD, SERVICE = "Pod", "Service"
Labels = tuple[tuple[str, str], ...]
"""Labels, sorted."""
_CLUSTER_DOMAIN = ".svc.cluster.local"
_SVC_PARTS = 3


class Selection(NamedTuple):
    """A selector of pods or Services (`kind`) in some namespaces; None stands for all."""

    kind: str
    selector: Selector
    namespaces: tuple[str, ...] | None


class CompanionFeatures(NamedTuple):
    """What decides whose companion an object is, and whose target: its `selection` or the `names` of its targets, and the labels of its
    pods or, for a Service, its own. `is_companion` says that it may have targets, `is_workload` that it can be at the end of a chain of
    these. Of a companion, `annotation` is the value that FOLLOW_ANNOTATION has, and `is_shared` says that it may be where no target is."""

    is_companion: bool = False
    annotation: str = ""
    is_shared: bool = False
    selection: Selection | None = None
    names: tuple[Key, ...] = ()
    pod_labels: Labels = ()
    labels: Labels = ()
    is_workload: bool = False

    @property
    def follows(self) -> bool | None:
        """Whether a companion follows its targets by its annotation; None if that does not say so."""
        return FOLLOW_VALUES.get(self.annotation)


FOLLOW_VALUES = {"true": True, "false": False}
"""What the values of FOLLOW_ANNOTATION mean."""
NO_FEATURES = CompanionFeatures()
_SCALABLE = CompanionFeatures(is_workload=True)


def read_features(key: Key, body: Body, pod_paths: PodPaths) -> CompanionFeatures:
    """Return the features of an object. A malformed selector selects nothing.

    `pod_paths` are the paths of the pod specs of kinds that the settings declare.
    """
    kind = COMPANION_KINDS.get(key[:2])
    labels = _sort_labels(read_labels(body)) if key[:2] == ("", SERVICE) else ()
    if kind is not None:
        names = tuple(_list_names(key, body, kind))
        annotation = read_annotations(body).get(FOLLOW_ANNOTATION, "")
        return CompanionFeatures(True, annotation, is_shared_service(body), _read_selection(key, body, kind), names, labels=labels)
    pods = list(_list_pod_metadata(key, body, pod_paths))
    if not pods:
        return _SCALABLE if _is_scalable(key) else NO_FEATURES
    pod_labels = {name: value for metadata in reversed(pods) for name, value in as_string_map(metadata.get("labels")).items()}
    return CompanionFeatures(pod_labels=_sort_labels(pod_labels), is_workload=True)


def _is_scalable(key: Key) -> bool:
    """Return whether an autoscaler may scale an object without pod templates: one of a kind of another operator."""
    if is_known_group(key.group):
        return False
    row = find_kind(key.group, key.kind)
    return row is None or row.replicas is not None


def read_follows(body: Body) -> bool | None:
    """Return what the annotation of a companion or policy says about following targets; None if it does not say anything."""
    return FOLLOW_VALUES.get(read_annotations(body).get(FOLLOW_ANNOTATION, ""))


def is_shared_service(body: Body) -> bool:
    """Return whether an annotation or label says that a Service is reached from other clusters."""
    if not isinstance(body.get("metadata"), dict):
        return False
    return any(
        members.get(name, "false") != "false"
        for members in (read_annotations(body), read_labels(body))
        for name in SHARED_SERVICE_ANNOTATIONS
    )


def _read_selection(key: Key, body: Body, kind: CompanionKind) -> Selection | None:
    path = kind.pods or kind.services
    value = next(find_values(body, path), None) if path else None
    if not isinstance(value, dict) or not value:
        return None
    if kind.plain:
        if get_field(body, "spec", "type") == "ExternalName":
            return None
        value = {"matchLabels": value}
    if not isinstance(value.get("matchLabels") or {}, dict) or not isinstance(value.get("matchExpressions") or [], list):
        return None
    selector = parse_selector(value)
    if selector is None or not any(map(is_positive, selector.requirements)):
        return None
    return Selection(POD if kind.pods else SERVICE, selector, _read_namespaces(key, body, kind))


def is_positive(requirement: Requirement) -> bool:
    """Return whether only objects with the label can meet a requirement. A selector without such a one is for the whole namespace."""
    return requirement.operator in ("In", "Exists")


def _read_namespaces(key: Key, body: Body, kind: CompanionKind) -> tuple[str, ...] | None:
    selector = as_object(next(find_values(body, kind.namespaces), None)) if kind.namespaces else {}
    if selector.get("any") is True:
        return None
    names = selector.get("matchNames")
    found = tuple(sorted({name for name in names if isinstance(name, str)})) if isinstance(names, list) else ()
    return found or (key.namespace,)


def _list_names(key: Key, body: Body, kind: CompanionKind) -> Iterator[Key]:
    found: list[Key] = []
    if kind.any_kind:
        found += _read_scale_target(key, next(find_values(body, kind.any_kind), None), kind)
    for path in kind.backends:
        for value in find_values(body, path):
            found += _read_service(key, {"name": value} if isinstance(value, str) else value)
    for path in kind.hosts:
        found += [service for host in find_values(body, path) if (service := parse_service_host(host, key.namespace)) is not None]
    yield from dict.fromkeys(found)


def _read_scale_target(key: Key, target: Any, kind: CompanionKind) -> Iterator[Key]:
    version, default = kind.default_kind
    name = get_field(target, "name")
    wanted, api_version = get_field(target, "kind") or default, get_field(target, "apiVersion") or version
    if isinstance(name, str) and name and isinstance(wanted, str) and wanted and isinstance(api_version, str) and api_version:
        yield Key(parse_api_group(api_version), wanted, key.namespace, name)


def _read_service(key: Key, value: Any) -> Iterator[Key]:
    name, namespace = get_field(value, "name"), get_field(value, "namespace")
    if isinstance(name, str) and name and get_field(value, "kind") in (None, "", SERVICE):
        yield Key("", SERVICE, namespace if isinstance(namespace, str) and namespace else key.namespace, name)


def parse_service_host(host: Any, namespace: str) -> Key | None:
    """Return the Service that the host of a mesh names: `name`, `name.namespace.svc` or that with the domain of clusters."""
    if not isinstance(host, str) or not host or "*" in host:
        return None
    parts = host.removesuffix(_CLUSTER_DOMAIN).removesuffix(".svc").split(".")
    if len(parts) == 1:
        return Key("", SERVICE, namespace, host)
    short = host.count(".") == 1  # name.namespace, or the domain of an external host such as example.com
    return Key("", SERVICE, parts[1], parts[0]) if len(parts) == _SVC_PARTS - 1 and (short or ".svc" in host) else None


def _list_pod_metadata(key: Key, body: Body, pod_paths: PodPaths) -> Iterator[Body]:
    """Yield the metadata of each pod template of an object."""
    path = pod_paths.get(key[:2]) or POD_SPECS.get(key[:2])
    if path is not None and key[:2] != ("", "PodTemplate"):
        yield as_object(get_field(body, *path[:-1], "metadata"))
    elif not is_known_group(key.group):
        row = find_kind(key.group, key.kind)
        for template in row.pod_templates if row is not None else ():
            yield from (as_object(value.get("metadata")) for value in find_values(body, template) if isinstance(value, dict))


def _sort_labels(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))
