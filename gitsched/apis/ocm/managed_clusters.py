"""ManagedClusters as scheduling candidates, ManagedClusterSets with their members, and the clusters a Placement may choose from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from gitsched.apis.ocm.availability import AvailabilityTaint, add_availability_taint, derive_availability_taint
from gitsched.apis.ocm.names import CLUSTER_SET, CLUSTER_SET_BINDING, GROUP, SET_LABEL
from gitsched.apis.ocm.placement import OcmPlacement, parse_label_selector, select_label
from gitsched.model.document import Body, Document, Key, get_field, read_labels
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.taints import parse_taint
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Candidate, Fleet

_REGION_CLAIM, _PLATFORM_CLAIM = "region.open-cluster-management.io", "platform.open-cluster-management.io"
"""Claims that Open Cluster Management's agent reports."""


class ManagedClusters(NamedTuple):
    """The ManagedClusters as a fleet, as `bodies` by candidate index, as `facts` for reports by name, and those with an added taint by
    name. The bodies have the added taints."""

    fleet: Fleet
    bodies: tuple[Body, ...]
    facts: Mapping[str, ClusterInfo]
    tainted: Mapping[str, tuple[Document, AvailabilityTaint]]


def read_managed_clusters(documents: Iterable[Document], previous: Mapping[Key, Body], time: datetime) -> ManagedClusters:
    """Read all ManagedClusters. The condition for availability adds a taint; as upstream, no other condition is read.

    `previous` are the records of the last run, and `time` is that of the source.
    """
    facts: dict[str, ClusterInfo] = {}
    candidates: list[Candidate] = []
    bodies: list[Body] = []
    tainted: dict[str, tuple[Document, AvailabilityTaint]] = {}
    for document in sorted(documents, key=lambda document: document.key.name):
        name, body = document.key.name, document.body
        added = derive_availability_taint(body, previous.get(document.key), time)
        if added is not None:
            tainted[name], body = (document, added), add_availability_taint(body, added)
        labels, claims = read_labels(body), read_claims(body)
        facts[name] = ClusterInfo(name, labels, claims.get(_REGION_CLAIM, ""), claims.get(_PLATFORM_CLAIM, ""))
        candidates.append(
            Candidate(
                name,
                labels,
                {claim: (value,) for claim, value in claims.items()},
                tuple(parse_taint(taint) for taint in get_field(body, "spec", "taints") or ()),
                deleting=bool(body["metadata"].get("deletionTimestamp")),
            )
        )
        bodies.append(body)
    return ManagedClusters(Fleet(candidates), tuple(bodies), facts, tainted)


def read_claims(body: Body) -> dict[str, str]:
    """Return clusterClaims by name; of claims with the same name, the last. Upstream requires neither name nor value."""
    return {claim.get("name", ""): claim.get("value", "") for claim in get_field(body, "status", "clusterClaims") or ()}


def select_set_members(document: Document, fleet: Fleet) -> int | str:
    """Return the members of a ManagedClusterSet as a mask of candidates; a string says why its selector is invalid."""
    selector = get_field(document.body, "spec", "clusterSelector") or {}
    selector_type = selector.get("selectorType") or "ExclusiveClusterSetLabel"
    if selector_type == "ExclusiveClusterSetLabel":
        return fleet.matching(select_label(SET_LABEL, document.key.name))
    labels = selector.get("labelSelector")
    if labels is None:
        return 0
    affinity = parse_label_selector(labels)
    return affinity if isinstance(affinity, str) else fleet.matching(affinity)


class EligibleClusters(NamedTuple):
    """The clusters that a Placement may choose from: sets that exist and are bound to its namespace, those of them that it lists, and their
    members as a mask of candidates. `absent_sets` are bound and have no document, or are one of the `broken_sets`, which have errors, as
    `broken_bindings` have."""

    bound_sets: tuple[str, ...]
    eligible_sets: tuple[str, ...]
    clusters: int
    absent_sets: tuple[str, ...] = ()
    broken_sets: frozenset[str] = frozenset()
    broken_bindings: tuple[str, ...] = ()


class ClusterSets:
    """The ManagedClusterSets of a fleet and their bindings to namespaces."""

    __slots__ = ("_absent_sets", "_bound_sets", "_broken_bindings", "_broken_sets", "_fleet", "_members", "sets")

    def __init__(self, sets: Iterable[Document], bindings: Iterable[Document], fleet: Fleet, broken: Iterable[Key] = ()) -> None:
        self.sets = {document.key.name: document for document in sets}
        self._fleet = fleet
        self._members = {name: select_set_members(document, fleet) for name, document in self.sets.items()}
        self._bound_sets: dict[str, list[str]] = {}
        self._absent_sets: dict[str, list[str]] = {}
        for binding in bindings:
            found = self._bound_sets if binding.key.name in self.sets else self._absent_sets
            found.setdefault(binding.key.namespace, []).append(binding.key.name)
        own = sorted(key for key in broken if key.group == GROUP)
        self._broken_sets = frozenset(key.name for key in own if key.kind == CLUSTER_SET)
        self._broken_bindings = [key for key in own if key.kind == CLUSTER_SET_BINDING]

    def find_eligible_clusters(self, placement: OcmPlacement) -> EligibleClusters | tuple[Document, str]:
        """Return the clusters that a Placement may choose from, or the cluster set that is invalid and why."""
        bound = tuple(sorted(self._bound_sets.get(placement.key.namespace, ())))
        eligible = tuple(name for name in bound if not placement.cluster_sets or name in placement.cluster_sets)
        available = 0
        for name in eligible:
            members = self._members[name]
            if isinstance(members, str):
                return self.sets[name], members
            available |= members
        absent = tuple(sorted(self._absent_sets.get(placement.key.namespace, ())))
        broken = tuple(key.name for key in self._broken_bindings if key.namespace == placement.key.namespace)
        return EligibleClusters(bound, eligible, available & ~self._fleet.deleting, absent, self._broken_sets, broken)

    def list_sets_of(self, index: int) -> list[str]:
        """Return the names of the sets that contain a cluster."""
        return [name for name, members in sorted(self._members.items()) if not isinstance(members, str) and members >> index & 1]
