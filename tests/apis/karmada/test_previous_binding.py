"""A committed binding of a hub is the previous binding of its workload."""

from __future__ import annotations

from typing import Any

FLEET = "kind: Cluster\nmetadata: {name: m1}\n---\nkind: Cluster\nmetadata: {name: m2}"
WEB = "kind: Deployment\nmetadata: {name: web}\nspec: {replicas: 5}"
POLICY = """
kind: PropagationPolicy
metadata: {name: p}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement: {replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}}
"""
APPLIED = '{"replicaScheduling":{"replicaSchedulingType":"Divided","replicaDivisionPreference":"Weighted"}}'
HUB = f"""
kind: ResourceBinding
metadata:
  name: web-deployment
  namespace: default
  annotations: {{policy.karmada.io/applied-placement: '{APPLIED}'}}
spec:
  resource: {{apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}}
  replicas: 5
  clusters: [{{name: m1, replicas: 4}}, {{name: m2, replicas: 1}}]
"""


def repository(*more: str) -> str:
    return "\n---\n".join((FLEET, WEB, POLICY, *more))


def test_the_binding_of_a_hub_is_the_previous_binding(run: Any) -> None:
    assert run(repository()).clusters("web") == {"m1": 3, "m2": 2}
    moved_in = run(repository(HUB))
    assert moved_in.clusters("web") == {"m1": 4, "m2": 1}
    assert {place.cluster: place.replicas for place in moved_in.outcome("web").previous_targets} == {"m1": 4, "m2": 1}, (
        "nothing moves"
    )


def test_a_record_takes_precedence_over_the_binding_of_a_hub(run: Any) -> None:
    first = run(repository(HUB))
    other = HUB.replace("replicas: 4", "replicas: 3").replace("replicas: 1", "replicas: 2")
    assert run(repository(other), first).clusters("web") == {"m1": 4, "m2": 1}


def test_a_binding_that_only_reports_health_is_not_a_previous_binding(run: Any) -> None:
    report = HUB.partition("  clusters:")[0] + "status: {aggregatedStatus: [{clusterName: m1, health: Healthy}]}\n"
    assert run(repository(report)).clusters("web") == {"m1": 3, "m2": 2}
