"""What policies learn about changed Clusters, before and after the change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from gitsched.apis.karmada.cluster.taints import UnreadyCluster
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.model.scheduling import Affinity
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint
from gitsched.schedule.estimator import Capacity
from gitsched.schedule.fleet import Candidate, Fleet

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState

CAPACITY_DIVISIONS = ("dynamic", "aggregated")


def list_changed_clusters(before: KarmadaState, after: KarmadaState) -> frozenset[str]:
    """Return the Clusters of which a decision can read something else than before."""
    former, present = (_Facts.of(state) for state in (before, after))
    return frozenset(name for name in former.keys() | present.keys() if former.get(name) != present.get(name))


class _Facts(NamedTuple):
    """What decisions read of one Cluster."""

    candidate: Candidate
    allocatable: Capacity | None
    unready: UnreadyCluster | None

    @staticmethod
    def of(state: KarmadaState) -> dict[str, _Facts]:
        """Return the facts of every Cluster."""
        allocatable, unready = state.inventory.allocatable, state.unready_clusters
        return {
            candidate.name: _Facts(candidate, allocatable.get(candidate.name), unready.get(candidate.name))
            for candidate in state.fleet.candidates
        }


class ClusterAnswer(NamedTuple):
    """What a policy learns about one Cluster. `groups` says for each affinity group which of its affinities match, and `weights` for each
    static weight. `taints` are those that it does not tolerate without a limit; with one of them that it does not tolerate at all, the
    cluster `is_tainted`. `fields` are the values that it spreads over."""

    groups: tuple[tuple[bool, ...], ...]
    weights: tuple[bool, ...]
    taints: tuple[Taint, ...]
    is_tainted: bool
    fields: tuple[tuple[str, ...], ...]
    is_deleting: bool
    is_frozen: bool
    capacity: Capacity | None
    allocatable: Capacity | None
    unready: UnreadyCluster | None

    def is_eligible(self, group: int) -> bool:
        """Return whether the cluster may pass the filters of a group, for a workload that is not there."""
        return any(self.groups[group]) and not self.is_tainted and not self.is_deleting and not self.is_frozen and all(self.fields)

    def without_filters(self) -> ClusterAnswer:
        """Return the answer without the taints that only keep further workloads away."""
        return self._replace(taints=tuple(taint for taint in self.taints if taint.effect == NO_EXECUTE), is_tainted=False)


ClusterAnswers = Mapping[str, tuple["ClusterAnswer | None", "ClusterAnswer | None"]]
"""The answers about each changed Cluster, before and now; None where it does not exist."""


class FleetSide:
    """The changed Clusters before or after the change."""

    def __init__(self, state: KarmadaState, changed: frozenset[str]) -> None:
        self._facts = {name: facts for name, facts in _Facts.of(state).items() if name in changed}
        self._fleet = Fleet(facts.candidate for facts in self._facts.values())

    def find_candidate(self, name: str) -> Candidate | None:
        """Return a Cluster; None if it does not exist."""
        facts = self._facts.get(name)
        return facts.candidate if facts is not None else None

    def answer(self, policy: PropagationPolicy, name: str) -> ClusterAnswer | None:
        """Return what a policy learns about a Cluster; None if it does not exist."""
        facts = self._facts.get(name)
        if facts is None:
            return None
        candidate, placement = facts.candidate, policy.placement
        effective = [taint for taint in candidate.taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)]
        tolerating = [[one for one in placement.tolerations if one.tolerates(taint)] for taint in effective]
        unlimited = [any(one.seconds is None for one in found) for found in tolerating]
        return ClusterAnswer(
            tuple(
                tuple(self.matches(affinity, name) for affinity in (group.affinity, *group.overflow)) for group in placement.groups
            ),
            tuple(self.matches(weight.affinity, name) for weight in placement.weights),
            tuple(taint for taint, tolerated in zip(effective, unlimited, strict=True) if not tolerated),
            not all(tolerating),
            tuple(candidate.fields.get(field, ()) for field in placement.spread_fields),
            candidate.deleting,
            candidate.frozen,
            candidate.capacity,
            facts.allocatable,
            facts.unready,
        )

    def matches(self, affinity: Affinity | None, name: str) -> bool:
        """Return whether an affinity, or None for all clusters, matches a Cluster that exists."""
        return affinity is None or bool(self._fleet.matching(affinity) >> self._fleet.index[name] & 1)


def ranks_otherwise(policy: PropagationPolicy, answers: tuple[ClusterAnswer | None, ClusterAnswer | None], group: int) -> bool:
    """Return whether a Cluster that was and is eligible may be chosen otherwise than before, or with other replicas."""
    placement = policy.placement
    counts = bool(placement.spreads) or placement.division in CAPACITY_DIVISIONS
    former, present = (
        answer and (answer.groups[group], answer.weights, answer.taints, answer.fields, answer.capacity if counts else None)
        for answer in answers
    )
    return former != present
