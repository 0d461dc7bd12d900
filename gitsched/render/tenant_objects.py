"""Objects that give the delivery tools of a tenant no more rights than its Tenant: a ServiceAccount with RBAC for Flux, an AppProject for
Argo CD.

Shapes as in Kubernetes (`rbac.authorization.k8s.io/v1`) and in the CRD of AppProject (`argoproj.io/v1alpha1`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gitsched.model.document import Body
from gitsched.named_tuples import NamedTuple

_RBAC = "rbac.authorization.k8s.io"
_RBAC_VERSION = f"{_RBAC}/v1"
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_NAMED_VERBS = ["delete", "get", "patch", "update"]
_LABELS = {"app.kubernetes.io/managed-by": "gitsched"}
_PLURALS = {"Endpoints": "endpoints", "Ingress": "ingresses", "NetworkPolicy": "networkpolicies"}


class TenantRights(NamedTuple):
    """What a Tenant allows, in terms of names.

    `namespaces` are patterns, and `existing` the namespaces of them that have objects or are named in full. `clusters` are those that it
    may use. Kinds are (group, kind), a group of "*" stands for any; `kinds` is None for all. `cluster_objects` are names by kind.
    """

    name: str
    namespaces: tuple[str, ...]
    existing: tuple[str, ...]
    clusters: tuple[str, ...]
    kinds: tuple[tuple[str, str], ...] | None = None
    denied: tuple[tuple[str, str], ...] = ()
    cluster_objects: Mapping[tuple[str, str], tuple[str, ...]] = {}


def make_flux_account(rights: TenantRights, namespace: str) -> list[Body]:
    """Return the ServiceAccount that Flux impersonates for a tenant, and its rights, to be applied in each cluster of the tenant.

    Without `kinds` the account has all rights in the namespaces; RBAC cannot express denied kinds. A Kustomization uses the account as
    spec.serviceAccountName, and is in the same `namespace`.
    """
    name = f"tenant-{rights.name}"
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    objects: list[Body] = [_make_object("v1", "ServiceAccount", name, namespace)]
    for target in rights.existing:
        kind, role = "ClusterRole", "cluster-admin"
        if rights.kinds is not None:
            kind, role = "Role", name
            rules = _make_rules(rights.kinds)
            objects.append({**_make_object(_RBAC_VERSION, "Role", name, target), "rules": rules})
        objects.append(
            {
                **_make_object(_RBAC_VERSION, "RoleBinding", name, target),
                "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": role},
                "subjects": subjects,
            }
        )
    if rights.cluster_objects:
        cluster_rules: list[dict[str, Any]] = []
        for (group, kind), names in sorted(rights.cluster_objects.items()):
            resource = {"apiGroups": [group], "resources": [_make_plural(kind)]}
            cluster_rules.append({**resource, "verbs": ["create", "list", "watch"]})
            if names:
                cluster_rules.append({**resource, "resourceNames": list(names), "verbs": _NAMED_VERBS})
        objects.append({**_make_object(_RBAC_VERSION, "ClusterRole", name), "rules": cluster_rules})
        objects.append(
            {
                **_make_object(_RBAC_VERSION, "ClusterRoleBinding", name),
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
                "subjects": subjects,
            }
        )
    return objects


def make_app_project(rights: TenantRights, url: str, namespace: str) -> Body:
    """Return the AppProject of a tenant. Its Applications deliver from the repository of the output only."""
    spec: dict[str, Any] = {
        "description": f"What the Tenant {rights.name} allows",
        "sourceRepos": [url],
        "destinations": [{"name": cluster, "namespace": pattern} for cluster in rights.clusters for pattern in rights.namespaces],
        "clusterResourceWhitelist": _list_kinds(sorted(rights.cluster_objects)),
    }
    if rights.kinds is not None:
        spec["namespaceResourceWhitelist"] = _list_kinds(rights.kinds)
    if rights.denied:
        spec["namespaceResourceBlacklist"] = _list_kinds(rights.denied)
    return {**_make_object("argoproj.io/v1alpha1", "AppProject", rights.name, namespace), "spec": spec}


def _list_kinds(kinds: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"group": group, "kind": kind} for group, kind in kinds]


def _make_rules(kinds: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return one rule for each API group."""
    by_group: dict[str, list[str]] = {}
    for group, kind in kinds:
        resources = by_group.setdefault(group, [])
        resource = "*" if "*" in kind else _make_plural(kind)
        if resource not in resources:
            resources.append(resource)
    return [{"apiGroups": [group], "resources": resources, "verbs": _VERBS} for group, resources in sorted(by_group.items())]


def _make_plural(kind: str) -> str:
    """Return the resource of a kind, as Kubernetes guesses it (meta.UnsafeGuessKindToResource)."""
    known = _PLURALS.get(kind)
    if known is not None or kind == "*":
        return known or "*"
    lower = kind.lower()
    if lower.endswith("s"):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"


def _make_object(version: str, kind: str, name: str, namespace: str = "") -> Body:
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": {**metadata, "labels": _LABELS}}
