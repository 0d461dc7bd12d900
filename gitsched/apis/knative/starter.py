"""The files that `gitsched init --api knative` writes."""

from __future__ import annotations

from typing import Final

from gitsched.apis.policy_api import StarterFiles

_SETTINGS: Final = """\
  knative:
    capacity: 20 # consumers per pod
    cluster: events # where the StatefulSet runs
    statefulSet: knative-eventing/kafkasource-mt-adapter
    autoscaler:
      refreshPeriodSeconds: 60 # pods go this long after their vreplicas; longer than `gitsched apply knative` takes
"""
_NODES: Final = """\
# The nodes and pods of the cluster `events`. Replace them with the output of `kubectl get nodes,pods -A -o yaml`.
apiVersion: v1
kind: Node
metadata:
  name: node-a
  labels: {topology.kubernetes.io/zone: zone-a}
---
apiVersion: v1
kind: Node
metadata:
  name: node-b
  labels: {topology.kubernetes.io/zone: zone-b}
---
apiVersion: v1
kind: Pod
metadata:
  name: kafkasource-mt-adapter-0
  namespace: knative-eventing
spec:
  nodeName: node-a
---
apiVersion: v1
kind: Pod
metadata:
  name: kafkasource-mt-adapter-1
  namespace: knative-eventing
spec:
  nodeName: node-b
"""
_STATEFUL_SET: Final = """\
# The pods of this StatefulSet run the consumers of event sources. gitsched decides how many pods there are.
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: kafkasource-mt-adapter
  namespace: knative-eventing
spec:
  replicas: 2
  serviceName: kafkasource-mt-adapter
  selector:
    matchLabels: {app: kafkasource-mt-adapter}
  template:
    metadata:
      labels: {app: kafkasource-mt-adapter}
    spec:
      containers:
        - name: receive-adapter
          image: registry.example.com/kafkasource-mt-adapter:1.0
"""
_SOURCE: Final = """\
# The consumers of an event source are spread over the pods of a StatefulSet.
apiVersion: sources.knative.dev/v1beta1
kind: KafkaSource
metadata:
  name: orders
  namespace: shop
spec:
  consumers: 4
"""

STARTER: Final = StarterFiles(
    settings=_SETTINGS,
    clusters=_NODES,
    policies="",
    workloads={"apps/adapter.yaml": _STATEFUL_SET, "apps/orders.yaml": _SOURCE},
    policy_kinds=frozenset({("sources.knative.dev", "KafkaSource")}),
    docs_page="docs/knative.md",
)
