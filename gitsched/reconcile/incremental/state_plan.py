"""Plan a commit from the state of the last run, which is only read: for comparisons, explanations and simulations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from gitsched.decide.incremental.continued_engines import continue_engines
from gitsched.model.errors import NeedsCompletePlan
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.incremental.fallback import attempt
from gitsched.reconcile.incremental.source_diff import plan_incrementally
from gitsched.reconcile.run import NO_SETTING_REPORT, StateUpdate
from gitsched.reconcile.source_plan import needs_setting_report, plan_source, take_plan

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.reconcile.cache.plan_cache import PlanCache
    from gitsched.reconcile.run import Fetched, Planned, RunContext

T = TypeVar("T")


def try_with_state(answer: Callable[[], T]) -> T | None:
    """Return what `answer` finds from the state of the last run; None where a complete plan is needed, also after a bug on a document."""
    return attempt(answer, NeedsCompletePlan)


class StatePlan(NamedTuple):
    """An incremental plan, and the state that it started from."""

    planned: Planned
    update: StateUpdate


def open_state(context: RunContext, fetched: Fetched) -> PlanCache:
    """Return the state of the last run, with engines that nothing else uses."""
    cache = take_plan(context, fetched)
    if cache is None:
        from gitsched.reconcile.incremental.new_state import make_state  # only where no run has left a state

        cache = make_state(context, fetched)
    if cache is None:
        raise NeedsCompletePlan("there is no state")
    return cache


def plan_from_state(context: RunContext, fetched: Fetched) -> StatePlan:
    """Plan the fetched commit. Raise NeedsCompletePlan if only a complete plan has all findings."""
    cache = open_state(context, fetched)
    totals = cache.header.totals
    if totals.config != fetched.trusted.config:
        raise NeedsCompletePlan("what settings change is not in the state")
    if totals.engines.observations:
        raise NeedsCompletePlan("a report has to query metrics, or to use recorded ones")
    if needs_setting_report(context, fetched, totals.config):
        from gitsched.reconcile.review.setting_findings import report_settings  # few commits change settings

        if report_settings(context, fetched, totals.config, refuses=False) != NO_SETTING_REPORT:
            raise NeedsCompletePlan("settings are reported")
    planned = plan_incrementally(context, fetched, cache, context.settings.now, plan_source, reads_trees=True)
    assert isinstance(planned.state, StateUpdate), "the plan is incremental"
    return StatePlan(planned, planned.state)


def continue_planned_engines(update: StateUpdate) -> tuple[PolicyEngine, ...]:
    """Return the engines of an incremental plan, also of one that did not need them."""
    decided, cache = update.incremental.decided, update.cache
    if decided.continued.engines:
        return decided.continued.engines
    found = continue_engines(cache.header.totals, cache, decided.diff, decided.snapshot, cache.header.kinds)
    if found is None:
        raise NeedsCompletePlan("an engine cannot continue")
    return found.engines
