"""ManagedClusters as scheduling candidates, and the members of each ManagedClusterSet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gitsched.apis.ocm.names import SET_LABEL
from gitsched.apis.ocm.placement import parse_label_selector, select_label
from gitsched.model.document import Body, Document, as_string_map, get_field
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.taints import parse_taint
from gitsched.schedule.fleet import Candidate, Fleet

_REGION_CLAIM, _PLATFORM_CLAIM = "region.open-cluster-management.io", "platform.open-cluster-management.io"
"""Claims that Open Cluster Management's agent makes."""


class ManagedClusters(NamedTuple):
    """`bodies` are the ManagedClusters by candidate."""

    fleet: Fleet
    bodies: tuple[Body, ...]
    facts: Mapping[str, ClusterInfo]


def read_managed_clusters(documents: Iterable[Document]) -> ManagedClusters:
    """Every ManagedCluster: accepted, joined and available or not, as upstream does not ask either."""
    ordered = sorted(documents, key=lambda document: document.key.name)
    facts = {}
    candidates = []
    for document in ordered:
        name, labels, claims = (
            document.key.name,
            as_string_map(get_field(document.body, "metadata", "labels")),
            read_claims(document.body),
        )
        facts[name] = ClusterInfo(name, labels, claims.get(_REGION_CLAIM, ""), claims.get(_PLATFORM_CLAIM, ""))
        candidates.append(
            Candidate(
                name,
                labels,
                {claim: (value,) for claim, value in claims.items()},
                tuple(parse_taint(taint) for taint in get_field(document.body, "spec", "taints") or ()),
                deleting=bool(document.body["metadata"].get("deletionTimestamp")),
            )
        )
    return ManagedClusters(Fleet(candidates), tuple(document.body for document in ordered), facts)


def read_claims(body: Body) -> dict[str, str]:
    """A cluster's claims; the last one of a name counts. Upstream requires neither name nor value."""
    return {claim.get("name", ""): claim.get("value", "") for claim in get_field(body, "status", "clusterClaims") or ()}


def select_set_members(document: Document, fleet: Fleet) -> int | str:
    """The candidates of a ManagedClusterSet, or why its selector cannot be used."""
    selector = get_field(document.body, "spec", "clusterSelector") or {}
    kind = selector.get("selectorType") or "ExclusiveClusterSetLabel"
    if kind == "ExclusiveClusterSetLabel":
        return fleet.matching(select_label(SET_LABEL, document.key.name))
    labels = selector.get("labelSelector")
    if labels is None:
        return 0
    affinity = parse_label_selector(labels)
    return affinity if isinstance(affinity, str) else fleet.matching(affinity)
