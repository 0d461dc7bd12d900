"""The managed clusters of a commit as candidates, and the sets that they are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gitsched.apis.ocm.names import SET_LABEL
from gitsched.apis.ocm.selectors import having_label, parse_labels
from gitsched.model.cluster import ClusterFacts
from gitsched.model.document import Body, Document, member, text_map
from gitsched.model.taints import parse_taint
from gitsched.schedule.fleet import Candidate, Fleet

_REGION, _PLATFORM = "region.open-cluster-management.io", "platform.open-cluster-management.io"
"""Claims that Open Cluster Management's agent makes."""


class Clusters(NamedTuple):
    """`bodies` are the ManagedClusters by candidate."""

    fleet: Fleet
    bodies: tuple[Body, ...]
    facts: Mapping[str, ClusterFacts]


def read_clusters(documents: Iterable[Document]) -> Clusters:
    """Every ManagedCluster: accepted, joined and available or not, as upstream does not ask either."""
    ordered = sorted(documents, key=lambda document: document.key.name)
    facts = {}
    candidates = []
    for document in ordered:
        name, labels, claims = document.key.name, text_map(member(document.body, "metadata", "labels")), read_claims(document.body)
        facts[name] = ClusterFacts(name, labels, claims.get(_REGION, ""), claims.get(_PLATFORM, ""))
        candidates.append(
            Candidate(
                name,
                labels,
                {claim: (value,) for claim, value in claims.items()},
                tuple(parse_taint(taint) for taint in member(document.body, "spec", "taints") or ()),
                leaving=bool(document.body["metadata"].get("deletionTimestamp")),
            )
        )
    return Clusters(Fleet(candidates), tuple(document.body for document in ordered), facts)


def read_claims(body: Body) -> dict[str, str]:
    """A cluster's claims; the last one of a name counts. Upstream requires neither name nor value."""
    return {claim.get("name", ""): claim.get("value", "") for claim in member(body, "status", "clusterClaims") or ()}


def set_members(document: Document, fleet: Fleet) -> int | str:
    """The candidates of a ManagedClusterSet, or why its selector cannot be used."""
    selector = member(document.body, "spec", "clusterSelector") or {}
    kind = selector.get("selectorType") or "ExclusiveClusterSetLabel"
    if kind == "ExclusiveClusterSetLabel":
        return fleet.matching(having_label(SET_LABEL, document.key.name))
    labels = selector.get("labelSelector")
    if labels is None:
        return 0
    affinity = parse_labels(labels)
    return affinity if isinstance(affinity, str) else fleet.matching(affinity)
