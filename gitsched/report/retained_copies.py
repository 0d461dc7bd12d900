"""Copies that clusters keep for an overlap, as text."""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.model.changes import RetainedCopy
from gitsched.model.time import format_time
from gitsched.report.summary import format_count, format_key

COPIES_SHOWN = 20
"""The number of copies that are listed; JSON contains all."""


def describe_retained_copies(copies: Sequence[RetainedCopy], shown: int = COPIES_SHOWN) -> list[str]:
    """Return a line for each copy, the first of them by workload, and the number of the others."""
    lines = list(map(describe_retained_copy, copies[:shown]))
    return [*lines, f"and {len(copies) - shown} more"] if len(copies) > shown else lines


def describe_retained_copy(copy: RetainedCopy) -> str:
    """Return where a copy stays and until when."""
    replicas = "" if copy.replicas is None else f" with {format_count(copy.replicas, 'replica')}"
    end = "another cluster has one" if copy.start is None else format_time(copy.until) if copy.until is not None else "its end"
    return f"{format_key(copy.workload)} stays in {copy.cluster}{replicas} until {end}"


def describe_ended_copies(copies: Sequence[RetainedCopy], shown: int = COPIES_SHOWN) -> list[str]:
    """Return a line for each copy that goes because its overlap is over, the first of them, and the number of the others."""
    lines = [f"{format_key(copy.workload)} goes from {copy.cluster}: its overlap is over" for copy in copies[:shown]]
    return [*lines, f"and {len(copies) - shown} more"] if len(copies) > shown else lines
