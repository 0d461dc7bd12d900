"""What the page of a plan says of the drains that a change ends: who began them, which workloads return, and which stay where they went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitsched.model.finding import format_count, format_names
from gitsched.report.history import describe_source
from gitsched.report.lines import format_key
from gitsched.report.maintenance import describe_return

if TYPE_CHECKING:
    from gitsched.model.history import EndedDrain
    from gitsched.report.review import Review

DRAINED_WORKLOADS_SHOWN = 3
"""The workloads that are named of one cluster; the others are counted."""


def describe_ended_drain(drain: EndedDrain, review: Review, *, is_drained: bool) -> Iterator[str]:
    """Yield what a change ends, what that does to workloads, and how those come back that stay where they went. `is_drained`: something
    else lets workloads leave the cluster after the change, too."""
    cluster = drain.cluster
    where = f" (was {drain.location})" if drain.location else ""
    since = f"; {describe_source(drain.added_by)} added it" if drain.added_by is not None else ""
    ends = f"{cluster} stays drained, but for one taint less" if is_drained else f"The drain of {cluster} ends"
    yield f"{ends}: the taint {drain.taint} is removed{where}{since}"
    back = [move.key for move in review.allowed_moves if cluster in move.after and cluster not in move.before]
    stay = [one.key for one in review.retained if cluster in one.if_rescheduled and cluster not in one.current]
    names, others = (format_names(list(map(format_key, keys)), DRAINED_WORKLOADS_SHOWN) for keys in (back, stay))
    if back:
        yield f"{format_count(len(back), 'workload goes', 'workloads go')} to {cluster} with this change: {names}"
    if stay:
        only = "" if back else f"Nothing goes to {cluster} by this change alone: "
        count = format_count(len(stay), "workload stays where it went", "workloads stay where they went")
        yield f"{only}{count}: {others}. To bring back what left: {describe_return(drain.added_by)}"
