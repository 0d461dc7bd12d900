"""The files that `gitsched init --api ocm` writes."""

from __future__ import annotations

from typing import Final

from gitsched.apis.policy_api import StarterFiles

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

STARTER: Final = StarterFiles(
    "",
    {"policies/example.yaml": _EXAMPLE},
    "kind: ManagedCluster, apiVersion: cluster.open-cluster-management.io/v1, with labels that Placements choose by",
    "docs/ocm.md",
)
