"""The files that `gitsched init --api karmada` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gitsched.apis.policy_api import BundleStarter, StarterFiles
from gitsched.model.document import Body

_SETTINGS: Final = """\
  karmada:
    taintEviction: true # a committed NoExecute taint evicts workloads that do not tolerate it
    missingFacts: assume # a Cluster without status serves every API and has unlimited capacity
    failover: cluster # workloads leave a cluster whose committed condition Ready is False or Unknown
    failback: WhenUnschedulable # a workload that no later group can run returns to an earlier group that has recovered
"""
_EXAMPLE: Final = """\
# yaml-language-server: $schema=../../gitsched/schemas/policy.karmada.io/v1alpha1/PropagationPolicy.json
# Every Deployment of the namespace `default` runs on the first group of clusters that can take it: private ones, else the cloud.
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: example
  namespace: default
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
  placement:
    clusterAffinities:
      - affinityName: private
        labelSelector:
          matchLabels:
            ownership: private
      - affinityName: cloud
        labelSelector:
          matchLabels:
            ownership: cloud
"""

_BUNDLE_POLICY: Final = """\
# Every Bundle of the namespace `default` runs on all clusters for which it has a variant, as before. To place one elsewhere, give it a
# policy of its own that selects it by name.
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: bundles
  namespace: default
spec:
  resourceSelectors:
    - apiVersion: gitsched.io/v1alpha1
      kind: Bundle
  placement:
    clusterAffinity: {}
"""


def _write_clusters(clusters: Mapping[str, Body]) -> str:
    from gitsched.render.yaml import dump

    heads = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster"}
    return "---\n".join(
        dump({**heads, "metadata": {"name": name, **metadata}, "spec": {"syncMode": "Pull"}}) for name, metadata in clusters.items()
    )


STARTER: Final = StarterFiles(
    _SETTINGS,
    {"policies/example.yaml": _EXAMPLE},
    "kind: Cluster, apiVersion: cluster.karmada.io/v1alpha1, with labels that policies choose by",
    "docs/karmada.md",
    BundleStarter(_write_clusters, _BUNDLE_POLICY),
)
