"""Find the latest runs that took clusters or replicas from workloads, with the commits of the source that caused it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from gitsched.model.errors import GitschedError
from gitsched.model.history import HistoryFilter, PlacementMove, SourceChange
from gitsched.model.recent_runs import Loss, RecentLoss, RecentRun
from gitsched.model.scheduling import total_replicas
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import read_run_record
from gitsched.reconcile.output.deciding_files import DecidingFiles
from gitsched.reconcile.output.history_records import CommitRecords, HistoryBranch, identify_recorded
from gitsched.reconcile.output.history_taints import ComparedTrees
from gitsched.reconcile.output.removed_documents import find_removed_workload
from gitsched.reconcile.review.run_causes import RunCause, RunCauses
from gitsched.reconcile.review.run_sources import RunSources, find_run_sources, list_commits
from gitsched.reconcile.source.reverted_files import find_cause_files
from gitsched.reconcile.source.source_commits import describe_source_commit, find_change
from gitsched.render.format_versions import FORMAT_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Sequence
    from datetime import datetime

    from gitsched.git import Repository
    from gitsched.model.commit import Commit
    from gitsched.model.document import Key
    from gitsched.model.fleet_status import WorkloadStatus
    from gitsched.reconcile.run import Fetched, RunContext

MAX_RUNS: Final = 20
"""Output commits that are read."""
AGE: Final = timedelta(days=3)
"""How old they may be."""
MAX_RECORDS: Final = 150
"""Records of one commit that are read; after twice as many, no further commit is. So many manifests of withheld workloads are read, too."""
FILES_READ: Final = 3
"""Runs of which the changed files of the source are read."""
NAMED_SOURCES: Final = 3
"""Source commits of a run that are named."""
MAX_REMOVED: Final = 20
"""Removed workloads of a run of which the commit is searched that removed them."""
_COPY: Final = "stateful-copy"
_LEAVE: Final = "stateful-move"
_REVERTS: Final = "This reverts commit "


_Resource = tuple[str, str, str]
_Aspect = Literal["clusters", "replicas"]
"""What of a placement a move changes. What a later run changed of it counts."""


class _ReadRun(NamedTuple):
    """A commit of the output branch with its parent, what it moved by key, as paths have it, the number of moves that are not read, and the
    workloads with data that got a copy, or that left it."""

    commit: Commit
    parent: Commit
    moves: Mapping[Key, PlacementMove]
    more_moves: int
    copied: frozenset[_Resource]
    left_data: frozenset[_Resource]


def list_recent_runs(
    context: RunContext, fetched: Fetched, workloads: Iterable[WorkloadStatus], unclaimed: Iterable[Key]
) -> tuple[RecentRun, ...]:
    """Return what runs took from workloads that these still lack, the newest run first, each cause of a run by itself. What of the branch
    cannot be read is left out: `gitsched history` says why."""
    known = tuple(workloads)
    stopped = frozenset(identify_recorded(one.key) for one in known if one.state == "stopped")
    current = {identify_recorded(one.key): (one.key, one.clusters) for one in known}
    current |= {identify_recorded(key): (key, {}) for key in unclaimed if identify_recorded(key) not in current}
    source = context.source.repository
    branch = HistoryBranch.of_fetched(fetched)
    records = CommitRecords(branch, HistoryFilter(), lambda _: FORMAT_VERSION)
    read = _read_runs(records, fetched, context.settings.now - AGE)
    causes = RunCauses(context, fetched, branch, records)

    @cache
    def find_sources(index: int) -> RunSources:
        run = read[index]
        return find_run_sources(branch, source, run.commit, run.parent, run.moves.values())

    found: list[RecentRun] = []
    search = _LossSearch(read, current, stopped, _find_reverted_runs(source, read, find_sources))
    try:
        for index, run in enumerate(read):
            losses = search.find_losses(index)
            if any(loss.kind == "removed" for loss in losses.values()):
                losses = _drop_later_removals(context, fetched, losses, find_sources(index).commits)
            if losses:
                earlier = search.reverted.get(index)
                is_revert = earlier is not None and len(find_sources(index).commits) == 1
                reverts = find_sources(earlier).commits[0] if earlier is not None and is_revert else None
                new = RecentRun(run.commit.oid, run.parent.oid, run.commit.time, "", (), run.more_moves, reverts=reverts)
                moves = {key: run.moves[key] for key in (*losses, *search.list_taken(index, losses))}
                for one in _split_losses(new, losses, causes.find_causes(run.commit, run.parent, moves)):
                    own = [moves[identify_recorded(loss.move.key)] for loss in one.losses]
                    found.append(_add_files(context, fetched, one, own) if len(found) < FILES_READ else one)
    except GitschedError:
        pass
    return tuple(_add_reverts(found, source, fetched.reconciled.source, fetched.source.oid)) if found else ()


def describe_missing_history(context: RunContext, fetched: Fetched) -> str:
    """Return what brings the commits of the output branch in which `list_recent_runs` looks, if the clone lacks some; "" if not."""
    repository, last = fetched.output.repository, None
    for last in repository.list_first_parents(fetched.output_head, MAX_RUNS):
        if last.time < context.settings.now - AGE:
            return ""
    if last is None or not last.parents or repository.has_commit(last.parents[0]):
        return ""
    return "git fetch --unshallow, or fetch-depth: 0 in CI, brings it" if repository.private is None else "a later run may fetch it"


class _LossSearch:
    """Finds what runs took from workloads that these still lack. `reverted` are the runs that carry out a revert, with the run whose commit
    they revert, by index."""

    def __init__(
        self,
        runs: Sequence[_ReadRun],
        current: Mapping[Key, tuple[Key, Mapping[str, int | None]]],
        stopped: Collection[Key],
        reverted: Mapping[int, int],
    ) -> None:
        self._runs, self._current, self._stopped, self.reverted = runs, current, stopped, reverted
        self._undone: set[tuple[int, Key]] = set()  # moves that a later run has taken back
        self._settled: dict[Key, set[_Aspect]] = {}  # by workload what a later run changed

    def find_losses(self, index: int) -> dict[Key, RecentLoss]:
        """Return what a run took; called for each run, the newest first."""
        run, earlier = self._runs[index], self.reverted.get(index)
        losses: dict[Key, RecentLoss] = {}
        for key, one in run.moves.items():
            if (index, key) in self._undone:
                continue
            if earlier is not None and _is_back(one, self._runs[earlier].moves.get(key)):
                self._undone.add((earlier, key))
                continue
            changed, settled = _list_aspects(one), self._settled.setdefault(key, set())
            is_known = bool(one.move.before) and not one.damage
            loss = _find_loss(one, self._current, self._stopped, run.copied, changed - settled) if is_known else None
            if loss is not None:
                losses[key] = loss._replace(left_data=loss.move.key.resource in run.left_data)
            settled |= changed - {"replicas"} if _count(one.move.before) < _count(one.move.after) else changed
        return losses

    def list_taken(self, index: int, losses: Container[Key]) -> Iterator[Key]:
        """Yield the workloads from which a run took something that is not so any more, without these `losses`."""
        run = self._runs[index]
        for key, one in run.moves.items():
            if key not in losses and one.move.before and not one.damage:
                then = {} if one.removed else {key: (one.move.key, one.move.after)}
                if _find_loss(one, then, (), run.copied, _list_aspects(one)) is not None:
                    yield key


def _drop_later_removals(
    context: RunContext, fetched: Fetched, losses: Mapping[Key, RecentLoss], commits: Sequence[SourceChange]
) -> dict[Key, RecentLoss]:
    """Return losses without workloads that no policy selected any more after the `commits` of a run, and that a later commit removed."""
    source = context.source.repository
    later: set[Key] = set()
    for key in [key for key, loss in losses.items() if loss.kind == "removed"][:MAX_REMOVED] if commits else ():
        removal = find_removed_workload(context, fetched, key)
        oid = removal.source.commit if removal is not None else ""
        if oid and all(one.commit != oid for one in commits) and source.has_ancestor(oid, commits[0].commit):
            later.add(key)
    return {key: loss for key, loss in losses.items() if key not in later}


def _split_losses(run: RecentRun, losses: Mapping[Key, RecentLoss], causes: Mapping[Key, RunCause]) -> Iterator[RecentRun]:
    """Yield a run once for each cause that has losses, with these and the number of all workloads with that cause; the cause of most of
    them first."""
    by_cause: dict[tuple[RunSources, bool], list[Key]] = {}
    groups = {key: (cause.sources, bool(cause.departures)) for key, cause in causes.items()}
    for key in losses:
        by_cause.setdefault(groups[key], []).append(key)
    concerned = Counter(groups.values())
    for cause, keys in sorted(by_cause.items(), key=lambda entry: -len(entry[1])):
        left = dict.fromkeys(one for key in keys for one in causes[key].departures)
        own = tuple(losses[key] for key in keys)
        yield _add_sources(run._replace(losses=own, departures=tuple(left), concerned=concerned[cause]), cause[0])


def _count(clusters: Mapping[str, int | None]) -> int:
    """Return the replicas of a placement in all clusters."""
    return total_replicas(clusters.values())


def _list_aspects(found: PlacementMove) -> set[_Aspect]:
    """Return what of a placement a move changed."""
    before, after = found.move.before, found.move.after
    clusters: set[_Aspect] = {"clusters"} if before.keys() != after.keys() else set()
    return clusters | ({"replicas"} if total_replicas(before.values()) != total_replicas(after.values()) else set())


def _read_runs(records: CommitRecords, fetched: Fetched, oldest: datetime) -> list[_ReadRun]:
    """Return the latest commits of the output branch with what they moved, the newest first, as far as they can be read."""
    repository, read, count = fetched.output.repository, list[_ReadRun](), 0
    for commit, parent in pairwise(repository.list_first_parents(fetched.output_head, MAX_RUNS + 1)):
        if commit.time < oldest or count >= 2 * MAX_RECORDS:
            break
        try:
            moves, more = records.read_moves(commit, parent, MAX_RECORDS)
            copied, left_data = _list_with_data(repository, commit, fetched.prefix) if moves else (frozenset(), frozenset())
        except GitschedError:
            break
        count += len(moves)
        own = {identify_recorded(one.move.key): one for one in moves}
        read.append(_ReadRun(commit, parent, own, more, copied, left_data))
    return read


def _find_reverted_runs(source: Repository, runs: Sequence[_ReadRun], find_sources: Callable[[int], RunSources]) -> dict[int, int]:
    """Return the indices of runs that carry out the revert of what an older run followed, alone or with other commits, with the index of
    that. The revert of a revert does again what the first commit did, so it counts as a change of its own."""
    found: dict[int, int] = {}
    for index in reversed(range(len(runs))):
        for other in range(index + 1, len(runs)):
            is_back = any(_is_back(one, runs[other].moves.get(key)) for key, one in runs[index].moves.items())
            if other in found or not is_back:
                continue
            try:
                new, old = find_sources(index).commits, find_sources(other).commits
            except GitschedError:
                break
            if len(old) == 1 and any(_reverts(source, one.commit, old[0].commit) for one in new[:NAMED_SOURCES]):
                found[index] = other
                break
    return found


def _is_back(move: PlacementMove, earlier: PlacementMove | None) -> bool:
    """Return whether a workload is where it was before an earlier move, with no fewer replicas than then, or than since."""
    if earlier is None:
        return False
    before, after = earlier.move.before, move.move.after
    fewest = min(total_replicas(side.values()) for side in (before, move.move.before))
    return before.keys() == after.keys() and fewest <= total_replicas(after.values())


def _reverts(source: Repository, oid: str, earlier: str) -> bool:
    """Return whether a commit says that it reverts an earlier one, or changes nothing but to bring back all files that this changed."""
    if not (source.has_commit(oid) and source.has_commit(earlier)):
        return False
    commit = source.commit(oid)
    if earlier in _list_reverted(commit):
        return True
    new, old = find_change(source, oid), find_change(source, earlier)
    return new is not None and old is not None and set(new.paths) == set(old.paths) and _is_undone(source, earlier, oid)


def _list_with_data(repository: Repository, commit: Commit, prefix: str) -> tuple[frozenset[_Resource], frozenset[_Resource]]:
    """Return the workloads with data of which a run says that they got a copy with empty volumes, and those that left their data."""
    record = read_run_record(repository, commit.tree, prefix)
    found = [(one.code, one.resource) for one in record.findings if one.resource is not None] if record is not None else []
    copied, left = (frozenset(resource for code, resource in found if code == wanted) for wanted in (_COPY, _LEAVE))
    return copied, left


def _find_loss(
    found: PlacementMove,
    current: Mapping[Key, tuple[Key, Mapping[str, int | None]]],
    stopped: Collection[Key],
    copied: Collection[_Resource],
    aspects: Collection[_Aspect],
) -> RecentLoss | None:
    """Return what a workload lost with a move, of those `aspects` that no later run changed; None if it has it again, or lost nothing."""
    key, now = current.get(identify_recorded(found.move.key), (found.move.key, None))
    before, after = found.move.before, found.move.after
    move = found.move._replace(key=key)
    kind: Loss
    if now is None or not after:
        if now or "clusters" not in aspects or (now is None and not found.removed):
            return None  # it has clusters again, or a later commit removed it
        kind = "removed" if now is None else "fewer" if identify_recorded(key) in stopped else "unplaced"
        return RecentLoss(kind, move)
    if "clusters" in aspects and key.resource in copied and now.keys() > before.keys():
        kind = "copied"
    elif "replicas" in aspects and max(_count(now), _count(after)) < _count(before):
        kind, move = "fewer", move._replace(after=now) if _count(now) > _count(after) else move
    elif "clusters" in aspects and now.keys() == after.keys() and before.keys() - after.keys():
        kind = "moved"
    else:
        return None
    return RecentLoss(kind, move)


def _add_sources(run: RecentRun, found: RunSources) -> RecentRun:
    """Return a run with its cause, and the first commits of the source since the run before."""
    shown = found.commits[:NAMED_SOURCES]
    more = len(found.commits) - len(shown)
    edits = found.edits[:NAMED_SOURCES]
    return run._replace(cause=found.cause, sources=shown, more_sources=more, edits=edits, replaced=found.replaced[:NAMED_SOURCES])


def _add_files(context: RunContext, fetched: Fetched, run: RecentRun, moves: Sequence[PlacementMove]) -> RecentRun:
    """Return a run with the files of the one commit of the source that it followed: those that decide its losses, and others."""
    source = context.source.repository
    change = find_change(source, run.sources[0].commit) if run.has_one_source else None
    if change is None or len(change.paths) == 1:
        return run
    files = DecidingFiles(context.caches.files, ComparedTrees(source, *change), moves, moves)
    deciding = [files.find(move) for move in moves]
    names = {one.path for found in deciding for one in found} if all(deciding) else set[str]()
    return run._replace(files=find_cause_files(source, run.sources[0].commit, fetched.source.tree, names))


def _add_reverts(runs: list[RecentRun], source: Repository, reconciled: str, head: str) -> Iterator[RecentRun]:
    """Yield runs with the commit of the source that reverts the one commit that each followed, whether nothing of it is left, and whether
    the `reconciled` commit came before that."""
    named = [run.sources[0].commit for run in runs if run.sources]
    earliest = named[-1] if named else head
    reverts: dict[str, Commit] = {}
    for commit in list_commits(source, earliest, head):
        if commit.oid not in reverts:  # the revert of a revert brings the first commit back
            reverts |= dict.fromkeys(_list_reverted(commit), commit)
    is_behind = reconciled not in ("", head) and source.has_commit(reconciled)
    waiting = {commit.oid for commit in list_commits(source, reconciled, head)} if is_behind else set[str]()
    for run in runs:
        oid = run.sources[0].commit if run.has_one_source else ""
        revert = reverts.get(oid)
        if revert is not None:
            yield run._replace(reverted_by=describe_source_commit(revert), awaits_run=revert.oid in waiting)
        else:
            is_undone = bool(oid) and _is_undone(source, oid, head)
            awaits_run = is_undone and is_behind and not _is_undone(source, oid, reconciled)
            yield run._replace(is_undone=is_undone, awaits_run=awaits_run)


def _is_undone(source: Repository, oid: str, head: str) -> bool:
    """Return whether all files that a commit changed are as before it, so that a revert would change nothing."""
    change = find_change(source, oid)
    return change is not None and set(change.paths).isdisjoint(source.changed_paths(change.before, source.commit(head).tree))


def _list_reverted(commit: Commit) -> Iterator[str]:
    """Yield the commits that git says in the message of a commit that it reverts."""
    for line in commit.message.splitlines():
        if line.startswith(_REVERTS):
            yield line.removeprefix(_REVERTS)[:40]
