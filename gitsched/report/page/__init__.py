"""A run as one HTML page that needs no network: what changes, the fleet as a matrix, every decision's reasons, losses, findings."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from gitsched.model.change import Move
from gitsched.model.cluster import ClusterFacts
from gitsched.model.document import Key
from gitsched.model.explanation import Explanation
from gitsched.model.finding import SEVERITIES, Finding
from gitsched.model.simulation import ResilienceChange
from gitsched.model.time import format_time
from gitsched.report.page.grid import lay_out
from gitsched.report.review import Review
from gitsched.report.simulation import tell_losses, tell_worst
from gitsched.report.table import printable
from gitsched.report.text import plan_verdict
from gitsched.report.verdict import label, list_reasons


class Fleet(NamedTuple):
    """What the page knows beside the run: the clusters, and why each workload is where it is."""

    facts: Mapping[str, ClusterFacts]
    explanations: Mapping[Key, Explanation]


def write_page(review: Review, fleet: Fleet) -> str:
    """The page. Whatever comes from documents is text in it, never markup or script."""
    grid = lay_out(review.outcomes, review.moves, fleet.facts, fleet.explanations)
    style, script = _read("page.css"), _read("page.js")
    counts = {level: sum(finding.severity == level for finding in review.findings) for level in SEVERITIES}
    states = review.states
    losses = _describe_losses(review)
    return _template().render(
        verdict=printable(plan_verdict(review)),
        time=format_time(review.time),
        wakeup=format_time(review.next_wakeup) if review.next_wakeup else "",
        refused=printable(review.refused),
        sections=[
            ("changes", "Changes", len(review.moves)),
            ("fleet", "Fleet", None),
            *((("resilience", "Resilience", len(losses["rows"])),) if losses else ()),
            ("findings", "Findings", len(review.findings)),
        ],
        sums=[
            ("workloads", len(review.outcomes)),
            *states.items(),
            ("that move", len(review.moves)),
            ("clusters", len(grid["clusters"])),
            *((f"{level}s" if level != "info" else "notes", number) for level, number in counts.items() if number),
        ],
        moves=[_move(move) for move in review.moves],
        findings=[_finding(finding) for finding in review.findings],
        **({"resilience": losses} if losses else {}),
        data=_embed(grid),
        style=Markup(style),  # noqa: S704  # a file of this package
        style_hash=_hash(style),
        script=Markup(script),  # noqa: S704  # a file of this package
        script_hash=_hash(script),
    )


def _describe_losses(review: Review) -> dict[str, Any]:
    """The table of losses, and what the change does to it."""
    value = review.resilience
    if value is None:
        return {}
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


def _move(move: Move) -> dict[str, Any]:
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
    return {"name": label(move.key), "places": places, "why": printable("; ".join(list_reasons(move)))}


def _number(replicas: int | None) -> str:
    return "" if replicas is None else f" {replicas}"


def _finding(finding: Finding) -> dict[str, str]:
    return {
        "severity": finding.severity,
        "code": finding.code,
        "where": printable(str(finding.location)) if finding.location else "",
        "message": printable(finding.message),
    }


def _embed(data: Mapping[str, Any]) -> Markup:
    """JSON inside a script element: nothing in it can end the element, or be taken for markup."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))  # noqa: S704  # escaped in this line


def _hash(text: str) -> str:
    """The source expression of a Content-Security-Policy for an inline element, which begins with the line break after its tag."""
    return "sha256-" + base64.b64encode(hashlib.sha256(f"\n{text}".encode()).digest()).decode()


def _read(name: str) -> str:
    return files("gitsched.report.page").joinpath(f"templates/{name}").read_text("utf-8")


@cache
def _template() -> Template:
    environment = Environment(undefined=StrictUndefined, autoescape=True, keep_trailing_newline=True)
    return environment.from_string(_read("page.html.j2"))
