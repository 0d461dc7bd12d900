"""Builders of Knative documents, as YAML text and as Python values, and runs of the Python API over them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import yaml

import gitsched

Body = dict[str, Any]

ADAPTER, NAMESPACE = "kafkasource-mt-adapter", "knative-eventing"
MARK = "eventing.knative.dev/unschedulable"
UNREACHABLE = "node.kubernetes.io/unreachable"
RENDERED = f"clusters/events/{NAMESPACE}/statefulset-{ADAPTER}.yaml"


def node(name: str, zone: str, *, cordoned: bool = False, taints: Iterable[str] = ()) -> str:
    """Return a Node; taints are given as key:effect."""
    pairs = (taint.split(":") for taint in taints)
    entries = ", ".join(f"{{key: {key}, effect: {effect}}}" for key, effect in pairs)
    spec = f"{{unschedulable: {str(cordoned).lower()}, taints: [{entries}]}}"
    return (
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}, labels: {{topology.kubernetes.io/zone: {zone}}}}}\nspec: {spec}\n"
    )


def pod(ordinal: int, node_name: str | None, marked: bool = False) -> str:
    """Return the adapter's Pod with an ordinal; `marked` sets the annotation unschedulable."""
    spec = f"{{nodeName: {node_name}}}" if node_name else "{priority: 0}"
    annotations = f", annotations: {{{MARK}: 'true'}}" if marked else ""
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {ADAPTER}-{ordinal}, namespace: {NAMESPACE}{annotations}}}\nspec: {spec}\n"
    )


def adapter(replicas: int) -> str:
    """Return the StatefulSet of the adapter."""
    return (
        f"apiVersion: apps/v1\nkind: StatefulSet\nmetadata:\n  name: {ADAPTER}\n  namespace: {NAMESPACE}\n"
        f"spec:\n  replicas: {replicas} # the autoscaler's\n  serviceName: adapter\n"
    )


def source(name: str, consumers: int) -> str:
    """Return a KafkaSource in namespace `shop`."""
    return (
        f"apiVersion: sources.knative.dev/v1beta1\nkind: KafkaSource\nmetadata: {{name: {name}, namespace: shop}}\n"
        f"spec:\n  consumers: {consumers}\n  topics: [{name}]\n"
    )


def settings(capacity: int = 4, **more: Any) -> str:
    """Return a Config with settings of spec.knative."""
    lines = "".join(f"    {key}: {value}\n" for key, value in more.items())
    head = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec:\n  knative:\n"
    return f"{head}    capacity: {capacity}\n{lines}"


def pods(nodes: Mapping[int, str | None], marked: Container[int] = ()) -> str:
    """Return Pods by ordinal on the given nodes."""
    return "---\n".join(pod(ordinal, name, ordinal in marked) for ordinal, name in nodes.items())


def parse(*texts: str) -> list[Body]:
    """Return the documents of YAML texts as Python values."""
    return [body for text in texts for body in yaml.safe_load_all(text)]


def schedule(*texts: str, previous: Iterable[Body] = (), **knative: Any) -> gitsched.Schedule:
    """Schedule documents with the given settings of spec.knative; the default capacity of a pod is 4, None leaves it out."""
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    settings = {name: value for name, value in {"capacity": 4, **knative}.items() if value is not None}
    return gitsched.schedule(parse(*texts), previous=list(previous), now=now, at=now, config={"knative": settings})


def placements(documents: Iterable[Any], name: str) -> dict[int, int]:
    """Return the vreplicas of a source's record by ordinal."""
    record = next(body for body in documents if (body["kind"], body["metadata"]["name"]) == ("KafkaSource", name))
    return {int(entry["podName"].rsplit("-", 1)[1]): entry["vreplicas"] for entry in record["status"]["placements"]}
