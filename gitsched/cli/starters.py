"""What `gitsched init` writes for each policy API: settings, one example, and what to do next."""

from __future__ import annotations

from typing import NamedTuple

SCHEMAS = "../gitsched/schemas"
"""A clone of gitsched beside the repository: a path of this machine would be wrong on every other."""
_CONFIG = f"""\
# yaml-language-server: $schema={SCHEMAS}/gitsched.io/v1alpha1/Config.json
# Settings of gitsched. Everything has a default; this file could be empty, or missing.
apiVersion: gitsched.io/v1alpha1
kind: Config
metadata:
  name: gitsched
spec:
  output:
    branch: placements # where decisions are committed; never the source branch
"""
_KARMADA = f"""\
# yaml-language-server: $schema=../{SCHEMAS}/policy.karmada.io/v1alpha1/PropagationPolicy.json
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
_OCM = """\
# Whatever has the annotation `cluster.open-cluster-management.io/placement: example` in the namespace `default` runs on the best two
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
_KRAKE = """\
# An application goes to one cluster of its namespace: here the best one with the label location=DE.
api: kubernetes
kind: Application
metadata:
  name: example
  namespace: tenant-a
spec:
  manifest:
    - apiVersion: v1
      kind: ConfigMap
      metadata:
        name: example
  constraints:
    cluster:
      labels: ["location is DE"]
    migration: true
"""
_KNATIVE = """\
# The consumers of an event source are spread over the pods of a StatefulSet.
apiVersion: sources.knative.dev/v1beta1
kind: KafkaSource
metadata:
  name: example
  namespace: default
spec:
  consumers: 4
"""


class Starter(NamedTuple):
    """Files by their path, how to describe what is chosen from, and the page of the documentation."""

    files: dict[str, str]
    describe: str
    page: str


STARTERS = {
    "karmada": Starter(
        {
            "gitsched.yaml": f"""\
{_CONFIG}  karmada:
    taintEviction: true # a committed NoExecute taint moves what does not tolerate it
    missingFacts: assume # a Cluster written by hand serves every API and has room
""",
            "policies/example.yaml": _KARMADA,
        },
        "kind: Cluster, apiVersion: cluster.karmada.io/v1alpha1, with labels that policies choose by",
        "docs/karmada.md",
    ),
    "ocm": Starter(
        {"gitsched.yaml": _CONFIG, "policies/example.yaml": _OCM},
        "kind: ManagedCluster, apiVersion: cluster.open-cluster-management.io/v1, with labels that Placements choose by",
        "docs/ocm.md",
    ),
    "krake": Starter(
        {"gitsched.yaml": _CONFIG, "applications/example.yaml": _KRAKE},
        "kind: Cluster, api: kubernetes, in the namespace of its applications, with labels and status.state: ONLINE",
        "docs/krake.md",
    ),
    "knative": Starter(
        {
            "gitsched.yaml": f"""\
{_CONFIG}  knative:
    capacity: 20 # consumers that a pod holds
    cluster: events # where the StatefulSet runs
    statefulSet: knative-eventing/kafkasource-mt-adapter
""",
            "sources/example.yaml": _KNATIVE,
        },
        "the StatefulSet, its Pods and their Nodes, as `kubectl get -o yaml` prints them",
        "docs/knative.md",
    ),
}
