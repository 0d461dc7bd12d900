"""Objects that clusters have by themselves: those that every cluster has, those that many have, and those that the settings list."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import AssumedObject, Config
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


def is_assumed(key: Key, cluster: str, config: Config) -> bool:
    """Return whether a cluster has an object by itself."""
    return any(_matches(entry, key, cluster) for entry in (*ASSUMED, *config.assumed))


def may_be_assumed(key: Key, config: Config) -> bool:
    """Return whether the settings say that some cluster may have an object by itself."""
    return any(_matches(entry._replace(clusters=("*",)), key, "") for entry in config.assumed)


def is_preinstalled(key: Key, config: Config) -> bool:
    """Return whether many clusters have an object that the source does not have."""
    if key.namespace in config.output.protected_namespaces - BUILT_IN_NAMESPACES:
        return True
    return any(_matches(entry, key, "") for entry in PREINSTALLED)


def _matches(entry: AssumedObject, key: Key, cluster: str) -> bool:
    kind, _, group = entry.kind.partition(".")
    return (
        key.kind == kind
        and (not group or key.group == group)
        and fnmatchcase(key.name, entry.name)
        and fnmatchcase(key.namespace, entry.namespace)
        and any(fnmatchcase(cluster, pattern) for pattern in entry.clusters)
    )
