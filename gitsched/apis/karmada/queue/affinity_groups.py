"""Groups of workloads that share clusters (affinity) or have clusters of their own (anti-affinity), by a label of their templates.

Source: karmada/pkg/detector/detector.go and pkg/scheduler/framework/plugins (workload affinity).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from itertools import chain
from typing import Final

from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.model.document import Body, Document, Key, as_object, get_text, read_labels
from gitsched.model.scheduling import PeerClusters

_AFFINITY: Final = "affinityGroup"
_ANTI_AFFINITY: Final = "antiAffinityGroup"
_NAMES = {"affinity": _AFFINITY, "antiAffinity": _ANTI_AFFINITY}


def make_affinity_groups(template: Document, policy: PropagationPolicy) -> dict[str, str]:
    """Return spec.workloadAffinityGroups of a binding; {} if its policy has no term, or the template lacks the labels."""
    terms = list_terms(policy) if template.key.namespace else []
    labels = read_labels(template.body) if terms else {}
    return {_NAMES[side]: f"{key}={labels[key]}" for side, key in terms if key in labels}


def list_terms(policy: PropagationPolicy) -> list[tuple[str, str]]:
    """Return the sides of workloadAffinity that a policy sets, each with the key of the label by which it makes groups."""
    terms = as_object(as_object(policy.spec.get("placement")).get("workloadAffinity"))
    return [(side, key) for side in _NAMES if (key := get_text(terms, side, "groupByLabelKey"))]


def list_group_keys(policies: Iterable[PropagationPolicy]) -> frozenset[str]:
    """Return the keys of the labels by which policies make groups."""
    return frozenset(key for policy in policies for _, key in list_terms(policy))


class _Group:
    """The clusters of the members of a group, and how many members each cluster has."""

    __slots__ = ("counts", "members", "placed")

    def __init__(self, members: Mapping[Key, frozenset[str]]) -> None:
        self.members = dict(members)
        self.counts = Counter(chain.from_iterable(members.values()))
        self.placed = sum(map(bool, members.values()))

    def set_clusters(self, member: Key, clusters: frozenset[str]) -> None:
        before = self.members.get(member, frozenset())
        self.members[member] = clusters
        self.counts.update(clusters - before)
        self.counts.subtract(before - clusters)
        self.placed += bool(clusters) - bool(before)

    def find_union(self, member: Key) -> frozenset[str]:
        """Return the clusters that another member has."""
        own = self.members.get(member, frozenset())
        return frozenset(name for name, count in self.counts.items() if count > (name in own))

    def find_intersection(self, member: Key) -> frozenset[str] | None:
        """Return the clusters that all other members have, without those that have none; None if no other has any."""
        own = self.members.get(member, frozenset())
        others = self.placed - bool(own)
        return frozenset(name for name, count in self.counts.items() if count - (name in own) == others) if others else None


GroupId = tuple[str, str, str]
"""The namespace, the side (affinityGroup or antiAffinityGroup) and the text of a group."""


class AffinityGroups:
    """The members of groups, with the clusters of each. Groups are read when they are asked for."""

    def __init__(self, groups_of: Mapping[Key, Mapping[str, str]], find_clusters: Callable[[Key], Iterable[str]]) -> None:
        """`groups_of` are the groups of workloads, `find_clusters` returns the clusters that one has at first."""
        self._groups_of, self._find_clusters = groups_of, find_clusters
        self._members: dict[GroupId, list[Key]] = {}
        for key, groups in groups_of.items():
            for side, text in groups.items():
                self._members.setdefault((key.namespace, side, text), []).append(key)
        self._known: dict[GroupId, _Group] = {}

    def copy(self) -> AffinityGroups:
        """Return groups that may change without these."""
        other = copy(self)
        other._known = {group: _Group(one.members) for group, one in self._known.items()}
        return other

    def set_clusters(self, key: Key, clusters: Iterable[str]) -> None:
        """Set the clusters that a workload has now."""
        names = frozenset(clusters)
        for side, text in self._groups_of.get(key, {}).items():
            self._read((key.namespace, side, text)).set_clusters(key, names)

    def find_peers(self, key: Key) -> PeerClusters | None:
        """Return the clusters that follow from the other members of the groups of a workload; None if it has no group."""
        groups = self._groups_of.get(key)
        if not groups:
            return None
        shared = self._read((key.namespace, _AFFINITY, groups[_AFFINITY])).find_intersection(key) if _AFFINITY in groups else None
        taken = (
            self._read((key.namespace, _ANTI_AFFINITY, groups[_ANTI_AFFINITY])).find_union(key)
            if _ANTI_AFFINITY in groups
            else frozenset[str]()
        )
        return PeerClusters(shared, taken)

    def _read(self, group: GroupId) -> _Group:
        if group not in self._known:
            self._known[group] = _Group({key: frozenset(self._find_clusters(key)) for key in self._members.get(group, ())})
        return self._known[group]


def read_affinity_groups(record: Body) -> dict[str, str]:
    """Return the groups of a binding of the last run."""
    found = as_object(as_object(record.get("spec")).get("workloadAffinityGroups"))
    return {name: str(found[name]) for name in _NAMES.values() if found.get(name)}
