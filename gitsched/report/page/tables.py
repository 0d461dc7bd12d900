"""What the page's template shows, row by row: plain texts and numbers."""

from __future__ import annotations

from typing import Any

from gitsched.model.change import Choice, Move, Rendered, Stay
from gitsched.model.finding import SEVERITIES, Finding
from gitsched.model.simulation import ResilienceChange
from gitsched.report.review import Review
from gitsched.report.simulation import tell_losses, tell_worst
from gitsched.report.table import printable
from gitsched.report.text import title_of
from gitsched.report.verdict import Row, label, list_reasons, write_choice, write_places


def sum_up(review: Review, clusters: int) -> list[tuple[str, int]]:
    """The numbers at the top, by name."""
    counts = {level: sum(finding.severity == level for finding in review.findings) for level in SEVERITIES}
    levels = ((f"{level}s" if level != "info" else "notes", number) for level, number in counts.items() if number)
    moves = ("that move", len(review.moves))
    return [("workloads", len(review.outcomes)), *review.states.items(), moves, ("clusters", clusters), *levels]


def lay_row(row: Row) -> Row:
    """A line of the summary, fit for a page."""
    return Row(row.name, printable(row.before), printable(row.after))


def lay_choice(choice: Choice) -> dict[str, str]:
    """A document that places nothing itself, and what it chooses."""
    before, after = write_choice(choice)
    return {"name": label(choice.key), "before": before, "after": after}


def lay_stay(stay: Stay) -> dict[str, str]:
    """A workload that memory holds where it is."""
    places = (write_places(stay.places), write_places(stay.anew))
    return {"name": label(stay.key), "places": places[0], "anew": places[1], "remedy": printable(stay.remedy)}


def lay_manifest(entry: Rendered) -> dict[str, Any]:
    """One manifest: what becomes of it, and the lines of its difference with their kinds."""
    kinds = {"+": "new", "-": "old", "@": "soft"}
    lines = [(kinds.get(line[:1], ""), printable(line)) for line in entry.diff.splitlines()]
    return {"title": printable(title_of(entry)), "lines": lines}


def lay_losses(review: Review) -> dict[str, Any] | None:
    """The table of losses with the bad ones marked, and what the change does to it; None where nobody asked."""
    value = review.resilience
    if value is None:
        return None
    table = value.head if isinstance(value, ResilienceChange) else value
    verdict, told = tell_losses(value)
    rows = [
        {
            "name": printable(row.scope.name if row.scope else row.event),
            "moved": row.moved,
            "moving": row.moving,
            "homeless": len(row.homeless),
            "short": row.short,
            "waiting": row.waiting,
            "worst": printable(tell_worst(row)),
            "bad": bool(row.harmed),
        }
        for row in table.rows
    ]
    return {"by": table.by, "rows": rows, "verdict": printable(verdict), "told": [printable(text) for text in told]}


def lay_move(move: Move) -> dict[str, Any]:
    """Every cluster of either side, and what becomes of the replicas there."""
    places = []
    for cluster in sorted(move.before.keys() | move.after.keys()):
        earlier, later = move.before.get(cluster), move.after.get(cluster)
        if cluster not in move.before:
            places.append(("new", f"+ {cluster}" + _number(later)))
        elif cluster not in move.after:
            places.append(("old", f"− {cluster}" + _number(earlier)))  # a minus, for eyes
        elif earlier != later:
            places.append(("turn", f"{cluster}{_number(earlier)} →{_number(later)}"))
        else:
            places.append(("", cluster + _number(later)))
    return {"name": label(move.key), "places": places, "why": [printable(text) for text in list_reasons(move)]}


def _number(replicas: int | None) -> str:
    return "" if replicas is None else f" {replicas}"


def lay_finding(finding: Finding, *, new: bool) -> dict[str, Any]:
    """A finding; `new` says that the change brings it."""
    return {
        "severity": finding.severity,
        "new": new,
        "code": finding.code,
        "where": printable(str(finding.location)) if finding.location else "",
        "message": printable(finding.message),
    }
