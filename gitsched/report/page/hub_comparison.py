"""The comparison with a running hub as one self-contained HTML page."""

from __future__ import annotations

from typing import Any

from gitsched.model.finding import count_shown
from gitsched.model.hub_comparison import ComparedDecision, HubComparisonResult, HubDecision
from gitsched.report.hub_comparison import CAUSE_TITLES, TITLES, describe_difference, list_counts, summarize_hub_comparison
from gitsched.report.lines import escape_unprintable, format_key
from gitsched.report.page import embed_resource, load_template, read_resource
from gitsched.report.page.content import build_finding_row
from gitsched.report.page.links import PageLinks

ROWS_SHOWN = 1_000
"""The number of decisions of one verdict that the page lists; the others are counted."""
COMPARED_CLUSTERS_SHOWN = 50
CAUSES_SHOWN = 20


def write_hub_comparison_page(result: HubComparisonResult) -> str:
    """Return the page. Text from documents is escaped: it is no markup."""
    groups = []
    for verdict, title in TITLES.items():
        found = [one for one in result.decisions if one.verdict == verdict]
        shown = count_shown(len(found), ROWS_SHOWN)
        if found:
            groups.append((verdict, title, len(found), list(map(_build_row, found[:shown])), len(found) - shown))
    return load_template("hub_comparison.html.j2").render(
        verdict=escape_unprintable(summarize_hub_comparison(result)),
        counts=list_counts(result),
        groups=groups,
        findings=[build_finding_row(finding, PageLinks(), new=False) for finding in result.findings],
        **embed_resource("style", read_resource("page.css")),
    )


def _build_row(one: ComparedDecision) -> dict[str, Any]:
    return {
        "name": escape_unprintable(format_key(one.subject)),
        "place": escape_unprintable(str(one.location)) if one.location is not None else "",
        "hub": _list_places(one.hub, one.own, "old"),
        "own": _list_places(one.own, one.hub, "new"),
        "difference": escape_unprintable(describe_difference(one)) if one.verdict != "equal" else "",
        "causes": [
            {
                "title": escape_unprintable(f"{CAUSE_TITLES[cause.kind]} {cause.name}".strip()),
                "text": escape_unprintable(cause.text),
                "place": escape_unprintable(str(cause.location)) if cause.location is not None else "",
            }
            for cause in one.causes[:CAUSES_SHOWN]
        ],
    }


def _list_places(side: HubDecision | None, other: HubDecision | None, style: str) -> list[tuple[str, str]]:
    """Return the clusters of one side with their replicas; those that the other side does not have are marked."""
    if side is None:
        return []
    known = other.clusters if other is not None else {}
    names = sorted(side.clusters)
    places = []
    for name in names[: count_shown(len(names), COMPARED_CLUSTERS_SHOWN)]:
        count = side.clusters[name]
        mark = style if name not in known else "turn" if known[name] != count else "same"
        places.append((mark, escape_unprintable(name if count is None else f"{name} {count}")))
    return [*places, *([("same", f"and {len(names) - len(places):,} more")] if len(names) > len(places) else [])]
