"""Annotations of the records of the last run, which anybody who can push to the output branch can change."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

import gitsched
from gitsched.model.document import as_string_map

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
DOCUMENTS = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m1}
spec: {syncMode: Push, taints: [{key: a, effect: NoExecute}]}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: m2}
spec: {syncMode: Push}
status:
  conditions: [{type: Ready, status: Unknown}]
  resourceSummary: {allocatable: {cpu: 1, pods: 1}, allocated: {cpu: 1, pods: 1}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec: {replicas: 3, template: {spec: {containers: [{name: web, resources: {requests: {cpu: 1}}}]}}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  propagateDeps: true
  failover: {application: {decisionConditions: {tolerationSeconds: 60}}}
  placement: {clusterAffinities: [{affinityName: one, clusterNames: [m1]}, {affinityName: two, clusterNames: [m2]}]}
---
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: again}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}]}
---
apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: hub, labels: {cluster.open-cluster-management.io/clusterset: default}}
spec: {hubAcceptsClient: true}
status: {conditions: [{type: ManagedClusterConditionAvailable, status: Unknown}]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: all, namespace: default}
spec: {clusterSets: [default]}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: default}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: default, namespace: default}
spec: {clusterSet: default}
"""
CONFIG = {"karmada": {"failback": {"AfterStabilization": "30m"}, "failover": "cluster"}}
ANNOTATIONS = [
    *(f"gitsched.io/{name}" for name in ("capacity-exceeded", "failback", "preserved-state", "remarks", "rollout", "spec-digest")),
    *(f"gitsched.io/{name}" for name in ("expired-at", "taints-added", "taints-first-seen", "unhealthy-since", "unused-since")),
    "policy.karmada.io/applied-placement",
]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "1" * 10_000, "NaN", "[]", "{}", '{"a": [[]]}', "null", "\ud800"]
)
def test_no_text_of_an_annotation_stops_a_run(text: str) -> None:
    documents = list(yaml.safe_load_all(DOCUMENTS))
    first = gitsched.schedule(documents, now=NOON, config=CONFIG)
    assert {body["kind"] for body in first.documents} >= {"ResourceBinding", "WorkloadRebalancer", "Placement", "Cluster"}
    previous: list[dict[str, Any]] = copy.deepcopy(list(first.documents))
    for body in previous:
        body["metadata"]["annotations"] = as_string_map(body["metadata"].get("annotations")) | dict.fromkeys(ANNOTATIONS, text)
    second = gitsched.schedule(documents, previous=previous, now=NOON + timedelta(hours=1), config=CONFIG)
    assert {(body["kind"], body["metadata"]["name"]) for body in second.documents} >= {
        (body["kind"], body["metadata"]["name"]) for body in first.documents if body["kind"] in ("ResourceBinding", "Placement")
    }
    assert not [finding for finding in second.findings if finding.code == "internal-error"]
