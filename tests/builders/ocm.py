"""Builders for objects of Open Cluster Management, as documents; `to_yaml` writes them as files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

GROUP = "cluster.open-cluster-management.io"
SET_LABEL = f"{GROUP}/clusterset"
PLACEMENT_ANNOTATION = f"{GROUP}/placement"
Body = dict[str, Any]


def to_yaml(*documents: Body) -> str:
    """Return documents as the text of a YAML file."""
    return yaml.safe_dump_all(documents, sort_keys=False)


def managed_cluster(
    name: str,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Body] = (),
    *,
    cluster_set: str = "",
    claims: Mapping[str, str] | None = None,
) -> Body:
    """Return an accepted ManagedCluster, in the exclusive `cluster_set` if one is given."""
    own = {SET_LABEL: cluster_set} if cluster_set else {}
    body: Body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": {**own, **(labels or {})}},
        "spec": {"hubAcceptsClient": True, "taints": list(taints)},
    }
    if claims is not None:
        body["status"] = {"clusterClaims": [{"name": claim, "value": value} for claim, value in claims.items()]}
    return body


def taint(key: str, effect: str = "NoSelect", value: str = "") -> Body:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def cluster_set(name: str) -> Body:
    """Return a ManagedClusterSet of the clusters with its label."""
    return {"apiVersion": f"{GROUP}/v1beta2", "kind": "ManagedClusterSet", "metadata": {"name": name}}


def global_set() -> Body:
    """Return the ManagedClusterSet `global` of all clusters."""
    return {**cluster_set("global"), "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}}}


def binding(name: str, namespace: str) -> Body:
    """Return the ManagedClusterSetBinding of a cluster set to a namespace."""
    return {
        "apiVersion": f"{GROUP}/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterSet": name},
    }


def bound_global_set(namespace: str) -> list[Body]:
    """Return the set of all clusters and its binding to a namespace."""
    return [global_set(), binding("global", namespace)]


def addon_scores(cluster: str, scores: Mapping[str, int], *, name: str = "default", valid_until: str = "") -> Body:
    """Return the AddOnPlacementScore of a cluster."""
    expiry = {"validUntil": valid_until} if valid_until else {}
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "AddOnPlacementScore",
        "metadata": {"name": name, "namespace": cluster},
        "status": {**expiry, "scores": [{"name": score, "value": value} for score, value in scores.items()]},
    }


def built_in(name: str, weight: int = 1) -> Body:
    """Return a prioritizer with a built-in score."""
    return {"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight}


def add_on(score: str, weight: int = 1, *, resource: str = "default") -> Body:
    """Return a prioritizer with an add-on score."""
    return {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": score}}, "weight": weight}


def label_predicate(**labels: str) -> Body:
    """Return a predicate that requires labels."""
    return {"requiredClusterSelector": {"labelSelector": {"matchLabels": labels}}}


def placement(
    name: str,
    namespace: str,
    number: int | None = None,
    prioritizers: Iterable[Body] | None = None,
    *,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Body:
    """Return a Placement; with `prioritizers`, in mode Exact."""
    metadata: Body = {"name": name, "namespace": namespace}
    if annotations:
        metadata["annotations"] = dict(annotations)
    if prioritizers is not None:
        spec["prioritizerPolicy"] = {"mode": "Exact", "configurations": list(prioritizers)}
    count = {} if number is None else {"numberOfClusters": number}
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement", "metadata": metadata, "spec": {**count, **spec}}


def placed_config_map(name: str, namespace: str, placement_name: str) -> Body:
    """Return a ConfigMap annotated with a Placement."""
    metadata = {"name": name, "namespace": namespace, "annotations": {PLACEMENT_ANNOTATION: placement_name}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
