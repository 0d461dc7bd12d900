"""Groups of workloads that share clusters (affinity) or have clusters of their own (anti-affinity), by a label of their templates.

Source: karmada/pkg/detector/detector.go and pkg/scheduler/framework/plugins (workload affinity).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.model.document import Body, Document, Key, as_object, get_text, read_labels
from gitsched.model.scheduling import PeerClusters

_AFFINITY: Final = "affinityGroup"
_ANTI_AFFINITY: Final = "antiAffinityGroup"
_SIDES = (("affinity", _AFFINITY), ("antiAffinity", _ANTI_AFFINITY))


def make_affinity_groups(template: Document, policy: PropagationPolicy) -> dict[str, str]:
    """Return spec.workloadAffinityGroups of a binding; {} if its policy has no term, or the template lacks the labels."""
    terms = as_object(as_object(policy.spec.get("placement")).get("workloadAffinity"))
    if not terms or not template.key.namespace:
        return {}
    labels = read_labels(template.body)
    keys = ((name, get_text(terms, side, "groupByLabelKey")) for side, name in _SIDES)
    return {name: f"{key}={labels[key]}" for name, key in keys if key in labels}


class AffinityGroups:
    """The members of all groups, with the clusters of each."""

    def __init__(self) -> None:
        self._groups: dict[Key, dict[str, str]] = {}
        self._members: dict[tuple[str, str, str], dict[Key, frozenset[str]]] = {}

    def add(self, binding: Key, groups: dict[str, str], clusters: Iterable[str]) -> None:
        """Add a binding to its groups, or set the clusters that it has now."""
        self._groups[binding] = groups
        for side, group in groups.items():
            self._members.setdefault((binding.namespace, side, group), {})[binding] = frozenset(clusters)

    def find_groups(self, binding: Key) -> dict[str, str]:
        """Return the groups of a binding, as it has them in spec.workloadAffinityGroups."""
        return self._groups.get(binding, {})

    def find_peers(self, binding: Key) -> PeerClusters | None:
        """Return the clusters that follow from the other members of the groups of a binding; None if it has no group."""
        if not self.find_groups(binding):
            return None
        shared = [names for names in self._list_others(binding, _AFFINITY) if names]
        taken = self._list_others(binding, _ANTI_AFFINITY)
        return PeerClusters(reduce(frozenset.__and__, shared) if shared else None, frozenset[str]().union(*taken))

    def _list_others(self, binding: Key, side: str) -> list[frozenset[str]]:
        group = self.find_groups(binding).get(side, "")
        members = self._members.get((binding.namespace, side, group), {})
        return [names for key, names in members.items() if key != binding]


def read_affinity_groups(record: Body) -> dict[str, str]:
    """Return the groups of a binding of the last run."""
    found = as_object(as_object(record.get("spec")).get("workloadAffinityGroups"))
    return {name: str(found[name]) for _, name in _SIDES if found.get(name)}
