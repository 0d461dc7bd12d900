"""The files that `gitsched init --api ocm` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gitsched.apis.policy_api import BundleStarter, StarterFiles
from gitsched.model.document import Body

_CLUSTER_SET: Final = """\
---
# A namespace chooses from the cluster sets that are bound to it. This one has all clusters.
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata:
  name: global
  namespace: default
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
    labelSelector: {}
"""
_EXAMPLE: Final = """\
# Objects of the namespace `default` with the annotation `cluster.open-cluster-management.io/placement: example` run on the best two
# clusters with the label env=prod.
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: example
  namespace: default
spec:
  numberOfClusters: 2
  predicates:
    - requiredClusterSelector:
        labelSelector:
          matchLabels:
            env: prod
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
    from gitsched.render.yaml import dump

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


STARTER: Final = StarterFiles(
    "",
    {"policies/example.yaml": _EXAMPLE + _CLUSTER_SET},
    "kind: ManagedCluster, apiVersion: cluster.open-cluster-management.io/v1, with labels that Placements choose by",
    "docs/ocm.md",
    BundleStarter(_write_clusters, _BUNDLE_POLICY + _CLUSTER_SET, {"cluster.open-cluster-management.io/placement": "bundles"}),
)
