"""A fleet that runs under a Karmada hub and an OCM hub: the source of 40 clusters and 317 objects, and a dump of the hubs.

The hubs have a history: workloads run in their second affinity group, were scaled by hand, or follow a Placement that chose before other
clusters came. A scheduler without this history places them elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import yaml

import gitsched

Body = dict[str, Any]
REGIONS = ("dub", "fra", "ash", "sin")
CLUSTERS = tuple(f"{region}-{number}" for region in REGIONS for number in range(1, 11))
SECRET_VALUE = "c3VwZXItc2VjcmV0LXZhbHVl"
NAMESPACES = ("shop", "pay", "media", "ops")
CONFIG = {"guard": {"holdStateful": True}}


class RunningFleet(NamedTuple):
    """`source` are the files of the source by path, `dump` the objects of the hubs in kubectl's order."""

    source: Mapping[str, str]
    dump: tuple[Body, ...]


def make_fleet() -> RunningFleet:
    """Return a fleet of 40 clusters and 317 objects."""
    workloads = list(_make_workloads())
    others = [*_make_clusters(), *_make_policies()]
    scheduled = gitsched.schedule([*others, *workloads], previous=_make_history(workloads), config=CONFIG)
    records = [body for body in scheduled.documents if body["kind"] in _DUMPED]
    dump = sorted([*records, *_make_works(records, workloads)], key=lambda body: _DUMPED.index(body["kind"]))
    files = {
        "clusters/clusters.yaml": _dump(_make_clusters()),
        "policies/policies.yaml": _dump(_make_policies()),
        **{
            f"apps/{namespace}.yaml": _dump(one for one in workloads if one["metadata"]["namespace"] == namespace)
            for namespace in NAMESPACES
        },
    }
    return RunningFleet(files, tuple(dump))


_DUMPED = ("ResourceBinding", "ClusterResourceBinding", "Work", "Placement", "PlacementDecision", "ManifestWork")


def format_dump(objects: Iterable[Body]) -> str:
    """Return objects as kubectl prints them in YAML."""
    items = "".join(_indent(_dump_body(body, sort_keys=True)) for body in objects)
    return f'apiVersion: v1\nitems:\n{items}kind: List\nmetadata:\n  resourceVersion: ""\n'


def remove_status(objects: Iterable[Body]) -> list[Body]:
    """Return objects without their status, as people keep them in Git."""
    return [{name: member for name, member in body.items() if name != "status"} for body in objects]


def _indent(text: str) -> str:
    lines = text.splitlines()
    return "".join(f"{'- ' if number == 0 else '  '}{line}\n" for number, line in enumerate(lines))


def _dump_body(body: Body, *, sort_keys: bool) -> str:
    return yaml.dump(body, Dumper=yaml.CSafeDumper, sort_keys=sort_keys)


def _dump(bodies: Iterable[Body]) -> str:
    return "---\n".join(_dump_body(body, sort_keys=False) for body in bodies)


def _make_clusters() -> Iterator[Body]:
    for name in CLUSTERS:
        region = name.partition("-")[0]
        yield {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": name, "labels": {"region": region}},
            "spec": {"syncMode": "Push", "region": region},
        }
        yield {
            "apiVersion": "cluster.open-cluster-management.io/v1",
            "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": {"region": region, "cluster.open-cluster-management.io/clusterset": "all"}},
            "spec": {"hubAcceptsClient": True},
        }


def _make_policies() -> Iterator[Body]:
    groups = [{"affinityName": region, "labelSelector": {"matchLabels": {"region": region}}} for region in REGIONS]
    spread = [{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]
    divided = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
    kinds = [("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")]
    for namespace in NAMESPACES[:3]:
        yield {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "groups", "namespace": namespace},
            "spec": {
                "propagateDeps": True,
                "resourceSelectors": [{"apiVersion": version, "kind": kind} for version, kind in kinds],
                "placement": {"clusterAffinities": groups, "spreadConstraints": spread, "replicaScheduling": divided},
            },
        }
        yield {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "services", "namespace": namespace},
            "spec": {
                "resourceSelectors": [{"apiVersion": "v1", "kind": "Service"}],
                "placement": {"clusterAffinity": {"labelSelector": {"matchLabels": {"region": "fra"}}}},
            },
        }
    yield {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": {"name": "registry", "namespace": "shop"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "overrideRules": [
                {
                    "targetCluster": {"labelSelector": {"matchLabels": {"region": "fra"}}},
                    "overriders": {
                        "imageOverrider": [{"component": "Registry", "operator": "replace", "value": "fra.example.com"}]
                    },
                }
            ],
        },
    }
    yield {
        "apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "all", "namespace": "ops"},
        "spec": {"clusterSet": "all"},
    }
    yield {
        "apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSet",
        "metadata": {"name": "all"},
        "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}},
    }
    yield {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "Placement",
        "metadata": {"name": "three", "namespace": "ops"},
        "spec": {"numberOfClusters": 3, "clusterSets": ["all"]},
    }


