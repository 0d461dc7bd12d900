"""Find the latest runs that took clusters or replicas from workloads, with the commits of the source that caused it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from gitsched.decide.commit_metadata import SOURCE_TRAILER
from gitsched.model.errors import GitschedError
from gitsched.model.history import HistoryFilter, PlacementMove, RolloutHistory, SourceChange
from gitsched.model.recent_runs import Loss, RecentLoss, RecentRun
from gitsched.model.scheduling import total_replicas
from gitsched.reconcile.fetch import read_run_record
from gitsched.reconcile.output.history_records import CommitRecords, HistoryBranch
from gitsched.reconcile.review.run_sources import MAX_COMMITS, RunSources, find_run_sources, list_commits
from gitsched.reconcile.source.source_commits import describe_source_commit, find_source_commit
from gitsched.render.format_versions import FORMAT_VERSION

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

    from gitsched.git import Repository
    from gitsched.model.commit import Commit
    from gitsched.model.document import Key
    from gitsched.model.fleet_status import WorkloadStatus
    from gitsched.model.rollouts import RolloutRecord, RolloutStatus
    from gitsched.reconcile.run import Fetched, RunContext

MAX_RUNS: Final = 20
"""Output commits that are read."""
AGE: Final = timedelta(days=3)
"""How old they may be."""
MAX_RECORDS: Final = 150
"""Records of one commit that are read; after twice as many, no further commit is. So many manifests of withheld workloads are read, too."""
NAMED_SOURCES: Final = 3
"""Source commits of a run that are named."""
_COPY: Final = "stateful-copy"
_REVERTS: Final = "This reverts commit "


def list_recent_runs(
    context: RunContext, fetched: Fetched, workloads: Iterable[WorkloadStatus], unclaimed: Iterable[Key]
) -> tuple[RecentRun, ...]:
    """Return the runs that took something from workloads that they still lack, the newest first. Each workload counts for the last run that
    moved it. What of the branch cannot be read is left out: `gitsched history` says why."""
    known = tuple(workloads)
    stopped = frozenset(_identify(one.key) for one in known if one.state == "stopped")
    current = {_identify(one.key): (one.key, one.clusters) for one in known}
    current |= {_identify(key): (key, {}) for key in unclaimed if _identify(key) not in current}
    repository, source = fetched.output.repository, context.source.repository
    branch = HistoryBranch(fetched.output.branch, repository, fetched.output_head or "", fetched.prefix)
    records = CommitRecords(branch, HistoryFilter(), lambda _: FORMAT_VERSION)
    found: list[RecentRun] = []
    seen: set[Key] = set()
    oldest, read = context.settings.now - AGE, 0
    for commit, parent in pairwise(repository.list_first_parents(fetched.output_head, MAX_RUNS + 1)):
        if commit.time < oldest or read >= 2 * MAX_RECORDS:
            break
        try:
            moves, more = records.read_moves(commit, parent, MAX_RECORDS)
            copied = _list_copied(repository, commit, fetched.prefix) if moves else frozenset()
            read += len(moves)
            new = [one for one in moves if _identify(one.move.key) not in seen and one.move.before and not one.damage]
            seen |= {_identify(one.move.key) for one in moves}
            losses = tuple(filter(None, (_find_loss(one, current, stopped, copied) for one in new)))
            if losses:
                run = RecentRun(commit.oid, parent.oid, commit.time, "", losses, more)
                found.append(_add_sources(run, find_run_sources(branch, source, commit, parent, moves)))
        except GitschedError:
            break
    return tuple(_add_reverts(found, source, fetched.source.oid)) if found else ()


def _identify(key: Key) -> Key:
    """Return a key as a path of the output branch has it."""
    return key._replace(kind=key.kind.lower(), group=key.group.lower())


def _list_copied(repository: Repository, commit: Commit, prefix: str) -> frozenset[tuple[str, str, str]]:
    """Return the workloads with data of which a run says that they got a copy with empty volumes."""
    record = read_run_record(repository, commit.tree, prefix)
    findings = record.findings if record is not None else ()
    return frozenset(one.resource for one in findings if one.code == _COPY and one.resource is not None)


def _find_loss(
    found: PlacementMove,
    current: Mapping[Key, tuple[Key, Mapping[str, int | None]]],
    stopped: Collection[Key],
    copied: Collection[tuple[str, str, str]],
) -> RecentLoss | None:
    """Return what a workload lost with a move; None if it has it again, or lost nothing."""
    key, now = current.get(_identify(found.move.key), (found.move.key, None))
    before, after = found.move.before, found.move.after
    move = found.move._replace(key=key)
    kind: Loss
    if now is None or not after:
        if now:
            return None  # it has clusters again
        kind = "removed" if now is None else "fewer" if _identify(key) in stopped else "unplaced"
        return RecentLoss(kind, move)
    if key.resource in copied and now.keys() > before.keys():
        kind = "copied"
    elif total_replicas(now.values()) <= total_replicas(after.values()) < total_replicas(before.values()):
        kind = "fewer"
    elif now.keys() == after.keys() and before.keys() - after.keys():
        kind = "moved"
    else:
        return None
    return RecentLoss(kind, move)


def _add_sources(run: RecentRun, found: RunSources) -> RecentRun:
    """Return a run with its cause, and the first commits of the source since the run before."""
    shown = found.commits[:NAMED_SOURCES]
    more = len(found.commits) - len(shown)
    return run._replace(cause=found.cause, sources=shown, more_sources=more, edits=found.edits[:NAMED_SOURCES])


def _add_reverts(runs: list[RecentRun], source: Repository, head: str) -> Iterator[RecentRun]:
    """Yield runs with the commit of the source that reverts the one commit that each followed, and whether nothing of it is left."""
    named = [run.sources[0].commit for run in runs if run.sources]
    earliest = named[-1] if named else head
    reverts = {oid: commit for commit in list_commits(source, earliest, head) for oid in _list_reverted(commit)}
    for run in runs:
        oid = run.sources[0].commit if run.has_one_source else ""
        revert = reverts.get(oid)
        if revert is not None:
            yield run._replace(reverted_by=describe_source_commit(revert))
        else:
            yield run._replace(is_undone=bool(oid) and _is_undone(source, oid, head))


def _is_undone(source: Repository, oid: str, head: str) -> bool:
    """Return whether all files that a commit changed are as before it, so that a revert would change nothing."""
    commit = source.commit(oid) if source.has_commit(oid) else None
    if commit is None or not commit.parents or not source.has_commit(commit.parents[0]):
        return False
    before, now = source.commit(commit.parents[0]).tree, source.commit(head).tree
    return set(source.changed_paths(before, commit.tree)).isdisjoint(source.changed_paths(before, now))


def _list_reverted(commit: Commit) -> Iterator[str]:
    """Yield the commits that git says in the message of a commit that it reverts."""
    for line in commit.message.splitlines():
        if line.startswith(_REVERTS):
            yield line.removeprefix(_REVERTS)[:40]


def find_rollout_histories(context: RunContext, fetched: Fetched, rollouts: Iterable[RolloutStatus]) -> dict[str, RolloutHistory]:
    """Return by name when each rollout that is not complete began, and when it stopped."""
    open_rollouts = {one.name: one for one in rollouts if one.state != "complete"}
    recorded = fetched.record.rollouts if fetched.record is not None else ()
    starts = _find_rollout_starts(context, fetched, [one for one in recorded if one.name in open_rollouts])
    stopped = {name: _find_stop(fetched, rollout) for name, rollout in open_rollouts.items() if rollout.state == "stopped"}
    return {name: RolloutHistory(starts.get(name), stopped.get(name)) for name in open_rollouts}


def _find_stop(fetched: Fetched, rollout: RolloutStatus) -> datetime | None:
    """Return the time of the run with which a rollout stopped: since then, the same clusters have failed. None where no run has seen that,
    or it is not one of the latest."""
    failed = {(one.cluster, one.since) for one in rollout.clusters if one.state == "failed"}
    found = None
    for commit in fetched.output.repository.list_first_parents(fetched.output_head, MAX_RUNS):
        try:
            record = read_run_record(fetched.output.repository, commit.tree, fetched.prefix)
        except GitschedError:
            return None
        recorded = next((one for one in record.rollouts if one.name == rollout.name), None) if record is not None else None
        if recorded is None or failed - {(one.cluster, one.applied_at) for one in recorded.changed if one.failed}:
            return found
        found = commit.time
    return None


def _find_rollout_starts(context: RunContext, fetched: Fetched, rollouts: Iterable[RolloutRecord]) -> dict[str, SourceChange]:
    """Return the commit of the source with which each rollout that is not complete began, by name, where it is known."""
    parents = {one.name: min(one.changed, key=lambda each: each.applied_at).parent for one in rollouts if one.changed}
    if not parents:
        return {}
    source, found = context.source.repository, dict[str, SourceChange]()
    for commit in fetched.output.repository.list_first_parents(fetched.output_head, MAX_COMMITS):
        if len(found) == len(parents):
            break
        oid = dict(commit.trailers).get(SOURCE_TRAILER, "")
        parent = commit.parents[0] if commit.parents else ""
        for name in [name for name, wanted in parents.items() if wanted == parent and oid]:
            found[name] = find_source_commit(source, oid)
    return found
