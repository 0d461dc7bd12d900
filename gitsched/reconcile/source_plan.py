"""Make or find the plan of the fetched source commit: from the state of the last plan, from what the output branch records, or completely.

Commands that look start from the same plans as a run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from gitsched.apis.registered import Registered
from gitsched.decide.guard.guard_settings import NO_GUARD_INPUT, GuardInput
from gitsched.decide.plan import InMemoryCaches, compute_plan_times, make_plan
from gitsched.decide.plan_input import PlanInput, SourceTree
from gitsched.decide.registry import policy_apis
from gitsched.model.cluster_facts import NO_FACTS
from gitsched.model.errors import GitschedError
from gitsched.model.rollouts import ROLLOUT_KIND
from gitsched.model.system_errors import is_bug
from gitsched.reconcile.facts.observations import has_delivery_reports, observe
from gitsched.reconcile.fetch import read_previous_output
from gitsched.reconcile.review.allowances import list_allowed_changes, read_releases
from gitsched.reconcile.review.guard_input import make_guard_input
from gitsched.reconcile.rollout_input import read_rollout_input
from gitsched.reconcile.run import (
    NO_SETTING_REPORT,
    NOTHING_OBSERVED,
    CompleteState,
    Facts,
    Fetched,
    Planned,
    RunContext,
    RunInput,
    SettingReport,
    StateUpdate,
    Written,
)
from gitsched.reconcile.source.source_locations import RuleLocations, locate_plan_findings
from gitsched.reconcile.source.source_tree import load
from gitsched.reconcile.tenants.required_tenants import check_required_tenants
from gitsched.render.run_metadata import NOTHING_BUILT

if TYPE_CHECKING:
    from pathlib import Path

    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.catalog import RawDocument
    from gitsched.decide.plan_result import Plan
    from gitsched.model.finding import Finding
    from gitsched.reconcile.cache.caches import Caches
    from gitsched.reconcile.cache.plan_cache import PlanCache

_MAKE_ISOLATED_PLAN = Registered("gitsched.decide.isolated_plan", "make_isolated_plan")
_QUARANTINE_FAULTS = Registered("gitsched.reconcile.source.quarantined_documents", "quarantine_faults")

T = TypeVar("T")
UsePlan = Callable[[Planned], object]

MIN_SHARED_ROWS = 1_000
"""Workloads and clusters from which on the state of a plan is stored beside the output branch, unless options say otherwise. A complete
plan of fewer takes about a second."""


def take_plan(context: RunContext, fetched: Fetched) -> PlanCache | None:
    """Return the state that an incremental plan may start from: that of the last run here, else the one beside the output branch, else that
    of an earlier run here, continued to what other machines have reconciled since."""

    def open_shared() -> PlanCache | None:
        if context.settings.state == "off" or not fetched.output.has_state(fetched.prefix):
            return None
        from gitsched.reconcile.incremental.shared_state import open_shared_state  # most machines have a cache

        return open_shared_state(context, fetched)

    def continue_earlier(cache: PlanCache) -> PlanCache | None:
        from gitsched.reconcile.incremental.earlier_state import continue_earlier_state  # only after runs of other machines

        return continue_earlier_state(context, fetched, cache, plan_source)

    return context.caches.take_plan(fetched.cache_key, fetched.output_tree, open_shared, continue_earlier)


def find_known_plan(context: RunContext, fetched: Fetched, now: datetime) -> Planned | None:
    """Return the last plan as the output branch records it, if the run has nothing to do; None if it needs a plan, also to store its state
    for other machines, or for later commands of a machine whose state is an old one."""
    if fetched.output_head is None or context.settings.state == "on" or context.settings.state_keys:
        return None
    if context.caches.get_plan_path(fetched.cache_key).exists():
        return None
    from gitsched.reconcile.output.recorded_plan import find_recorded_plan  # most machines have a cache

    found = find_recorded_plan(context, fetched, now, plan_source)
    if found is None:
        return None
    return found if _report_settings(context, fetched, found.config, refuses=True) == NO_SETTING_REPORT else None


def is_shared(context: RunContext, cache: PlanCache) -> bool:
    """Return whether the state is large enough that other machines should not have to plan everything again."""
    totals, mode = cache.header.totals, context.settings.state
    return mode == "on" or (mode != "off" and totals.overview.workload_count + totals.overview.cluster_count >= MIN_SHARED_ROWS)


def use_plan(
    context: RunContext,
    fetched: Fetched,
    now: datetime,
    use: Callable[[Planned], T],
    planned: Planned | None = None,
    *,
    withholds: bool = False,
    written: bool = True,
    refuses: bool | None = None,
) -> tuple[Planned, T]:
    """Return a plan of the fetched source commit, and what `use` makes of it. It is the one that is `planned` already, else a complete one.

    Only of a plan that is `written` do records have content. A document on which a bug shows in `use` counts as broken.
    """
    planned = planned or plan_source(context, fetched, now, withholds=withholds, written=written, refuses=refuses)
    try:
        return planned, use(planned)
    except Exception as error:
        if not is_bug(error):
            raise
    planned = plan_source(context, fetched, now, withholds=withholds, written=written, use=use, refuses=refuses)
    return planned, use(planned)


def find_state_file(context: RunContext, fetched: Fetched, planned: Planned, written: Written) -> Path | None:
    """Return the plan cache from which the next run of the same commits and options does the same as this one, which changed nothing; None
    if more than these and the time may change what it does."""
    plan = planned.plan
    is_repeated = (
        isinstance(planned.state, StateUpdate)
        and not (written.changed or written.refused or written.findings or fetched.output.remote)
        and fetched.facts == Facts()
        and planned.builds == NOTHING_BUILT
        and not planned.state.failed_builds
        and not (
            plan.observations
            or plan.observations.time
            or plan.releases
            or plan.rollouts
            or plan.withheld.moves
            or plan.withheld.waiting
        )
        and not (context.settings.operator_file or context.settings.source_keys or fetched.trusted.config.source.verify_keys)
    )
    return context.caches.get_plan_path(fetched.cache_key) if is_repeated else None


def plan_source(
    context: RunContext,
    fetched: Fetched,
    now: datetime,
    *,
    withholds: bool = False,
    written: bool = True,
    use: UsePlan | None = None,
    refuses: bool | None = None,
) -> Planned:
    """Make the complete plan of the fetched source commit. Explanations, simulations and comparisons start from it, too.

    With `withholds`, changes over the limits of the guard are left out; otherwise the plan has them and reports that a run leaves them out.
    Only of a plan that is `written` do records have content. A document on which a bug shows, also in `use`, counts as broken.
    With `refuses`, by default as `withholds`, settings and Tenants that a run must not use raise an error.
    """
    read = partial(read_plan_input, context, fetched, now, withholds=withholds, refuses=refuses)
    plan = partial(_plan_source, context, read, written, use)
    return read_source(context, fetched, partial(plan, isolates=False), partial(plan, isolates=True))


def read_source(context: RunContext, fetched: Fetched, read: Callable[[], T], first: Callable[[], T] | None = None) -> T:
    """Return what `read` makes of the fetched source commit. Every command reads a source in this way, or by a plan.

    After a bug in it, or in the `first` attempt, documents on which a bug shows count as broken. It has no effect but its value.
    """
    context.caches.set_quarantine({})
    try:
        return (first or read)()
    except Exception as error:
        if not is_bug(error):
            raise
        bug = error
    result: T = _QUARANTINE_FAULTS(context, fetched, read, bug)
    return result


def _plan_source(context: RunContext, read: Callable[[], RunInput], written: bool, use: UsePlan | None, isolates: bool) -> Planned:
    """Make the plan of `plan_source`. With `isolates`, documents on which a bug shows in the plan, and not before it, count as broken."""
    caches = context.caches
    made_from, can_continue, setting_changes, facts = read()
    made_from = made_from if written else made_from._replace(written=False)
    source = made_from.source

    def complete(plan: Plan, state: CompleteState | None = None) -> Planned:
        plan = locate_plan_findings(plan, RuleLocations(context.source.repository)) if plan.has_rule_findings else plan
        kept = {path: file.commit for path, file in source.last_valid.items()}
        return Planned(plan, plan.totals.config, state, source.builds, kept, setting_changes, tenants=source.tenants, facts=facts)

    use_made = (lambda plan: use(complete(plan))) if use is not None else None
    plan, is_sound = _make_plan(made_from, caches, use_made) if isolates else (make_plan(made_from), False)
    if not isolates and use_made is not None:
        with suppress(GitschedError):  # the caller uses the plan again
            use_made(plan)
    caches.plan_size = len(caches.files.parsed)
    # Otherwise the trusted settings hold workloads that the source no longer holds.
    tree = caches.tree if can_continue and is_sound and plan.totals.config is source.config else None
    if tree is None or not (tree.valid or tree.reading_rules is not None or tree.used_versions is not None):
        return complete(plan)
    state = CompleteState(
        made_from.previous, tree.source_paths, tree.reading_rules, tree.used_versions or {}, tree.failed_builds or {}
    )
    return complete(plan, state)


def read_plan_input(
    context: RunContext, fetched: Fetched, now: datetime, *, withholds: bool = False, refuses: bool | None = None
) -> RunInput:
    """Load and observe everything that a plan of the fetched source commit is made from."""
    refuses = withholds if refuses is None else refuses
    source, record = load(context, fetched), fetched.record
    own = source.config
    if own.source.facts != fetched.trusted.config.source.facts:  # a commit does not choose whose facts count for it
        source = source._replace(config=own._replace(source=own.source._replace(facts=fetched.trusted.config.source.facts)))
    complete = source
    source = _check_tenants(context, source, refuses=refuses)
    lacks_tenants = source is not complete
    facts = NO_FACTS
    if fetched.facts != Facts():
        from gitsched.reconcile.facts.cluster_facts import add_all_facts  # few sources have facts branches

        source, facts = add_all_facts(context, fetched.facts, source, now, record.facts if record else {})
    reported = _report_settings(context, fetched, own, refuses=refuses)
    contacts: tuple[Finding, ...] = ()
    if contact_documents := _list_contact_documents(fetched, source):
        from gitsched.reconcile.review.contact_changes import find_contact_changes  # few sources query metrics

        contacts = find_contact_changes(context, fetched, contact_documents)
    context.report_step("observing")
    kinds = {(document.group, document.kind) for document in source.documents}
    is_observed = _may_be_observed(kinds)
    observed = observe(context, fetched, source, now) if is_observed else NOTHING_OBSERVED
    source = source._replace(other_findings=(*source.other_findings, *observed.findings, *reported.findings, *contacts))
    previous = read_previous_output(context, fetched)
    if source.variants:
        from gitsched.reconcile.bundles.source_commits import add_source_commits  # few sources have Bundles

        source = add_source_commits(source, fetched, previous.records, context)
    times = compute_plan_times(max(fetched.time, facts.stale_since), record.time if record else None, now)
    allowed = partial(list_allowed_changes, context, fetched)
    guard = _read_guard_input(context, fetched, source)
    rollouts = None
    if ROLLOUT_KIND in kinds or (record is not None and record.rollouts):
        rollouts = read_rollout_input(context, fetched)
    made_from = PlanInput(
        source,
        previous,
        times,
        observed.observations,
        allowed,
        withholds,
        read_releases(context, fetched) if record is not None else None,
        guard,
        (facts.wakeup,) if facts.wakeup is not None else (),
        rollouts=rollouts,
        adopted=record.adopted if record is not None else {},
        progress=context.settings.progress,
    )
    # Reports of clusters may change anything: a plan with them is never the start of the next one, nor is one with findings about settings
    # or metrics.
    has_reports = is_observed and not observed.empty and (rollouts is not None or has_delivery_reports(source))
    awaits_statuses = rollouts is not None and own.observations.statuses is not None
    is_changed = (observed.findings, reported.findings, contacts, lacks_tenants, source.config is not own)
    can_continue = not any((has_reports, awaits_statuses, *is_changed))
    return RunInput(made_from, can_continue, reported.changes, facts)


def _may_be_observed(kinds: Collection[tuple[str, str]]) -> bool:
    """Return whether a source with these kinds may name metrics, or wait for reports of clusters."""
    readers = [reader for api in policy_apis.values() for reader in (api.metrics, api.delivery_reports) if reader is not None]
    return ROLLOUT_KIND in kinds or any(group in reader.groups for reader in readers for group, _ in kinds)


def _check_tenants(context: RunContext, source: SourceTree, *, refuses: bool) -> SourceTree:
    """Return the source without what may not count because Tenants are missing that the operator requires; the same one if none are."""
    required = context.settings.operator.required_tenants
    if not required and all(finding.code != "tenant-unreadable" for finding in source.other_findings):
        return source
    return check_required_tenants(source, required, refuses=refuses)


def _report_settings(context: RunContext, fetched: Fetched, config: Config, *, refuses: bool) -> SettingReport:
    if not needs_setting_report(context, fetched, config):
        return NO_SETTING_REPORT
    from gitsched.reconcile.review.setting_findings import report_settings  # few commits change settings

    return report_settings(context, fetched, config, refuses=refuses)


def _read_guard_input(context: RunContext, fetched: Fetched, source: SourceTree) -> GuardInput:
    choices = context.settings.choices
    is_first = fetched.record is None and not (choices.guard_limits or choices.allowed)
    guard = NO_GUARD_INPUT if is_first else make_guard_input(context, fetched, has_tenants=source.tenancy is not None)
    return guard._replace(unverified=source.unverified) if source.unverified else guard


def needs_setting_report(context: RunContext, fetched: Fetched, config: Config) -> bool:
    """Return whether the planned commit with this `config` changes settings, or has some that only the operator can confirm."""
    settings, trusted, output = context.settings, fetched.trusted, config.output
    return (
        (trusted.commit is not None and trusted.config != config)
        or bool(output.repository or output.push is not None or output.signing or settings.source_keys or config.source.verify_keys)
        or (settings.output_branch is None and fetched.output.branch != output.branch.removeprefix("refs/heads/"))
        or (settings.output_path is None and fetched.prefix.rstrip("/") != output.path)
    )


def _list_contact_documents(fetched: Fetched, source: SourceTree) -> list[RawDocument]:
    """Return the documents that may name hosts, about metrics and definitions of scores, of a commit that differs from the trusted one."""
    trusted = fetched.trusted.commit
    if trusted is None or trusted.tree == fetched.source.tree:
        return []
    groups = {group for api in policy_apis.values() if api.metrics is not None for group in api.metrics.groups}
    kinds = {api.scoring.definition for api in policy_apis.values() if api.scoring is not None}
    return [document for document in source.documents if document.group in groups or (document.group, document.kind) in kinds]


def _make_plan(made_from: PlanInput, caches: Caches, use: Callable[[Plan], object] | None) -> tuple[Plan, bool]:
    """Return the plan, and whether all documents could be handled. One on which a bug shows, also in `use`, is quarantined."""
    if use is None:
        try:
            return make_plan(made_from, caches.decisions), True
        except Exception as error:
            if not is_bug(error):
                raise
    caches.decisions = InMemoryCaches()
    return _MAKE_ISOLATED_PLAN(made_from, use or (lambda _: None)), False
