"""Find for each workload that a run moved which commits of the source caused that, or which failover, deadline or edit."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import read_run_record
from gitsched.reconcile.output.departures import add_departures, list_added_taints
from gitsched.reconcile.output.history_records import identify_recorded
from gitsched.reconcile.output.history_taints import compare_inputs, contains, list_latest_changes, list_taint_changes
from gitsched.reconcile.review.narrowed_sources import SourceNarrowing
from gitsched.reconcile.review.run_sources import MAX_COMMITS, RunSources, describe_change, find_run_sources, list_source_changes
from gitsched.reconcile.review.withheld_requests import MAX_RUNS, list_carried_out, list_requests_before, was_withheld
from gitsched.reconcile.source.source_notes import find_reconciled

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gitsched.git import Repository
    from gitsched.model.commit import Commit
    from gitsched.model.document import Key
    from gitsched.model.history import Departure, PlacementMove, SourceChange, TaintChange
    from gitsched.reconcile.cache.caches import ParseCache
    from gitsched.reconcile.output.history_records import CommitRecords, HistoryBranch
    from gitsched.reconcile.run import Fetched, RunContext
    from gitsched.render.run_metadata import RunMetadata

MAX_FILES: Final = 1_000
"""Changed files among which the commit is searched that began a drain."""


class RunCause(NamedTuple):
    """The cause of a move: the commits of the source, and the clusters that the workload had to leave without one, or because a commit
    of the source says that they failed."""

    sources: RunSources
    departures: tuple[Departure, ...] = ()


class RunCauses:
    """The causes of what runs of an output branch moved."""

    def __init__(self, context: RunContext, fetched: Fetched, output: HistoryBranch, records: CommitRecords) -> None:
        self._source, self._facts, self._cache = (
            context.source.repository,
            fetched.facts.repository or context.source.repository,
            context.caches.files,
        )
        self._output, self._records = output, records
        self._narrowing = SourceNarrowing(self._source, self._cache)
        self._drains: dict[tuple[str, str, str], SourceChange | None] = {}

    def find_causes(self, commit: Commit, parent: Commit, moves: Mapping[Key, PlacementMove]) -> dict[Key, RunCause]:
        """Return the cause of each of some moves of a run, which are by workload."""
        if not moves:
            return {}
        record, before = (read_run_record(self._output.repository, each.tree, self._output.prefix) for each in (commit, parent))
        compared = [*compare_inputs(self._source, self._facts, before, record)]
        begun = [change for trees in compared if not trees.name for change in list_taint_changes(self._cache, trees)]
        begun += list_added_taints(self._records, self._cache, compared, commit, parent)
        found = dict(zip(moves, add_departures(self._records, commit, parent, [*moves.values()], begun), strict=True))
        causes = self._find_sources(commit, parent, found, record)
        for key, changes in self._list_continued(parent, found, before).items():
            causes[key] = RunCause(RunSources("source", changes))
        newest = record.source if record is not None else ""
        causing = {key: tuple(each for each in one.departures if each.since is None or each.timed) for key, one in found.items()}
        if any(causing.values()):
            sources = self._find_all_sources(commit, parent, found)
            causes |= {key: self._find_departure(left, begun, newest, sources) for key, left in causing.items() if left}
        return causes

    def _find_all_sources(self, commit: Commit, parent: Commit, found: Mapping[Key, PlacementMove]) -> RunSources:
        """Return the commits of the source since the run before, or since what was withheld then where nothing of that has moved."""
        withheld = not any(map(was_withheld, found.values()))
        return find_run_sources(self._output, self._source, commit, parent, found.values(), withheld=withheld)

    def _find_sources(
        self, commit: Commit, parent: Commit, found: Mapping[Key, PlacementMove], record: RunMetadata | None
    ) -> dict[Key, RunCause]:
        """Return by workload the commits of the source whose decisions a run delivers: those that requested a withheld change if it carries
        that out, else the new ones, with those whose withheld change they replace."""
        carried_out = list_carried_out(self._narrowing, self._output, commit, parent, found.values())
        withheld = {key: one for key, one in found.items() if one in carried_out}
        all_sources = self._find_all_sources(commit, parent, found)
        causes = {key: RunCause(self._narrow(all_sources, key, record)) for key in found if key not in withheld}
        replaced = {key: one for key, one in found.items() if key not in withheld and was_withheld(one)}
        requests = list_requests_before(self._source, self._output, parent, replaced.values())
        for key in replaced:
            sources = causes[key].sources
            others = tuple(one for one in requests if one not in sources.commits)
            causes[key] = RunCause(sources._replace(replaced=others))
        if withheld:
            requests = list_requests_before(self._source, self._output, parent, withheld.values())
            sources = find_run_sources(self._output, self._source, commit, parent, withheld.values())
            sources = sources._replace(commits=requests or sources.commits)
            causes |= {key: RunCause(self._narrow(sources, key, record)) for key in withheld}
        return causes

    def _list_continued(
        self, parent: Commit, keys: Collection[Key], before: RunMetadata | None
    ) -> dict[Key, tuple[SourceChange, ...]]:
        """Return by workload the commits of the source whose change a rollout has held back in clusters up to the `parent` of a run, which
        delivers it in more of them: those since the run before that which held it back first, if it is among the latest."""
        found: dict[Key, tuple[SourceChange, ...]] = {}
        pending = _list_held(before).intersection(keys)
        commits = self._output.repository.list_first_parents(parent.oid, MAX_RUNS) if pending else ()
        for commit in islice(commits, 1, None):
            record = read_run_record(self._output.repository, commit.tree, self._output.prefix)
            begun = pending - _list_held(record)
            if begun and record is not None and before is not None:
                output = self._output
                earlier = find_reconciled(output.repository, commit.oid, output.branch, output.prefix, record).source
                changes = list_source_changes(self._source, earlier, before.source)
                found |= {key: self._narrowing.narrow(changes, (key,)) for key in begun}
            pending -= begun
            if not pending:
                break
        return found

    def _find_departure(
        self, departures: Sequence[Departure], begun: Sequence[TaintChange], newest: str, sources: RunSources
    ) -> RunCause:
        """Return the cause with which a workload had to leave clusters: the commits that drained them, or what says that they failed."""
        drains = [self._find_drain(newest, one.cluster, one.taint) for one in departures if one.is_drain]
        failed = tuple(one for one in departures if not one.is_drain)
        paths = _list_paths(failed, begun)
        commits = [one for one in drains if one is not None]
        commits += [one for one in sources.commits if paths and self._narrowing.changes(one, paths)]
        is_late = all(one.timed for one in departures)
        if commits or (drains and not is_late):
            known = tuple(dict.fromkeys(commits)) if None not in drains else sources.commits
            return RunCause(RunSources("source", known), () if drains else failed)
        return RunCause(RunSources("deadline" if is_late else "facts"), tuple(departures))

    def _find_drain(self, newest: str, cluster: str, taint: str) -> SourceChange | None:
        """Return the latest commit of the source up to `newest` that drained a cluster with a taint; None if it is not among the last."""
        identity = newest, cluster, taint
        if identity not in self._drains:
            self._drains[identity] = find_drain(self._source, self._cache, *identity)
        return self._drains[identity]

    def _narrow(self, sources: RunSources, workload: Key, record: RunMetadata | None) -> RunSources:
        """Return sources without the commits that only change other workloads, unless all of them do. Where workloads share capacity, these
        may be the cause."""
        if record is None or record.placed:
            return sources
        return sources._replace(commits=self._narrowing.narrow(sources.commits, (workload,)))


def find_drain(source: Repository, cache: ParseCache, newest: str, cluster: str, taint: str) -> SourceChange | None:
    """Return the latest commit of the source up to `newest` that drained a cluster with a taint; None if it is not among the last."""
    mark = cluster.encode()
    for commit, trees in list_latest_changes(source, newest, MAX_COMMITS, MAX_FILES):
        concerned = trees._replace(paths=[path for path in trees.paths if contains(trees, trees.after, path, mark)])
        changes = list_taint_changes(cache, concerned) if concerned.paths else ()
        if any((each.cluster, each.taint, each.added) == (cluster, taint, True) for each in changes):
            return describe_change(source, commit)
    return None


def _list_held(record: RunMetadata | None) -> set[Key]:
    """Return the workloads whose change rollouts hold back in clusters, with their kinds in lower case."""
    rollouts = record.rollouts if record is not None else ()
    return {identify_recorded(one.workload) for rollout in rollouts for one in rollout.held}


def _list_paths(failed: Collection[Departure], begun: Iterable[TaintChange]) -> set[str]:
    """Return the files of the source that say that clusters failed."""
    taints = {(one.cluster, one.taint) for one in failed}
    found = (each for each in begun if each.added and each.location and not each.from_facts)
    return {each.location.rpartition(":")[0] for each in found if (each.cluster, each.taint) in taints}
