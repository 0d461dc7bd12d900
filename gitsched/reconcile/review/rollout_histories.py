"""Find when rollouts that are not complete began and stopped, and which commits of the source made the changes that they roll out."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from gitsched.model.errors import GitschedError
from gitsched.model.history import RolloutHistory
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import read_run_record
from gitsched.reconcile.output.history_records import identify_recorded
from gitsched.reconcile.review.narrowed_sources import SourceNarrowing
from gitsched.reconcile.review.recent_runs import MAX_RUNS
from gitsched.reconcile.review.run_sources import MAX_COMMITS, list_source_changes
from gitsched.reconcile.source.source_notes import find_reconciled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from gitsched.model.commit import Commit
    from gitsched.model.document import Key
    from gitsched.model.history import SourceChange
    from gitsched.model.rollouts import RolloutRecord, RolloutStatus
    from gitsched.reconcile.run import Fetched, RunContext
    from gitsched.render.run_metadata import RunMetadata


class _RecordedRollout(NamedTuple):
    """A rollout as a commit of the output branch has it; None where it is complete there."""

    commit: Commit
    record: RunMetadata
    rollout: RolloutRecord | None

    @property
    def held(self) -> set[Key]:
        """The workloads whose change some cluster does not have."""
        return {one.workload for one in self.rollout.held} if self.rollout is not None else set()


def find_rollout_histories(context: RunContext, fetched: Fetched, rollouts: Iterable[RolloutStatus]) -> dict[str, RolloutHistory]:
    """Return by name when each rollout that is not complete began, and when it stopped."""
    open_rollouts = [one for one in rollouts if one.state != "complete"]
    records = [*_read_records(fetched)] if open_rollouts else []
    narrowing, found = SourceNarrowing(context.source.repository, context.caches.files, texts=True), {}
    for one in open_rollouts:
        runs = [
            _RecordedRollout(commit, record, next((each for each in record.rollouts if each.name == one.name), None))
            for commit, record in records
        ]
        try:
            commits, note = _list_commits(context, fetched, one, runs), ""
        except GitschedError as error:
            commits, note = (), f"its commits cannot be read: {error}"
        workloads = {*map(identify_recorded, runs[0].held)} if runs else set()
        changes = narrowing.narrow(commits, workloads) if workloads else commits
        found[one.name] = RolloutHistory(changes, _find_stop(one, runs) if one.state == "stopped" else None, note)
    return found


def _read_records(fetched: Fetched) -> Iterator[tuple[Commit, RunMetadata]]:
    """Yield the latest commits of the output branch with their records, the newest first, as far as they can be read."""
    repository = fetched.output.repository
    for commit in repository.list_first_parents(fetched.output_head, MAX_RUNS):
        try:
            record = read_run_record(repository, commit.tree, fetched.prefix)
        except GitschedError:
            return
        if record is None:
            return
        yield commit, record


def _find_stop(rollout: RolloutStatus, runs: Iterable[_RecordedRollout]) -> datetime | None:
    """Return the time of the run with which a rollout stopped: since then, the same clusters have failed. None where no run has seen that,
    or it is not one of the latest."""
    failed = {(one.cluster, one.since) for one in rollout.clusters if one.state == "failed"}
    found = None
    for run in runs:
        if run.rollout is None or failed - {(one.cluster, one.applied_at) for one in run.rollout.changed if one.failed}:
            return found
        found = run.commit.time
    return None


def _list_commits(
    context: RunContext, fetched: Fetched, rollout: RolloutStatus, runs: Sequence[_RecordedRollout]
) -> tuple[SourceChange, ...]:
    """Return the commits of the source since the run before the one since which clusters lack changes of the rollout, the newest first."""
    held = runs[0].held if runs else set()
    for before in runs[1:] if held else ():
        if held.isdisjoint(before.held):
            return _list_followed(context, fetched, runs[0].record, before.commit, before.record)
    return _list_of_first_cluster(context, fetched, rollout, runs[0].rollout if runs else None)


def _list_of_first_cluster(
    context: RunContext, fetched: Fetched, rollout: RolloutStatus, last: RolloutRecord | None
) -> tuple[SourceChange, ...]:
    """Return the commits of the source of the run that delivered the change to the first cluster."""
    times = {one.since for one in rollout.clusters if one.since is not None}
    changed = [one for one in last.changed if one.applied_at in times] if last is not None else []
    parent = min(changed, key=lambda one: one.applied_at).parent if changed else ""
    if not parent:
        return ()
    repository = fetched.output.repository
    for commit, before in pairwise(repository.list_first_parents(fetched.output_head, MAX_COMMITS + 1)):
        if before.oid == parent:
            record, earlier = (read_run_record(repository, each.tree, fetched.prefix) for each in (commit, before))
            return _list_followed(context, fetched, record, before, earlier) if record is not None else ()
    return ()


def _list_followed(
    context: RunContext, fetched: Fetched, record: RunMetadata, before: Commit, earlier: RunMetadata | None
) -> tuple[SourceChange, ...]:
    """Return the commits of the source after those of a run up to those of a later one."""
    output = fetched.output
    reconciled = find_reconciled(output.repository, before.oid, output.branch, fetched.prefix, earlier).source if earlier else ""
    return list_source_changes(context.source.repository, reconciled, record.source)