def _make_workloads() -> Iterator[Body]:
    for namespace in NAMESPACES[:3]:
        for number in range(70):
            yield _make_deployment(namespace, f"web-{number}", 2 + number % 5, secret=number < 15)
        for number in range(10):
            yield _make_stateful_set(namespace, f"db-{number}")
        for number in range(8):
            yield _make_service(namespace, f"web-{number}")
        for number in range(15):
            yield _make_secret(namespace, f"web-{number}")
    for number in range(7):
        placement = {"cluster.open-cluster-management.io/placement": "three"}
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"agent-{number}", "namespace": "ops", "annotations": placement},
            "data": {"key": "value"},
        }
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "spare", "namespace": "ops"}, "data": {}}


def _make_deployment(namespace: str, name: str, replicas: int, *, secret: bool) -> Body:
    container: Body = {"name": "web", "image": f"registry.example.com/{name}:1"}
    if secret:
        container["envFrom"] = [{"secretRef": {"name": name}}]
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _make_stateful_set(namespace: str, name: str) -> Body:
    body = _make_deployment(namespace, name, 3, secret=False)
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    return {**body, "kind": "StatefulSet", "spec": {**body["spec"], "serviceName": name, "volumeClaimTemplates": [claim]}}


def _make_service(namespace: str, name: str) -> Body:
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    }


def _make_secret(namespace: str, name: str) -> Body:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": {"key": SECRET_VALUE}}


def _make_history(workloads: Iterable[Body]) -> Iterator[Body]:
    """Yield the records of hubs with a history: every third Deployment has run in Frankfurt since Dublin was down."""
    placement = next(body["spec"]["placement"] for body in _make_policies() if body["metadata"]["name"] == "groups")
    for number, body in enumerate(workloads):
        metadata = body["metadata"]
        if body["kind"] not in ("Deployment", "StatefulSet") or number % 3:
            continue
        replicas = body["spec"]["replicas"]
        yield {
            "apiVersion": "work.karmada.io/v1alpha2",
            "kind": "ResourceBinding",
            "metadata": {
                "name": f"{metadata['name']}-{body['kind'].lower()}",
                "namespace": metadata["namespace"],
                "annotations": {
                    "policy.karmada.io/applied-placement": json.dumps(placement),
                    "propagationpolicy.karmada.io/namespace": metadata["namespace"],
                    "propagationpolicy.karmada.io/name": "groups",
                },
            },
            "spec": {"clusters": [{"name": "fra-1", "replicas": 1}, {"name": "fra-7", "replicas": replicas - 1}]},
            "status": {
                "schedulerObservingAffinityName": "fra",
                "lastScheduledTime": "2026-01-01T00:00:00Z",
                "conditions": [{"type": "Scheduled", "status": "True", "reason": "Success"}],
            },
        }
    decisions = [{"clusterName": name, "reason": ""} for name in ("sin-2", "sin-4", "ash-9")]
    yield {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "PlacementDecision",
        "metadata": {
            "name": "three-decision-1",
            "namespace": "ops",
            "labels": {
                "cluster.open-cluster-management.io/placement": "three",
                "cluster.open-cluster-management.io/decision-group-index": "0",
                "cluster.open-cluster-management.io/decision-group-name": "",
            },
        },
        "status": {"decisions": decisions},
    }


def _make_works(records: Iterable[Body], workloads: Iterable[Body]) -> Iterator[Body]:
    """Yield the Works of the bindings, and the ManifestWorks of what follows the Placement."""
    by_name = {(one["metadata"]["namespace"], f"{one['metadata']['name']}-{one['kind'].lower()}"): one for one in workloads}
    for record in records:
        metadata, spec = record["metadata"], record.get("spec") or {}
        if record["kind"] == "ResourceBinding":
            template = by_name[metadata["namespace"], metadata["name"]]
            counts = {one["name"]: one.get("replicas") for one in spec.get("clusters") or ()}
            for snapshot in spec.get("requiredBy") or ():
                counts |= {one["name"]: None for one in snapshot["clusters"] if one["name"] not in counts}
            for cluster, count in counts.items():
                yield _make_work(f"karmada-es-{cluster}", metadata["name"], template, count)
        elif record["kind"] == "PlacementDecision":
            for entry in record["status"]["decisions"]:
                for one in by_name.values():
                    if "annotations" in one["metadata"]:
                        yield _make_work(entry["clusterName"], one["metadata"]["name"], one, None)


def _make_work(namespace: str, name: str, template: Body, replicas: int | None) -> Body:
    manifest = template if not replicas else {**template, "spec": {**template["spec"], "replicas": replicas}}
    is_karmada = namespace.startswith("karmada-es-")
    return {
        "apiVersion": "work.karmada.io/v1alpha1" if is_karmada else "work.open-cluster-management.io/v1",
        "kind": "Work" if is_karmada else "ManifestWork",
        "metadata": {
            "name": f"{template['metadata']['namespace']}-{name}",
            "namespace": namespace,
            "finalizers": ["karmada.io/execution-controller"],
        },
        "spec": {"workload": {"manifests": [manifest]}},
        "status": {"conditions": [{"type": "Applied", "status": "True"}]},
    }
