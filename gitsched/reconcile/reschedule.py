"""Select the workloads of a reschedule request, and write the request as a file of the source."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import timedelta
from pathlib import Path

from gitsched.apis.capabilities import Rescheduling
from gitsched.apis.gitsched.config import FILE, Config
from gitsched.decide.catalog import Catalog
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.decide.plan import compute_plan_times
from gitsched.decide.relations.object_queries import has_far_companions
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.model.document import Key, read_labels, workload_sort_key
from gitsched.model.errors import Permanent
from gitsched.model.finding import list_faults
from gitsched.model.labels import Selector
from gitsched.model.system_errors import make_write_error
from gitsched.model.template_index import TemplateIndex
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import fetch, read_previous_output
from gitsched.reconcile.incremental.planned_workloads import PlannedWorkloads
from gitsched.reconcile.incremental.state_plan import plan_from_state, try_with_state
from gitsched.reconcile.review.resource_names import find_named
from gitsched.reconcile.run import Fetched, Planned, RunContext, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source.source_reader import is_manifest_path
from gitsched.reconcile.source.source_tree import load
from gitsched.reconcile.source_plan import read_source, use_plan
from gitsched.reconcile.worktree_file import create_file, resolve_worktree_file
from gitsched.render.yaml import dump
from gitsched.simulate.baseline import Baseline, make_baseline
from gitsched.simulate.continued_plan import NeedsNewEngines
from gitsched.simulate.left_data import LeftData
from gitsched.simulate.reschedule_request import (
    RescheduleRequest,
    SelectedWorkloads,
    WaitingWorkload,
    list_rescheduling_engines,
    make_reschedule_request,
    select_displaced,
    select_unheld,
)

DIRECTORY = "rebalance"
HEADER = "# Written by `gitsched rebalance`. `gitsched tidy --write` removes it after it has expired.\n"


class WorkloadSelection(NamedTuple):
    """The workloads to reschedule: named ones as (kind, namespace or None, name), or all with labels, or all displaced ones.

    `namespace` limits a selection by labels or displacement; "" means all namespaces. With `only_unavailable`, replicas that clusters
    report as available stay.
    """

    named: tuple[tuple[str, str | None, str], ...] = ()
    labels: Selector | None = None
    displaced: bool = False
    namespace: str = ""
    only_unavailable: bool = False


class RescheduleFile(NamedTuple):
    """A reschedule request, its text and its default path in the source; `exists` says that the source has it already, and `withheld` what
    allows its moves if the guard withholds them."""

    request: RescheduleRequest
    text: str
    path: str
    exists: bool
    withheld: str = ""


class RescheduleAnswer(NamedTuple):
    """The request for the selected workloads, None if there is nothing to request; those that are held and not part of it, those that
    wait for their evictions, and those that fit in no cluster now either."""

    file: RescheduleFile | None
    held: tuple[LeftData, ...] = ()
    waiting: tuple[WaitingWorkload, ...] = ()
    unplaced: tuple[Key, ...] = ()


def make_reschedule_file(
    settings: RunSettings, selection: WorkloadSelection, ttl: timedelta | None, with_companions: bool = True
) -> RescheduleAnswer:
    """Return the request for the selected workloads.

    Raise Permanent if there is no such workload, or if no API with rescheduling decides about it.
    """
    context = open_context(settings)
    fetched = fetch(context)
    with_companions = with_companions and not selection.displaced
    known = try_with_state(lambda: _make_from_state(context, fetched, selection, ttl, with_companions))
    if known is not None:
        return known

    def make_request(planned: Planned) -> RescheduleAnswer:
        plan = planned.plan
        baseline = make_baseline_without_requests(context, fetched, planned)
        selected = _select(baseline, selection)
        if not selected.keys:
            return RescheduleAnswer(None, *selected[1:])
        request = make_reschedule_request(
            baseline, selected.keys, ttl, with_companions, only_unavailable=selection.only_unavailable
        )
        file = _make_file(request, planned.config, plan.decisions.catalog)
        moving = {row.key for row in request.workloads}
        if file.exists and any(move.key in moving for move in plan.withheld.moves):
            file = file._replace(withheld=plan.withheld.allowance)
        return RescheduleAnswer(file, *selected[1:])

    return use_plan(context, fetched, settings.now, make_request)[1]


def _make_from_state(
    context: RunContext, fetched: Fetched, selection: WorkloadSelection, ttl: timedelta | None, with_companions: bool
) -> RescheduleAnswer | None:
    """Return the request for workloads that the last run has planned; None where a complete plan is needed."""
    known = plan_from_state(context, fetched)
    workloads = PlannedWorkloads(context, fetched, known.planned.plan, known.update)
    totals, baseline = workloads.plan.totals, workloads.make_fleet_baseline()
    engines = list_rescheduling_engines(baseline).values()
    if totals.source.repeated or totals.source.unused or list_faults(workloads.plan.findings):
        return None
    if (with_companions and has_far_companions(known.update.cache.relations.database)) or any(
        tuple(engine.list_pending_requests()) for engine in engines
    ):
        return None
    try:
        selected = _select_from_state(baseline, workloads.index, selection)
        namespaces = {key.namespace for key in selected.keys} if with_companions else ()
        among = {key: baseline.decisions.templates[key] for key in workloads.index if key.namespace in namespaces}
        only = selection.only_unavailable
        request = (
            make_reschedule_request(baseline, selected.keys, ttl, with_companions, among, only_unavailable=only)
            if selected.keys
            else None
        )
    except NeedsNewEngines:
        return None
    file = _make_file(request, baseline.config, baseline.decisions.catalog) if request is not None else None
    return RescheduleAnswer(file, *selected[1:])


def _make_file(request: RescheduleRequest, config: Config, catalog: Catalog) -> RescheduleFile:
    key = request.document.key
    path = f"{choose_directory(config)}{key.name}.yaml"
    return RescheduleFile(request, HEADER + dump(request.document.body), path, key in catalog.api_documents_by_key)


def make_baseline_without_requests(context: RunContext, fetched: Fetched, planned: Planned) -> Baseline:
    """Return the baseline of a plan as if no request were pending, so that the same request is made again."""
    plan = planned.plan
    decisions, time = _decide_without_requests(context, fetched, planned), max(context.settings.now, plan.time)
    return make_baseline(decisions, planned.config, time, plan.observations, completed=plan.completed)


def _decide_without_requests(context: RunContext, fetched: Fetched, planned: Planned) -> DecisionSet:
    decisions = planned.plan.decisions
    pending = {key for engine in decisions.engines if isinstance(engine, Rescheduling) for key in engine.list_pending_requests()}
    if not pending:
        return decisions
    named = {(key.group, key.kind, key.name) for key in pending}
    source = load(context, fetched)
    documents = [entry for entry in source.documents if (entry.group, entry.kind, entry.name) not in named]
    times = compute_plan_times(fetched.source.time, fetched.record.time if fetched.record else None, context.settings.now)
    previous = read_previous_output(context, fetched)
    observations, adopted = planned.plan.observations, decisions.input.adopted if decisions.input is not None else None
    return decide(documents, previous.records, source.config, *times, None, observations, adopted=adopted, tenancy=source.tenancy)


def write_reschedule_file(root: Path, path: str, text: str) -> bool:
    """Write a file of the worktree and return whether it changed.

    Raise Permanent for a path outside, one that the source does not read, or a file with other content.
    """
    target = resolve_worktree_file(root, path)
    if not is_manifest_path(path) or path.endswith(".json") or target.name in (FILE, *KUSTOMIZATION_NAMES):
        raise Permanent(f"{path} cannot hold the request: choose a name that ends in .yaml, and that has no other use")
    try:
        if target.exists():
            if target.is_file() and target.read_bytes() == text.encode():
                return False
            raise Permanent(f"{path} exists and has other content; choose another file")
        create_file(target, text)
    except OSError as error:
        raise make_write_error(path, error) from error
    return True


def is_read(settings: RunSettings, key: Key) -> bool:
    """Return whether the source has a document, so that its file is not hidden by .sourceignore or source.paths."""
    context = open_context(settings)
    fetched = fetch(context)
    documents = read_source(context, fetched, lambda: load(context, fetched)).documents
    return any((document.group, document.kind, document.name) == (key.group, key.kind, key.name) for document in documents)


def _select(baseline: Baseline, selection: WorkloadSelection) -> SelectedWorkloads:
    decisions = baseline.decisions
    if selection.named:
        known = dict.fromkeys((*decisions.templates, *decisions.catalog.broken, *decisions.catalog.duplicate_templates))
        return SelectedWorkloads([_find_named(baseline, known, *named) for named in selection.named])
    eligible = _list_eligible(baseline, decisions.outcomes, selection.namespace)
    if selection.displaced:
        return select_displaced(baseline, eligible)
    labels = selection.labels
    assert labels is not None
    keys = [key for key in eligible if labels.matches(read_labels(decisions.templates[key].body))]
    return select_unheld(baseline, _check_labelled(keys, selection))


def _select_from_state(baseline: Baseline, index: TemplateIndex, selection: WorkloadSelection) -> SelectedWorkloads:
    """Return the workloads of an index that are selected."""
    if selection.named:
        known = dict.fromkeys((*index, *sorted(baseline.decisions.own_workloads)))
        return SelectedWorkloads([_find_named(baseline, known, *named) for named in selection.named])
    labels = selection.labels
    placed = (key for key, entry in index.items() if entry.placement is not None)
    keys = sorted((key for key in placed if labels is None or labels.matches(index[key].labels)), key=workload_sort_key)
    eligible = _list_eligible(baseline, keys, selection.namespace)
    if selection.displaced:
        return select_displaced(baseline, eligible)
    return select_unheld(baseline, _check_labelled(eligible, selection))


def _list_eligible(baseline: Baseline, keys: Iterable[Key], namespace: str) -> list[Key]:
    """Return those of some workloads in a namespace, "" for all, that can be rescheduled."""
    engines, outcomes = list_rescheduling_engines(baseline), baseline.decisions.outcomes
    found = ((key, outcomes[key]) for key in keys if namespace in ("", key.namespace))
    return [key for key, outcome in found if outcome.api in engines and outcome.policy and outcome.state != "stale"]


def _check_labelled(keys: list[Key], selection: WorkloadSelection) -> list[Key]:
    if not keys:
        where = f" in namespace {selection.namespace}" if selection.namespace else ""
        raise Permanent(f"no workload{where} that a policy selects has these labels")
    return keys


def _find_named(baseline: Baseline, known: Collection[Key], kind: str, namespace: str | None, name: str) -> Key:
    decisions = baseline.decisions
    key = find_named(known, kind, namespace, name)
    outcome = decisions.outcomes.get(key)
    if outcome is None:
        raise Permanent(f"no policy selects {key}, so there is nothing to reschedule")
    if outcome.state == "stale":
        raise Permanent(f"{key} keeps its placement until it is valid: {outcome.reason}")
    if outcome.api not in list_rescheduling_engines(baseline):
        raise Permanent(
            f"{key} is scheduled by {outcome.policy or outcome.api}: the policy API {outcome.api} has no rescheduling requests"
        )
    if not outcome.policy:
        raise Permanent(f"no policy selects {key}: it is {outcome.reason}; reschedule these workloads instead")
    return key


def choose_directory(config: Config) -> str:
    """Return the directory of requests, below the first directory that the source is read from."""
    first = next(iter(config.source.paths), "")
    return f"{first.rstrip('/')}/{DIRECTORY}/" if first and not first.endswith((".yaml", ".yml", ".json")) else f"{DIRECTORY}/"
