"""StatefulSet, Pods and Nodes as the scheduler's adapter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.apis.knative import names
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE, parse_taint
from gitsched.schedule.vreplicas.adapter import Adapter, Pod


class Cluster(NamedTuple):
    """Pods of the StatefulSet by ordinal and usable nodes with their zones, whatever the number of replicas. `marked` are ordinals that
    the source marks; `lost` are nodes that pods name and that do not exist, with those pods."""

    pods: Mapping[int, Document]
    zones: Mapping[str, str]
    marked: frozenset[int]
    lost: Mapping[str, tuple[int, ...]]

    def adapt(self, capacity: int, replicas: int, marks: frozenset[int]) -> Adapter:
        """The pods as the scheduler sees them: those that have a place on a usable node and no mark may take new vreplicas."""
        schedulable = {}
        for ordinal, document in self.pods.items():
            node = node_of(document)
            if ordinal < replicas and ordinal not in marks and node in self.zones:
                schedulable[ordinal] = Pod(ordinal, node, self.zones[node])
        return Adapter(capacity, replicas, schedulable, self.zones, marks)


def read_cluster(templates: Mapping[Key, Document], adapter: Key) -> Cluster:
    """What the documents say about a StatefulSet's pods."""
    pods: dict[int, Document] = {}
    zones: dict[str, str] = {}
    nodes: set[str] = set()
    for key, document in templates.items():
        if key.group or key.kind not in ("Pod", "Node"):
            continue
        if key.kind == "Node":
            nodes.add(key.name)
            if _is_usable(document.body):
                zones[key.name] = text_map(member(document.body, "metadata", "labels")).get(names.ZONE_LABEL) or names.UNKNOWN_ZONE
        elif key.namespace == adapter.namespace:
            ordinal = names.read_ordinal(key.name, adapter.name)
            if ordinal is not None:
                pods[ordinal] = document
    pods = dict(sorted(pods.items()))
    lost: dict[str, list[int]] = {}
    for ordinal, document in pods.items():
        node = node_of(document)
        if node and node not in nodes:
            lost.setdefault(node, []).append(ordinal)
    marked = frozenset(ordinal for ordinal, document in pods.items() if _is_marked(document.body))
    return Cluster(pods, dict(sorted(zones.items())), marked, {node: tuple(lost[node]) for node in sorted(lost)})


def node_of(pod: Document) -> str:
    """The node that a pod runs on; "" while it has none."""
    node = member(pod.body, "spec", "nodeName")
    return node if isinstance(node, str) else ""


def read_replicas(body: Body) -> int:
    """How many pods a StatefulSet is to have; 1 where it does not say."""
    replicas = member(body, "spec", "replicas")
    return replicas if type(replicas) is int and replicas >= 0 else 1


def _is_usable(node: Body) -> bool:
    if member(node, "spec", "unschedulable") is True:
        return False
    taints = member(node, "spec", "taints")
    unreachable = (
        taint for taint in map(parse_taint, taints if isinstance(taints, list) else ()) if taint.key == names.UNREACHABLE
    )
    return not any(taint.effect in (NO_SCHEDULE, NO_EXECUTE) for taint in unreachable)


def _is_marked(pod: Body) -> bool:
    return names.is_true(text_map(member(pod, "metadata", "annotations")).get(names.UNSCHEDULABLE))
