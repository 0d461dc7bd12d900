"""Event sources as vpods with their vreplicas and placements, and the StatefulSet's Pods and Nodes that run them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gitsched.apis.gitsched.config import Config
from gitsched.apis.knative.names import (
    DOMAIN,
    GROUP,
    KAFKA,
    MAX_ORDINAL,
    MAX_VREPLICAS,
    UNKNOWN_ZONE,
    UNREACHABLE,
    UNSCHEDULABLE,
    ZONE_LABEL,
    is_true,
    read_ordinal,
)
from gitsched.apis.knative.settings import SETTINGS
from gitsched.apis.knative.source_fields import list_unknown_fields
from gitsched.model.document import Body, Document, Key, get_field, parse_api_group, read_annotations, read_labels
from gitsched.model.finding import Issue
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE, parse_taint
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.vreplicas.state import AdapterStatefulSet, Pod, VreplicasByOrdinal


class AdapterPods(NamedTuple):
    """The StatefulSet's Pods by ordinal, and the zones of usable nodes; both are independent of the number of replicas.

    `marked` are the ordinals that the source marks unschedulable. `missing_nodes` are nodes that do not exist, with the pods that name
    them. `unreachable` are nodes with which the control plane has no contact.
    """

    pods: Mapping[int, Document]
    zones: Mapping[str, str]
    marked: frozenset[int]
    missing_nodes: Mapping[str, tuple[int, ...]]
    unreachable: frozenset[str]

    def is_running(self, ordinal: int) -> bool:
        """Return whether a pod exists and has a node that is reachable; the node may be cordoned."""
        node = read_node_name(self.pods[ordinal]) if ordinal in self.pods else ""
        return bool(node) and node not in self.missing_nodes and node not in self.unreachable

    def find_without_usable_node(self) -> frozenset[int]:
        """Return the pods on a node that is cordoned, unreachable or missing; a pod without a node still gets one."""
        return frozenset(ordinal for ordinal, pod in self.pods.items() if (node := read_node_name(pod)) and node not in self.zones)

    def make_adapter(self, capacity: int, replicas: int, marked: frozenset[int]) -> AdapterStatefulSet:
        """Return the scheduler's view: pods on a usable node that are not marked may take new vreplicas."""
        schedulable = {}
        for ordinal, document in self.pods.items():
            node = read_node_name(document)
            if ordinal < replicas and ordinal not in marked and node in self.zones:
                schedulable[ordinal] = Pod(ordinal, node, self.zones[node])
        return AdapterStatefulSet(capacity, replicas, schedulable, self.zones, marked)


def read_adapter_pods(templates: Mapping[Key, Document], adapter: Key) -> AdapterPods:
    """Read the Pods of a StatefulSet, and the Nodes."""
    pods: dict[int, Document] = {}
    zones: dict[str, str] = {}
    nodes: set[str] = set()
    unreachable: set[str] = set()
    for key, document in templates.items():
        if key.group or key.kind not in ("Pod", "Node"):
            continue
        if key.kind == "Node":
            nodes.add(key.name)
            if _is_unreachable(document.body):
                unreachable.add(key.name)
            elif get_field(document.body, "spec", "unschedulable") is not True:
                zones[key.name] = read_labels(document.body).get(ZONE_LABEL) or UNKNOWN_ZONE
        elif key.namespace == adapter.namespace:
            ordinal = read_ordinal(key.name, adapter.name)
            if ordinal is not None:
                pods[ordinal] = document
    pods = dict(sorted(pods.items()))
    missing_nodes: dict[str, list[int]] = {}
    for ordinal, document in pods.items():
        node = read_node_name(document)
        if node and node not in nodes:
            missing_nodes.setdefault(node, []).append(ordinal)
    marked = frozenset(ordinal for ordinal, document in pods.items() if _is_marked(document.body))
    return AdapterPods(
        pods,
        dict(sorted(zones.items())),
        marked,
        {node: tuple(missing_nodes[node]) for node in sorted(missing_nodes)},
        frozenset(unreachable),
    )


def read_node_name(pod: Document) -> str:
    """Return the pod's node; "" while it has none."""
    node = get_field(pod.body, "spec", "nodeName")
    return node if isinstance(node, str) else ""


