"""The rollout of a workload to the clusters of its Placements."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from gitsched.apis.ocm import names
from gitsched.apis.ocm.lost_clusters import NOTHING_LOST, LostManagedClusters
from gitsched.apis.ocm.placement_states import PlacementState
from gitsched.apis.ocm.rollout import PreviousRollout, RolloutReports
from gitsched.apis.ocm.workloads import OcmWorkload
from gitsched.model.document import Body, Key, get_field, list_objects, read_labels
from gitsched.model.time import EPOCH
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.rollout import (
    FAILURE,
    NO_REVISION,
    ClusterRevision,
    RolloutGroup,
    RolloutProgress,
    RolloutReport,
    RolloutStrategy,
    advance_rollout,
    parse_rollout_strategy,
)

MAX_ROLLOUT_STEPS = 64
"""Steps of a rollout at missed deadlines that one run takes; the next run takes those after them."""


class WorkloadRollout(NamedTuple):
    """The decision groups by Placement, the progress of the rollout, and when it changed last (the commit time if it did not).

    `lost` are clusters that were lost before they reported on the revision, with the time since when. `copied` are clusters that replace
    others before their turn, and get the manifests that another cluster has. `skipped` are clusters that the rollout goes on without.
    """

    groups: Mapping[Key, tuple[RolloutGroup, ...]]
    progress: RolloutProgress
    time: datetime
    lost: Mapping[str, datetime] = {}
    copied: Mapping[str, str] = {}
    skipped: tuple[str, ...] = ()


_Strategies = list[tuple[RolloutStrategy, tuple[RolloutGroup, ...]]]


def _read_strategies(
    workload: OcmWorkload, placements: Mapping[Key, PlacementState], clusters: Mapping[str, object], lost: LostManagedClusters
) -> tuple[dict[Key, tuple[RolloutGroup, ...]], _Strategies]:
    """Return the decision groups of each Placement, and each strategy with its groups, which have the lost clusters as well. A cluster is
    in one group."""
    groups: dict[Key, tuple[RolloutGroup, ...]] = {}
    assigned: set[str] = set()
    strategies: _Strategies = []
    for placement, rollout_strategy in workload.references:
        state = placements.get(placement)
        if state is None or placement in groups:
            continue
        own = lost.placements.get(placement)
        groups[placement] = tuple(_read_rollout_groups(state.decisions, clusters, assigned))
        complete = groups[placement] if own is None else tuple(_drop_clusters(own.groups, assigned))
        assigned.update(name for group in complete for name in group.clusters)
        strategies.append((parse_rollout_strategy(rollout_strategy, state.clusters_per_group), complete))
    return groups, strategies


def roll_out_workload(
    workload: OcmWorkload,
    placements: Mapping[Key, PlacementState],
    previous_rollout: PreviousRollout,
    reports: RolloutReports,
    clusters: Mapping[str, object],
    at: datetime,
    now: datetime,
    lost: LostManagedClusters = NOTHING_LOST,
) -> WorkloadRollout:
    """Advance the rollout of a workload from the commit time `at` through each deadline until `now`.

    The time when commit statuses were read counts as a deadline, too. Only `clusters` that exist are used.
    """
    groups, strategies = _read_strategies(workload, placements, clusters, lost)
    since = lost.since
    revisions: Mapping[str, ClusterRevision] = {
        **previous_rollout.revisions,
        **dict.fromkeys(since, ClusterRevision(workload.revision, EPOCH)),
    }
    failures = dict.fromkeys(since, RolloutReport(FAILURE, EPOCH))
    time_step = time = at
    steps = 0  # the deadlines of recorded steps are processed once more and do not count, so that each run gets further
    while True:
        known = {**reports.known_at(time_step), **failures}
        progress = _advance_strategies(strategies, workload.revision, revisions, known, time_step)
        if progress.revisions != revisions and time_step > at:
            time, steps = time_step, steps + 1
        revisions = progress.revisions
        deadlines = [event for event in (progress.wakeup, reports.observed_at) if event is not None and time_step < event <= now]
        if not deadlines or steps >= MAX_ROLLOUT_STEPS:
            break
        time_step = min(deadlines)
    chosen = frozenset(name for found in groups.values() for group in found for name in group.clusters)
    reached = {name: step for name, step in progress.revisions.items() if name not in since}
    is_reached = bool(chosen) and {reached.get(name, NO_REVISION).revision for name in chosen} == {workload.revision}
    if progress.is_complete or is_reached:  # nothing waits for the clusters that are lost
        progress, since = progress._replace(failed=progress.failed - since.keys()), {}
    copied = _find_copied(workload, previous_rollout, reached, chosen)
    reached |= {name: previous_rollout.revisions[other] for name, other in copied.items()}
    return WorkloadRollout(groups, progress._replace(revisions=reached), time, since, copied, lost.skipped)


def _drop_clusters(groups: Iterable[RolloutGroup], dropped: Collection[str]) -> Iterator[RolloutGroup]:
    """Yield decision groups without some clusters."""
    return (group._replace(clusters=tuple(name for name in group.clusters if name not in dropped)) for group in groups)


def _find_copied(
    workload: OcmWorkload, previous: PreviousRollout, revisions: Mapping[str, ClusterRevision], chosen: frozenset[str]
) -> dict[str, str]:
    """Return the clusters that replace one that the workload leaves, and whose turn has not come, each with one that has an earlier
    revision. What was there before the change is delivered at once; the revision waits."""
    new = [name for name in sorted(chosen) if name not in revisions]
    known = [name for name, step in previous.revisions.items() if step.revision != workload.revision]
    if not (new and known) or previous.revisions.keys() <= chosen:
        return {}
    return dict.fromkeys(new, min(known, key=lambda name: (name not in chosen, name)))


def _advance_strategies(
    strategies: Sequence[tuple[RolloutStrategy, tuple[RolloutGroup, ...]]],
    revision: str,
    revisions: Mapping[str, ClusterRevision],
    reports: Mapping[str, RolloutReport],
    now: datetime,
) -> RolloutProgress:
    parts = [advance_rollout(strategy, groups, revision, revisions, reports, now) for strategy, groups in strategies]
    return RolloutProgress(
        {name: step for part in parts for name, step in part.revisions.items()},
        frozenset().union(*(part.succeeded for part in parts)),
        frozenset().union(*(part.failed for part in parts)),
        min((part.wakeup for part in parts if part.wakeup is not None), default=None),
        all(part.is_complete for part in parts),
    )


def _read_rollout_groups(
    decisions: Sequence[tuple[Key, Body]], clusters: Mapping[str, object], assigned: set[str]
) -> list[RolloutGroup]:
    """Return the decision groups of a Placement, without clusters that do not exist or belong to an earlier Placement."""
    clusters_by_group: dict[tuple[int, str], list[str]] = {}
    for _, body in decisions:
        labels = read_labels(body)
        index = labels.get(names.GROUP_INDEX_LABEL, "0")
        group_index = int(index) if index.isdecimal() and len(index) < 10 else 0
        group = clusters_by_group.setdefault((group_index, labels.get(names.GROUP_NAME_LABEL, "")), [])
        entries = list_objects(get_field(body, "status", "decisions"))
        group += [name for entry in entries if (name := str(entry.get("clusterName"))) in clusters and name not in assigned]
    return [RolloutGroup(name, group_index, tuple(group)) for (group_index, name), group in clusters_by_group.items()]
