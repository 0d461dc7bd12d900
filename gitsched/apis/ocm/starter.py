"""The files that `gitsched init --api ocm` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gitsched.apis.policy_api import BundleStarter, StarterFiles
from gitsched.model.document import Body, get_field
from gitsched.render.yaml import dump

_CLUSTER_SET: Final = """\
---
# A namespace chooses from the cluster sets that are bound to it. This one has all clusters.
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata:
  name: global
  namespace: {namespace}
spec:
  clusterSet: global
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata:
  name: global
spec:
  clusterSelector:
    selectorType: LabelSelector
    labelSelector: {{}}
"""
_CLUSTERS: Final = """\
# The clusters, with the labels that Placements select by, and a score that Placements can prefer clusters by.
# Rename them; where you change a label, change it in the policies as well.
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: private-1
  labels: {env: prod}
spec:
  hubAcceptsClient: true
---
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata:
  name: cost
  namespace: private-1
status:
  scores:
    - {name: savings, value: 100}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata:
  name: cloud-1
  labels: {env: prod}
spec:
  hubAcceptsClient: true
---
apiVersion: cluster.open-cluster-management.io/v1alpha1
kind: AddOnPlacementScore
metadata:
  name: cost
  namespace: cloud-1
status:
  scores:
    - {name: savings, value: 10}
"""
_WORKLOAD: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  annotations:
    cluster.open-cluster-management.io/placement: web # runs in the clusters of this Placement
spec:
  replicas: 3
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
        - name: web
          image: nginx:1.29
"""
_PLACEMENT: Final = """\
# Selects the one cluster with the label env=prod that has the highest score, for what has the annotation
# `cluster.open-cluster-management.io/placement: web` in this namespace.
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: web
  namespace: shop
spec:
  numberOfClusters: 1
  predicates:
    - requiredClusterSelector:
        labelSelector:
          matchLabels:
            env: prod
  prioritizerPolicy:
    mode: Exact
    configurations:
      - scoreCoordinate:
          type: AddOn
          addOn: {resourceName: cost, scoreName: savings}
        weight: 1
"""
_BUNDLE_POLICY: Final = """\
# Every Bundle with the annotation `cluster.open-cluster-management.io/placement: bundles` runs on all clusters, as before.
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: bundles
  namespace: default
spec: {}
"""


def _write_clusters(clusters: Mapping[str, Body]) -> str:
    heads = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
    return "---\n".join(
        dump(
            {
                **heads,
                "metadata": {"name": name, **metadata},
                "spec": {"hubAcceptsClient": True},
            }
        )
        for name, metadata in clusters.items()
    )


def _list_named_clusters(placement: Body) -> dict[str, Body]:
    """Return a cluster for each set of labels that the predicates of a Placement require."""
    found: dict[str, Body] = {}
    for predicate in get_field(placement, "spec", "predicates") or ():
        labels = get_field(predicate, "requiredClusterSelector", "labelSelector", "matchLabels")
        value = next(iter(labels.values()), None) if isinstance(labels, dict) else None
        if isinstance(value, str) and value:
            found[f"{value.lower()}-1"] = {"labels": dict(labels)}
    return found


STARTER: Final = StarterFiles(
    settings="",
    clusters=_CLUSTERS,
    policies=_PLACEMENT + _CLUSTER_SET.format(namespace="shop"),
    workloads={"apps/web.yaml": _WORKLOAD},
    policy_kinds=frozenset({("cluster.open-cluster-management.io", "Placement")}),
    docs_page="docs/ocm.md",
    bundles=BundleStarter(
        _write_clusters,
        _BUNDLE_POLICY + _CLUSTER_SET.format(namespace="default"),
        {"cluster.open-cluster-management.io/placement": "bundles"},
    ),
    list_named_clusters=_list_named_clusters,
)
