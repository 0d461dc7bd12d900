"""Which policy applies to a workload: selectors, priority, specificity, name, scope."""

from __future__ import annotations

import random
from typing import Any

import pytest
import yaml

MATCHES = """
by kind alone:                    {selector: {},                                             selects: [a, b, x/a]}
by name:                          {selector: {name: a},                                      selects: [a, x/a]}
a name makes labels irrelevant:   {selector: {name: a, labelSelector: {matchLabels: {t: v}}}, selects: [a, x/a]}
by namespace:                     {selector: {namespace: x},                                 selects: [x/a]}
by namespace and name:            {selector: {namespace: default, name: a},                  selects: [a]}
by labels:                        {selector: {labelSelector: {matchLabels: {t: v}}},         selects: [b]}
by expression:                    {selector: {labelSelector: {matchExpressions: [{key: t, operator: DoesNotExist}]}}, selects: [a, x/a]}
labels and expressions:
  selector: {labelSelector: {matchLabels: {t: v}, matchExpressions: [{key: t, operator: NotIn, values: [v]}]}}
  selects: []
empty labels match everything:    {selector: {labelSelector: {}},                            selects: [a, b, x/a]}
labels that Kubernetes refuses:   {selector: {labelSelector: {matchExpressions: [{key: t, operator: Near, values: [v]}]}}, selects: []}
a value that is no label value:   {selector: {labelSelector: {matchLabels: {t: "v v"}}},     selects: []}
another version of the API:       {selector: {apiVersion: apps/v1beta1},                     selects: []}
another kind:                     {selector: {kind: StatefulSet},                            selects: []}
names have no wildcards:          {selector: {name: "*"},                                    selects: []}
"""
WORKLOADS = """
kind: Deployment
metadata: {name: a}
---
kind: Deployment
metadata: {name: b, labels: {t: v}}
---
kind: Deployment
metadata: {name: a, namespace: x}
---
kind: Cluster
metadata: {name: m1}
"""
RANKING = """
a higher priority:
  policies: [{name: a, priority: 1}, {name: b, priority: 2}]
  wins: b
priority before specificity:
  policies: [{name: a, by: name}, {name: b, by: kind, priority: 1}]
  wins: b
a name before labels:
  policies: [{name: a, by: labels}, {name: b, by: name}]
  wins: b
labels before the kind:
  policies: [{name: a, by: kind}, {name: b, by: labels}]
  wins: b
empty labels before the kind:
  policies: [{name: a, by: kind}, {name: b, by: empty labels}]
  wins: b
the smaller name:
  policies: [{name: b}, {name: a}, {name: c}]
  wins: a
names compare as text:
  policies: [{name: p10}, {name: p9}]
  wins: p10
no priority is zero:
  policies: [{name: b, priority: 0}, {name: a}]
  wins: a
a negative priority loses to none:
  policies: [{name: a, priority: -1}, {name: b}]
  wins: b
any policy of the namespace before every cluster policy:
  policies: [{name: a, priority: 9, by: name, cluster: true}, {name: b, priority: -5, by: kind}]
  wins: b
cluster policies only among themselves:
  policies: [{name: a, by: kind, cluster: true}, {name: b, by: labels, cluster: true}, {name: c, cluster: true, priority: -1}]
  wins: b
a policy of another namespace does not count:
  policies: [{name: a, namespace: x, priority: 9}, {name: b}]
  wins: b
a policy counts with its most specific selector:
  policies: [{name: a, by: labels}, {name: b, by: [kind, name]}]
  wins: b
wherever that selector stands:
  policies: [{name: a, by: kind}, {name: b, by: [kind, labels]}]
  wins: b
"""
SELECTORS = {
    "name": "{apiVersion: apps/v1, kind: Deployment, name: web}",
    "labels": "{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: web}}}",
    "empty labels": "{apiVersion: apps/v1, kind: Deployment, labelSelector: {}}",
    "kind": "{apiVersion: apps/v1, kind: Deployment}",
}


@pytest.mark.parametrize("case", (cases := yaml.safe_load(MATCHES)).values(), ids=cases)
def test_a_selector_selects(run: Any, case: dict[str, Any]) -> None:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", **case["selector"]}
    policy = {
        "kind": "ClusterPropagationPolicy",
        "metadata": {"name": "p"},
        "spec": {"resourceSelectors": [selector], "placement": {}},
    }
    result = run(f"{WORKLOADS}\n---\n{yaml.safe_dump(policy)}")
    selected = [f"{key.namespace}/{key.name}" for key in result.decisions.outcomes]
    assert sorted(selected) == sorted(name if "/" in name else f"default/{name}" for name in case["selects"])


