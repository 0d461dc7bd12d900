"""Objects for Argo CD's clusterDecisionResource generator, which creates an Application for each cluster of a PlacementDecision.

The generator reads objects in the namespace of Argo CD only. Their kind is in a ConfigMap, as the plural in lower case (upstream:
applicationset/generators/duck_type.go).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gitsched.apis.export import ExportInput
from gitsched.apis.ocm import names
from gitsched.apis.ocm.hub_objects import MANAGED_BY, list_decisions
from gitsched.model.document import Body, Key, as_string_map

CONFIG_MAP = "gitsched-placement-decisions"
"""Name of the ConfigMap that configMapRef of the generator names, and of the Role that lets the controller read PlacementDecisions."""
NAMESPACE_LABEL = "gitsched.io/placement-namespace"
"""Namespace of the Placement; the PlacementDecisions of all namespaces are in the namespace of Argo CD."""
CONTROLLER = "argocd-applicationset-controller"
"""ServiceAccount of the ApplicationSet controller, as in Argo CD's manifests."""


def make_generator_objects(namespace: str) -> Iterator[Body]:
    """Yield the ConfigMap of the generator, and the Role with its RoleBinding. `namespace` is that of Argo CD."""
    metadata = {"name": CONFIG_MAP, "namespace": namespace, "labels": dict(MANAGED_BY)}
    data = {
        "apiVersion": f"{names.GROUP}/v1beta1",
        "kind": "placementdecisions",
        "statusListKey": "decisions",
        "matchKey": "clusterName",
    }
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    rule = {"apiGroups": [names.GROUP], "resources": ["placementdecisions"], "verbs": ["get", "list", "watch"]}
    yield {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    yield {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": CONFIG_MAP},
        "subjects": [{"kind": "ServiceAccount", "name": CONTROLLER, "namespace": namespace}],
    }


def make_decision_copies(found: ExportInput, placements: Iterable[Key], namespace: str, *, status: bool) -> Iterator[Body]:
    """Yield copies of the PlacementDecisions in the namespace of Argo CD: the objects, or with `status` only their statuses."""
    for placement in placements:
        for key, body in list_decisions(found, placement):
            metadata: Body = {"name": f"{key.namespace}.{key.name}", "namespace": namespace}
            if not status:
                labels = as_string_map(body["metadata"].get("labels"))
                metadata["labels"] = {**labels, NAMESPACE_LABEL: placement.namespace, **MANAGED_BY}
            copy = {"apiVersion": body["apiVersion"], "kind": key.kind, "metadata": metadata}
            yield {**copy, "status": body["status"]} if status else copy


def make_application_set(placement: Key, namespace: str, url: str, path: str) -> Body:
    """Return an ApplicationSet that deploys a directory of a repository to the clusters of a Placement.

    Argo CD must know the clusters by the names of their ManagedClusters. The Application of a cluster that the Placement leaves is
    deleted with its objects.
    """
    name = f"{placement.namespace}-{placement.name}"
    decisions = {"matchLabels": {names.PLACEMENT_LABEL: placement.name, NAMESPACE_LABEL: placement.namespace}}
    generator = {"configMapRef": CONFIG_MAP, "labelSelector": decisions, "requeueAfterSeconds": 60}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(MANAGED_BY)},
        "spec": {
            "goTemplate": True,
            "goTemplateOptions": ["missingkey=error"],
            "generators": [{"clusterDecisionResource": generator}],
            "template": {
                "metadata": {"name": f"{name}-{{{{.name}}}}"},
                "spec": {
                    "project": "default",
                    "destination": {"server": "{{.server}}", "namespace": placement.namespace},
                    "source": {"repoURL": url, "targetRevision": "HEAD", "path": path},
                    "syncPolicy": {"automated": {"prune": True, "selfHeal": True}},
                },
            },
        },
    }
