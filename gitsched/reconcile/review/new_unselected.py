"""Find the objects that came since the last run and that no policy selects; entered only by runs with objects that no policy selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.decide.catalog import build_catalog
from gitsched.decide.incremental.plan_contents import update_template_index
from gitsched.decide.plan_totals import select_unclaimed
from gitsched.decide.registry import reserved_groups
from gitsched.reconcile.incremental.state_plan import continue_planned_engines, try_with_state
from gitsched.reconcile.review.unplaced_objects import list_unselected, list_unselected_workloads, locate_unplaced, omit_built
from gitsched.reconcile.run import StateUpdate
from gitsched.reconcile.source.source_locations import RuleLocations
from gitsched.reconcile.source.source_tree import read_source_at

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.changes import UnplacedObject
    from gitsched.model.commit import Commit
    from gitsched.model.document import Document
    from gitsched.reconcile.run import Fetched, Planned, RunContext


def list_new_unselected(context: RunContext, fetched: Fetched, planned: Planned) -> tuple[UnplacedObject, ...]:
    """Return the objects of a run that no policy selects and that the source of the last run did not have; of a first run those with pods,
    as plans name them."""
    locations, update = RuleLocations(context.source.repository), planned.state
    if fetched.record is None:
        return list_unselected_workloads(planned.plan.decisions, locations) if planned.plan.complete else ()
    last, source = fetched.reconciled.source, context.source.repository
    if last in ("", fetched.source.oid) or not context.source.fetch_commit(last):
        return ()
    earlier = source.commit(last)
    changed = frozenset(source.changed_paths(earlier.tree, fetched.source.tree))
    if isinstance(update, StateUpdate):
        found = try_with_state(lambda: tuple(_list_of_state(context, fetched, earlier, changed, update))) or ()
    elif planned.plan.complete:
        found = tuple(_list_of_decisions(context, fetched, earlier, changed, planned.plan.decisions))
    else:
        found = ()
    return locate_unplaced(found, locations)


def _list_of_state(
    context: RunContext, fetched: Fetched, earlier: Commit, changed: Container[str], update: StateUpdate
) -> Iterator[UnplacedObject]:
    """Yield the new objects of an incremental plan. Its state may be older than the last run, if runs since wrote the same output tree."""
    decided, state = update.incremental.decided, update.cache
    entries, is_last = update.incremental.changes.templates, state.header.source_tree == earlier.tree
    if not is_last:
        entries = update_template_index(state.template_index, entries)
    came = (key for key, entry in entries.items() if entry is not None and entry.path in changed)
    if is_last:
        came = (key for key in came if key not in state.template_index)
    templates = decided.snapshot.templates
    found = [templates[key] for key in select_unclaimed(decided, came)]
    if found and not is_last:
        found = _omit_known(context, fetched, earlier, found)
    if found:
        yield from list_unselected(found, {one.key for one in found}, continue_planned_engines(update))


def _list_of_decisions(
    context: RunContext, fetched: Fetched, earlier: Commit, changed: Container[str], decisions: DecisionSet
) -> Iterator[UnplacedObject]:
    templates = decisions.catalog.templates
    found = [one for key in decisions.list_unclaimed() if (one := templates[key]).path in changed]
    if found:
        new = _omit_known(context, fetched, earlier, found)
        yield from list_unselected(new, {one.key for one in new}, decisions.engines)


def _omit_known(context: RunContext, fetched: Fetched, earlier: Commit, documents: Iterable[Document]) -> list[Document]:
    """Return the documents that the earlier commit did not have."""
    before = read_source_at(context, fetched, earlier)
    known = build_catalog(before.documents, before.config.kinds, reserved_groups).templates
    return omit_built((one for one in documents if one.key not in known), before.variants)
