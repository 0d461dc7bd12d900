"""Schedule documents from Python, continue from the result, and look at findings and explanations."""

from datetime import UTC, datetime
from typing import Any

import yaml

import gitsched

FLEET = """
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: private-1, labels: {ownership: private}}
spec: {syncMode: Pull}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: cloud-1, labels: {ownership: cloud}}
spec: {syncMode: Pull}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 2}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinities:
      - {affinityName: private, labelSelector: {matchLabels: {ownership: private}}}
      - {affinityName: cloud, labelSelector: {matchLabels: {ownership: cloud}}}
"""


def list_clusters(placed: gitsched.Schedule) -> dict[str, list[str]]:
    """Return the clusters of each workload, from the bindings of Karmada."""
    bindings = [body for body in placed.documents if body["kind"] == "ResourceBinding"]
    return {body["metadata"]["name"]: [target["name"] for target in body["spec"].get("clusters", [])] for body in bindings}


documents: list[dict[str, Any]] = list(yaml.safe_load_all(FLEET))
first = gitsched.schedule(documents, now=datetime(2026, 1, 1, tzinfo=UTC))
print(list_clusters(first))

# An hour later private-1 has a taint. `previous` are the documents of the last schedule.
documents[0]["spec"]["taints"] = [{"key": "power", "effect": "NoExecute"}]
second = gitsched.schedule(documents, previous=first.documents, now=datetime(2026, 1, 1, 1, tzinfo=UTC))
print(list_clusters(second))

explained = second.explain("Deployment", "web", "shop")
for group in explained.groups:
    print(f"group {group.name}: {group.verdict} {group.message}")
if explained.explanation is not None:
    for candidate in explained.explanation.candidates:
        name, eligible, reason, *_ = candidate.result
        print(f"{candidate.group} {name}: {'fits' if eligible else reason}")

# A mistake in a document is a finding, and what it decides stays as it is.
documents[3]["spec"]["placement"]["clusterAffinities"] = "cloud"
third = gitsched.schedule(documents, previous=second.documents, now=datetime(2026, 1, 1, 2, tzinfo=UTC))
for finding in third.findings:
    if finding.severity == "error":
        print(f"{finding.code}: {finding.message} {finding.resource}")
print(list_clusters(third))
