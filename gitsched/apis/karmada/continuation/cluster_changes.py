"""Which workloads changed Clusters can affect: those whose policies get another answer about a changed Cluster than before.

A policy asks about a cluster: is it in my affinity groups, does it have taints that I do not tolerate, which values does it have to spread
over, which weight does it get, what fits there. A label that no selector reads changes no answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gitsched.apis.karmada import names
from gitsched.apis.karmada.cluster.taints import UnreadyCluster
from gitsched.apis.karmada.continuation.policy_changes import make_selectable
from gitsched.apis.karmada.overrides.override_policy import OverrideIndex, OverridePolicy
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import Affinity
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint
from gitsched.model.template_index import PlacementSummary, TemplateEntry, TemplateIndex
from gitsched.schedule.estimator import Capacity
from gitsched.schedule.fleet import Candidate, Fleet

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState

_CAPACITY_DIVISIONS = ("dynamic", "aggregated")


def find_affected_by_clusters(before: KarmadaState, after: KarmadaState, entries: TemplateIndex) -> Iterator[Key]:
    """Yield the workloads that the Clusters of another commit can affect."""
    changed = _list_changed_clusters(before, after)
    if not changed:
        return
    sides = _FleetSide(before, changed), _FleetSide(after, changed)
    comparison, overrides = _FleetComparison(sides, after, changed), _find_changed_overrides(sides, after, changed)
    for key, entry in entries.items():
        placement = entry.placement
        if placement is not None and (
            comparison.affects(placement, (entry.api_version, key.kind))
            or (overrides is not None and overrides.concern(key, entry, placement))
        ):
            yield key


def _list_changed_clusters(before: KarmadaState, after: KarmadaState) -> frozenset[str]:
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


class _Answer(NamedTuple):
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

    def without_filters(self) -> _Answer:
        """Return the answer without the taints that only keep further workloads away."""
        return self._replace(taints=tuple(taint for taint in self.taints if taint.effect == NO_EXECUTE), is_tainted=False)


_Answers = Mapping[str, tuple["_Answer | None", "_Answer | None"]]
"""The answers about each changed Cluster, before and now; None where it does not exist."""


class _FleetSide:
    """The changed Clusters before or after the change."""

    def __init__(self, state: KarmadaState, changed: frozenset[str]) -> None:
        self._facts = {name: facts for name, facts in _Facts.of(state).items() if name in changed}
        self._fleet = Fleet(facts.candidate for facts in self._facts.values())

    def find_candidate(self, name: str) -> Candidate | None:
        """Return a Cluster; None if it does not exist."""
        facts = self._facts.get(name)
        return facts.candidate if facts is not None else None

    def answer(self, policy: PropagationPolicy, name: str) -> _Answer | None:
        """Return what a policy learns about a Cluster; None if it does not exist."""
        facts = self._facts.get(name)
        if facts is None:
            return None
        candidate, placement = facts.candidate, policy.placement
        effective = [taint for taint in candidate.taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)]
        tolerating = [[one for one in placement.tolerations if one.tolerates(taint)] for taint in effective]
        unlimited = [any(one.seconds is None for one in found) for found in tolerating]
        return _Answer(
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


class _FleetComparison:
    """Compares what policies learn about the changed Clusters with what they learned before."""

    def __init__(self, sides: tuple[_FleetSide, _FleetSide], after: KarmadaState, changed: Iterable[str]) -> None:
        self._changed, self._sides = sorted(changed), sides
        self._policies = {policy.key.title: policy for policy in after.policies.policies.values()}
        self._has_attachments = (
            after.has_dependencies or after.has_followers
        )  # an object may be where its own policy does not place it
        self._fails_back = after.settings.failback.mode != "Never"
        self._answers: dict[str, _Answers] = {}
        self._verdicts: dict[tuple[PlacementSummary, tuple[str, str]], bool] = {}

    def affects(self, placement: PlacementSummary, api: tuple[str, str]) -> bool:
        """Return whether the change can affect a workload of an API (apiVersion, kind); compared once for equal workloads."""
        known = self._verdicts.get((placement, api))
        if known is None:
            known = self._verdicts[placement, api] = self._compare(placement, api)
        return known

    def _compare(self, placement: PlacementSummary, api: tuple[str, str]) -> bool:
        policy = self._policies.get(placement.policy) if placement.api == names.API_NAME else None
        if policy is None:  # it goes where its dependents go, or another API places it
            return not placement.is_settled or any(self._comes_or_goes(name) for name in placement.clusters)
        if policy.is_lazy:
            return True  # its binding may have the placement of an earlier version of the policy
        return any(self._concerns(policy, placement, name, self._serves(name, api)) for name in self._changed)

    def _concerns(self, policy: PropagationPolicy, placement: PlacementSummary, name: str, serves: tuple[bool, bool]) -> bool:
        """Return whether the change of one Cluster can affect a workload. `serves` says whether it serves the API of the workload, before
        and now."""
        answers = self._list_answers(policy)[name]
        if answers[0] == answers[1] and serves[0] == serves[1]:
            return False
        if not placement.is_settled:
            return True
        is_there = name in placement.clusters
        if is_there and self._concerns_there(policy, placement, answers):
            return True
        if is_there and not self._has_attachments:
            return False
        if policy.placement.is_divided and placement.assigned and not self._can_return(policy):
            return False  # the scheduler is not called: no trigger says so
        eligible = [
            (group, [bool(answer and served and answer.is_eligible(group)) for answer, served in zip(answers, serves, strict=True)])
            for group in self._list_groups(policy, placement)
        ]
        return any(any(sides) and (not all(sides) or _ranks_otherwise(policy, answers, group)) for group, sides in eligible)

    def _concerns_there(
        self, policy: PropagationPolicy, placement: PlacementSummary, answers: tuple[_Answer | None, _Answer | None]
    ) -> bool:
        """Return whether the change of a Cluster can affect a settled workload that is bound to it.

        The filters admit it whatever APIs the Cluster serves, and with any taint that does not evict. Free capacity alone is reported only
        once something is overcommitted, and else counts where it ranks clusters.
        """
        former, present = (answer.without_filters() if answer is not None else None for answer in answers)
        if former is None or present is None or former._replace(capacity=present.capacity) != present:
            return True
        if former.capacity == present.capacity:
            return False
        ranks = bool(policy.placement.spreads) or (policy.placement.division in _CAPACITY_DIVISIONS and not placement.assigned)
        return (
            ranks
            or self._can_return(policy)
            or any(free < 0 for free in (present.capacity.free.values() if present.capacity else ()))
        )

    def _list_answers(self, policy: PropagationPolicy) -> _Answers:
        title = policy.key.title
        if title not in self._answers:
            former, present = self._sides
            self._answers[title] = {name: (former.answer(policy, name), present.answer(policy, name)) for name in self._changed}
        return self._answers[title]

    def _list_groups(self, policy: PropagationPolicy, placement: PlacementSummary) -> range:
        """Return the affinity groups in which a settled workload may be scheduled: the one in use, or with failback all."""
        if self._can_return(policy):
            return range(len(policy.placement.groups))
        used = policy.placement.find_group_index(placement.group)
        return range(used, used + 1)

    def _can_return(self, policy: PropagationPolicy) -> bool:
        """Return whether workloads may return to an earlier affinity group."""
        return self._fails_back and len(policy.placement.groups) > 1

    def _comes_or_goes(self, name: str) -> bool:
        former, present = (side.find_candidate(name) for side in self._sides)
        return (former is None) != (present is None)

    def _serves(self, name: str, api: tuple[str, str]) -> tuple[bool, bool]:
        candidates = [side.find_candidate(name) for side in self._sides]
        former, present = (
            candidate is not None and (candidate.enabled_apis is None or api in candidate.enabled_apis) for candidate in candidates
        )
        return former, present


def _ranks_otherwise(policy: PropagationPolicy, answers: tuple[_Answer | None, _Answer | None], group: int) -> bool:
    """Return whether a Cluster that was and is eligible may be chosen otherwise than before, or with other replicas."""
    placement = policy.placement
    counts = bool(placement.spreads) or placement.division in _CAPACITY_DIVISIONS
    former, present = (
        answer and (answer.groups[group], answer.weights, answer.taints, answer.fields, answer.capacity if counts else None)
        for answer in answers
    )
    return former != present


class _ChangedOverrides(NamedTuple):
    """The override policies with rules for other Clusters than before, and these Clusters."""

    policies: OverrideIndex
    clusters: frozenset[str]

    def concern(self, key: Key, entry: TemplateEntry, placement: PlacementSummary) -> bool:
        """Return whether one of the policies may change the manifest of a workload where its rules differ."""
        if placement.is_settled and self.clusters.isdisjoint(placement.clusters):
            return False
        return self.policies.selects(make_selectable(key, entry))


def _find_changed_overrides(
    sides: tuple[_FleetSide, _FleetSide], after: KarmadaState, changed: Collection[str]
) -> _ChangedOverrides | None:
    """Return the override policies whose rules match other Clusters than before; None if there are none."""
    documents: list[Document] = []
    clusters: set[str] = set()
    for policy in after.overrides.policies:
        former, present = ({name: _list_matching_rules(side, policy, name) for name in changed} for side in sides)
        differing = {name for name in changed if former[name] != present[name]}
        if differing:
            documents.append(policy.document)
            clusters |= differing
    return _ChangedOverrides(OverrideIndex(documents, (), after.fleet), frozenset(clusters)) if documents else None


def _list_matching_rules(side: _FleetSide, policy: OverridePolicy, name: str) -> list[bool]:
    """Return for each rule of an override policy whether it matches a Cluster."""
    return [side.find_candidate(name) is not None and side.matches(rule.affinity, name) for rule in policy.rules]
