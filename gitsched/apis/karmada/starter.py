"""The files that `gitsched init --api karmada` writes."""

from __future__ import annotations

from typing import Final

from gitsched.apis.policy_api import StarterFiles

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

STARTER: Final = StarterFiles(
    _SETTINGS,
    {"policies/example.yaml": _EXAMPLE},
    "kind: Cluster, apiVersion: cluster.karmada.io/v1alpha1, with labels that policies choose by",
    "docs/karmada.md",
)
