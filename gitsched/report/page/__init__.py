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

from gitsched.model.cluster import ClusterFacts
from gitsched.model.document import Key
from gitsched.model.explanation import Explanation
from gitsched.model.time import format_time
from gitsched.report.page.grid import lay_out
from gitsched.report.page.tables import lay_choice, lay_finding, lay_losses, lay_manifest, lay_move, lay_row, lay_stay, sum_up
from gitsched.report.review import Review
from gitsched.report.table import printable
from gitsched.report.text import plan_verdict
from gitsched.report.verdict import list_provenance, list_rows, order_moves

MANIFESTS_SHOWN = 1_000
"""Manifests whose difference stands in the page; the others are counted."""


class Fleet(NamedTuple):
    """What the page knows beside the run: the clusters, and why each workload is where it is."""

    facts: Mapping[str, ClusterFacts]
    explanations: Mapping[Key, Explanation]


def write_page(review: Review, fleet: Fleet) -> str:
    """The page. Whatever comes from documents is text in it, never markup or script."""
    grid = lay_out(review.outcomes, review.moves, fleet.facts, fleet.explanations)
    style, script = _read("page.css"), _read("page.js")
    fresh = {id(finding) for finding in review.fresh} if review.base.findings is not None else set()
    shown = review.delivery.rendered[:MANIFESTS_SHOWN]
    more = len(review.delivery.rendered) - len(shown) + review.delivery.more
    losses = lay_losses(review)
    sections = [
        ("changes", "Changes", len(review.moves)),
        ("fleet", "Fleet", None),
        *((("resilience", "Resilience", len(losses["rows"])),) if losses else ()),
        ("files", "Files", len(shown) + more),
        ("findings", "Findings", len(review.findings)),
    ]
    return _template().render(
        verdict=printable(plan_verdict(review)),
        provenance=[printable(line) for line in list_provenance(review)],
        digest=review.digest,
        time=format_time(review.time),
        wakeup=format_time(review.next_wakeup) if review.next_wakeup else "",
        refused=printable(review.refused),
        sections=sections,
        sums=sum_up(review, len(grid["clusters"])),
        rows=[lay_row(row) for row in list_rows(review)],
        moves=[lay_move(move) for move in order_moves(review.moves)],
        choices=[lay_choice(choice) for choice in review.choices],
        stays=[lay_stay(stay) for stay in review.stays],
        resilience=losses,
        manifests=[lay_manifest(entry) for entry in shown],
        manifests_more=more,
        findings=[lay_finding(finding, new=id(finding) in fresh) for finding in review.findings],
        data=_embed(grid),
        style=Markup(style),  # noqa: S704  # a file of this package
        style_hash=_hash(style),
        script=Markup(script),  # noqa: S704  # a file of this package
        script_hash=_hash(script),
    )


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
