"""Find for each workload that a run moved which commits of the source caused that, or which failover, deadline or edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import read_run_record
from gitsched.reconcile.output.departures import add_departures, list_added_taints
from gitsched.reconcile.output.history_taints import compare_inputs, contains, list_latest_changes, list_taint_changes
from gitsched.reconcile.review.narrowed_sources import SourceNarrowing
from gitsched.reconcile.review.run_sources import MAX_COMMITS, RunSources, find_run_sources
from gitsched.reconcile.review.withheld_requests import list_carried_out, list_requests_before, was_withheld
from gitsched.reconcile.source.source_commits import describe_source_commit

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
        carried_out = list_carried_out(self._narrowing, self._output, commit, parent, found.values())
        withheld = {key: one for key, one in found.items() if one in carried_out}
        was_any = any(map(was_withheld, found.values()))
        all_sources = find_run_sources(self._output, self._source, commit, parent, found.values(), withheld=not was_any)
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
        newest = record.source if record is not None else ""
        for key, one in found.items():
            causing = tuple(each for each in one.departures if each.since is None or each.timed)
            if causing:
                causes[key] = self._find_departure(causing, begun, newest, all_sources)
        return causes

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
            return describe_source_commit(commit)
    return None


def _list_paths(failed: Collection[Departure], begun: Iterable[TaintChange]) -> set[str]:
    """Return the files of the source that say that clusters failed."""
    taints = {(one.cluster, one.taint) for one in failed}
    found = (each for each in begun if each.added and each.location and not each.from_facts)
    return {each.location.rpartition(":")[0] for each in found if (each.cluster, each.taint) in taints}
