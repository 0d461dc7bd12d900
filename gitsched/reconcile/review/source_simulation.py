"""Run simulations on a plan of the source. No ref moves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from gitsched.apis.registered import Registered
from gitsched.decide.garbage_collection import gc_paused
from gitsched.diff.resilience import compare_resilience
from gitsched.forge.web_links import find_web_links
from gitsched.git import Repository
from gitsched.model.errors import NeedsCompletePlan, Permanent
from gitsched.model.finding import Finding, list_faults
from gitsched.model.losses import LossRequest
from gitsched.model.scheduling import Unknown
from gitsched.model.simulation import ImpactChange, Resilience, ResilienceChange, SimulatedSource, Simulation
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.incremental.state_plan import plan_from_state, try_with_state
from gitsched.reconcile.plan_baseline import make_plan_baseline
from gitsched.reconcile.review.comparison import PlanComparison
from gitsched.reconcile.review.ignored_settings import log_ignored_settings
from gitsched.reconcile.review.loss_runs import simulate_losses
from gitsched.reconcile.run import Fetched, Planned, RunContext, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source.source_commits import describe_source_commit
from gitsched.reconcile.source.source_locations import RuleLocations, locate_causes
from gitsched.reconcile.source_plan import use_plan
from gitsched.report.causes import list_cause_texts
from gitsched.simulate.baseline import Baseline, KeptReplicas
from gitsched.simulate.continued_plan import NeedsNewEngines
from gitsched.simulate.loss_simulation import simulate_all_losses
from gitsched.simulate.reserve import ReserveRules, find_reserve_loss, mark_reserved
from gitsched.simulate.scenario import Scenario, apply_scenario
from gitsched.simulate.simulation import decide_event, describe_event

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan
    from gitsched.model.document import Key
    from gitsched.reconcile.incremental.planned_workloads import PlannedWorkloads

T = TypeVar("T")
_MAP_FLEET = Registered("gitsched.simulate.fleet_map", "map_fleet")
Use = Callable[[T, SimulatedSource], object]
"""What is done with a result, given the source that it is about."""


def simulate_source(
    settings: RunSettings, scenario: Scenario, faults: list[Finding], use: Use[Simulation], *, maps_fleet: bool = False
) -> Simulation:
    """Simulate a scenario on the plan of the source. Raise Permanent if it names a missing cluster or object. With `maps_fleet`, the result
    has all clusters before and after it.

    Findings about documents on which a bug shows are added to `faults`, here and in the other functions. `use` is called with the result
    and its source, to find these, too.
    """
    known = partial(_simulate_from_state, scenario=scenario, maps_fleet=maps_fleet)

    def answer(baseline: Baseline, _fetched: Fetched, _: Repository) -> Simulation:
        return _simulate(baseline, scenario, baseline if maps_fleet else None)

    return _run_on_source(settings, answer, faults, use, known)


def _simulate(baseline: Baseline, scenario: Scenario, mapped: Baseline | None = None) -> Simulation:
    """Simulate a scenario, and mark what a reserve for it lacks. If `mapped` is given, which has the decisions about all workloads, the
    result has all clusters."""
    event, tenancy, kind = decide_event(baseline, scenario), baseline.decisions.tenancy, find_reserve_loss(scenario)
    found = describe_event(baseline, scenario, event)
    if mapped is not None:
        found = found._replace(fleet=_MAP_FLEET(mapped, event, found))
    rules = ReserveRules([baseline.config.reserve], [tenancy])
    return mark_reserved(found, rules, tenancy, kind) if rules.covers(kind) else found


def _simulate_from_state(
    context: RunContext, fetched: Fetched, use: Callable[[Simulation], object], scenario: Scenario, maps_fleet: bool
) -> Simulation | None:
    """Simulate a scenario on what the last run has planned; None where a complete plan is needed."""
    workloads = _plan_workloads(context, fetched)
    if workloads is None:
        return None
    plan, mapped = workloads.plan, None
    if scenario.scale or scenario.fresh:
        time = max(context.settings.now, plan.time)
        catalog, nodes = workloads.catalog, workloads.has_inner_placements
        changed = apply_scenario(catalog, scenario._replace(scale=()), plan.totals.config, time, nodes)
        baseline = workloads.decide_few(workloads.list_concerned(scenario, changed))[1]
        mapped = workloads.make_fleet_baseline() if maps_fleet else None
    else:
        baseline = workloads.make_fleet_baseline()
        mapped = baseline if maps_fleet else None
    baseline = _keep_delivered(baseline, plan)
    try:
        return _use_from_state(plan, partial(_simulate, baseline, scenario, mapped), use)
    except Permanent:
        if not scenario.scale:
            raise
        raise NeedsCompletePlan("names like those of a pattern that selects nothing are searched among all workloads") from None


def _use_fleet_from_state(
    context: RunContext, fetched: Fetched, use: Callable[[T], object], answer: Callable[[Baseline, Fetched], T]
) -> T | None:
    """Return an answer about events of clusters, given what the last run has planned; None where a complete plan is needed."""
    workloads = _plan_workloads(context, fetched)
    if workloads is None:
        return None
    baseline = _keep_delivered(workloads.make_fleet_baseline(), workloads.plan)
    return _use_from_state(workloads.plan, partial(answer, baseline, fetched), use)


def _plan_workloads(context: RunContext, fetched: Fetched) -> PlannedWorkloads | None:
    from gitsched.reconcile.incremental.planned_workloads import PlannedWorkloads  # not where there is no state

    known = plan_from_state(context, fetched)
    plan = known.planned.plan
    workloads = PlannedWorkloads(context, fetched, plan, known.update)
    return None if list_faults(plan.findings) else workloads


def _keep_delivered(baseline: Baseline, plan: Plan) -> Baseline:
    """Return the baseline with what clusters keep of workloads beside what was decided: those with withheld changes, and last copies."""
    kept: dict[Key, KeptReplicas] = {}
    for copy in plan.retained:
        if copy.start is None and not copy.preserved and copy.workload in plan.outcomes:
            replicas = kept[copy.workload].replicas if copy.workload in kept else {}
            kept[copy.workload] = KeptReplicas({**replicas, copy.cluster: copy.replicas})
    for move in plan.withheld.moves:
        if move.before:
            replicas = {name: None if isinstance(count, Unknown) else count for name, count in move.before.items()}
            kept[move.key] = KeptReplicas(replicas, is_withheld=True, is_gone=move.key not in plan.outcomes)
    return baseline._replace(kept=kept)


def _use_from_state(plan: Plan, answer: Callable[[], T], use: Callable[[T], object]) -> T | None:
    """Return an answer, once it is used; None if an event needs a complete plan."""
    try:
        answered = answer()
    except NeedsNewEngines:
        return None
    use(answered)
    log_ignored_settings(plan)
    return answered


def simulate_source_losses(
    settings: RunSettings,
    request: LossRequest,
    faults: list[Finding],
    use: Use[Resilience],
    processes: int | None = None,
) -> Resilience:
    """Simulate the losses of a request, on as many processes as there are cores by default."""

    def answer(baseline: Baseline, _fetched: Fetched) -> Resilience:
        return simulate_losses(baseline, request, processes, settings.progress)

    return use_source_fleet(settings, answer, faults, use)


def use_source_fleet(settings: RunSettings, answer: Callable[[Baseline, Fetched], T], faults: list[Finding], use: Use[T]) -> T:
    """Return an answer about events of clusters from a plan of the source, once it is used."""
    known = partial(_use_fleet_from_state, answer=answer)
    return _run_on_source(settings, lambda baseline, fetched, _: answer(baseline, fetched), faults, use, known)


def compare_source_resilience(
    base: RunSettings,
    head: RunSettings,
    by: str,
    faults: list[Finding],
    use: Use[ResilienceChange],
    *,
    unreachable: bool = False,
) -> ResilienceChange:
    """Simulate every single loss at two revisions, and compare which workloads each loss affects."""
    return _run_on_source(
        base,
        lambda old, fetched, _: _run_on_source(
            head,
            lambda new, _fetched, repository: _locate_change_causes(
                compare_resilience(old, new, by, unreachable, head.progress), repository
            ),
            faults,
            lambda change, source: use(change, source._replace(against=describe_source_commit(fetched.source))),
        ),
        faults,
        lambda *_: None,
    )


def assess_resilience(compared: PlanComparison, by: str) -> Resilience | ResilienceChange:
    """Simulate losses on the plan under review, and compare with the plan of the base where that is a commit."""
    settings = compared.context.settings
    head = make_plan_baseline(settings, compared.later.run.plan, compared.later.config)
    if compared.earlier is None:
        return simulate_all_losses(head, by, progress=compared.context.settings.progress)
    return _locate_change_causes(
        compare_resilience(
            make_plan_baseline(settings, compared.earlier.run.plan, compared.earlier.config),
            head,
            by,
            progress=compared.context.settings.progress,
        ),
        compared.context.source.repository,
    )


def _run_on_source(
    settings: RunSettings,
    answer: Callable[[Baseline, Fetched, Repository], T],
    faults: list[Finding],
    use: Use[T],
    answer_from_state: Callable[[RunContext, Fetched, Callable[[T], object]], T | None] | None = None,
) -> T:
    """Return the answer from a plan of the source, once it is used. Findings about documents on which a bug shows, also in the use of the
    answer, are added to `faults`. `answer_from_state` gives the same answer without a plan, and uses it, or returns None."""
    context = open_context(settings._replace(observations="recorded"))

    def use_of_source(answered: T) -> None:
        web = find_web_links(context.source.find_url())
        use(answered, SimulatedSource(describe_source_commit(fetched.source), web=web, time=settings.now.replace(microsecond=0)))

    def use_answer(planned: Planned) -> T:
        baseline = _keep_delivered(make_plan_baseline(settings, planned.plan, planned.config), planned.plan)
        answered = answer(baseline, fetched, context.source.repository)
        use_of_source(answered)
        return answered

    with gc_paused():
        fetched = fetch(context)
        known = (
            try_with_state(lambda: answer_from_state(context, fetched, use_of_source)) if answer_from_state is not None else None
        )
        if known is not None:
            return known
        planned, answered = use_plan(context, fetched, settings.now, use_answer, written=False)
    faults += list_faults(planned.plan.findings)
    log_ignored_settings(planned.plan)
    return answered


def _locate_change_causes(change: ResilienceChange, repository: Repository) -> ResilienceChange:
    """Return the change with the line of each cause."""
    locations = RuleLocations(repository)
    return change._replace(impact_changes=tuple(_locate_impact(entry, locations) for entry in change.impact_changes))


def _locate_impact(change: ImpactChange, locations: RuleLocations) -> ImpactChange:
    causes = locate_causes(change.causes, locations)
    proved = [cause for cause in causes if cause.proved]
    places = list_cause_texts(proved, lambda cause: cause.location.text if cause.location else cause.text)
    cause = "; ".join(dict.fromkeys(places))  # several changes of one line are one place
    return change._replace(causes=causes, cause=cause)
