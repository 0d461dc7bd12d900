"""Find the delivered objects that may create an object that the source does not have: charts and operators, custom resources with a name
like that of the object, and workloads that name it in their arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gitsched.kinds.kind import find_values
from gitsched.kinds.pods import find_words, list_arguments
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Key, is_known_group
from gitsched.named_tuples import NamedTuple

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


class CreatorFeatures(NamedTuple):
    """What an object may create: a chart or operator whatever it installs into a namespace ("" for any, None for other objects); a custom
    resource objects with a name that begins with its own; a StatefulSet the `claims`; and each of them the objects whose names are among
    the `words` of its manifest."""

    chart_namespace: str | None = None
    is_custom: bool = False
    claims: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()


def read_creator_features(key: Key, body: Body) -> CreatorFeatures | None:
    """Return what an object may create; None for nothing."""
    is_custom = _is_custom(key)
    claims: tuple[str, ...] = ()
    if key[:2] == ("apps", "StatefulSet"):
        claims = tuple(f"{name}-{key.name}" for name in find_values(body, "spec.volumeClaimTemplates[].metadata.name"))
    chart_namespace = _find_chart_namespace(key, body) if key[:2] in _CHARTS else None
    # Of a custom resource, any field may have the name; of other objects, the arguments of containers.
    words = find_words(find_values(body, "spec.**") if is_custom else list_arguments(body))
    if chart_namespace is None and not (is_custom or claims or words):
        return None
    return CreatorFeatures(chart_namespace, is_custom, claims, words)


def may_be_mentioned(wanted: Key) -> bool:
    """Return whether others create an object under a name from their own manifest."""
    return wanted[:2] in _MENTIONED_KINDS


def list_chart_namespaces(wanted: Key) -> tuple[str, ...] | None:
    """Return the namespaces into which a chart that creates an object may be installed; None for all."""
    if not wanted.namespace:
        return None
    return (wanted.namespace,) if wanted[:2] in _OWN_KINDS else (wanted.namespace, _ANY)


def _is_custom(key: Key) -> bool:
    """Return whether an object is of a kind whose operator may create any object."""
    return not is_known_group(key.group) and key.group not in _PASSIVE_GROUPS and find_kind(key.group, key.kind) is None


def _find_chart_namespace(key: Key, body: Body) -> str:
    for path in _CHARTS[key[:2]]:
        found = key.namespace if path == "metadata.namespace" else next(find_values(body, path), None)
        if isinstance(found, str) and found:
            return found
    return _ANY


def list_prefixes(name: str) -> Iterator[str]:
    """Yield a name and its beginnings up to each hyphen."""
    yield name
    yield from (name[: match.start()] for match in re.finditer("-", name) if match.start())
