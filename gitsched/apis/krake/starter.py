"""The files that `gitsched init --api krake` writes."""

from __future__ import annotations

from typing import Final

from gitsched.apis.policy_api import StarterFiles

_EXAMPLE: Final = """\
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

STARTER: Final = StarterFiles(
    "",
    {"applications/example.yaml": _EXAMPLE},
    "kind: Cluster, api: kubernetes, in the namespace of its applications, with labels and status.state: ONLINE",
    "docs/krake.md",
)
