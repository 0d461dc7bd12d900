"""What decides about the workloads of a policy when Clusters change: the scheduler, and what Karmada itself reads of a Cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from gitsched.apis.karmada.cluster.taints import UnreadyCluster
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.policy.request_class import build_request_class
from gitsched.model.document import parse_api_group
from gitsched.model.scheduling import ReplicaDivision
from gitsched.model.taints import NO_EXECUTE, Taint
from gitsched.model.variants import BUNDLE_KIND
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.estimator import Capacity
from gitsched.schedule.fleet import Candidate
from gitsched.schedule.fleet_changes import ChangedSets, DifferingCandidates, FleetChanges

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState

WorkloadApi = tuple[str, str]
"""The apiVersion and kind of workloads."""


class DecisiveFacts(NamedTuple):
    """What decisions read of one Cluster."""

    candidate: Candidate
    allocatable: Capacity | None
    unready: UnreadyCluster | None

    def list_evictions(self, policy: PropagationPolicy) -> list[Taint]:
        """Return the taints that evict workloads of a policy, at once or later."""
        unlimited = [toleration for toleration in policy.placement.tolerations if toleration.seconds is None]
        taints = (taint for taint in self.candidate.taints if taint.effect == NO_EXECUTE)
        return [taint for taint in taints if not any(toleration.tolerates(taint) for toleration in unlimited)]

    @property
    def is_overcommitted(self) -> bool:
        """Whether more is requested there than allocatable, which is a finding about workloads that are bound to it."""
        capacity = self.candidate.capacity
        return capacity is not None and any(free < 0 for free in capacity.free.values())


FactsPair = tuple[DecisiveFacts | None, DecisiveFacts | None]
"""The facts about a Cluster before and after a change; None where it does not exist."""


class FleetComparison:
    """Compares how Clusters are scheduled before and after a change, once for each policy and kind of workloads."""

    def __init__(self, before: KarmadaState, after: KarmadaState) -> None:
        self._after = after
        sides = [_ReadClusters(state) for state in (before, after)]
        pairs = ((name, (sides[0].read(name), sides[1].read(name))) for name in _list_possibly_changed(before, after))
        self.changed: dict[str, FactsPair] = {name: pair for name, pair in pairs if pair[0] != pair[1]}
        """The Clusters of which a decision can read something else than before."""
        self._fleets = FleetChanges(before.fleet, after.fleet, self.changed)
        self._known: dict[tuple[str, WorkloadApi, ReplicaDivision, int, int], DifferingCandidates | None] = {}
        self._evicting: dict[str, frozenset[str]] = {}

    @property
    def changed_sets(self) -> ChangedSets | None:
        """The changed Clusters as sets of candidates; None if one comes or goes, or a filter compares Clusters."""
        return self._fleets.sets

    @cached_property
    def came_or_went(self) -> frozenset[str]:
        """The Clusters that exist on one side alone."""
        return frozenset(name for name, pair in self.changed.items() if None in pair)

    def list_differing_there(self, policy: PropagationPolicy) -> Iterator[str]:
        """Yield the Clusters that can affect a workload which is bound to them although the scheduler is not called."""
        for name, (former, present) in self.changed.items():
            if (
                former is None
                or present is None
                or former.candidate.deleting != present.candidate.deleting
                or former.allocatable != present.allocatable
                or former.unready != present.unready
                or (former.candidate.capacity != present.candidate.capacity and present.is_overcommitted)
                or name in self._list_evicting(policy)
            ):
                yield name

    def list_differing(
        self, policy: PropagationPolicy, api: WorkloadApi, first_group: int, groups: Iterable[int]
    ) -> DifferingCandidates | None:
        """Return the Clusters by which the scheduler may decide otherwise in some of the affinity groups; None if only the requests of
        single workloads can tell. It tries the groups from the first one; one before that is tried without regard to the present
        assignment."""
        if (parse_api_group(api[0]), api[1]) == BUNDLE_KIND:
            return None  # its variants are parts of its request
        found = DifferingCandidates()
        for division in dict.fromkeys((policy.placement.division, "everywhere")):
            for group in groups:
                one = self._compare(policy, api, division, group, first_group)
                if one is None:
                    return None
                found |= one
        return found

    def _compare(
        self, policy: PropagationPolicy, api: WorkloadApi, division: ReplicaDivision, group: int, first_group: int
    ) -> DifferingCandidates | None:
        key = policy.key.title, api, division, group, first_group
        if key not in self._known:
            request = build_request_class(self._after, policy, api, division, min(group, first_group), fresh=group < first_group)
            self._known[key] = self._fleets.compare(request, policy.placement.groups[group], self._list_evicting(policy))
        return self._known[key]

    def _list_evicting(self, policy: PropagationPolicy) -> frozenset[str]:
        """Return the Clusters that evict workloads of a policy by other taints than before."""
        title = policy.key.title
        if title not in self._evicting:
            pairs = ((name, former, present) for name, (former, present) in self.changed.items())
            self._evicting[title] = frozenset(
                name
                for name, former, present in pairs
                if former is not None
                and present is not None
                and former.candidate.taints != present.candidate.taints
                and former.list_evictions(policy) != present.list_evictions(policy)
            )
        return self._evicting[title]


def _list_possibly_changed(before: KarmadaState, after: KarmadaState) -> list[str]:
    """Return the names of the Clusters that may have changed: few, if most of them are the same objects as before."""
    names = before.fleet.names
    has_same = names == after.fleet.names and before.inventory.allocatable == after.inventory.allocatable
    if not has_same or before.unready_clusters or after.unready_clusters:
        return sorted({*names, *after.fleet.names})
    pairs = zip(before.fleet.candidates, after.fleet.candidates, strict=True)
    return [present.name for former, present in pairs if former is not present]


class _ReadClusters:
    """What decisions read of the Clusters of a state."""

    def __init__(self, state: KarmadaState) -> None:
        self._fleet, self._allocatable, self._unready = state.fleet, state.inventory.allocatable, state.unready_clusters

    def read(self, name: str) -> DecisiveFacts | None:
        """Return what decisions read of a Cluster; None if there is none."""
        index = self._fleet.index.get(name)
        if index is None:
            return None
        return DecisiveFacts(self._fleet.candidates[index], self._allocatable.get(name), self._unready.get(name))
