"""What clusters have applied, on the HTML page of a fleet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from gitsched.model.finding import format_count, format_names
from gitsched.model.fleet_status import LastReport
from gitsched.model.time import format_time
from gitsched.report.lines import CLUSTERS_SHOWN, abbreviate_oid, escape_unprintable
from gitsched.report.summary import SummaryRow


def build_applied_fields(report: LastReport | None) -> dict[str, Any]:
    """Return the members of a cluster for the script: a sentence about its last report, and a short note if something is wrong with it."""
    if report is None:
        return {"applied": "has not reported what it has applied", "earlier": "no report"}
    notes = (
        "degraded" if report.health == "Degraded" else "",
        f"{report.behind:,} behind" if report.behind else "",
    )
    return {"applied": _describe_applied(report), "earlier": ", ".join(filter(None, notes))}


def _describe_applied(report: LastReport) -> str:
    """Return which output commit a cluster has applied, and how healthy what it applied is."""
    earlier = f", {format_count(report.behind, 'commit')} behind" if report.behind else ""
    if report.behind is None:
        earlier = ", which is not one of the last of the output branch"
    unhealthy = f": {report.unhealthy[0].key.title} is {report.unhealthy[0].health}" if report.unhealthy else ""
    text = f"has applied {abbreviate_oid(report.commit)}{earlier}, {report.health} since {format_time(report.since)}{unhealthy}"
    return escape_unprintable(text)


def summarize_applied(clusters: Iterable[str], reports: Mapping[str, LastReport]) -> list[SummaryRow]:
    """Return how many clusters have applied the last output commit that changed their directory, and which not, or have not reported."""
    names = sorted(clusters)
    late = [
        f"{name} ({format_count(reports[name].behind or 0, 'commit')})"
        for name in names
        if name in reports and reports[name].behind
    ]
    current = sum(name in reports and reports[name].behind == 0 for name in names)
    rows = (
        ("clusters that have applied their last change", f"{current:,} of {len(names):,}"),
        ("clusters behind", format_names(late, CLUSTERS_SHOWN) if late else ""),
        ("clusters without a report", format_names([name for name in names if name not in reports], CLUSTERS_SHOWN)),
    )
    return [SummaryRow(title, "", text) for title, text in rows if text]


def describe_observed(time: datetime | None) -> str:
    """Return when a cluster was observed."""
    return f"was observed at {format_time(time)}" if time is not None else "has not been observed"


def summarize_observed(clusters: Sequence[str], observed: Mapping[str, datetime]) -> str:
    """Return how many clusters were observed, between which times, and which never; "" where nobody observes any."""
    known = sorted((observed[name], name) for name in clusters if name in observed)
    if not known:
        return ""
    (first, earliest), (last, _) = known[0], known[-1]
    when = f"at {format_time(last)}" if first == last else f"last at {format_time(last)}, {earliest} only at {format_time(first)}"
    never = [name for name in clusters if name not in observed]
    more = f"; never: {format_names(sorted(never), CLUSTERS_SHOWN)}" if never else ""
    return f"{len(known):,} of {len(clusters):,}, {when}{more}"
