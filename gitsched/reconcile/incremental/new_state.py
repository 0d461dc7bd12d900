"""Make the state of the last plan on a machine that has none, for commands that only look: its runs, if any, had other caches."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.plan_file import PlanFile
from gitsched.reconcile.incremental.earlier_state import find_reconciled, is_plain, leads_to
from gitsched.reconcile.output.output_commit import make_complete_state, write
from gitsched.reconcile.source_plan import needs_setting_report, use_plan

if TYPE_CHECKING:
    from gitsched.reconcile.cache.plan_cache import PlanCache
    from gitsched.reconcile.run import Fetched, Planned, RunContext, Written

MIN_WORKLOADS = 300
"""Workloads from which on a command that only looks makes a state for later ones. A complete plan of fewer takes about half a second."""


class MadePlan(NamedTuple):
    """A complete plan of the commit of the last run, what it was made from, and its output tree."""

    fetched: Fetched
    planned: Planned
    written: Written


def find_made_plan(context: RunContext, fetched: Fetched) -> MadePlan | None:
    """Return the plan from which this process has made a state, or tried to, if that of the fetched commit would be the same."""
    made, record = context.caches.made_plan, fetched.record
    if not isinstance(made, MadePlan) or (record is not None and record.tenants):
        return None
    trusted = made.fetched.trusted
    is_same = (
        fetched._replace(trusted=trusted, base_tenants=None) == made.fetched
        and fetched.trusted.config == trusted.config
        and context.settings.without_choices == context.settings
        and not needs_setting_report(context, fetched, made.planned.config)
    )
    return made if is_same else None


def make_state(context: RunContext, fetched: Fetched) -> PlanCache | None:
    """Plan the commit of the last run completely, keep the state for this and later commands, and return it.

    Return None for a small fleet, once the process has tried it, and if a run of this commit would do anything now.
    """
    record, caches = fetched.record, context.caches
    if record is None or not is_plain(fetched, record) or caches.made_plan is not None:
        return None
    if sum((record.workloads or {}).values()) < MIN_WORKLOADS:
        return None
    reconciled = find_reconciled(context, fetched, record)
    if reconciled is None:
        return None
    context = context._replace(settings=context.settings.without_choices)
    planned, written = use_plan(context, reconciled, context.settings.now, partial(write, context, reconciled))
    caches.made_plan = MadePlan(reconciled, planned, written)
    plan, tree = planned.plan, fetched.output_tree
    if tree is None or plan.moves or plan.observations or not leads_to(fetched, record, planned, written):
        return None
    state = make_complete_state(reconciled, planned, tree, lambda: PlanFile(caches.get_plan_path(fetched.cache_key)))
    if state is not None:
        state.save()
    return state
