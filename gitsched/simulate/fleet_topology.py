"""Read the topology of a fleet from a plan: the location, the availability and the resources of each cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gitsched.apis.policy_api import PolicyEngine
from gitsched.decide.capacity.cluster_use import RESOURCES, list_cluster_use
from gitsched.decide.catalog import Catalog
from gitsched.decide.cluster_conditions import list_cluster_taints
from gitsched.decide.engines import collect_unavailable_clusters
from gitsched.decide.incremental.plan_state import Totals
from gitsched.decide.registry import load_cluster_formats
from gitsched.model.changes import Move
from gitsched.model.cluster_facts import ClusterFacts
from gitsched.model.document import Document, Key
from gitsched.model.fleet_topology import ClusterSite, ResourceUse
from gitsched.model.quantity import count_quantity, parse_quantity
from gitsched.model.scheduling import Outcome, count_copies
from gitsched.model.time import EPOCH
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.baseline import count_units, list_capacity_reporters
from gitsched.simulate.failure_domains import index_clusters


class TopologyInput(NamedTuple):
    """What a topology is read from: a catalog with the documents of clusters, the engines that read them, the totals of the plan, and its
    moves, which change the requests in their clusters. `outcomes` and `templates` are those of the moved workloads, or of more."""

    catalog: Catalog
    engines: Sequence[PolicyEngine]
    totals: Totals
    moves: Sequence[Move]
    outcomes: Mapping[Key, Outcome]
    templates: Mapping[Key, Document]


def read_topology(source: TopologyInput) -> dict[str, ClusterSite]:
    """Return the site of each cluster with a document."""
    used = list_cluster_use(source.engines, source.totals, source.moves, source.outcomes, source.templates)
    changes = count_requests(source.engines, source.moves, source.outcomes, source.templates) if not used else {}
    return make_sites(source.catalog, source.engines, used, changes)


def make_sites(
    catalog: Catalog,
    engines: Iterable[PolicyEngine],
    used: Mapping[str, tuple[ResourceUse, ...]],
    changes: Mapping[str, Mapping[str, int]],
) -> dict[str, ClusterSite]:
    """Return the site of each cluster with a document. What is `used` of a cluster is known where placed workloads count; for the others,
    `changes` are what moves add to the requests."""
    unavailable, sites = collect_unavailable_clusters(engines), {}
    for name, entries in index_clusters(catalog).items():
        locations = [location for _, _, location in entries]
        taints = [taint for topology, document, _ in entries for taint in list_cluster_taints(topology, document) if taint.evicts]
        reason = unavailable.get(name, "")
        sites[name] = ClusterSite(
            name,
            next((location.region for location in locations if location.region), ""),
            next((location.provider for location in locations if location.provider), ""),
            next((location.zones for location in locations if location.zones), ()),
            reason,
            used.get(name) or tuple(_list_resources((document for _, document, _ in entries), changes.get(name, {}))),
            any(str(one.taint) in reason for one in taints),
        )
    return sites


def count_requests(
    engines: Iterable[PolicyEngine], moves: Iterable[Move], outcomes: Mapping[Key, Outcome], templates: Mapping[Key, Document]
) -> dict[str, dict[str, int]]:
    """Return what moves add to the requests in each cluster, by resource, where placed workloads do not count."""
    reporters = list_capacity_reporters(engines)
    changes: dict[str, dict[str, int]] = {}
    for move in moves:
        outcome, template = outcomes.get(move.key), templates.get(move.key)
        engine = reporters.get(outcome.api) if outcome is not None else None
        if outcome is None or engine is None or template is None:
            continue
        for cluster in move.before.keys() | move.after.keys():
            before, after = (count_units(outcome, part) for part in (move.before, move.after))
            added = count_copies(after, cluster) - count_copies(before, cluster)
            amounts = changes.setdefault(cluster, {})
            for resource, amount in engine.resource_request(template, cluster) if added else ():
                amounts[resource] = amounts.get(resource, 0) + amount * added
    return changes


def _list_resources(documents: Iterable[Document], changes: Mapping[str, int]) -> Iterator[ResourceUse]:
    """Yield the resources that the first document with a report has."""
    facts = next((facts for facts in map(_read_facts, documents) if facts is not None and facts.allocatable), None)
    if facts is None:
        return
    for resource in RESOURCES:
        allocatable = _count(resource, facts.allocatable)
        if allocatable > 0:
            used = None if facts.allocated is None else _count(resource, facts.allocated)
            yield ResourceUse(resource, allocatable, used, changes.get(resource, 0))


def _read_facts(document: Document) -> ClusterFacts | None:
    for cluster_format in load_cluster_formats().values():
        if (cluster_format.group, cluster_format.kind) == (document.key.group, document.key.kind) and cluster_format.hub:
            return cluster_format.hub.read(document.body, EPOCH).facts
    return None


def _count(resource: str, amounts: Mapping[str, object]) -> int:
    quantity = parse_quantity(amounts.get(resource))
    return count_quantity(resource, quantity) if quantity is not None else 0
