"""Topology of clusters and nodes (zone, region, provider), and how a simulation changes their documents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from gitsched.model.document import as_object, list_objects
from gitsched.model.time import format_time
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.cluster_facts import Readiness
    from gitsched.model.document import Body, Document

CLUSTER, NODE = "cluster", "node"
DRAIN_TAINT: Final = "gitsched.io/drain"
"""The key of the taint of a cluster that is drained, also in a simulation."""


class ClusterLocation(NamedTuple):
    """Location of a cluster (by its name on the output branch) or of a node (as node/NAME); "" and () where it is unknown."""

    name: str
    region: str
    provider: str
    zones: tuple[str, ...]
    level: str = CLUSTER

    def domains(self, by: str) -> tuple[str, ...]:
        """Return its failure domains of one kind: cluster, node, zone, region or provider."""
        match by:
            case "cluster" | "node":
                return (self.name.removeprefix(f"{NODE}/"),) if by == self.level else ()
            case "zone":
                return self.zones
        return tuple(filter(None, (self.region if by == "region" else self.provider,)))


class MaintenanceTaints(NamedTuple):
    """The effects of the taints in spec.taints that let workloads leave a cluster, and that only keep new ones away. `automatic` are the
    keys of taints that a controller adds by itself, `cordon_key` is the key that `gitsched cordon` writes."""

    drain: str
    cordon: str
    automatic: frozenset[str]
    cordon_key: str = "gitsched.io/cordon"

    @property
    def own_keys(self) -> tuple[str, ...]:
        """The keys that `gitsched drain` and `gitsched cordon` write."""
        return DRAIN_TAINT, self.cordon_key

    @staticmethod
    def remove(body: Body, keys: Collection[str]) -> Body:
        """Return the document of a cluster without the taints in spec.taints with one of the keys; the same object if it has none."""
        spec = as_object(body.get("spec"))
        entries = list_objects(spec.get("taints"))
        kept = [entry for entry in entries if entry.get("key") not in keys]
        if len(kept) == len(entries):
            return body
        rest = {name: value for name, value in spec.items() if name != "taints"}
        return {**body, "spec": {**rest, "taints": kept} if kept else rest}

    def mark_drained(self, body: Body, time: datetime) -> Body:
        """Return the document of a cluster that workloads leave unless they tolerate it."""
        return add_taint(body, DRAIN_TAINT, self.drain, format_time(time))


class Topology(NamedTuple):
    """The kind whose documents describe clusters, or nodes of a cluster, and how a simulation changes these documents.

    `mark_lost` returns the document of a cluster that all workloads must leave, or None if the document has to be removed for that.
    `mark_unreachable` returns the document of a cluster that does not respond, as its hub reports it. `copy` returns an empty cluster with
    the same properties and another name. `read_readiness` returns what was observed of a cluster, None if nobody has observed it.
    `taints` are None for an API whose clusters cannot be drained.
    """

    group: str
    kind: str
    read_location: Callable[[Document], ClusterLocation]
    mark_lost: Callable[[Body, datetime], Body | None]
    mark_unreachable: Callable[[Body, datetime], Body]
    copy: Callable[[Body, str], Body]
    read_readiness: Callable[[Body], Readiness | None] = lambda _: None
    taints: MaintenanceTaints | None = None
    read_claims: Callable[[Body], Mapping[str, str]] = lambda _: {}
    """Return the claims of a cluster, which selectors can name besides its labels."""
    level: str = CLUSTER
    replica_paths: Mapping[tuple[str, str], tuple[tuple[str, ...], ...]] = {}
    """Where kinds of workloads have their number of replicas, for simulations that scale them."""
    add_capacity: Callable[[Body, Mapping[str, int]], Body] | None = None
    """Return the document of a cluster that has more of some resources, as schedulers count them; None if it cannot say what it has."""


_cluster_kinds: set[tuple[str, str]] = set()


def add_cluster_kind(topology: Topology) -> None:
    """Add the group and kind of an API's clusters; called by gitsched.decide.registry.register."""
    if topology.level == CLUSTER:
        _cluster_kinds.add((topology.group, topology.kind))


def list_cluster_kinds() -> frozenset[tuple[str, str]]:
    """Return the group and kind of the clusters of every policy API."""
    return frozenset(_cluster_kinds)


def copy_as(body: Body, name: str) -> Body:
    """Return a document with another name, without the metadata that a server sets."""
    kept = {key: value for key, value in (body.get("metadata") or {}).items() if key in ("labels", "annotations", "namespace")}
    return {**body, "metadata": {**kept, "name": name}}


def add_taint(body: Body, key: str, effect: str, since: str) -> Body:
    """Return a document with one more entry in spec.taints."""
    spec = body.get("spec") or {}
    taint = {"key": key, "effect": effect, "timeAdded": since}
    return {**body, "spec": {**spec, "taints": [*(spec.get("taints") or ()), taint]}}


def set_condition(body: Body, kind: str, status: str, time: str) -> Body:
    """Return a document with a condition; it replaces the condition of the same type."""
    old = body.get("status") or {}
    others = [condition for condition in old.get("conditions") or () if condition.get("type") != kind]
    condition = {"type": kind, "status": status, "reason": "Simulated", "lastTransitionTime": time}
    return {**body, "status": {**old, "conditions": [*others, condition]}}


def mark_deleted(body: Body, time: str) -> Body:
    """Return a document whose object has been deleted at a time, and still has finalizers."""
    return {**body, "metadata": {**(body.get("metadata") or {}), "deletionTimestamp": time}}
