"""Compare what the workloads of a rollout should have in their clusters with what they have there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from gitsched.decide.rollouts.approved_content import ApprovedContent, ContentReader, DerivedContent
from gitsched.decide.rollouts.delivered_files import DeliveredFiles, FileSet, list_former_clusters
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.changes import CopyRetention, Move
from gitsched.model.document import Key
from gitsched.model.planned_files import ExistingBlob
from gitsched.model.rollouts import ApprovedFiles, HeldFiles, RolloutRecord
from gitsched.model.scheduling import TargetCluster, weigh_replicas
from gitsched.named_tuples import NamedTuple


class PendingFiles(NamedTuple):
    """A workload whose content in a cluster is not the wanted one: what the cluster has until its turn. Its turn comes later if it is
    `retained`, because an overlap keeps the copy there, or `blocked`, because the manifest there does not change. `fields` are those of
    which the approved content is not known."""

    held: HeldFiles
    content: FileSet
    retained: bool = False
    fields: tuple[str, ...] = ()
    blocked: bool = False

    @property
    def is_postponed(self) -> bool:
        return self.retained or self.blocked


class Comparison(NamedTuple):
    """What clusters wait for: `changes` by cluster, and what other clusters keep in any case. A change `is_new` if a workload differs that
    had its wanted content before. `unchanged` are by cluster the contents of manifests that do not change, whatever is decided, as while
    dispatching is suspended. `unrecorded` are contents that copies keep until they are evicted."""

    changes: Mapping[str, list[PendingFiles]]
    kept: tuple[PendingFiles, ...]
    unrecorded: tuple[PendingFiles, ...]
    is_new: bool
    unchanged: Mapping[str, list[PendingFiles]] = {}

    def list_waiting(self) -> set[Key]:
        """Return the workloads that some cluster does not have as it should."""
        return {pending.held.workload for found in (*self.changes.values(), self.kept) for pending in found}

    def block(self, clusters: Collection[str], record: RolloutRecord) -> Comparison:
        """Return the comparison for `clusters` that must get a change before others do: where a manifest does not change, the cluster waits
        for the change of the workload, unless it has reported already that it is healthy: what it has may be an earlier change. Others
        keep what an earlier run has held back."""
        changes = {name: list(found) for name, found in self.changes.items()}
        changing = {pending.held.workload for found in self.changes.values() for pending in found}
        held = {(one.workload, one.cluster) for one in record.held}
        reached = () if self.is_new else {one.cluster for one in record.changed if one.succeeded}
        kept = [*self.kept]
        for name, found in self.unchanged.items():
            for pending in found:
                is_known = (pending.held.workload, name) in held
                if name in clusters and pending.held.workload in changing and (is_known or name not in reached):
                    changes.setdefault(name, []).append(pending)
                elif is_known:
                    kept.append(pending)
        return self._replace(changes=changes, kept=tuple(kept), unchanged={})


class FileComparison:
    """Compares the files of a plan with those of the previous output. `moves` are the moves of workloads by key, `retention` the copies
    that stay for an overlap, and `quarantined` the workloads that keep what they have in all clusters."""

    def __init__(
        self,
        delivered: DeliveredFiles,
        reader: ContentReader,
        moves: Mapping[Key, Move],
        retention: CopyRetention,
        quarantined: Collection[Key],
    ) -> None:
        self._delivered, self._reader, self._moves, self._quarantined = delivered, reader, moves, quarantined
        self._retained = {(copy.workload, copy.cluster) for copy in retention.copies}
        self._ended = {(copy.workload, copy.cluster) for copy in retention.ended}

    def compare(self, record: RolloutRecord, members: Iterable[WorkloadFiles]) -> Comparison:
        """Compare the files of the members of a rollout, of which the previous output has a `record`."""
        held: dict[Key, dict[str, HeldFiles]] = {}
        for files in record.held:
            held.setdefault(files.workload, {})[files.cluster] = files
        approved = {one.workload: one for one in record.approved}
        changes: dict[str, list[PendingFiles]] = {}
        kept: list[PendingFiles] = []
        unrecorded: list[PendingFiles] = []
        unchanged: dict[str, list[PendingFiles]] = {}
        is_new = False
        for member in members:
            known, key = held.get(member.outcome.key, {}), member.outcome.key
            found = _Workload(self._delivered, self._reader, member, known, approved.get(key), self._moves.get(key))
            for target in member.outcome.targets:
                own = known.get(target.cluster)
                if target.evicting:
                    unrecorded += found.keep_evicted(target)
                elif key in self._quarantined:  # what it keeps may be what an earlier run has held back
                    kept += [PendingFiles(own, found.list_delivered(target.cluster))] if own is not None else []
                elif target.keeps_manifest:
                    unchanged.setdefault(target.cluster, []).append(found.keep(target.cluster))
                elif (pending := found.compare(target, is_ended=(key, target.cluster) in self._ended)) is not None:
                    pending = pending._replace(retained=(key, target.cluster) in self._retained)
                    changes.setdefault(target.cluster, []).append(pending)
                    is_new = is_new or found.is_new_in(target.cluster)
        return Comparison(changes, tuple(kept), tuple(unrecorded), is_new, unchanged)


class _Workload:
    """One member of a rollout. `known` is by cluster what an earlier run has held back, and `approved` the content that no cluster has any
    more."""

    def __init__(
        self,
        delivered: DeliveredFiles,
        reader: ContentReader,
        files: WorkloadFiles,
        known: Mapping[str, HeldFiles],
        approved: ApprovedFiles | None,
        move: Move | None,
    ) -> None:
        self._delivered, self._reader, self._files, self._known, self._approved = delivered, reader, files, known, approved
        self._move, self._is_pending = move, bool(known) or approved is not None
        self._replaces = move is not None and _loses_replicas(move)

    def list_delivered(self, cluster: str) -> Mapping[str, ExistingBlob]:
        """Return what a cluster has in the previous output."""
        own = self._known.get(cluster)
        return self._delivered.list_delivered(self._files, cluster, own.paths if own is not None else ())

    def keep(self, cluster: str) -> PendingFiles:
        """Return what a cluster has whose manifest does not change."""
        content = self.list_delivered(cluster)
        return PendingFiles(self._hold_until_turn(cluster, content, content), content, blocked=True)

    def keep_evicted(self, target: TargetCluster) -> list[PendingFiles]:
        """Return what a copy keeps until it is evicted, if something else is wanted: it gets no change any more. A first run delivers
        what a hub was evicting."""
        content = self.list_delivered(target.cluster)
        if not self._is_pending and not any(self.list_delivered(one.cluster) for one in self._files.outcome.targets):
            return []
        if self._delivered.are_same(content, self._delivered.list_wanted(self._files, target.cluster)):
            return []
        return [PendingFiles(self._hold(target.cluster, content), content)]

    def compare(self, target: TargetCluster, *, is_ended: bool) -> PendingFiles | None:
        """Return what a target has until its turn, None if that is what it should have. `is_ended`: the overlap has ended that kept a copy
        there."""
        cluster = target.cluster
        wanted = self._delivered.list_wanted(self._files, cluster)
        delivered, derived = self.list_delivered(cluster), DerivedContent({})
        if self._delivered.are_same(delivered, wanted):
            return None
        if delivered:
            moves = self._move is not None or is_ended
            derived = DerivedContent(self._reader.assign_counts(self._files, target, delivered, moves=moves))
        elif self._replaces and (approved := self._find_approved(cluster)) is not None:
            derived = self._reader.derive(self._files, target, approved)
        if self._delivered.are_same(derived.files, wanted):
            return None
        held = self._hold_until_turn(cluster, delivered, derived.files)
        return PendingFiles(held, derived.files, fields=derived.fields)

    def is_new_in(self, cluster: str) -> bool:
        """Return whether a difference in a cluster is one that the rollout has not begun to deliver."""
        return not self._is_pending or (cluster not in self._known and bool(self.list_delivered(cluster)))

    def _hold_until_turn(self, cluster: str, delivered: FileSet, content: FileSet) -> HeldFiles:
        own = self._known.get(cluster)
        is_approved = not delivered or not self._is_pending or (own is not None and own.approved)
        return self._hold(cluster, content)._replace(approved=is_approved)

    def _hold(self, cluster: str, content: FileSet) -> HeldFiles:
        outcome = self._files.outcome
        return HeldFiles(outcome.key, cluster, self._delivered.list_paths(outcome, cluster, content))

    def _find_approved(self, cluster: str) -> ApprovedContent | None:
        """Return the approved content for a cluster that has none: that of another cluster, best of one that the workload stays in; None if
        nothing was approved."""
        outcome = self._files.outcome
        if self._is_pending:
            names = [one.cluster for one in self._known.values() if one.approved and one.paths]
        else:
            names = [*(self._move.before if self._move is not None else ()), *list_former_clusters(outcome)]
        staying = outcome.replicas_by_cluster.keys()
        for name in sorted(set(names) - {cluster}, key=lambda name: (name not in staying, name)):
            files = self.list_delivered(name)
            if files:
                return ApprovedContent(name, files)
        if self._approved is None or not self._approved.paths:
            return None
        files = self._delivered.list_approved(outcome, self._approved)
        return ApprovedContent(self._approved.cluster, files) if files else None


def _loses_replicas(move: Move) -> bool:
    """Return whether a workload leaves a cluster or has less somewhere, so that what it gets elsewhere replaces that."""
    before, after = ({name: weigh_replicas(count) for name, count in part.items()} for part in (move.before, move.after))
    return any(count > after.get(name, 0) for name, count in before.items())