@pytest.mark.parametrize("case", (cases := yaml.safe_load(RANKING)).values(), ids=cases)
def test_the_policy_of_a_workload(run: Any, case: dict[str, Any]) -> None:
    policies = [_policy(**entry) for entry in case["policies"]]
    for order in (policies, policies[::-1], random.Random(1).sample(policies, len(policies))):
        result = run("\n---\n".join(["kind: Deployment\nmetadata: {name: web, labels: {app: web}}", *order]))
        assert result.policy("web").rpartition("/")[2] == case["wins"]


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "skipped"),
    [
        ("Deployment", "default", "web", False),
        ("Deployment", "karmada-system", "web", True),
        ("Deployment", "karmada-cluster", "web", True),
        ("Deployment", "karmada-es-m1", "web", True),
        ("Deployment", "karmada", "web", False),
        ("Deployment", "my-karmada-es-m1", "web", False),
        ("Deployment", "kube-system", "web", True),
        ("Deployment", "kube-anything", "web", True),
        ("Deployment", "kubernetes", "web", False),
        ("ConfigMap", "kube-system", "extension-apiserver-authentication", True),
    ],
)
def test_system_namespaces_are_skipped(run: Any, kind: str, namespace: str, name: str, skipped: bool) -> None:
    selector = f"{{apiVersion: {'v1' if kind == 'ConfigMap' else 'apps/v1'}, kind: {kind}}}"
    policy = f"kind: ClusterPropagationPolicy\nmetadata: {{name: p}}\nspec: {{resourceSelectors: [{selector}], placement: {{}}}}"
    result = run(f"kind: {kind}\nmetadata: {{namespace: {namespace}, name: {name}}}\n---\n{policy}")
    assert (result.outcome(name) is None) is skipped


def test_a_cluster_scoped_workload_gets_a_cluster_binding_and_only_from_a_cluster_policy(run: Any) -> None:
    role = "kind: ClusterRole\nmetadata: {name: 'system:Reader'}"
    spec = "{resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}], placement: {}}"
    wide = f"kind: ClusterPropagationPolicy\nmetadata: {{name: wide}}\nspec: {spec}"
    near = wide.replace("ClusterProp", "Prop").replace("name: wide", "name: near")
    assert run(f"{role}\n---\n{near}").outcome("system:Reader") is None
    binding = run(f"{role}\n---\n{near}\n---\n{wide}").binding("system:Reader")
    assert (binding["kind"], binding["metadata"]["name"]) == ("ClusterResourceBinding", "system.reader-clusterrole")
    assert "namespace" not in binding["metadata"]
    assert binding["metadata"]["annotations"]["clusterpropagationpolicy.karmada.io/name"] == "wide"


def test_a_binding_under_a_cluster_policy_is_in_the_namespace_of_its_workload(run: Any) -> None:
    result = run("\n---\n".join(["kind: Deployment\nmetadata: {name: web, namespace: shop}", _policy("p", cluster=True)]))
    binding = result.binding("web")
    assert (binding["kind"], binding["metadata"]["namespace"]) == ("ResourceBinding", "shop")
    assert binding["metadata"]["name"] == "web-deployment"


def test_a_binding_has_the_settings_of_its_policy(run: Any) -> None:
    spec = """
  conflictResolution: Overwrite
  propagateDeps: true
  preserveResourcesOnDeletion: true
  suspension: {dispatching: true}"""
    binding = run(f"kind: Deployment\nmetadata: {{name: web, uid: u1, resourceVersion: '7'}}\n---\n{_policy('p')}{spec}").binding(
        "web"
    )
    assert {name: value for name, value in binding["spec"].items() if name not in ("placement", "clusters")} == {
        "resource": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": "default",
            "name": "web",
            "uid": "u1",
            "resourceVersion": "7",
        },
        "replicas": 1,
        "schedulerName": "default-scheduler",
        "conflictResolution": "Overwrite",
        "propagateDeps": True,
        "preserveResourcesOnDeletion": True,
        "suspension": {"dispatching": True},
    }


def _policy(
    name: str, priority: int | None = None, by: str | list[str] = "kind", cluster: bool = False, namespace: str = ""
) -> str:
    selectors = [SELECTORS[entry] for entry in ([by] if isinstance(by, str) else by)]
    where = f", namespace: {namespace}" if namespace else ""
    importance = "" if priority is None else f"\n  priority: {priority}"
    kind = "ClusterPropagationPolicy" if cluster else "PropagationPolicy"
    spec = f"resourceSelectors: [{', '.join(selectors)}]\n  placement: {{}}{importance}"
    return f"kind: {kind}\nmetadata: {{name: {name}{where}}}\nspec:\n  {spec}"
