"""Observe one cluster: its readiness, version, APIs, nodes and the requests of its pods."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from gitsched.collect.discovery import read_apis
from gitsched.collect.quantization import quantize_amounts, quantize_nodes, settle_readiness
from gitsched.kubectl.proxy import ClusterReader
from gitsched.model.cluster_facts import FALSE, TRUE, ClusterFacts, CollectedCluster, NodeCount, Readiness
from gitsched.model.document import Body, as_object, get_field, list_objects
from gitsched.model.finding import format_count, format_part
from gitsched.model.pod_requests import sum_pod_requests
from gitsched.model.quantity import MAX_AMOUNT, NANO, parse_quantity
from gitsched.named_tuples import NamedTuple

MAX_NODES, MAX_PODS = 20_000, 500_000
"""Objects that are read of one cluster: more than Kubernetes supports."""
MAX_NOTES = 10
"""Notes about single objects of one cluster; the others are counted."""
_RESOURCES = frozenset(("cpu", "memory", "pods", "ephemeral-storage"))
_EXTENDED = re.compile(r"[a-z0-9]([a-z0-9.-]{0,200}[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_MAX_RESOURCES = 100
"""Resources of the nodes of a cluster that are counted; those of its pods are counted only where a node has them."""
_REGION = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_MAX_ZONES = 20
"""Zones of a cluster in its facts, the first by name."""
_VERSION = re.compile(r"v?\d{1,4}\.\d{1,4}[\w.+-]{0,50}", re.ASCII)
_ENDED = "status.phase!=Succeeded,status.phase!=Failed"

Amounts = dict[str, int]
"""Amounts in billionths, by resource."""


class Observation(NamedTuple):
    """A cluster as it was observed, and what was ignored in it."""

    cluster: CollectedCluster
    notes: tuple[str, ...] = ()


class _Notes:
    """Notes about single objects, of which only the first are kept."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._count = 0

    def add(self, text: str) -> None:
        self._count += 1
        if len(self._texts) < MAX_NOTES:
            self._texts.append(text)

    def list_all(self) -> tuple[str, ...]:
        more = self._count - MAX_NOTES
        return (*self._texts, f"{format_count(more, 'more object')} ignored") if more > 0 else tuple(self._texts)


class _Nodes:
    """Sums over the nodes of a cluster. Nodes that are ready and take new pods are `usable`."""

    def __init__(self) -> None:
        self.total = self.ready = 0
        self.capacity: Amounts = {}
        self.allocatable: Amounts = {}
        self.usable: set[str] = set()
        self.has_more_resources = False
        self._names: set[str] = set()
        self.regions: Counter[str] = Counter()
        self.zones: Counter[str] = Counter()
        self.providers: Counter[str] = Counter()

    def add(self, node: Body, notes: _Notes) -> None:
        """Add a node; one with an amount that cannot be is only counted. Of two nodes with the same name the first one counts."""
        name, status, spec = get_field(node, "metadata", "name"), as_object(node.get("status")), as_object(node.get("spec"))
        if isinstance(name, str):
            if name in self._names:
                notes.add(f"the server lists node {name[:253]} twice: the first one counts")
                return
            self._names.add(name)
        self.total += 1
        conditions = list_objects(status.get("conditions"))
        is_ready = any(condition.get("type") == "Ready" and condition.get("status") == TRUE for condition in conditions)
        self.ready += is_ready
        labels = as_object(get_field(node, "metadata", "labels"))
        for counter, names in ((self.regions, _REGION), (self.zones, _ZONE)):
            value = next((labels[label] for label in names if isinstance(labels.get(label), str)), "")
            if value:
                counter[value[:63]] += 1
        provider = str(spec.get("providerID") or "").partition(":")[0]
        if re.fullmatch(r"[a-z0-9-]{1,40}", provider):
            self.providers[provider] += 1
        try:
            capacity, allocatable = (self._read_amounts(status.get(member), member) for member in ("capacity", "allocatable"))
        except _InvalidAmountError as error:
            notes.add(f"the resources of node {str(name)[:253]} are not counted: {error}")
            return
        self._add_to(self.capacity, capacity)
        if is_ready and spec.get("unschedulable") is not True and isinstance(name, str):
            self.usable.add(name)
            self._add_to(self.allocatable, allocatable)

    def _read_amounts(self, amounts: Any, member: str) -> Amounts:
        wanted = [name for name in as_object(amounts) if name in _RESOURCES or _EXTENDED.fullmatch(name)]
        wanted.sort(key=lambda name: (name not in _RESOURCES, name))
        self.has_more_resources |= len(wanted) > _MAX_RESOURCES
        return _read_amounts(amounts, member, wanted[:_MAX_RESOURCES])

    def _add_to(self, total: Amounts, amounts: Amounts) -> None:
        known = {name: amount for name, amount in amounts.items() if name in total or len(total) < _MAX_RESOURCES}
        self.has_more_resources |= len(known) < len(amounts)
        _add_to(total, known)


class _InvalidAmountError(ValueError):
    """An amount is no quantity, negative or too large."""


