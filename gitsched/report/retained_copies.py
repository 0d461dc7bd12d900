"""Copies that clusters keep for an overlap, as text."""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.model.changes import RetainedCopy
from gitsched.model.finding import format_count, format_names
from gitsched.model.time import format_time
from gitsched.report.lines import format_key, list_limited
from gitsched.report.name_ranges import format_ranges

COPIES_SHOWN = 20
"""The number of lines about copies; JSON contains all."""
NAMES_SHOWN = 3
"""The number of workloads that are named where one line stands for many copies."""


MAX_SINGLE_COPIES = 10
"""The number of copies up to which each is listed; of more, those with the same end are one line."""


def describe_retained_copies(copies: Sequence[RetainedCopy], shown: int = COPIES_SHOWN) -> list[str]:
    """Return a line for each copy, or for many that stay equally long; the first of them by workload, and the number of the others."""
    if len(copies) <= MAX_SINGLE_COPIES:
        return list_limited(list(map(describe_retained_copy, copies)), shown)
    ends: dict[str, list[RetainedCopy]] = {}
    for copy in copies:
        ends.setdefault(_describe_end(copy), []).append(copy)
    return list_limited([f"{_name_copies(same, 'stay')} until {end}" for end, same in ends.items()], shown)


def describe_retained_copy(copy: RetainedCopy) -> str:
    """Return where a copy stays and until when."""
    replicas = "" if copy.replicas is None else f" with {format_count(copy.replicas, 'replica')}"
    return f"{format_key(copy.workload)} stays in {copy.cluster}{replicas} until {_describe_end(copy)}"


def _describe_end(copy: RetainedCopy) -> str:
    if copy.preserved and copy.until is not None:
        return f"{format_time(copy.until)}, and is kept in the cluster after that"
    return "another cluster has one" if copy.start is None else format_time(copy.until) if copy.until is not None else "its end"


def describe_ended_copies(copies: Sequence[RetainedCopy], shown: int = COPIES_SHOWN) -> list[str]:
    """Return a line for each copy that goes because its overlap is over, or one for many."""
    over = [copy for copy in copies if not copy.preserved]
    lines = [
        f"{format_key(copy.workload)} is kept in {copy.cluster}: its file leaves the branch" for copy in copies if copy.preserved
    ]
    if len(over) > MAX_SINGLE_COPIES:
        lines.append(f"{_name_copies(over, 'go')}: their overlap is over")
    else:
        lines += [f"{format_key(copy.workload)} goes from {copy.cluster}: its overlap is over" for copy in over]
    return list_limited(lines, shown)


def _name_copies(copies: Sequence[RetainedCopy], verb: str) -> str:
    """Return the number of copies, the first workloads and the clusters: "12 copies stay in c000–c002 (Deployment a/b, ...)"."""
    names = format_names(list(dict.fromkeys(format_key(copy.workload) for copy in copies)), NAMES_SHOWN)
    place = f"{'in' if verb == 'stay' else 'from'} {format_ranges({copy.cluster for copy in copies})}"
    one = "goes" if verb == "go" else "stays"
    return f"{format_count(len(copies), 'copy', 'copies')} {one if len(copies) == 1 else verb} {place} ({names})"
