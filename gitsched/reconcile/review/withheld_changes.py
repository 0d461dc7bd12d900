"""Find what a status says of withheld changes: since when, which commits ask for them, and which workloads have data."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from gitsched.decide.guard.guard_settings import GuardRecord, read_guard_record
from gitsched.git import Repository
from gitsched.kinds.persistent_data import list_data
from gitsched.model.errors import GitschedError
from gitsched.model.fleet_status import WithheldHistory
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import find_output_blob, read_run_record
from gitsched.reconcile.output.history_records import HistoryBranch
from gitsched.reconcile.review.recent_runs import MAX_RECORDS, MAX_RUNS, NAMED_SOURCES
from gitsched.reconcile.review.run_sources import list_source_changes
from gitsched.reconcile.source.source_notes import find_reconciled
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.render.output_files import cluster_path, relative_path
from gitsched.report.lines import sort_moves

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from gitsched.model.changes import Move, WithheldChanges
    from gitsched.model.commit import Commit
    from gitsched.model.document import Key
    from gitsched.model.history import SourceChange
    from gitsched.reconcile.run import Fetched, RunContext, RunResult
    from gitsched.render.run_metadata import RunMetadata


class _Run(NamedTuple):
    """A commit of the output branch, with its record and what that says about the guard."""

    commit: Commit
    record: RunMetadata | None
    guard: GuardRecord


def read_withheld_history(context: RunContext, fetched: Fetched, withheld: WithheldChanges) -> WithheldHistory:
    """Return what is known of withheld changes; nothing without any."""
    if not withheld.moves:
        return WithheldHistory()
    data = dict(_list_data(context, fetched, sort_moves(withheld.moves)[:MAX_RECORDS]))
    output = HistoryBranch(fetched.output.branch, fetched.output.repository, fetched.output_head or "", fetched.prefix)
    runs = _list_withholding_runs(output)
    planned = (fetched.reconciled.source, fetched.source.oid)
    found = _list_requests(context, output, runs, withheld.digest, planned) if withheld.requested else ()
    sources = tuple(dict.fromkeys(found))
    return WithheldHistory(_find_start(runs), sources[:NAMED_SOURCES], data, len(sources[NAMED_SOURCES:]))


def list_run_requests(context: RunContext, run: RunResult) -> tuple[SourceChange, ...]:
    """Return the first commits of the source that ask for what a run has withheld; nothing if only doubted facts cause that."""
    if not run.plan.withheld.requested:
        return ()
    output = HistoryBranch(run.branch, Repository(run.git_directory), run.after or run.before or "", run.prefix)
    found = _list_requests(context, output, _list_withholding_runs(output), run.plan.withheld.digest, (run.source, run.source))
    return tuple(dict.fromkeys(found))[:NAMED_SOURCES]


def _list_data(context: RunContext, fetched: Fetched, moves: Iterable[Move]) -> Iterable[tuple[Key, tuple[str, ...]]]:
    """Yield the workloads with data, which their delivered manifests show: the source may have no document of them any more."""
    reader = SourceReader(fetched.output.repository, context.caches.files)
    for move in moves:
        paths = (cluster_path(cluster, relative_path(move.key)) for cluster in sorted(move.before))
        path, blob = next(((path, blob) for path in paths if (blob := find_output_blob(fetched, path)) is not None), ("", ""))
        documents = reader.read(blob, path).documents if blob else ()
        data = tuple(str(volume) for document in documents for volume in list_data(document.body))
        if data:
            yield move.key, data


def _list_withholding_runs(output: HistoryBranch) -> list[_Run]:
    """Return the commits of the output branch since the run that was the first to withhold something, the newest first, and the one before
    that run, if they are among the latest."""
    found, repository = list[_Run](), output.repository
    for commit in repository.list_first_parents(output.head or None, MAX_RUNS):
        try:
            record = read_run_record(repository, commit.tree, output.prefix)
        except GitschedError:
            break
        found.append(_Run(commit, record, read_guard_record(record.guard) if record is not None else GuardRecord()))
        if not found[-1].guard.digest:
            break
    return found


def _list_requests(
    context: RunContext, output: HistoryBranch, runs: Sequence[_Run], digest: str, planned: tuple[str, str]
) -> Iterable[SourceChange]:
    """Yield the commits of the source with which the withheld changes became those with this digest, the newest first. Where they became
    again what they were before, the commits between do not count. `planned` are the last one that a run has followed, and the one whose
    plan has the digest."""
    source = context.source.repository
    found: dict[str, tuple[SourceChange, ...]] = {}

    def add(digest: str, earlier: str, newest: str) -> None:
        if digest in found:
            while next(reversed(found)) != digest:
                found.popitem()
        else:
            found[digest] = list_source_changes(source, earlier, newest) if earlier not in ("", newest) else ()

    for before, run in pairwise((None, *reversed(runs))):
        if run is None or run.record is None or not run.guard.digest:
            continue
        earlier = run.guard.base
        if before is not None and before.record is not None:
            location = output.repository, before.commit.oid, output.branch, output.prefix
            earlier = find_reconciled(*location, before.record).source
        add(run.guard.digest, earlier, run.record.source)
    add(digest, *planned)
    for sources in reversed(found.values()):
        yield from sources


def _find_start(runs: Sequence[_Run]) -> datetime | None:
    """Return the time of the run since which changes are withheld; None where it is not one of the latest."""
    return runs[-2].commit.time if len(runs) > 1 and not runs[-1].guard.digest else None
