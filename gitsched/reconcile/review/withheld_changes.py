"""Find what a status says of withheld changes: since when, which commits ask for them, and which workloads have data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.decide.guard.guard_settings import GuardRecord, read_guard_record
from gitsched.kinds.persistent_data import list_data
from gitsched.model.errors import GitschedError
from gitsched.model.fleet_status import WithheldHistory
from gitsched.reconcile.fetch import find_output_blob, read_run_record
from gitsched.reconcile.review.recent_runs import MAX_RECORDS, MAX_RUNS, NAMED_SOURCES
from gitsched.reconcile.review.run_sources import list_source_changes
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.render.output_files import cluster_path, relative_path
from gitsched.report.lines import sort_moves

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from gitsched.model.changes import Move
    from gitsched.model.document import Key
    from gitsched.model.history import SourceChange
    from gitsched.reconcile.run import Fetched, RunContext


def read_withheld_history(context: RunContext, fetched: Fetched, moves: Sequence[Move]) -> WithheldHistory:
    """Return what is known of withheld changes; nothing without any."""
    if not moves:
        return WithheldHistory()
    data = dict(_list_data(context, fetched, sort_moves(moves)[:MAX_RECORDS]))
    return WithheldHistory(_find_start(fetched), _list_requests(context, fetched), data)


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


def _list_requests(context: RunContext, fetched: Fetched) -> tuple[SourceChange, ...]:
    """Return the commits of the source since the last run that withheld nothing: one of them asks for what is withheld."""
    record, source = fetched.record, context.source.repository
    guard = read_guard_record(record.guard) if record is not None else GuardRecord()
    earlier = guard.base if guard.digest else fetched.reconciled.source
    if not earlier or earlier == fetched.source.oid:
        return ()
    return list_source_changes(source, earlier, fetched.source.oid)[:NAMED_SOURCES]


def _find_start(fetched: Fetched) -> datetime | None:
    """Return the time of the run since which changes are withheld; None where it is not one of the latest."""
    start, repository = None, fetched.output.repository
    for commit in repository.list_first_parents(fetched.output_head, MAX_RUNS):
        try:
            record = read_run_record(repository, commit.tree, fetched.prefix)
        except GitschedError:
            return None
        if record is None or not read_guard_record(record.guard).digest:
            return start
        start = commit.time
    return None
