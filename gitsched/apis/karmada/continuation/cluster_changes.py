"""Which workloads changed Clusters can affect: those whose policies get another answer about a changed Cluster than before.

A policy asks about a cluster: is it in my affinity groups, does it have taints that I do not tolerate, which values does it have to spread
over, which weight does it get, what fits there. A label that no selector reads changes no answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from gitsched.apis.karmada import names
from gitsched.apis.karmada.continuation.cluster_answers import (
    CAPACITY_DIVISIONS,
    ClusterAnswer,
    ClusterAnswers,
    FleetSide,
    list_changed_clusters,
    ranks_otherwise,
)
from gitsched.apis.karmada.continuation.policy_changes import make_selectable
from gitsched.apis.karmada.overrides.override_policy import OverrideIndex, OverridePolicy
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.model.document import Document, Key
from gitsched.model.placement_groups import PlacementGroups
from gitsched.model.template_index import PlacementSummary, TemplateEntry

if TYPE_CHECKING:
    from gitsched.apis.capabilities import SnapshotChanges
    from gitsched.apis.karmada.state import KarmadaState


def find_affected_by_clusters(before: KarmadaState, after: KarmadaState, changes: SnapshotChanges) -> Iterator[Key]:
    """Yield the workloads that the Clusters of another commit can affect."""
    changed = list_changed_clusters(before, after)
    if not changed:
        return
    sides = FleetSide(before, changed), FleetSide(after, changed)
    groups, entries = changes.groups or PlacementGroups(changes.template_index), changes.template_index
    comparison, overrides = _FleetComparison(sides, after, changed), _find_changed_overrides(sides, after, changed)
    for (absent, *api), keys in groups.alike.items():
        concerning = comparison.list_concerning_elsewhere(absent, (api[0], api[1]))
        if concerning is None:
            yield from keys
        elif concerning:
            yield from (key for key in keys if not concerning.issubset(_list_clusters(entries[key])))
        if overrides is not None and not absent.is_settled:
            yield from (key for key in keys if overrides.policies.selects(make_selectable(key, entries[key])))
    for name in changed:
        for key in groups.placed.get(name, ()):
            entry = entries[key]
            if entry.placement is not None and comparison.affects_there(entry.placement, (entry.api_version, key.kind)):
                yield key
    for name in overrides.clusters if overrides is not None else ():
        for key in groups.placed.get(name, ()):
            if overrides is not None and overrides.policies.selects(make_selectable(key, entries[key])):
                yield key


def _list_clusters(entry: TemplateEntry) -> tuple[str, ...]:
    return entry.placement.clusters if entry.placement is not None else ()


class _FleetComparison:
    """Compares what policies learn about the changed Clusters with what they learned before."""

    def __init__(self, sides: tuple[FleetSide, FleetSide], after: KarmadaState, changed: Iterable[str]) -> None:
        self._changed, self._sides = sorted(changed), sides
        self._changed_names = frozenset(self._changed)
        self._policies = {policy.key.title: policy for policy in after.policies.policies.values()}
        self._has_attachments = (
            after.has_dependencies or after.has_followers
        )  # an object may be where its own policy does not place it
        self._fails_back = after.settings.failback.mode != "Never"
        self._answers: dict[str, ClusterAnswers] = {}
        self._verdicts: dict[tuple[PlacementSummary, tuple[str, str]], bool] = {}

    def affects_there(self, placement: PlacementSummary, api: tuple[str, str]) -> bool:
        """Return whether the change of a Cluster can affect a workload of an API (apiVersion, kind) that is placed there; compared once for
        workloads with equal summaries."""
        question = placement, api
        known = self._verdicts.get(question)
        if known is None:
            known = self._verdicts[question] = self._compare_there(placement, api)
        return known

    def _compare_there(self, placement: PlacementSummary, api: tuple[str, str]) -> bool:
        policy = self._find_policy(placement)
        there = self._changed_names.intersection(placement.clusters)
        if policy is None:
            return any(self._comes_or_goes(name) for name in there)
        return any(self._concerns(policy, placement, name, self._serves(name, api)) for name in there)

    def list_concerning_elsewhere(self, absent: PlacementSummary, api: tuple[str, str]) -> frozenset[str] | None:
        """Return the changed Clusters that can affect workloads of an API (apiVersion, kind) which have this summary, without clusters, and
        are not placed there; None if all of these workloads are affected."""
        policy = self._find_policy(absent)
        if policy is None:  # it goes where its dependents go, or another API places it
            return frozenset() if absent.is_settled else None
        if policy.is_lazy:
            return None  # its binding may have the placement of an earlier version of the policy
        return frozenset(name for name in self._changed if self._concerns(policy, absent, name, self._serves(name, api)))

    def _find_policy(self, placement: PlacementSummary) -> PropagationPolicy | None:
        return self._policies.get(placement.policy) if placement.api == names.API_NAME else None

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
        return any(any(sides) and (not all(sides) or ranks_otherwise(policy, answers, group)) for group, sides in eligible)

    def _concerns_there(
        self, policy: PropagationPolicy, placement: PlacementSummary, answers: tuple[ClusterAnswer | None, ClusterAnswer | None]
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
        ranks = bool(policy.placement.spreads) or (policy.placement.division in CAPACITY_DIVISIONS and not placement.assigned)
        return (
            ranks
            or self._can_return(policy)
            or any(free < 0 for free in (present.capacity.free.values() if present.capacity else ()))
        )

    def _list_answers(self, policy: PropagationPolicy) -> ClusterAnswers:
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


class _ChangedOverrides(NamedTuple):
    """The override policies with rules for other Clusters than before, and these Clusters."""

    policies: OverrideIndex
    clusters: frozenset[str]


def _find_changed_overrides(
    sides: tuple[FleetSide, FleetSide], after: KarmadaState, changed: Collection[str]
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


def _list_matching_rules(side: FleetSide, policy: OverridePolicy, name: str) -> list[bool]:
    """Return for each rule of an override policy whether it matches a Cluster."""
    return [side.find_candidate(name) is not None and side.matches(rule.affinity, name) for rule in policy.rules]
