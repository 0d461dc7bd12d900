"""Documents of all policy APIs, and mutations of them: other types, odd times, lone surrogates, deep nesting."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import yaml

from tests.builders import knative, ocm

Body = dict[str, Any]

KARMADA = """\
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: ash, labels: {tier: a}}
spec:
  syncMode: Push
  region: north
  taints: [{key: k, effect: NoExecute, timeAdded: "2026-01-01T00:00:00Z"}]
status:
  conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  resourceSummary: {allocatable: {cpu: "8", pods: "10"}, allocated: {cpu: "1"}}
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: bru}
spec: {syncMode: Push, region: south}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all, namespace: default}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  failover: {application: {decisionConditions: {tolerationSeconds: 60}, purgeMode: Graciously, gracePeriodSeconds: 600}}
  placement:
    clusterAffinities: [{affinityName: one, clusterNames: [ash]}, {affinityName: two, clusterNames: [bru]}]
    clusterTolerations: [{key: k, operator: Exists, tolerationSeconds: 60}]
    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}]
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
---
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: image, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  overrideRules: [{overriders: {imageOverrider: [{component: Registry, operator: replace, value: r}]}}]
---
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: again, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}], ttlSecondsAfterFinished: 60}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 100m}}, envFrom: [{configMapRef: {name: conf}}]}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: default}
data: {a: b}
"""
KRAKE = """\
api: kubernetes
kind: Cluster
metadata: {name: ash, namespace: default, labels: {tier: a}}
spec: {kubeconfig: {contexts: [{name: c}], clusters: [{name: c}], users: [{name: u}]}, metrics: [{name: m, weight: 1}]}
status: {state: ONLINE}
---
api: kubernetes
kind: Application
metadata: {name: web, namespace: default}
spec:
  constraints: {cluster: {labels: ["tier = a"]}, migration: true}
  manifest: [{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: default}}]
status: {scheduled: "2026-01-01T00:00:00Z", scheduled_to: {api: kubernetes, kind: Cluster, name: ash, namespace: default}}
"""


def _make_ocm() -> list[Body]:
    tolerations = [{"key": "k", "operator": "Exists", "tolerationSeconds": 60}]
    return [
        ocm.managed_cluster("ash", {"tier": "a"}, [{**ocm.taint("k"), "timeAdded": "2026-01-01T00:00:00Z"}]),
        ocm.managed_cluster("bru"),
        *ocm.bound_global_set("default"),
        ocm.addon_scores("ash", {"cpu": 3}, valid_until="2026-01-02T00:00:00Z"),
        ocm.placement("web", "default", 1, [ocm.built_in("Steady"), ocm.add_on("cpu")], tolerations=tolerations),
        ocm.placed_config_map("map", "default", "web"),
    ]


def _make_knative() -> list[Body]:
    texts = (knative.node("n", "z"), knative.adapter(2), knative.source("a", 3), knative.pods({0: "n", 1: "n"}))
    return knative.parse(*texts)


SEEDS: tuple[tuple[list[Body], Body], ...] = (
    (list(yaml.safe_load_all(KARMADA)), {"karmada": {}}),
    (list(yaml.safe_load_all(KRAKE)), {"krake": {}}),
    (_make_ocm(), {}),
    (_make_knative(), {"knative": {"capacity": 4}}),
)
"""Documents of each API, and settings."""


class _Nesting:
    """Nested mappings and lists."""

    def __init__(self, depth: int) -> None:
        self._depth = depth

    def make(self) -> Any:
        value: Any = "x"
        for level in range(self._depth):
            value = {"a": value} if level % 2 else [value]
        return value


VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 5, 2**31, 2**63, 2**64, -(2**63), 1.5, float("nan"), float("inf"), 10**400),
    *("", "x", "a/b", "\ud800", "\udfff\ud800", "\x00", "\x1b[31m", "\u2028", "x" * 5_000, "1", "-1", "1e400", "9" * 5_000),
    *("9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "24h", "-1s"),
    *([], {}, [1], [[]], [None], {"a": 1}, {"": None}, [{}], {"name": 5}, {"metadata": [1]}, {"matchLabels": 3}),
    *(_Nesting(240), _Nesting(3_000)),
)


def mutate(document: Any, random: Random, count: int) -> Any:
    """Return a copy of a document with random values in random places."""
    found = copy.deepcopy(document)
    for _ in range(count):
        holder, step = random.choice(_list_places(found))
        kind = random.random()
        if kind < 0.7:
            value = random.choice(VALUES)
            holder[step] = value.make() if isinstance(value, _Nesting) else copy.deepcopy(value)
        elif kind < 0.85:
            del holder[step]
        elif isinstance(holder, list):
            holder.append(holder[step])
        else:
            holder[random.choice(["x", "status", "spec", "\ud800"])] = holder[step]
        if not found:
            break
    return found


def _list_places(document: Any) -> list[tuple[Any, Any]]:
    """Return the members and items of a document; not those that nest very deep."""
    places, pending = [], [(document, 0)]
    while pending:
        value, depth = pending.pop()
        steps = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        for step in steps:
            places.append((value, step))
            if depth < 20:
                pending.append((value[step], depth + 1))
    return places
