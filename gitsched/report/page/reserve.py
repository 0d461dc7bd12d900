"""What workloads with a reserve lack after losses, as a table of the page of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gitsched.model.finding import format_count
from gitsched.report.lines import escape_unprintable, format_key
from gitsched.report.reserve import describe_remedy, format_amounts, format_shortage

if TYPE_CHECKING:
    from gitsched.report.review import Review

SHORTAGES_SHOWN = 100
"""The page lists at most so many shortages, those that the change makes larger first, and counts the others."""


def build_reserve_table(review: Review) -> dict[str, Any] | None:
    """Return the sentences and the table of shortages; None without a reserve."""
    check = review.comparison.reserve
    if check is None:
        return None
    larger, shown = len(check.larger), sorted(check.shortages, key=lambda one: not one.is_larger)[:SHORTAGES_SHOWN]
    rows = [
        {
            "loss": escape_unprintable(str(one.loss)),
            "workload": escape_unprintable(format_key(one.key)),
            "before": format_shortage(one.before) if check.is_compared else "",
            "after": format_shortage(one.after),
            "requests": escape_unprintable(format_amounts(one.after.requests)),
            "reason": escape_unprintable(one.after.reason),
            "bad": one.is_larger,
        }
        for one in shown
    ]
    summary = f"{format_count(check.losses, 'loss', 'losses')} simulated: {format_count(len(check.shortages), 'shortage')}"
    if check.is_compared:
        summary += f", {larger} larger than before"
    return {
        "rows": rows,
        "more": len(check.shortages) - len(rows),
        "summary": f"{summary}.",
        "remedy": f"{escape_unprintable(describe_remedy(check))}." if larger else "",
    }
