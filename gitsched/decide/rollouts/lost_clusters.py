"""Find clusters that are lost before they have reported that a change is healthy: their wave fails. A cluster that the source or its policy
no longer has is not lost: nothing waits for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Final

from gitsched.apis.capabilities import AvailabilityReporting
from gitsched.apis.gitsched.rollout import RolloutSpec
from gitsched.apis.policy_api import PolicyEngine
from gitsched.decide.engines import collect_cluster_facts, collect_unavailable_clusters
from gitsched.decide.rollouts.approved_content import ContentReader
from gitsched.decide.rollouts.pending_files import PendingFiles
from gitsched.decide.rollouts.workload_policies import WorkloadPolicies
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.changes import Move
from gitsched.model.document import Key
from gitsched.model.rollouts import LostCopy, RolloutRecord
from gitsched.model.scheduling import Outcome
from gitsched.named_tuples import NamedTuple

Labels = Mapping[str, Mapping[str, str]]
"""The labels of the clusters by name."""
EVICTED: Final = "its workloads are evicted"
ELSEWHERE: Final = "its workloads are elsewhere"


class LostCluster(NamedTuple):
    """Why a cluster is lost, and since when. One that `has_left` had workloads with the change, and cannot report on them any more."""

    reason: str
    since: datetime
    has_left: bool = True


class ClusterStates(NamedTuple):
    """The states of the clusters: the labels of all that have a document, why some are not available, and which of these are so by reported
    facts alone, such as a condition."""

    labels: Labels
    unavailable: Mapping[str, str]
    unready: Collection[str]


def read_cluster_states(engines: Iterable[PolicyEngine]) -> ClusterStates:
    """Return the states of the clusters of all policy APIs."""
    found = list(engines)
    reporting = (engine for engine in found if isinstance(engine, AvailabilityReporting))
    return ClusterStates(
        {name: facts.labels for name, facts in collect_cluster_facts(found).items()},
        collect_unavailable_clusters(found),
        frozenset(name for engine in reporting for name in engine.clusters_reported_unready()),
    )


class LostClusters:
    """Finds the lost clusters of rollouts. `moves` are those of workloads, by key."""

    def __init__(
        self,
        states: ClusterStates,
        policies: WorkloadPolicies,
        reader: ContentReader,
        moves: Mapping[Key, Move],
        source_time: datetime,
    ) -> None:
        self._states, self._policies, self._reader, self._moves = states, policies, reader, moves
        self._source_time = source_time

    def find_copies(
        self, record: RolloutRecord, members: Iterable[WorkloadFiles], waiting: Collection[Key]
    ) -> dict[LostCopy, LostCluster]:
        """Return the copies with a change that clusters have lost, in this run and in earlier ones.

        The members are at least those that an earlier run has recorded, and those that move; `waiting` are those that some cluster does not
        have as it should. A copy does not count any more when nothing waits, and no cluster has the change without a report: it is rolled
        out, or reverted.
        """
        workloads = {files.outcome.key: files for files in members}
        entries = {one.cluster: one for one in record.changed if not one.succeeded}
        held = {(one.workload, one.cluster) for one in record.held}
        left = (
            (key, cluster)
            for key in sorted(record.workloads & workloads.keys() & self._moves.keys())
            for cluster in sorted(self._moves[key].before)
            if (key, cluster) not in held
        )
        unreported = {name for name, one in entries.items() if one.lost is None and not one.skipped}
        found: dict[LostCopy, LostCluster] = {}
        for key, cluster in (*((one.workload, one.cluster) for one in record.lost), *left):
            files, entry = workloads.get(key), entries.get(cluster)
            if files is None or entry is None or not self._is_lost(files.outcome, cluster):
                continue
            targets = files.outcome.replicas_by_cluster.keys()
            if key in waiting or not targets or not unreported.isdisjoint(targets):
                since = entry.lost or max(self._source_time, files.outcome.time)
                found[self._make_copy(files, cluster)] = LostCluster(self._find_reason(files.outcome, cluster), since)
        return found

    def find_absent(
        self,
        spec: RolloutSpec,
        present: Collection[str],
        reached: Collection[str],
        changes: Mapping[str, Iterable[PendingFiles]],
        members: Iterable[WorkloadFiles],
    ) -> dict[LostCopy, LostCluster]:
        """Return the copies of changed workloads that the clusters of a group would have without which a change must not begin, if all of
        them are lost: a mandatory group, or the first one of those that get a change one after another. `present` are the clusters with
        workloads, `reached` those that the change has reached: a group before them does not count any more."""
        away = sorted(self._states.unavailable.keys() & self._states.labels.keys() - set(present))
        wanted = set(list_first_groups(spec)) if away and changes else set()
        if not wanted:
            return {}
        groups = spec.order(spec.divide({*present, *away}, self._states.labels))
        absent: list[str] = []
        for number, group in enumerate(groups, 1):
            later = {name for one in groups[number:] for name in one.clusters}
            if {group.name, group.group_index} & wanted and later.isdisjoint(reached) and set(group.clusters).isdisjoint(present):
                absent += group.clusters
        keys = {pending.held.workload for found in changes.values() for pending in found} if absent else ()
        changed = [files for files in members if files.outcome.key in keys]
        return {
            self._make_copy(files, name): LostCluster(self._states.unavailable[name], self._source_time)
            for name in absent
            for files in changed
            if self._policies.may_place(files.outcome, name)
        }

    def find_clusters(self, record: RolloutRecord, copies: Mapping[LostCopy, LostCluster]) -> dict[str, LostCluster]:
        """Return the lost clusters: those that lost copies, and those with the change that are not ready."""
        unready, unavailable = self._states.unready, self._states.unavailable
        found = {
            one.cluster: LostCluster(unavailable[one.cluster], one.lost or self._source_time, has_left=False)
            for one in record.changed
            if one.cluster in unready and one.cluster in unavailable and not one.succeeded
        }
        return found | {copy.cluster: lost for copy, lost in sorted(copies.items())}

    def is_known(self, cluster: str) -> bool:
        """Return whether a cluster has a document."""
        return cluster in self._states.labels

    def _make_copy(self, files: WorkloadFiles, cluster: str) -> LostCopy:
        return LostCopy(files.outcome.key, cluster, self._reader.identify(files, cluster))

    def _find_reason(self, outcome: Outcome, cluster: str) -> str:
        evicting = any(target.evicting and target.cluster == cluster for target in outcome.targets)
        return self._states.unavailable.get(cluster) or (EVICTED if evicting else ELSEWHERE)

    def _is_lost(self, outcome: Outcome, cluster: str) -> bool:
        """Return whether a workload is not in a cluster although its policy may choose it."""
        is_target = any(target.cluster == cluster and not target.evicting for target in outcome.targets)
        return not is_target and self.is_known(cluster) and self._policies.may_place(outcome, cluster)


def list_first_groups(spec: RolloutSpec) -> tuple[str | int, ...]:
    """Return the names or indices of the groups without which a change must not begin."""
    wanted = spec.strategy.mandatory_groups
    if not wanted and spec.strategy.type == "ProgressivePerGroup" and spec.groups:
        return (spec.groups[0].name,)
    return wanted
