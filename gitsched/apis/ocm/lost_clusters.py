"""Clusters that a Placement loses before they have reported on the revision of a ManifestWorkReplicaSet: their decision group fails."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from gitsched.apis.ocm.availability import find_unavailable
from gitsched.apis.ocm.decisions import group_clusters, list_decision_clusters
from gitsched.apis.ocm.placement import Misconfiguration
from gitsched.apis.ocm.rollout import PreviousRollout, RolloutReports
from gitsched.apis.ocm.scheduling import PlacementResult
from gitsched.apis.ocm.workloads import OcmWorkload
from gitsched.model.document import Key
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.rollout import (
    SUCCESS,
    ClusterRevision,
    RolloutGroup,
    RolloutStrategy,
    determine_result,
    parse_rollout_strategy,
)
from gitsched.schedule.selection import PredicateFilter


class LostByPlacement(NamedTuple):
    """The clusters that a Placement has lost, with the time since when, and its decision groups with them."""

    since: Mapping[str, datetime]
    groups: tuple[RolloutGroup, ...]


class LostManagedClusters(NamedTuple):
    """The lost clusters of a workload by Placement. `skipped` are clusters that had the revision without a success, and that no Placement
    may choose any more: nothing waits for them."""

    placements: Mapping[Key, LostByPlacement] = {}
    skipped: tuple[str, ...] = ()

    @property
    def since(self) -> dict[str, datetime]:
        """The lost clusters of all Placements, with the time since when."""
        return {name: time for one in self.placements.values() for name, time in one.since.items()}


NOTHING_LOST = LostManagedClusters()


def may_choose(result: PlacementResult, fleet: Fleet, cluster: str) -> bool:
    """Return whether a Placement may choose a cluster, whatever taints it has: it is in one of its sets, and meets a predicate."""
    index, request = fleet.index.get(cluster), result.request
    if index is None:
        return False
    return request is None or bool(PredicateFilter().mask(request, fleet, request.candidates & 1 << index))


def find_lost(
    workload: OcmWorkload,
    previous: PreviousRollout,
    results: Mapping[Key, PlacementResult],
    fleet: Fleet,
    reports: RolloutReports,
    at: datetime,
) -> LostManagedClusters:
    """Return the lost clusters of a workload.

    A cluster is lost that an earlier run has recorded as lost, or that has the revision without a success, if its Placement chooses it no
    more, but may. When a revision is new, so are all clusters with a taint of a decision group without which it must not begin.
    """
    placements = [(_Selector(results[key], fleet), strategy) for key, strategy in workload.references if key in results]
    chosen = {name for select, _ in placements for name in select.chosen}
    found: dict[Key, LostByPlacement] = {}
    left: set[str] = set()
    is_new = bool(previous.revisions) and all(step.revision != workload.revision for step in previous.revisions.values())
    for select, body in placements:
        strategy = parse_rollout_strategy(body, select.result.placement.clusters_per_group)
        if not workload.revision or strategy.type == "All":
            continue
        since = {**_list_unfinished(workload, previous, strategy, reports, at), **previous.lost}
        left |= since.keys() - chosen
        taken = chosen.union(*(one.since for one in found.values()))
        lost = {name: time for name, time in sorted(since.items()) if name not in taken and select.may_choose(name)}
        if is_new:
            lost = dict.fromkeys(select.list_absent(strategy, chosen, taken), at) | lost
        if lost:
            found[select.result.placement.key] = LostByPlacement(lost, select.divide((*select.chosen, *lost)))
    is_waiting = bool(previous.lost) or len({step.revision for step in previous.revisions.values()}) > 1
    skipped = left.difference(*(one.since for one in found.values())) if is_waiting else ()
    return LostManagedClusters(found, tuple(sorted(skipped)))


def _list_unfinished(
    workload: OcmWorkload, previous: PreviousRollout, strategy: RolloutStrategy, reports: RolloutReports, at: datetime
) -> dict[str, datetime]:
    """Return the clusters that have the revision of the workload without a success, with the present time."""
    reached = {name: step for name, step in previous.revisions.items() if step.revision == workload.revision}
    return {name: at for name, step in reached.items() if not _has_succeeded(strategy, step, name, reports, at)}


def _has_succeeded(strategy: RolloutStrategy, step: ClusterRevision, name: str, reports: RolloutReports, at: datetime) -> bool:
    return determine_result(strategy, step.applied_at, reports.known_at(at).get(name), at)[0] == SUCCESS


class _Selector:
    """What one Placement may choose, and how it groups clusters."""

    def __init__(self, result: PlacementResult, fleet: Fleet) -> None:
        self.result, self._fleet = result, fleet
        self.chosen = [name for _, decision in result.decisions for name in list_decision_clusters(decision)]

    def may_choose(self, name: str) -> bool:
        return may_choose(self.result, self._fleet, name)

    def divide(self, names: Iterable[str]) -> tuple[RolloutGroup, ...]:
        """Return the decision groups as they would be if the Placement had chosen these clusters."""
        wanted = sorted(self._fleet.index[name] for name in set(names) if name in self._fleet.index)
        groups = group_clusters(self.result.placement, wanted, self._fleet)
        if isinstance(groups, Misconfiguration):
            return ()
        return tuple(
            RolloutGroup(group.name, index, tuple(self._fleet.names[at] for at in group.clusters))
            for index, group in enumerate(groups)
        )

    def list_absent(self, strategy: RolloutStrategy, chosen: Collection[str], taken: Collection[str]) -> list[str]:
        """Return the clusters with a taint of the groups without which a revision must not begin, if all clusters of the group have one."""
        away = [name for name in sorted(find_unavailable(self._fleet)) if name not in taken and self.may_choose(name)]
        groups = self.divide((*self.chosen, *away)) if away else ()
        wanted: Sequence[object] = strategy.mandatory_groups
        if not wanted and strategy.type == "ProgressivePerGroup" and groups:
            wanted = (groups[0].name,) if groups[0].name else ()
        first = [group for group in groups if group.name in wanted or group.group_index in wanted]
        return [name for group in first if set(group.clusters).isdisjoint(chosen) for name in group.clusters]
