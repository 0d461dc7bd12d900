"""The comparison with a running hub, as text and as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gitsched.model.finding import format_part
from gitsched.model.hub_comparison import CauseKind, ComparedDecision, DifferenceCause, HubComparisonResult, HubDecision, Verdict
from gitsched.model.time import format_time
from gitsched.report.lines import format_clusters, format_key, list_limited, serialize_replicas, wrap
from gitsched.report.serialization import API_VERSION, serialize_finding, serialize_key
from gitsched.report.text import write_findings

MAX_ROWS = 50
"""Decisions of one verdict that the text lists."""
CLUSTERS_SHOWN = 6
CAUSES_SHOWN = 6
"""Causes of one decision that the text lists."""
TITLES: Final[Mapping[Verdict, str]] = {
    "different": "Different",
    "not-compared": "Not compared",
    "in-progress": "In progress on the hub",
    "equal": "Equal",
}
CAUSE_TITLES: Final[Mapping[CauseKind, str]] = {
    "hub": "the hub",
    "input": "missing",
    "setting": "setting",
    "fact": "fact",
    "history": "history",
    "field": "field",
    "rule": "rule",
}


def write_hub_comparison(result: HubComparisonResult, width: int) -> str:
    """Return the comparison as text, wrapped at `width` characters."""
    text = "\n".join(_list_lines(result, width)) + "\n"
    return f"{text}\n{write_findings(result.findings, width)}" if result.findings else text


def _list_lines(result: HubComparisonResult, width: int) -> Iterator[str]:
    yield from wrap(summarize_hub_comparison(result), width)
    yield ""
    for count, text in list_counts(result):
        yield f"  {count} {text}"
    for verdict, title in TITLES.items():
        found = [one for one in result.decisions if one.verdict == verdict]
        if found and verdict != "equal":
            yield ""
            yield f"{title}:"
            yield from _list_decisions(found, width)


def _list_decisions(decisions: Sequence[ComparedDecision], width: int) -> Iterator[str]:
    for one in decisions[:MAX_ROWS]:
        yield from wrap(f"{format_key(one.subject)}: {describe_difference(one)}{_format_place(one)}", width, "  ")
        causes = [line for cause in one.causes for line in wrap(describe_cause(cause), width, "    ")]
        yield from list_limited(causes, CAUSES_SHOWN, "    and {} more lines, see -o json")
    if len(decisions) > MAX_ROWS:
        yield f"  and {len(decisions) - MAX_ROWS:,} more, see -o json"


def _format_place(one: ComparedDecision) -> str:
    return f" ({one.location})" if one.location is not None else ""


def summarize_hub_comparison(result: HubComparisonResult) -> str:
    """Return the result in one sentence."""
    counts = result.counts
    compared = counts["equal"] + counts["different"]
    if not compared:
        return "Nothing was compared."
    # A share is rounded down, so that only equal decisions are 100 %.
    share = f"{counts['equal'] * 1000 // compared / 10:g} %"
    times = [format_time(time) for time in (result.first, result.second) if time is not None]
    between = f", between {times[0]} and {times[1]}" if len(times) == 2 else ""
    return f"gitsched makes {format_part(counts['equal'], compared, 'decision')} as the hub{between} ({share})."


def list_counts(result: HubComparisonResult) -> list[tuple[int, str]]:
    """Return the numbers of decisions by verdict, each with what it means."""
    counts = result.counts
    rows = [(counts["equal"], "equal"), (counts["different"], "different")]
    if result.unexplained:
        rows.append((result.unexplained, "of them without a cause"))
    if counts["in-progress"]:
        rows.append((counts["in-progress"], "that the hub has not finished: they may still become equal"))
    if counts["not-compared"]:
        rows.append((counts["not-compared"], "not compared"))
    return rows


def describe_difference(one: ComparedDecision) -> str:
    """Return what the hub has, what gitsched has, and what differs beside clusters and replicas."""
    sides = [f"{name} {_describe_side(side)}" for name, side in (("hub", one.hub), ("gitsched", one.own))]
    shown = [name for name in one.aspects if name not in ("clusters", "replicas")]
    details = [f"{name}: {_format_detail(one.hub, name)} -> {_format_detail(one.own, name)}" for name in shown]
    return "; ".join((*sides, *details))


def _describe_side(side: HubDecision | None) -> str:
    return "has no decision" if side is None else format_clusters(side.clusters, CLUSTERS_SHOWN)


def _format_detail(side: HubDecision | None, name: str) -> str:
    if side is None:
        return "none"
    text = ", ".join(sorted(side.leaving)) if name == "evictions" else side.details.get(name, "")
    return (text if len(text) <= 80 else f"{text[:77]}...") or "none"


def describe_cause(cause: DifferenceCause) -> str:
    """Return the kind of a cause, its name and its text, with its place."""
    title = f"{CAUSE_TITLES[cause.kind]} {cause.name}" if cause.name else CAUSE_TITLES[cause.kind]
    place = f" ({cause.location})" if cause.location is not None else ""
    return f"{title}: {cause.text}{place}"


def serialize_hub_comparison(result: HubComparisonResult) -> dict[str, Any]:
    """Return the comparison as `kind: HubComparison` of docs/development/json.md."""
    return {
        "apiVersion": API_VERSION,
        "kind": "HubComparison",
        "first": format_time(result.first) if result.first is not None else None,
        "second": format_time(result.second) if result.second is not None else None,
        "counts": {"unexplained": result.unexplained, **dict(result.counts)},
        "decisions": list(map(_serialize_decision, result.decisions)),
        "findings": list(map(serialize_finding, result.findings)),
    }


def _serialize_decision(one: ComparedDecision) -> dict[str, Any]:
    return {
        "subject": serialize_key(one.subject),
        "verdict": one.verdict,
        "hub": _serialize_side(one.hub),
        "gitsched": _serialize_side(one.own),
        "differs": list(one.aspects) if one.verdict != "equal" else [],
        "causes": [
            {
                "kind": cause.kind,
                "name": cause.name,
                "text": cause.text,
                "proved": cause.proved,
                "location": cause.location.to_json() if cause.location is not None else None,
            }
            for cause in one.causes
        ],
        "location": one.location.to_json() if one.location is not None else None,
    }


def _serialize_side(side: HubDecision | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "record": serialize_key(side.record),
        "policy": serialize_key(side.policy) if side.policy is not None else None,
        "clusters": [{"cluster": name, **serialize_replicas(count)} for name, count in sorted(side.clusters.items())],
        "leaving": sorted(side.leaving),
        "details": dict(side.details),
    }
