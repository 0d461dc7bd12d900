"""Pages in HTML: the plan with its fleet, and the history."""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.cli import output
from gitsched.forge.web_links import find_web_links
from gitsched.model.history import HistoryEntry
from gitsched.reconcile.output.output_history import OutputHistory
from gitsched.reconcile.review.comparison import PlanComparison
from gitsched.reconcile.review.ended_drains import list_ended_drains
from gitsched.reconcile.review.fleet_view import view_fleet
from gitsched.reconcile.review.freezes import list_freezes
from gitsched.reconcile.source.source_commits import find_source_commit
from gitsched.report.page import write_page
from gitsched.report.page.history import HistoryPage, write_history_page
from gitsched.report.review import Review


def write_plan_page(compared: PlanComparison, review: Review) -> str:
    """Return the page of a plan, with the fleet after it."""
    fleet = compared.fleet
    if fleet is None:
        with output.show_progress("Writing the page") as progress:
            fleet = view_fleet(compared.context, compared.later, review, progress)
    source = compared.context.source
    planned = filter(None, (compared.later, compared.earlier))
    commits = {oid: find_source_commit(source.repository, oid) for oid in (one.fetched.source.oid for one in planned) if oid}
    record = compared.later.fetched.record
    placed_from = record.source if record is not None else ""
    if placed_from and placed_from not in commits:
        commits[placed_from] = find_source_commit(source.repository, placed_from)
    freezes = tuple(list_freezes(compared.context, compared.later.fetched, compared.later.run.plan))
    shown = fleet._replace(
        web=find_web_links(source.find_url()),
        commits=commits,
        placed_from=placed_from,
        freezes=freezes,
        was_available=compared.was_available,
        requests=compared.requests,
        ended_drains=tuple(list_ended_drains(compared)),
    )
    return write_page(review, shown)


def write_history(history: OutputHistory, entries: Sequence[HistoryEntry], notes: Sequence[str], chosen: str) -> str:
    """Return the page of a part of the history; `chosen` says which moves it has, "" for all."""
    web = find_web_links(history.find_source_url())
    return write_history_page(HistoryPage(history.branch, history.head, entries, notes, history.next, history.end, web, chosen))
