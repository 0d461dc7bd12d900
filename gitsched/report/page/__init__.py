"""A plan as one self-contained HTML page: changes, placement matrix, explanations, resilience, findings."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from gitsched.model.document import Key
from gitsched.model.explanation import Explanation
from gitsched.model.fleet_status import Freeze, LastReport
from gitsched.model.fleet_topology import ClusterSite
from gitsched.model.history import EndedDrain, SourceChange
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import Outcome
from gitsched.model.time import format_time
from gitsched.model.web_links import WebLinks
from gitsched.named_tuples import NamedTuple
from gitsched.report.images import describe_image_changes
from gitsched.report.lines import escape_unprintable
from gitsched.report.page.applied import build_applied_fields, describe_observed, summarize_applied, summarize_observed
from gitsched.report.page.content import (
    build_loss_table,
    build_manifest_entry,
    build_matrix,
    build_record_change_row,
    build_recorded_row,
    build_summary_row,
    list_finding_groups,
    list_move_groups,
    list_totals,
    mark_earlier_states,
    mark_later_changes,
)
from gitsched.report.page.header import list_alerts, list_commits, list_problems, write_heading
from gitsched.report.page.links import PageLinks
from gitsched.report.page.live import PAGES, LiveView
from gitsched.report.page.places import add_places
from gitsched.report.page.reserve import build_reserve_table
from gitsched.report.page.retained import list_retained
from gitsched.report.page.topology import CLUSTER_ROWS, PLACE_ROWS, build_cluster_rows, build_place_rows
from gitsched.report.page.unavailable import list_unavailable
from gitsched.report.retained_copies import describe_next_change, describe_retained_copies
from gitsched.report.review import Review
from gitsched.report.rollouts import describe_remedies, describe_rollout
from gitsched.report.summary import list_comparison_notes, list_summary_rows
from gitsched.report.text import summarize_plan

MANIFESTS_SHOWN = 1_000
"""The number of manifests whose diff the page contains; the others are counted."""

VERDICTS_SHOWN = 100_000
"""The number of verdicts about a candidate for a workload that the explanations on the page have together."""

MOVES_SHOWN = 1_000
"""The number of moves that the page lists; topology and matrix have all of them."""

FINDINGS_SHOWN = 2_000
"""The number of findings that the page lists; the others are counted."""

RECORDS_SHOWN = 1_000
"""The number of recorded decisions that the page lists; the others are counted."""


SCRIPTS = ("topology.js", "map.js", "tools.js", "page.js")
"""The scripts of the page, in the order in which they refer to each other."""


class FleetView(NamedTuple):
    """The clusters of the fleet, the explanation of each workload, where the clusters are, if that is known, the web pages of the source,
    None without any, the last report of each cluster about what it has applied, the source commits that the page names, by id, and the one
    of them that the head of the output branch follows, "" if it is not known, who froze placements, of clusters whose documents changed
    whether they were available before, None where that is not known, the source commits that ask for what is withheld, where workloads
    without an explanation, and policies, are written, which drains the change ends, and when clusters were observed."""

    facts: Mapping[str, ClusterInfo]
    explanations: Mapping[Key, Explanation]
    sites: Mapping[str, ClusterSite] = {}
    web: WebLinks | None = None
    reports: Mapping[str, LastReport] = {}
    commits: Mapping[str, SourceChange] = {}
    placed_from: str = ""
    freezes: tuple[Freeze, ...] = ()
    was_available: Mapping[str, bool] | None = None
    requests: tuple[SourceChange, ...] = ()
    places: Mapping[Key, str] = {}
    policies: Mapping[str, str] = {}
    ended_drains: tuple[EndedDrain, ...] = ()
    observed: Mapping[str, datetime] = {}

    @property
    def drained(self) -> list[str]:
        """The drained clusters."""
        return [name for name, site in self.sites.items() if site.is_drained]


def choose_explained(review: Review, clusters: int) -> list[Outcome]:
    """Return the outcomes to explain on the page: all of them, or in a large fleet first those of workloads that move, then of those that
    are not placed or that only history keeps in place, and of the others as many as the page has space for."""
    limit = max(VERDICTS_SHOWN // max(clusters, 1), 1)
    if len(review.outcomes) <= limit:
        return list(review.outcomes)
    moved, retained = {move.key for move in review.moves}, {one.key for one in review.retained}

    def rank(outcome: Outcome) -> int:
        return 0 if outcome.key in moved else 1 if outcome.state != "placed" or outcome.key in retained else 2

    return sorted(review.outcomes, key=rank)[:limit]


def write_page(review: Review, fleet: FleetView, live: LiveView | None = None) -> str:
    """Return the page of a plan, or with `live` that of the fleet after a run. Text from documents is escaped: it is no markup."""
    # The moves of a live page are those of a run, which has left out what is withheld.
    withheld, left_out = ({move.key for move in review.withheld.moves}, ()) if live is None else (set[Key](), review.withheld.moves)
    matrix = build_matrix(
        review.outcomes, review.moves, fleet.facts, fleet.explanations, fleet.sites, withheld, review.comparison.removed_clusters
    )
    mark_earlier_states(matrix["clusters"], fleet.was_available, review.comparison.added_clusters)
    add_places(matrix, review.outcomes, fleet.places, fleet.policies)
    mark_later_changes(matrix["workloads"], {move.key for move in left_out})
    for cluster in matrix["clusters"]:
        if fleet.reports:
            cluster |= build_applied_fields(fleet.reports.get(cluster["name"]))
        if fleet.observed:
            cluster["observed"] = describe_observed(fleet.observed.get(cluster["name"]))
    places = build_place_rows(matrix["clusters"], review.outcomes, review.moves)
    style, script = read_resource("page.css"), read_script(*SCRIPTS, live=live)
    links = PageLinks(fleet.web, review.source, review.base.commit)
    heading = write_heading(review, len(matrix["clusters"]), live=live is not None)
    shown = review.comparison.delivery.rendered[:MANIFESTS_SHOWN]
    more = len(review.comparison.delivery.rendered) - len(shown) + review.comparison.delivery.omitted
    losses, reserve = build_loss_table(review), build_reserve_table(review)
    on_map = ("map", "Map", len(matrix["clusters"]))
    sections = [
        *((on_map,) if live is not None else ()),
        ("changes", "Changes", len(review.moves) + len(review.record_changes)),
        *((("withheld-changes", "Withheld", len(left_out)),) if left_out else ()),
        *((on_map,) if live is None else ()),
        ("topology", "Topology", None),
        ("fleet", "Fleet", None),
        *((("recorded", "Recorded decisions", len(review.recorded)),) if review.recorded else ()),
        *((("resilience", "Resilience", len(losses["rows"])),) if losses else ()),
        *((("reserve", "Reserve", len(reserve["rows"]) + reserve["more"]),) if reserve else ()),
        *((("files", "Files", len(shown) + more),) if live is None else ()),
        ("findings", "Findings", len(review.findings)),
    ]
    applied = summarize_applied(fleet.facts, fleet.reports) if fleet.reports else []
    listed = list_move_groups(review.moves, MOVES_SHOWN, withheld)
    waiting = list_move_groups(left_out, MOVES_SHOWN)
    return load_template("page.html.j2").render(
        live=live,
        pages=PAGES,
        verdict=escape_unprintable(summarize_plan(review) if live is None else heading),
        heading=escape_unprintable(heading),
        commits=list_commits(review, fleet.commits, links, fleet.placed_from, live=live is not None),
        provenance=[escape_unprintable(line) for line in list_comparison_notes(review)],
        digest=review.comparison.digest,
        time=format_time(review.time),
        observed=escape_unprintable(summarize_observed([*fleet.facts], fleet.observed)),
        wakeup=describe_next_change(review),
        problems=[
            *list_problems(
                review,
                links,
                fleet.freezes,
                fleet.requests,
                fleet.ended_drains,
                fleet.drained,
            ),
            *list_unavailable(matrix["clusters"], links),
        ],
        alerts=list_alerts(
            review,
            matrix["clusters"],
            sorted(name for name, report in fleet.reports.items() if report.health == "Degraded"),
            fleet.freezes,
        ),
        linked=links.link_places,
        sections=sections,
        sums=list_totals(review, len(matrix["clusters"])),
        rows=[build_summary_row(row) for row in (*applied, *list_summary_rows(review))],
        listed=listed,
        withheld=waiting,
        if_allowed=bool(withheld),
        images=[escape_unprintable(line) for line in describe_image_changes(review.comparison.delivery.images, "→")],
        record_changes=[build_record_change_row(change) for change in review.record_changes],
        recorded=[build_recorded_row(decision) for decision in review.recorded[:RECORDS_SHOWN]],
        recorded_more=max(len(review.recorded) - RECORDS_SHOWN, 0),
        clusters=build_cluster_rows(matrix["clusters"][:CLUSTER_ROWS], review.outcomes, review.moves),
        clusters_more=max(len(matrix["clusters"]) - CLUSTER_ROWS, 0),
        places=places[:PLACE_ROWS],
        places_more=max(len(places) - PLACE_ROWS, 0),
        retained=list_retained(review.retained),
        rollouts=[
            list(map(escape_unprintable, [*describe_rollout(rollout), *describe_remedies([rollout])]))
            for rollout in review.rollouts
        ],
        copies=[
            escape_unprintable(line)
            for line in describe_retained_copies(review.retained_copies, unmerged=review.unmerged, withheld=review.planned_withheld)
        ],
        resilience=losses,
        reserve=reserve,
        manifests=[build_manifest_entry(entry) for entry in shown],
        manifests_more=more,
        findings=list_finding_groups(review, FINDINGS_SHOWN, links),
        data=_embed_json({**matrix, "links": links.patterns}),
        **embed_resource("style", style),
        **embed_resource("script", script),
    )


def write_waiting_page(live: LiveView) -> str:
    """Return the page that stands for the others until a run succeeds; it follows the events and then shows them."""
    return load_template("waiting.html.j2").render(
        live=live,
        pages=PAGES,
        title="No run has succeeded yet" if live.failure else "The first run has not finished",
        **embed_resource("style", read_resource("page.css")),
        **embed_resource("script", read_script(live=live)),
    )


def _embed_json(data: Mapping[str, Any]) -> Markup:
    """Return JSON for a script element, escaped so that it cannot end the element or start markup."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))  # noqa: S704  # escaped in this line


def embed_resource(name: str, text: str) -> dict[str, str]:
    """Return a style or script of this package as a template embeds it, and its hash for the Content-Security-Policy."""
    return {name: Markup(text), f"{name}_hash": compute_csp_hash(text)}  # noqa: S704  # files of this package


def compute_csp_hash(text: str) -> str:
    """Return the Content-Security-Policy source expression of an inline element, whose text starts with the line break after its tag."""
    return "sha256-" + base64.b64encode(hashlib.sha256(f"\n{text}".encode()).digest()).decode()


def read_script(*names: str, live: LiveView | None = None) -> str:
    """Return scripts of this package as one; a live page has that for events, too."""
    return "".join(map(read_resource, (*names, *(("live.js",) if live is not None else ()))))


def read_resource(name: str) -> str:
    """Return a file of the templates."""
    return files("gitsched.report.page").joinpath(f"templates/{name}").read_text("utf-8")


@cache
def load_template(name: str) -> Template:
    """Return a template of this package, which escapes what it is given."""
    loader = FunctionLoader(read_resource)
    return Environment(undefined=StrictUndefined, autoescape=True, keep_trailing_newline=True, loader=loader).get_template(name)
