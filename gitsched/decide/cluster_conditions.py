"""Read from the documents of clusters what was observed of them, and which taints of people let workloads leave them or keep new ones
away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.topology import CLUSTER, Topology
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Document, get_field, list_objects
from gitsched.model.finding import locate_field
from gitsched.model.taints import ClusterTaint, parse_taint
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.decide.catalog import Catalog
    from gitsched.model.cluster_facts import Readiness


class ClusterCondition(NamedTuple):
    """What the documents of a cluster say about it. `readiness` is None if nobody has observed it."""

    readiness: Readiness | None
    taints: tuple[ClusterTaint, ...]


NO_CONDITION = ClusterCondition(None, ())
"""The condition of a cluster without a valid document."""


def index_cluster_kinds() -> dict[tuple[str, str], Topology]:
    """Return the topology of each kind that describes clusters, by group and kind."""
    found = (api.topology for api in policy_apis.values() if api.topology is not None and api.topology.level == CLUSTER)
    return {(topology.group, topology.kind): topology for topology in found}


def read_cluster_conditions(catalog: Catalog) -> Mapping[str, ClusterCondition]:
    """Return the condition of each cluster with a valid document, by name. Several APIs may describe the same cluster."""
    conditions: dict[str, ClusterCondition] = {}
    for kind, topology in index_cluster_kinds().items():
        for document in catalog.api_documents.get(kind, ()):
            name = topology.read_location(document).name
            known = conditions.get(name, NO_CONDITION)
            readiness = known.readiness or topology.read_readiness(document.body)
            conditions[name] = ClusterCondition(readiness, (*known.taints, *list_cluster_taints(topology, document)))
    return conditions


def is_available(topology: Topology, document: Document) -> bool:
    """Return whether a document does not say that its cluster is not ready, is being deleted, or has a taint because of which workloads
    leave it."""
    readiness, drain = topology.read_readiness(document.body), topology.taints.drain if topology.taints is not None else None
    if (readiness is not None and readiness.status != "True") or get_field(document.body, "metadata", "deletionTimestamp"):
        return False
    taints = map(parse_taint, list_objects(get_field(document.body, "spec", "taints")))
    return drain is None or all(taint.effect != drain for taint in taints)


def list_cluster_taints(topology: Topology, document: Document) -> Iterator[ClusterTaint]:
    """Yield the taints of a cluster that people have set and that keep workloads away."""
    effects = topology.taints
    if effects is None:
        return
    for index, entry in enumerate(list_objects(get_field(document.body, "spec", "taints"))):
        taint = parse_taint(entry)
        if taint.effect not in (effects.drain, effects.cordon) or taint.key in effects.automatic:
            continue
        field = locate_field(document.origin, ("spec", "taints", index))
        yield ClusterTaint(taint, taint.effect == effects.drain, field, cordons=taint.key == effects.cordon_key)
