"""Find the delivered objects that may create an object that the source does not have: charts and operators, custom resources with a name
like that of the object, and workloads that name it in their arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from gitsched.kinds.kind import find_values
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Key, get_field, is_known_group, list_objects

_ANY = ""
_CHARTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("argoproj.io", "Application"): ("spec.destination.namespace",),
    ("argoproj.io", "ApplicationSet"): (),
    ("fleet.cattle.io", "Bundle"): (),
    ("fleet.cattle.io", "GitRepo"): (),
    ("fluxcd.controlplane.io", "FluxInstance"): ("metadata.namespace",),
    ("fluxcd.controlplane.io", "ResourceSet"): (),
    ("helm.cattle.io", "HelmChart"): ("spec.targetNamespace", "metadata.namespace"),
    ("helm.toolkit.fluxcd.io", "HelmRelease"): ("spec.targetNamespace", "metadata.namespace"),
    ("kappctrl.k14s.io", "App"): (),
    ("kustomize.toolkit.fluxcd.io", "Kustomization"): ("spec.targetNamespace",),
    ("olm.operatorframework.io", "ClusterExtension"): ("spec.namespace",),
    ("operators.coreos.com", "Subscription"): ("metadata.namespace",),
    ("packaging.carvel.dev", "PackageInstall"): (),
}
"""Kinds that install a chart, an operator or a directory: the paths of the namespace of what they install. The first path that the object
has counts; without one they may install into any namespace."""
CHART_KINDS = frozenset(_CHARTS)
"""Kinds that may create objects in other namespaces than their own."""

_OWN_KINDS = frozenset(
    {
        ("", "ConfigMap"),
        ("", "PersistentVolumeClaim"),
        ("", "Service"),
        ("", "ServiceAccount"),
        ("rbac.authorization.k8s.io", "Role"),
    }
)
"""Kinds that come from the same place as what refers to them: only a chart that installs into their namespace may create them."""
_PASSIVE_GROUPS = frozenset(
    {
        *(f"{name}.openshift.io" for name in ("config", "console", "image", "oauth", "project", "route", "security", "user")),
        "metrics.k8s.io",
        "snapshot.storage.k8s.io",
    }
)
"""API groups whose controllers create no object that others refer to."""
_MENTIONED_KINDS = frozenset({("", "ConfigMap"), ("", "Secret")})
"""Kinds that workloads and custom resources create under a name from their own manifest."""
_POD_SPECS = (("spec",), ("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"))
_TOKEN = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")


class PossibleCreators:
    """Which of the delivered objects may create some `wanted` objects."""

    def __init__(self, wanted: Iterable[Key]) -> None:
        self._wanted = frozenset(wanted)
        self._names: dict[str, set[str]] = {}
        for key in self._wanted:
            if key[:2] in _MENTIONED_KINDS:
                self._names.setdefault(key.namespace, set()).add(key.name)
        self._charts: dict[str, list[Key]] = {}
        self._resources: dict[tuple[str, str], list[Key]] = {}
        self._claims: dict[tuple[str, str], list[Key]] = {}
        self._mentions: dict[tuple[str, str], list[Key]] = {}

    def add(self, key: Key, body: Body) -> None:
        """Add a delivered object."""
        if key[:2] in _CHARTS:
            self._charts.setdefault(_find_chart_namespace(key, body), []).append(key)
        is_custom = _is_custom(key)
        if is_custom:
            self._resources.setdefault((key.namespace, key.name), []).append(key)
        if key[:2] == ("apps", "StatefulSet"):
            for name in find_values(body, "spec.volumeClaimTemplates[].metadata.name"):
                self._claims.setdefault((key.namespace, f"{name}-{key.name}"), []).append(key)
        names = self._names.get(key.namespace)
        if names:
            for name in names.intersection(_list_tokens(body, is_custom)):
                self._mentions.setdefault((key.namespace, name), []).append(key)

    def find(self, wanted: Key) -> list[Key]:
        """Return the objects that may create a wanted one."""
        if not wanted.namespace:
            return [key for keys in self._charts.values() for key in keys]
        found = list(self._charts.get(wanted.namespace, ()))
        if wanted[:2] not in _OWN_KINDS:
            found += self._charts.get(_ANY, ())
        for prefix in _list_prefixes(wanted.name):
            found += self._resources.get((wanted.namespace, prefix), ())
            if wanted.kind == "PersistentVolumeClaim":
                found += self._claims.get((wanted.namespace, prefix), ())
        if wanted[:2] in _MENTIONED_KINDS:
            found += self._mentions.get((wanted.namespace, wanted.name), ())
        return found


def _is_custom(key: Key) -> bool:
    """Return whether an object is of a kind whose operator may create any object."""
    return not is_known_group(key.group) and key.group not in _PASSIVE_GROUPS and find_kind(key.group, key.kind) is None


def _find_chart_namespace(key: Key, body: Body) -> str:
    for path in _CHARTS[key[:2]]:
        found = key.namespace if path == "metadata.namespace" else next(find_values(body, path), None)
        if isinstance(found, str) and found:
            return found
    return _ANY


def _list_prefixes(name: str) -> Iterator[str]:
    """Yield a name and its beginnings up to each hyphen."""
    yield name
    yield from (name[: match.start()] for match in re.finditer("-", name) if match.start())


def _list_tokens(body: Body, is_custom: bool) -> set[str]:
    """Return the words of the spec of a custom resource, or of the arguments of the containers of any other object."""
    texts = find_values(body, "spec.**") if is_custom else _list_arguments(body)
    return {token for text in texts if isinstance(text, str) for token in _TOKEN.findall(text)}


def _list_arguments(body: Body) -> Iterator[Any]:
    for path in _POD_SPECS:
        pod = get_field(body, *path)
        for container in (*list_objects(get_field(pod, "initContainers")), *list_objects(get_field(pod, "containers"))):
            for member in ("args", "command"):
                values = container.get(member)
                yield from values if isinstance(values, list) else ()
