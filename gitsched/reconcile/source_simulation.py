"""Run simulations on a plan of the source. No ref moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from gitsched.diff.resilience import compare_resilience
from gitsched.git import Repository
from gitsched.model.simulation import ImpactChange, Resilience, ResilienceChange, Simulation
from gitsched.reconcile.comparison import PlanComparison, PlannedCommit
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.pipeline import plan_source
from gitsched.reconcile.run import RunSettings, open_context
from gitsched.reconcile.source_locations import locate_rule
from gitsched.simulate.baseline import Baseline, make_baseline
from gitsched.simulate.scenario import Scenario
from gitsched.simulate.simulation import simulate, simulate_all_losses

T = TypeVar("T")


def simulate_source(settings: RunSettings, scenario: Scenario) -> Simulation:
    """What a scenario does to what the source asks for. Permanent where it names what is not there."""
    return _run_on_source(settings, lambda ground, _: simulate(ground, scenario))


def simulate_source_losses(settings: RunSettings, by: str, silent: bool = False) -> Resilience:
    """Every single loss of a `cluster`, `node`, `zone`, `region` or `provider`; `silent` ones only do not answer."""
    return _run_on_source(settings, lambda ground, _: simulate_all_losses(ground, by, silent))


def compare_source_resilience(base: RunSettings, head: RunSettings, by: str, silent: bool = False) -> ResilienceChange:
    """Every single loss at two revisions, and whom the change between them makes more, or less, vulnerable."""
    return _run_on_source(
        base,
        lambda old, _: _run_on_source(
            head, lambda new, repository: _locate_change_causes(compare_resilience(old, new, by, silent), repository)
        ),
    )


def assess_resilience(compared: PlanComparison, by: str) -> Resilience | ResilienceChange:
    """What losses would do after what is reviewed: in comparison with the plan of the base, where that is a commit."""
    head = _make_commit_baseline(compared.later, compared.context.settings)
    if compared.earlier is None:
        return simulate_all_losses(head, by)
    return _locate_change_causes(
        compare_resilience(_make_commit_baseline(compared.earlier, compared.context.settings), head, by),
        compared.context.source.repository,
    )


def _make_commit_baseline(planned: PlannedCommit, settings: RunSettings) -> Baseline:
    plan = planned.run.plan
    return make_baseline(planned.decisions, planned.config, max(settings.now, plan.time), plan.observations)


def _run_on_source(settings: RunSettings, answer: Callable[[Baseline, Repository], T]) -> T:
    context = open_context(settings._replace(observations="recorded"))
    planned = plan_source(context, fetch(context), settings.now)
    plan = planned.plan
    baseline = make_baseline(plan.decisions, planned.config, max(settings.now, plan.time), plan.observations)
    return answer(baseline, context.source.repository)


def _locate_change_causes(change: ResilienceChange, repository: Repository) -> ResilienceChange:
    """With the line of each cause."""
    return change._replace(impact_changes=tuple(_locate_shifts(change.impact_changes, repository)))


def _locate_shifts(shifts: Iterable[ImpactChange], repository: Repository) -> Iterable[ImpactChange]:
    for shift in shifts:
        place = locate_rule(shift.field, repository) if shift.field is not None else None
        yield shift._replace(cause=f"{place.path}:{place.line}", field=None) if place else shift._replace(field=None)
