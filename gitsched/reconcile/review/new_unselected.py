"""Find the objects that came since the last run and that no policy selects; entered only by runs with objects that no policy selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.decide.catalog import build_catalog
from gitsched.decide.plan_totals import list_unclaimed
from gitsched.decide.registry import reserved_groups
from gitsched.reconcile.incremental.state_plan import continue_planned_engines, try_with_state
from gitsched.reconcile.review.unplaced_objects import list_unselected, list_unselected_workloads, locate_unplaced, omit_built
from gitsched.reconcile.run import StateUpdate
from gitsched.reconcile.source.source_locations import RuleLocations
from gitsched.reconcile.source.source_tree import read_source_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.changes import UnplacedObject
    from gitsched.model.document import Document
    from gitsched.reconcile.run import Fetched, Planned, RunContext


def list_new_unselected(context: RunContext, fetched: Fetched, planned: Planned) -> tuple[UnplacedObject, ...]:
    """Return the objects of a run that no policy selects and that the source of the last run did not have; of a first run those with pods,
    as plans name them."""
    locations, update = RuleLocations(context.source.repository), planned.state
    if fetched.record is None:
        return list_unselected_workloads(planned.plan.decisions, locations) if planned.plan.complete else ()
    if isinstance(update, StateUpdate):
        found = try_with_state(lambda: tuple(_list_of_state(update))) or ()
    elif planned.plan.complete:
        found = tuple(_list_of_decisions(context, fetched, planned.plan.decisions))
    else:
        found = ()
    return locate_unplaced(found, locations)


def _list_of_state(update: StateUpdate) -> Iterator[UnplacedObject]:
    decided = update.incremental.decided
    added = {key for key, (before, after) in decided.templates.items() if before is None and after is not None}
    found = [key for key, (_, is_unclaimed) in list_unclaimed(decided).items() if is_unclaimed and key in added] if added else []
    if found:
        templates = decided.snapshot.templates
        yield from list_unselected([templates[key] for key in found], added, continue_planned_engines(update))


def _list_of_decisions(context: RunContext, fetched: Fetched, decisions: DecisionSet) -> Iterator[UnplacedObject]:
    last, source = fetched.reconciled.source, context.source.repository
    if last in ("", fetched.source.oid) or not context.source.fetch_commit(last):
        return
    earlier = source.commit(last)
    changed = frozenset(source.changed_paths(earlier.tree, fetched.source.tree))
    templates = decisions.catalog.templates
    found = [one for key in decisions.list_unclaimed() if _find_path(one := templates[key]) in changed]
    if not found:
        return
    before = read_source_at(context, fetched, earlier)
    known = build_catalog(before.documents, before.config.kinds, reserved_groups).templates
    new = omit_built((one for one in found if one.key not in known), before.variants)
    yield from list_unselected(new, {one.key for one in new}, decisions.engines)


def _find_path(document: Document) -> str:
    return document.origin.path if document.origin is not None else ""
