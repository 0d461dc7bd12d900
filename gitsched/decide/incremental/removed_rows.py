"""The workloads that an incremental plan removes, and their moves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.removals import (
    INDEPENDENT_REASON,
    INTENDED_REASONS,
    REMOVED_REASON,
    UNSELECTED_REASON,
    read_removed_placement,
)
from gitsched.model.changes import Move
from gitsched.render.output_files import status_path

if TYPE_CHECKING:
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.engines import EngineRecords
    from gitsched.decide.incremental.plan_state import Totals, WorkloadRow
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.model.document import Key


def read_row_removals(
    removed: Mapping[Key, WorkloadRow], totals: Totals, records: EngineRecords, snapshot: Snapshot
) -> dict[Key, RemovedPlacement] | None:
    """Return the workloads that no API places any more, in the order of their records; None if a record cannot be read.

    `totals` are those of the last plan, `records` those of this one that belong to no workload.
    """
    written = {key for key, _ in records}
    gone = [key for key, _ in totals.records if key not in written]
    gone += [key for row in removed.values() for key in row.record_keys]
    placements: dict[Key, RemovedPlacement] = {}
    for key in sorted(gone, key=status_path):
        body = snapshot.previous.get(key)
        if body is None:
            return None
        found = read_removed_placement(body)
        if found is not None:
            placements[found.workload.key] = found
    return placements


def list_row_moves(removed: Iterable[RemovedPlacement], snapshot: Snapshot) -> Iterator[Move]:
    """Yield the moves of removed workloads."""
    for workload, *_ in removed:
        reason = REMOVED_REASON
        if workload.key in snapshot.templates:
            reason = INDEPENDENT_REASON if workload.dependent else UNSELECTED_REASON
        yield Move(workload.key, workload.replicas, {}, reason, intended=reason in INTENDED_REASONS)
