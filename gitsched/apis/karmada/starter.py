"""The files that `gitsched init --api karmada` writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from gitsched.apis.policy_api import BundleStarter, StarterFiles
from gitsched.model.document import Body, get_field
from gitsched.render.yaml import dump, quote

_SETTINGS: Final = """\
  karmada:
    taintEviction: true # a committed NoExecute taint evicts workloads that do not tolerate it
    missingFacts: assume # a Cluster without status serves every API and has unlimited capacity
    failover: cluster # workloads leave a cluster whose committed condition Ready is False or Unknown
    failback: WhenUnschedulable # a workload that no later group can run returns to an earlier group that has recovered
"""
_CLUSTERS: Final = """\
# The clusters, with the labels that policies select by.
# Rename them; where you change a label, change it in the policies as well.
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata:
  name: private-1
  labels: {ownership: private}
spec:
  syncMode: Pull
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata:
  name: cloud-1
  labels: {ownership: cloud}
spec:
  syncMode: Pull
"""
_WORKLOAD: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
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
_POLICY: Final = """\
# yaml-language-server: $schema=../.gitsched/schema.json
# Every Deployment of the namespace `shop` runs on the first group of clusters that can take it: private ones, else the cloud.
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: web
  namespace: shop
spec:
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
"""
_POLICY_FOR_ALL: Final = """\
# yaml-language-server: $schema=../.gitsched/schema.json
# Every object of these kinds runs on the first group of clusters that can take it. Policies of a namespace take precedence.
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata:
  name: everything
spec:
  resourceSelectors:
"""
_GROUPS: Final = """\
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
    heads = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster"}
    return "---\n".join(
        dump({**heads, "metadata": {"name": name, **metadata}, "spec": {"syncMode": "Pull"}}) for name, metadata in clusters.items()
    )


def _write_policies(kinds: Collection[tuple[str, str]], clusters: Sequence[str]) -> str:
    """Return a policy for all workloads of the repository: on the first cluster, else on the others."""
    selectors = "".join(f"    - apiVersion: {quote(version)}\n      kind: {quote(kind)}\n" for version, kind in kinds)
    if not clusters:
        return _POLICY_FOR_ALL + selectors + _GROUPS
    first, *others = (quote(name) for name in clusters)
    groups = f"  placement:\n    clusterAffinities:\n      - affinityName: first\n        clusterNames: [{first}]\n"
    if others:
        groups += f"      - affinityName: others\n        clusterNames: [{', '.join(others)}]\n"
    return _POLICY_FOR_ALL + selectors + groups


def _list_named_clusters(policy: Body) -> dict[str, Body]:
    """Return the clusters that the affinities of a policy name, and one for each set of labels that they select by."""
    placement = get_field(policy, "spec", "placement")
    terms = [get_field(placement, "clusterAffinity"), *(get_field(placement, "clusterAffinities") or ())]
    found: dict[str, Body] = {}
    for term in terms:
        names, labels = get_field(term, "clusterNames"), get_field(term, "labelSelector", "matchLabels")
        found |= {name: {} for name in names or () if isinstance(name, str)}
        if isinstance(labels, dict) and labels and not names:
            value = next(iter(labels.values()))
            if isinstance(value, str) and value:
                found[f"{value.lower()}-1"] = {"labels": dict(labels)}
    return found


STARTER: Final = StarterFiles(
    settings=_SETTINGS,
    clusters=_CLUSTERS,
    policies=_POLICY + _GROUPS,
    workloads={"apps/web.yaml": _WORKLOAD},
    policy_kinds=frozenset({("policy.karmada.io", "PropagationPolicy"), ("policy.karmada.io", "ClusterPropagationPolicy")}),
    docs_page="docs/karmada.md",
    bundles=BundleStarter(_write_clusters, _BUNDLE_POLICY),
    write_policies=_write_policies,
    list_named_clusters=_list_named_clusters,
)
