"""Keep the approved content of workloads on the output branch while no cluster has it any more: failover may need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gitsched.decide.rollouts.delivered_files import DeliveredFiles, list_former_clusters
from gitsched.decide.rollouts.pending_files import PendingFiles
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.document import Key
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.rollouts import ApprovedFiles, HeldFiles, RolloutRecord
from gitsched.render.output_files import approved_path


class ApprovedFilesKeeper:
    """Chooses what is kept. `find_blob` returns the blob of a path in the previous output."""

    def __init__(self, delivered: DeliveredFiles, find_blob: Callable[[str], str | None]) -> None:
        self._delivered, self._find_blob = delivered, find_blob

    def keep(
        self,
        before: RolloutRecord,
        after: RolloutRecord,
        members: Iterable[WorkloadFiles],
        changes: Mapping[str, Iterable[PendingFiles]],
    ) -> tuple[ApprovedFiles, ...]:
        """Return what is kept after a step: of each workload with a change whose approved content no cluster has. `changes` are by cluster
        those of the step."""
        known = {one.workload: one for one in before.approved}
        held: dict[Key, list[HeldFiles]] = {}
        for one in before.held:
            held.setdefault(one.workload, []).append(one)
        changed: dict[Key, list[str]] = {}
        for cluster, found in sorted(changes.items()):
            for pending in found:
                changed.setdefault(pending.held.workload, []).append(cluster)
        waiting = {one.workload for one in after.held}
        holding = {one.workload for one in after.held if one.approved and one.paths}
        lost = {one.workload for one in after.lost}
        delivered = {one.cluster for one in after.changed if not one.skipped}
        kept = []
        for files in members:
            key = files.outcome.key
            if key not in known and (key in holding or not (key in held or key in changed)):
                continue
            if key in waiting or key in lost or not delivered.isdisjoint(files.outcome.replicas_by_cluster):
                chosen = known.get(key) or self._choose(files, held.get(key, ()), changed.get(key, ()))
                kept += [chosen] if chosen is not None else []
        return tuple(sorted(kept))

    def list_files(self, before: Iterable[RolloutRecord], after: Iterable[RolloutRecord]) -> dict[str, PlannedFile | None]:
        """Return the files below approved/ after a step; None for those that go."""
        known, wanted = (
            {path for record in records for one in record.approved for path in one.paths} for records in (before, after)
        )
        files: dict[str, PlannedFile | None] = {approved_path(path): None for path in known - wanted}
        for path in wanted:
            blob = self._find_blob(approved_path(path) if path in known else path)
            files |= {approved_path(path): ExistingBlob(blob)} if blob is not None else {}
        return files

    def _choose(self, files: WorkloadFiles, held: Iterable[HeldFiles], changed: Iterable[str]) -> ApprovedFiles | None:
        """Return the approved content that clusters had until now: what was held back there, or, if nothing was, what a change replaces;
        nothing for a workload that was nowhere; None if none of the clusters had it."""
        outcome, before = files.outcome, list(held)
        names = {one.cluster for one in before if one.approved and one.paths}
        if not before:
            names = {*changed, *list_former_clusters(outcome)}
        for name in sorted(names):
            found = self._delivered.list_delivered(files, name)
            if found:
                return ApprovedFiles(outcome.key, name, self._delivered.list_paths(outcome, name, found))
        return None if any(one.paths for one in before) else ApprovedFiles(outcome.key, "", ())
