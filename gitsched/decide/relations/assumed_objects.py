"""Objects that clusters have by themselves: those that every cluster has, those that many have, and those that the settings list."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import AssumedObject
from gitsched.apis.gitsched.output_config import BUILT_IN_NAMESPACES

if TYPE_CHECKING:
    from gitsched.model.document import Key

_ROLES = "rbac.authorization.k8s.io"
_OPENSHIFT_ROLES = ("basic-user", "cluster-monitoring-view", "cluster-reader", "registry-*", "self-provisioner", "sudoer")
ASSUMED: tuple[AssumedObject, ...] = (
    AssumedObject("ServiceAccount", "default"),
    AssumedObject("ConfigMap", "kube-root-ca.crt"),
    AssumedObject("ConfigMap", "openshift-service-ca.crt"),
    AssumedObject("Service", "kubernetes", "default"),
    AssumedObject("PriorityClass", "system-*"),
    *(AssumedObject(f"ClusterRole.{_ROLES}", name) for name in ("admin", "cluster-admin", "edit", "view", "system:*")),
)
"""Objects that every cluster has, besides those of the settings."""

PREINSTALLED: tuple[AssumedObject, ...] = (
    AssumedObject("ServiceAccount", "builder"),
    AssumedObject("ServiceAccount", "deployer"),
    AssumedObject("ServiceAccount", "pipeline"),
    AssumedObject("PriorityClass", "openshift-*"),
    *(AssumedObject(f"ClusterRole.{_ROLES}", name) for name in _OPENSHIFT_ROLES),
    *(AssumedObject(kind, "*", "openshift-*") for kind in ("ConfigMap", "Role", "Secret", "Service", "ServiceAccount")),
    *(AssumedObject(kind, "*", "kube-*") for kind in ("ConfigMap", "Role", "Secret", "Service", "ServiceAccount")),
)
"""Objects that many clusters have: those of OpenShift, and what is in the namespaces of Kubernetes and of OpenShift. They are assumed
unless the source has them, as is what is in the namespaces of delivery tools."""


class Assumptions:
    """What the clusters of a plan have by themselves: what all clusters have, and what the settings list."""

    def __init__(self, listed: Iterable[AssumedObject], protected_namespaces: frozenset[str]) -> None:
        self._entries = (*ASSUMED, *listed)
        self._namespaces = protected_namespaces - BUILT_IN_NAMESPACES

    def has(self, key: Key, cluster: str) -> bool:
        """Return whether a cluster has an object by itself."""
        return any(_matches(entry, key, cluster) for entry in self._entries)

    def is_preinstalled(self, key: Key) -> bool:
        """Return whether many clusters have an object that the source does not have."""
        return key.namespace in self._namespaces or any(_matches(entry, key, "") for entry in PREINSTALLED)


def _matches(entry: AssumedObject, key: Key, cluster: str) -> bool:
    kind, _, group = entry.kind.partition(".")
    return (
        key.kind == kind
        and (not group or key.group == group)
        and fnmatchcase(key.name, entry.name)
        and fnmatchcase(key.namespace, entry.namespace)
        and any(fnmatchcase(cluster, pattern) for pattern in entry.clusters)
    )
