"""Find what a status says of withheld changes: since when, which commits ask for them, and which workloads have data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.kinds.persistent_data import list_data
from gitsched.model.fleet_status import WithheldHistory
from gitsched.reconcile.fetch import find_output_blob
from gitsched.reconcile.output.history_records import HistoryBranch
from gitsched.reconcile.review.recent_runs import MAX_RECORDS, NAMED_SOURCES
from gitsched.reconcile.review.withheld_requests import PlannedRequest, WithholdingRun, list_requests, list_withholding_runs
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.render.output_files import cluster_path, relative_path
from gitsched.report.lines import sort_moves
from gitsched.report.recent_runs import describe_requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from gitsched.model.changes import Move, WithheldChanges
    from gitsched.model.document import Key
    from gitsched.model.history import SourceChange
    from gitsched.reconcile.run import Fetched, RunContext, RunResult


def read_withheld_history(context: RunContext, fetched: Fetched, withheld: WithheldChanges) -> WithheldHistory:
    """Return what is known of withheld changes; nothing without any."""
    if not withheld.moves:
        return WithheldHistory()
    data = dict(_list_data(context, fetched, sort_moves(withheld.moves)[:MAX_RECORDS]))
    runs, sources = _read_requests(context, fetched, withheld)
    return WithheldHistory(_find_start(runs), sources[:NAMED_SOURCES], data, len(sources[NAMED_SOURCES:]))


def list_plan_requests(context: RunContext, fetched: Fetched, withheld: WithheldChanges) -> tuple[SourceChange, ...]:
    """Return the commits of the source that ask for what a plan withholds; nothing if only doubted facts cause that."""
    return _read_requests(context, fetched, withheld)[1] if withheld.moves and withheld.requested else ()


def _read_requests(
    context: RunContext, fetched: Fetched, withheld: WithheldChanges
) -> tuple[list[WithholdingRun], tuple[SourceChange, ...]]:
    """Return the runs that withhold something, and the commits of the source that ask for it."""
    branch = HistoryBranch.of_fetched(fetched)
    runs = list_withholding_runs(branch)
    planned = PlannedRequest(withheld.digest, fetched.reconciled.source, fetched.source.oid)
    return runs, list_requests(context.source.repository, branch, runs, planned) if withheld.requested else ()


def describe_plan_requests(sources: Sequence[SourceChange]) -> str:
    """Return which commits of the source ask for what a plan withholds; "" without any."""
    return describe_requests(sources[:NAMED_SOURCES], len(sources[NAMED_SOURCES:]))


def list_run_requests(context: RunContext, run: RunResult) -> tuple[SourceChange, ...]:
    """Return the commits of the source that ask for what a run has withheld; nothing if only doubted facts cause that."""
    if not run.plan.withheld.requested:
        return ()
    output = HistoryBranch.of_run(run)
    planned = PlannedRequest(run.plan.withheld.digest, run.source, run.source)
    return list_requests(context.source.repository, output, list_withholding_runs(output), planned)


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


def _find_start(runs: Sequence[WithholdingRun]) -> datetime | None:
    """Return the time of the run since which changes are withheld; None where it is not one of the latest."""
    return runs[-2].commit.time if len(runs) > 1 and not runs[-1].guard.digest else None
