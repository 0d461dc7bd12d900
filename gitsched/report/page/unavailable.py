"""Why clusters are not available or drained, at the head of the HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gitsched.model.finding import count_shown, format_count
from gitsched.report.lines import escape_unprintable
from gitsched.report.page.header import Problem
from gitsched.report.page.links import PageLinks

REASONS_SHOWN = 3
"""Clusters whose reason is shown at the head; the map has those of the others."""


def list_unavailable(clusters: Iterable[Mapping[str, Any]], links: PageLinks) -> list[Problem]:
    """Return why clusters of the matrix run no workloads, and when that was observed; nothing for those without a document."""
    found = [one for one in clusters if "unavailable" in one and "removed" not in one]
    found.sort(key=lambda one: "drained" in one)
    lines = [links.link_places(escape_unprintable(_describe(one))) for one in found[: count_shown(len(found), REASONS_SHOWN)]]
    more = f"and {format_count(len(found) - len(lines), 'more cluster')}" if len(found) > len(lines) else ""
    kind = "warning" if all("drained" in one for one in found) else "error"
    return [Problem("unavailable", kind, lines, more=more, section="map")] if lines else []


def _describe(cluster: Mapping[str, Any]) -> str:
    observed = f"; it {cluster['observed']}" if "observed" in cluster else ""
    state = "drained" if "drained" in cluster else "not available"
    return f"{cluster['name']} is {state}: {cluster['unavailable']}{observed}"
