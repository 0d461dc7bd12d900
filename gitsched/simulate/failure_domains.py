"""Failure domains: the clusters and nodes of a catalog, and which of them are gone when a zone, region or provider is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gitsched.apis.topology import CLUSTER, NODE, ClusterLocation, Topology
from gitsched.decide.catalog import Catalog
from gitsched.decide.registry import policy_apis, reserved_groups
from gitsched.model.document import Document, Key
from gitsched.model.simulation import FAILURE_DOMAIN_KINDS, FailureDomain
from gitsched.named_tuples import NamedTuple


def list_topologies() -> dict[tuple[str, str], Topology]:
    """Return how the APIs describe clusters and nodes, by group and kind."""
    return {(api.topology.group, api.topology.kind): api.topology for api in policy_apis.values() if api.topology is not None}


ClusterIndex = Mapping[str, list[tuple[Topology, Document, ClusterLocation]]]
"""The documents of each cluster or node, by its name; several APIs may have a document of the same cluster."""


def index_clusters(catalog: Catalog, unit: str = CLUSTER) -> ClusterIndex:
    """Return all clusters, or all nodes, by name, including those with broken documents."""
    found: dict[str, list[tuple[Topology, Document, ClusterLocation]]] = {}
    for kind, topology in list_topologies().items():
        if topology.level != unit:
            continue
        valid = catalog.api_documents.get(kind, ()) if kind[0] in reserved_groups else _list_kind(catalog.templates, kind)
        for document in (*valid, *_list_kind(catalog.broken, kind)):
            location = topology.read_location(document)
            found.setdefault(location.name, []).append((topology, document, location))
    return dict(sorted(found.items()))


def _list_kind(documents: Mapping[Key, Document], kind: tuple[str, str]) -> list[Document]:
    return [document for key, document in sorted(documents.items()) if (key.group, key.kind) == kind]


def index_clusters_and_nodes(catalog: Catalog, nodes: bool) -> ClusterIndex:
    """Return all clusters, and all nodes if `nodes` is true, because pods inside a cluster have placements."""
    return {**index_clusters(catalog), **(index_clusters(catalog, NODE) if nodes else {})}


class AffectedClusters(NamedTuple):
    """The sorted names of the clusters that are gone, and of those that are also in other failure domains, so that they remain."""

    names: tuple[str, ...]
    partly: tuple[str, ...]


class DomainIndex:
    """Which clusters, or nodes, are gone when failure domains are lost: those of which all domains of a kind are lost."""

    def __init__(self, clusters: ClusterIndex) -> None:
        self.clusters = clusters
        self._members: dict[FailureDomain, list[str]] = {}
        self._domains: dict[tuple[str, str], frozenset[str]] = {}
        for name, entries in clusters.items():
            for kind in FAILURE_DOMAIN_KINDS:
                names = frozenset(value for _, _, location in entries for value in location.domains(kind))
                self._domains[kind, name] = names
                for value in names:
                    self._members.setdefault(FailureDomain(kind, value), []).append(name)

    def __contains__(self, domain: FailureDomain) -> bool:
        return domain in self._members

    def list_names(self, kind: str) -> list[str]:
        """Return the sorted names of the failure domains of a kind."""
        return sorted(domain.name for domain in self._members if domain.kind == kind)

    def find_lost(self, domains: Sequence[FailureDomain]) -> AffectedClusters:
        """Return the clusters that are gone."""
        names: dict[str, set[str]] = {}
        for domain in domains:
            names.setdefault(domain.kind, set()).add(domain.name)
        members = [(domain.kind, member) for domain in domains for member in self._members[domain]]
        lost = {member for kind, member in members if self._domains[kind, member] <= names[kind]}
        return AffectedClusters(tuple(sorted(lost)), tuple(sorted({member for _, member in members} - lost)))
