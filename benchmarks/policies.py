"""Generate policies: each kind of placement that is measured, in turn."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent
from typing import NamedTuple


class Fleet(NamedTuple):
    """Names of the clusters; cluster i has the label of pool i modulo `pools`, and policy i the pool `step` times i."""

    names: Sequence[str]
    pools: int
    step: int

    def members(self, pool: int) -> Sequence[str]:
        """Return the clusters of a pool."""
        return self.names[pool % self.pools :: self.pools]


def cluster_policy(number: int, fleet: Fleet) -> str:
    """Return a ClusterPropagationPolicy for all workloads with the label of its lane."""
    return _policy("ClusterPropagationPolicy", number, "", f"labelSelector: {{matchLabels: {{lane: lane-{number:02}}}}}", fleet)


def namespaced_policy(number: int, namespace: str, fleet: Fleet) -> str:
    """Return a PropagationPolicy for everything in its namespace."""
    return _policy("PropagationPolicy", number, namespace, "", fleet)


def _policy(kind: str, number: int, namespace: str, selector: str, fleet: Fleet) -> str:
    make = (_ordered_groups, _label_selector, _static_weights)[number // 4 % 3 if namespace else number % 4]
    metadata = f"  name: policy-{number:02}" + (f"\n  namespace: {namespace}" if namespace else "")
    selectors = "".join(
        f"    - apiVersion: {version}\n      kind: {name}\n" + (f"      {selector}\n" if selector else "")
        for version, name in (("apps/v1", "Deployment"), ("v1", "ConfigMap"), ("v1", "Service"))
    )
    placement = indent(make(number * fleet.step, fleet), "    ")
    return f"""\
# {make.__doc__}
apiVersion: policy.karmada.io/v1alpha1
kind: {kind}
metadata:
{metadata}
spec:
  resourceSelectors:
{selectors}  placement:
    clusterTolerations:
      - {{key: maintenance.example.com/window, operator: Exists}}
{placement}"""


def _ordered_groups(pool: int, fleet: Fleet) -> str:
    """Ordered groups: the first asks for more than any cluster has, the second names the clusters."""
    return f"""\
clusterAffinities:
  - affinityName: preferred
    labelSelector:
      matchExpressions:
        - {{key: pool, operator: In, values: [pool-{pool % fleet.pools:04}]}}
        - {{key: accelerator, operator: Exists}}
  - affinityName: backup
    clusterNames: [{", ".join(fleet.members(pool))}]
"""


def _label_selector(pool: int, fleet: Fleet) -> str:
    """Duplicated to the clusters with a label."""
    return f"""\
clusterAffinity:
  labelSelector:
    matchLabels: {{pool: pool-{pool % fleet.pools:04}}}
replicaScheduling:
  replicaSchedulingType: Duplicated
"""


def _static_weights(pool: int, fleet: Fleet) -> str:
    """Divided by static weights: the first cluster carries twice what each other one does."""
    first, *others = fleet.members(pool)
    rest = f"""\
      - targetCluster: {{clusterNames: [{", ".join(others)}]}}
        weight: 1
"""
    return f"""\
clusterAffinity:
  labelSelector:
    matchLabels: {{pool: pool-{pool % fleet.pools:04}}}
replicaScheduling:
  replicaSchedulingType: Divided
  replicaDivisionPreference: Weighted
  weightPreference:
    staticWeightList:
      - targetCluster: {{clusterNames: [{first}]}}
        weight: 2
{rest if others else ""}"""