def _read_version(reader: ClusterReader, before: ClusterFacts | None, notes: _Notes) -> str:
    version = reader.get("/version").get("gitVersion")
    if isinstance(version, str) and _VERSION.fullmatch(version):
        return version
    notes.add(f"the version is ignored: {version!r:.60} is not a version such as v1.34.1")
    return before.version if before is not None else ""


def _read_nodes(reader: ClusterReader, notes: _Notes) -> _Nodes:
    nodes = _Nodes()
    for node in reader.list_objects("/api/v1/nodes", limit=MAX_NODES):
        nodes.add(node, notes)
    if nodes.has_more_resources:
        notes.add(f"the nodes have more than {_MAX_RESOURCES} resources: the facts have only {_MAX_RESOURCES} of them")
    return nodes


def observe_cluster(
    reader: ClusterReader, name: str, before: ClusterFacts | None, observed: datetime, *, own: CollectedCluster | None = None
) -> Observation:
    """Observe a cluster. `before` are the last facts, from which small differences do not count; `own` is what its source says of it.

    Raises Permanent or Temporary if a part cannot be read: facts without their allocated resources would promise too much room.
    """
    notes = _Notes()
    version = _read_version(reader, before, notes)
    is_serving = reader.request("/readyz", "text/plain").status
    nodes = _read_nodes(reader, notes)
    if len(nodes.zones) > _MAX_ZONES and not (own and own.zones):
        notes.add(f"the nodes are in {len(nodes.zones)} zones: the facts have only the first {_MAX_ZONES} by name")
    wanted = _RESOURCES | nodes.allocatable.keys()
    allocated: Amounts = {"cpu": 0, "memory": 0, "pods": 0}
    for pod in reader.list_objects("/api/v1/pods", limit=MAX_PODS, fieldSelector=_ENDED):
        _add_pod(allocated, pod, nodes.usable, wanted, notes)
    counts = quantize_nodes(NodeCount(nodes.total, nodes.ready), before.nodes if before else None)
    steady = before if before is not None and before.nodes == counts else None  # other nodes have other resources
    facts = ClusterFacts(
        name,
        observed,
        settle_readiness(_decide_readiness(is_serving, nodes), before.readiness if before else None, observed),
        version,
        read_apis(reader, before.apis if before else {}, notes.add),
        quantize_amounts(nodes.capacity, steady.capacity if steady else None, up=False),
        quantize_amounts(nodes.allocatable, steady.allocatable if steady else None, up=False),
        quantize_amounts(allocated, before.allocated if before else None, up=True),
        counts,
    )
    found = own or CollectedCluster(facts)
    return Observation(
        found._replace(
            facts=facts,
            region=found.region or _find_most_common(nodes.regions),
            provider=found.provider or _find_most_common(nodes.providers),
            zones=found.zones or tuple(sorted(nodes.zones)[:_MAX_ZONES]),
        ),
        notes.list_all(),
    )


def _decide_readiness(status: int, nodes: _Nodes) -> Readiness:
    """Return whether a cluster is ready: its API server says so, and a node is ready, if there are any."""
    if status != HTTPStatus.OK:
        return Readiness(FALSE, "APIServerNotReady", f"the API server answers /readyz with {status}")
    if nodes.total and not nodes.ready:
        return Readiness(FALSE, "NodesNotReady", f"{format_part(0, nodes.total, 'node')} are ready")
    return Readiness(TRUE, "ClusterReady", "the API server and at least one node are ready" if nodes.total else "")


def _find_most_common(counter: Counter[str]) -> str:
    return min(counter, key=lambda name: (-counter[name], name), default="")


def _read_amounts(amounts: Any, member: str, wanted: Iterable[str]) -> Amounts:
    """Return the amounts of these resources, as far as there are any. Raises _InvalidAmountError."""
    found: Amounts = {}
    known = as_object(amounts)
    for resource in wanted:
        if resource not in known:
            continue
        text = known[resource]
        quantity = parse_quantity(text)
        if quantity is None or not 0 <= quantity.nano <= MAX_AMOUNT * NANO:
            raise _InvalidAmountError(f"{member}.{resource} is {text!r:.60}")
        if quantity.nano or resource in _RESOURCES:
            found[resource] = quantity.nano
    return found


def _add_to(total: Amounts, amounts: Mapping[str, int]) -> None:
    for resource, amount in amounts.items():
        total[resource] = min(total.get(resource, 0) + amount, MAX_AMOUNT * NANO)


def _add_pod(total: Amounts, pod: Body, usable: set[str], wanted: Collection[str], notes: _Notes) -> None:
    """Add the requests of a pod that runs on a usable node, or waits for a node."""
    spec = as_object(pod.get("spec"))
    node = spec.get("nodeName")
    if node and not (isinstance(node, str) and node in usable):
        return

    def read(container: Body) -> Amounts:
        return _read_amounts(get_field(container, "resources", "requests"), "requests", wanted)

    try:
        requests = sum_pod_requests(spec, read, _read_amounts(spec.get("overhead"), "overhead", wanted))
    except _InvalidAmountError as error:
        namespace, name = (str(get_field(pod, "metadata", member))[:253] for member in ("namespace", "name"))
        notes.add(f"the requests of pod {namespace}/{name} are not counted: {error}")
        requests = {}
    _add_to(total, {**requests, "pods": NANO})
