"""Data of the section about workloads that keep their placement on the HTML page."""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.model.changes import RetainedWorkload
from gitsched.model.finding import format_count
from gitsched.named_tuples import NamedTuple
from gitsched.report.lines import escape_unprintable, format_clusters, format_key
from gitsched.report.page.content import OPEN_GROUP


class RetainedRows(NamedTuple):
    """The workloads that keep their placement because of scheduling history: their number, rows of those that a request moves, which are
    shown at once if they are few, and a sentence about the others."""

    number: int
    rows: list[dict[str, str]]
    open: bool
    left: str


def list_retained(retained: Sequence[RetainedWorkload]) -> RetainedRows:
    """Return the workloads that keep their placement because of scheduling history."""
    rows = [_build_retained_row(workload) for workload in retained if workload.can_move]
    left = len(retained) - len(rows)
    others = format_count(left, "workload would get other clusters", "workloads would get other clusters")
    text = f"{others} only if new: a request to reschedule {'it' if left == 1 else 'them'} changes nothing."
    return RetainedRows(len(retained), rows, len(rows) <= OPEN_GROUP, text if left else "")


def _build_retained_row(retained: RetainedWorkload) -> dict[str, str]:
    current, rescheduled = format_clusters(retained.current), format_clusters(retained.if_rescheduled)
    remedy = escape_unprintable(retained.remedy)
    return {"name": format_key(retained.key), "current": current, "rescheduled": rescheduled, "remedy": remedy}
