"""The files that `gitsched init --api krake` writes."""

from __future__ import annotations

from typing import Final

from gitsched.apis.policy_api import StarterFiles

_CLUSTERS: Final = """\
# The clusters of the namespace `shop`, with the labels that applications select by.
# Rename them; where you change a label, change it in the policies as well.
api: kubernetes
kind: Cluster
metadata:
  name: dresden-1
  namespace: shop
  labels: {location: DE}
spec:
  kubeconfig: # gitsched does not use it and does not copy it
    contexts: [{name: dresden-1}]
    clusters: [{name: dresden-1}]
    users: [{name: admin}]
status:
  state: ONLINE # only ONLINE clusters accept applications
---
api: kubernetes
kind: Cluster
metadata:
  name: dublin-1
  namespace: shop
  labels: {location: IE}
spec:
  kubeconfig:
    contexts: [{name: dublin-1}]
    clusters: [{name: dublin-1}]
    users: [{name: admin}]
status:
  state: ONLINE
"""
_APPLICATION: Final = """\
# An application goes to one cluster of its namespace: the best one in Germany or Ireland.
api: kubernetes
kind: Application
metadata:
  name: web
  namespace: shop
spec:
  manifest:
    - apiVersion: apps/v1
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
  constraints:
    cluster:
      labels: ["location in (DE, IE)"]
    migration: true
"""

STARTER: Final = StarterFiles(
    settings="",
    clusters=_CLUSTERS,
    policies="",
    workloads={"apps/web.yaml": _APPLICATION},
    policy_kinds=frozenset({("kubernetes", "Application")}),
    docs_page="docs/krake.md",
)