def read_replicas(body: Body) -> int:
    """Return spec.replicas, 1 by default."""
    replicas = get_field(body, "spec", "replicas")
    return replicas if type(replicas) is int and replicas >= 0 else 1


def _is_unreachable(node: Body) -> bool:
    taints = get_field(node, "spec", "taints")
    found = (taint for taint in map(parse_taint, taints if isinstance(taints, list) else ()) if taint.key == UNREACHABLE)
    return any(taint.effect in (NO_SCHEDULE, NO_EXECUTE) for taint in found)


def _is_marked(pod: Body) -> bool:
    return is_true(read_annotations(pod).get(UNSCHEDULABLE))


CONSUMERS_PATH = ("spec", "consumers")
INT32_LIMIT = 2**31

VreplicaPaths = Mapping[tuple[str, str], tuple[str, ...]]
"""The path of the number of vreplicas by (group, kind) of the source."""


def find_source_kinds(config: Config) -> VreplicaPaths:
    """Return the kinds of event sources: KafkaSource, those in `knative.sources`, and kinds of knative.dev groups in `workloads`."""
    paths: dict[tuple[str, str], tuple[str, ...]] = {(GROUP, KAFKA): CONSUMERS_PATH}
    for kind in config.workloads:
        group = parse_api_group(kind.api_version)
        if kind.replicas_path and (group == DOMAIN or group.endswith(f".{DOMAIN}")):
            paths[group, kind.kind] = _split_path(kind.replicas_path)
    for source in config.settings_of(SETTINGS).sources:
        paths[parse_api_group(source.api_version), source.kind] = _split_path(source.replicas_path)
    return paths


def validate_kafka_source(body: Body) -> Iterator[Issue]:
    """Validate a KafkaSource: its vreplicas, and the names of its fields."""
    yield from validate_source(body, CONSUMERS_PATH)
    yield from list_unknown_fields(body)


def validate_source(body: Body, path: tuple[str, ...]) -> Iterator[Issue]:
    """Validate a source whose number of vreplicas is at `path`."""
    desired = get_field(body, *path)
    if desired is not None and (type(desired) is not int or not 0 <= desired <= MAX_VREPLICAS):
        yield Issue("error", "knative-vreplicas", f"{'.'.join(path)} must be an integer from 0 to {MAX_VREPLICAS}", path)
    placements = get_field(body, "status", "placements")
    if placements is None:
        return
    if not isinstance(placements, list):
        yield Issue("error", "knative-placements", "status.placements must be a list", ("status", "placements"))
        return
    for index, entry in enumerate(placements):
        error = find_placement_error(entry)
        if error:
            yield Issue("error", "knative-placements", f"status.placements[{index}] {error}", ("status", "placements", index))
            return


def read_desired_vreplicas(body: Body, path: tuple[str, ...]) -> int:
    """Return the desired vreplicas of a valid source, 1 by default."""
    desired = get_field(body, *path)
    return 1 if desired is None else int(desired)


def read_placements(body: Body, adapter: Key) -> VreplicasByOrdinal:
    """Return the placements of a status on the pods of a StatefulSet, in its order; invalid entries are ignored."""
    vreplicas: VreplicasByOrdinal = {}
    placements = get_field(body, "status", "placements")
    for entry in placements if isinstance(placements, list) else ():
        if not find_placement_error(entry):
            ordinal = read_ordinal(entry["podName"], adapter.name)
            number = entry.get("vreplicas") or 0
            if ordinal is not None and number > 0:
                vreplicas[ordinal] = vreplicas.get(ordinal, 0) + number
    return vreplicas


def make_placements(vreplicas: VreplicasByOrdinal, adapter: Key) -> list[Body]:
    """Return placements in the form of status.placements."""
    return [{"podName": f"{adapter.name}-{ordinal}", "vreplicas": number} for ordinal, number in vreplicas.items()]


def find_placement_error(entry: Any) -> str:
    if not isinstance(entry, dict) or not isinstance(entry.get("podName"), str):
        return "must have a podName"
    if read_ordinal(entry["podName"]) is None:
        return f"has a podName without an ordinal from 0 to {MAX_ORDINAL}: {entry['podName'][:100]!r}"
    number = entry.get("vreplicas")
    if number is not None and (type(number) is not int or not 0 <= number < INT32_LIMIT):
        return "must have an integer in vreplicas"
    return ""


def _split_path(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split(".") if part)
