"""Event sources as vpods with their vreplicas and placements, and the StatefulSet's Pods and Nodes that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.apis.knative import names
from gitsched.model.document import Body, Document, Key, as_string_map, get_field, parse_api_group
from gitsched.model.finding import Issue
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE, parse_taint
from gitsched.schedule.vreplicas.state import AdapterStatefulSet, Pod, VreplicasByOrdinal


class AdapterPods(NamedTuple):
    """Pods of the StatefulSet by ordinal and usable nodes with their zones, whatever the number of replicas. `marked` are ordinals that
    the source marks; `lost` are nodes that pods name and that do not exist, with those pods."""

    pods: Mapping[int, Document]
    zones: Mapping[str, str]
    marked: frozenset[int]
    missing_nodes: Mapping[str, tuple[int, ...]]

    def make_adapter(self, capacity: int, replicas: int, marks: frozenset[int]) -> AdapterStatefulSet:
        """The pods as the scheduler sees them: those that have a place on a usable node and no mark may take new vreplicas."""
        schedulable = {}
        for ordinal, document in self.pods.items():
            node = read_node_name(document)
            if ordinal < replicas and ordinal not in marks and node in self.zones:
                schedulable[ordinal] = Pod(ordinal, node, self.zones[node])
        return AdapterStatefulSet(capacity, replicas, schedulable, self.zones, marks)


def read_adapter_pods(templates: Mapping[Key, Document], adapter: Key) -> AdapterPods:
    """What the documents say about a StatefulSet's pods."""
    pods: dict[int, Document] = {}
    zones: dict[str, str] = {}
    nodes: set[str] = set()
    for key, document in templates.items():
        if key.group or key.kind not in ("Pod", "Node"):
            continue
        if key.kind == "Node":
            nodes.add(key.name)
            if _is_usable_node(document.body):
                zones[key.name] = (
                    as_string_map(get_field(document.body, "metadata", "labels")).get(names.ZONE_LABEL) or names.UNKNOWN_ZONE
                )
        elif key.namespace == adapter.namespace:
            ordinal = names.read_ordinal(key.name, adapter.name)
            if ordinal is not None:
                pods[ordinal] = document
    pods = dict(sorted(pods.items()))
    lost: dict[str, list[int]] = {}
    for ordinal, document in pods.items():
        node = read_node_name(document)
        if node and node not in nodes:
            lost.setdefault(node, []).append(ordinal)
    marked = frozenset(ordinal for ordinal, document in pods.items() if _is_marked(document.body))
    return AdapterPods(pods, dict(sorted(zones.items())), marked, {node: tuple(lost[node]) for node in sorted(lost)})


def read_node_name(pod: Document) -> str:
    """The node that a pod runs on; "" while it has none."""
    node = get_field(pod.body, "spec", "nodeName")
    return node if isinstance(node, str) else ""


def read_replicas(body: Body) -> int:
    """How many pods a StatefulSet is to have; 1 where it does not say."""
    replicas = get_field(body, "spec", "replicas")
    return replicas if type(replicas) is int and replicas >= 0 else 1


def _is_usable_node(node: Body) -> bool:
    if get_field(node, "spec", "unschedulable") is True:
        return False
    taints = get_field(node, "spec", "taints")
    unreachable = (
        taint for taint in map(parse_taint, taints if isinstance(taints, list) else ()) if taint.key == names.UNREACHABLE
    )
    return not any(taint.effect in (NO_SCHEDULE, NO_EXECUTE) for taint in unreachable)


def _is_marked(pod: Body) -> bool:
    return names.is_true(as_string_map(get_field(pod, "metadata", "annotations")).get(names.UNSCHEDULABLE))


CONSUMERS_PATH = ("spec", "consumers")
INT32_LIMIT = 2**31

VreplicaPaths = Mapping[tuple[str, str], tuple[str, ...]]
"""Where a kind of source, by (group, kind), says how many vreplicas it wants."""


def find_source_kinds(config: Config) -> VreplicaPaths:
    """The kinds that are event sources: Kafka's, those that `knative.sources` declares, and Knative's own that `workloads` does."""
    paths: dict[tuple[str, str], tuple[str, ...]] = {(names.GROUP, names.KAFKA): CONSUMERS_PATH}
    for kind in config.workloads:
        group = parse_api_group(kind.api_version)
        if kind.replicas_path and (group == names.DOMAIN or group.endswith(f".{names.DOMAIN}")):
            paths[group, kind.kind] = _split_path(kind.replicas_path)
    for source in config.knative.sources:
        paths[parse_api_group(source.api_version), source.kind] = _split_path(source.replicas_path)
    return paths


def validate_kafka_source(body: Body) -> Iterator[Issue]:
    """What is wrong with a KafkaSource."""
    return validate_source(body, CONSUMERS_PATH)


def validate_source(body: Body, path: tuple[str, ...]) -> Iterator[Issue]:
    """What is wrong with a source that says at a path how many vreplicas it wants."""
    wanted = get_field(body, *path)
    if wanted is not None and (type(wanted) is not int or not 0 <= wanted <= names.MAX_VREPLICAS):
        yield Issue("error", "knative-vreplicas", f"{'.'.join(path)} must be a whole number from 0 to {names.MAX_VREPLICAS}", path)
    placements = get_field(body, "status", "placements")
    if placements is None:
        return
    if not isinstance(placements, list):
        yield Issue("error", "knative-placements", "status.placements must be a list", ("status", "placements"))
        return
    for index, entry in enumerate(placements):
        wrong = _find_placement_error(entry)
        if wrong:
            yield Issue("error", "knative-placements", f"status.placements[{index}] {wrong}", ("status", "placements", index))
            return


def read_desired_vreplicas(body: Body, path: tuple[str, ...]) -> int:
    """How many vreplicas a sound source wants: 1 where it does not say."""
    wanted = get_field(body, *path)
    return 1 if wanted is None else int(wanted)


def read_placements(body: Body, adapter: Key) -> VreplicasByOrdinal:
    """What a status holds on the pods of a StatefulSet, in its order; entries that cannot be read hold nothing."""
    shares: VreplicasByOrdinal = {}
    placements = get_field(body, "status", "placements")
    for entry in placements if isinstance(placements, list) else ():
        if not _find_placement_error(entry):
            ordinal = names.read_ordinal(entry["podName"], adapter.name)
            number = entry.get("vreplicas") or 0
            if ordinal is not None and number > 0:
                shares[ordinal] = shares.get(ordinal, 0) + number
    return shares


def make_placements(shares: VreplicasByOrdinal, adapter: Key) -> list[Body]:
    """Placements as a status holds them."""
    return [{"podName": f"{adapter.name}-{ordinal}", "vreplicas": number} for ordinal, number in shares.items()]


def _find_placement_error(entry: Any) -> str:
    if not isinstance(entry, dict) or not isinstance(entry.get("podName"), str):
        return "must have a podName"
    if names.read_ordinal(entry["podName"]) is None:
        return f"has a podName without an ordinal from 0 to {names.MAX_ORDINAL}: {entry['podName'][:100]!r}"
    number = entry.get("vreplicas")
    if number is not None and (type(number) is not int or not 0 <= number < INT32_LIMIT):
        return "must have vreplicas, a whole number"
    return ""


def _split_path(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split(".") if part)
