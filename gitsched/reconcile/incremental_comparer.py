"""Compare commits by incremental plans that start from the state of the last run, which is only read.

The report is the same as that of complete plans. Where only these can tell something, `NeedsCompletePlan` is raised.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from gitsched.apis.policy_api import PolicyEngine, Snapshot
from gitsched.decide.catalog import Catalog
from gitsched.decide.changed_documents import match_documents
from gitsched.decide.decisions import DecisionInput, decide_workload, list_dependency_trackers, make_holds_loader
from gitsched.decide.partial_decisions import PartialDecisions
from gitsched.decide.plan_result import describe_reason
from gitsched.diff.counterfactual_placements import DecidedCommit
from gitsched.diff.document_changes import DocumentChanges
from gitsched.model.changes import Move
from gitsched.model.document import Document, Key
from gitsched.model.errors import GitschedError
from gitsched.model.observation import Observations, read_observations
from gitsched.reconcile.changed_files import TemplateFinder, find_limit, read_file_at
from gitsched.reconcile.compared_plans import ComparedInputs, PlannedCommit, plan_commit
from gitsched.reconcile.fetch import open_records
from gitsched.reconcile.pipeline import needs_setting_report, plan_source, take_plan
from gitsched.reconcile.run import NO_SETTING_REPORT, Fetched, RunContext, StateUpdate
from gitsched.reconcile.source_diff import LazyTemplates, plan_incrementally, read_templates
from gitsched.reconcile.source_reader import SourceReader
from gitsched.render.output_files import CLUSTERS

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.model.commit import Commit
    from gitsched.model.scheduling import Outcome
    from gitsched.reconcile.cache.plan_cache import PlanCache

Documents = Mapping[Key, Document]


class NeedsCompletePlan(GitschedError):
    """Only complete plans can tell what a comparison has to say."""


class IncrementalComparer:
    """Makes incremental plans: see `gitsched.reconcile.compared_plans.CommitComparer`."""

    def plan(self, context: RunContext, fetched: Fetched, /) -> PlannedCommit:
        cache = _open_state(context, fetched)
        totals = cache.header.totals
        if totals.varied or context.settings.operator.required_tenants or totals.config != fetched.trusted.config:
            raise NeedsCompletePlan("what builds, tenants and settings change is not in the state")
        if needs_setting_report(context, fetched, totals.config):
            from gitsched.reconcile.setting_findings import report_settings  # few commits change settings

            if report_settings(context, fetched, totals.config, refuses=False) != NO_SETTING_REPORT:
                raise NeedsCompletePlan("settings are reported")
        planned = plan_incrementally(context, fetched, cache, context.settings.now, plan_source)
        found = plan_commit(context, fetched, planned) if planned is not None else None
        if found is None or found.update is None:
            raise NeedsCompletePlan("the change is too large for an incremental plan, or a bug shows on a document")
        if found.update.incremental.changes.engines is not None:
            raise NeedsCompletePlan("workloads come and go, or documents of policy APIs differ")
        return found

    def list_moves(self, earlier: PlannedCommit, later: PlannedCommit, /) -> tuple[Move, ...]:
        keys = {key for planned in (earlier, later) for key in _get_update(planned).incremental.changes.workloads}
        before, after = earlier.run.plan.outcomes, later.run.plan.outcomes
        moves = []
        for key in sorted(keys, key=lambda key: (key.namespace, key.name, key)):
            if key not in before or key not in after:
                raise NeedsCompletePlan(f"{key} comes or goes")
            outcome, replicas = after[key], before[key].replicas_by_cluster
            if replicas != outcome.replicas_by_cluster:
                reason = describe_reason(outcome)
                moves.append(Move(key, replicas, outcome.replicas_by_cluster, reason, copy_replicas=outcome.replicas or 0))
        return tuple(moves)

    def compare(self, context: RunContext, earlier: PlannedCommit, later: PlannedCommit, /) -> ComparedInputs:
        plan, tree = earlier.run.plan, earlier.fetched.source.tree
        times = plan.totals.source_time, plan.totals.now
        moves = self.list_moves(earlier, later)
        return _compare_inputs(context, tree, times, Observations(), later, [move.key for move in moves], plan.outcomes)

    def compare_with_recorded(
        self, context: RunContext, fetched: Fetched, earlier: Commit, later: PlannedCommit, /
    ) -> ComparedInputs | None:
        record = fetched.record
        if record is None:
            return None
        observed = read_observations(record.observations, record.observed_at)
        moved = [move.key for move in later.run.plan.moves]
        return _compare_inputs(context, earlier.tree, (record.time, record.time), observed, later, moved, {})

    def list_clusters(self, context: RunContext, planned: PlannedCommit, /) -> set[str]:
        """Return no cluster: both plans have the same ones, because a change of a cluster requires a complete plan."""
        del context
        fetched = planned.fetched
        repository, path = fetched.output.repository, f"{fetched.prefix}{CLUSTERS}"
        trees = (fetched.output_tree, planned.run.tree)
        names = [repository.list_directory(tree, path).keys() if tree else set[str]() for tree in trees]
        if names[0] != names[1]:
            raise NeedsCompletePlan("clusters are added or removed")
        return set()


def _get_update(planned: PlannedCommit) -> StateUpdate:
    assert planned.update is not None, "the plan is incremental"
    return planned.update


def _compare_inputs(
    context: RunContext,
    tree: str,
    times: tuple[datetime, datetime],
    observed: Observations,
    later: PlannedCommit,
    moved: Iterable[Key],
    outcomes: Mapping[Key, Outcome],
) -> ComparedInputs:
    """Return what changed since the commit with a tree that was planned at these times, with these outcomes."""
    cache, plan = _get_update(later).cache, later.run.plan
    totals = plan.totals
    if any(key in each and not each[key].policy for each in (outcomes, plan.outcomes) for key in moved):
        raise NeedsCompletePlan("the policies are those of other workloads")
    reader = _SourceComparer(context, cache)
    before, after = reader.read_changes(tree, later.fetched.source.tree)
    changes = DocumentChanges(
        _make_input(before, later, times, observed),
        _make_input(after, later, (totals.source_time, totals.now), Observations()),
    )

    def read_decided() -> DecidedCommit:
        templates = reader.open_templates(later.fetched, after)
        decide_some = _CounterfactualDecisions(context, later, cache, reader).decide_some
        return DecidedCommit(plan.outcomes, templates, cache.engines, totals.document_count, totals.template_count, decide_some)

    return ComparedInputs(changes, read_decided)


def _open_state(context: RunContext, fetched: Fetched) -> PlanCache:
    """Return the state of the last run, with engines that nothing else uses."""
    cache = take_plan(context, fetched)
    if cache is None:
        raise NeedsCompletePlan("there is no state")
    return cache


def _make_input(
    documents: Documents, planned: PlannedCommit, times: tuple[datetime, datetime], observed: Observations
) -> DecisionInput:
    """Return the part of the input of a plan that differs from another one."""
    catalog = Catalog({}, documents, {}, {}, {}, {}, {}, (), tuple(documents))
    return DecisionInput(catalog, {}, planned.run.plan.totals.config, *times, observed)


class _SourceComparer:
    """Reads the templates that differ between two trees."""

    def __init__(self, context: RunContext, cache: PlanCache) -> None:
        config = cache.header.totals.config
        self._context, self._cache, self._repository = context, cache, context.source.repository
        self._reader = SourceReader(self._repository, context.caches.files, config, strict=config.source.strict)

    def read_changes(self, before: str, after: str) -> tuple[Documents, Documents]:
        """Return the templates of the files that differ between two trees, of both. Raise NeedsCompletePlan if anything else differs."""
        totals = self._cache.header.totals
        changed = [] if before == after else self._repository.changed_paths(before, after)
        if len(changed) > 2 * find_limit(totals.workload_count):
            raise NeedsCompletePlan("many files differ")
        found: tuple[dict[Key, Document], dict[Key, Document]] = {}, {}
        for path in changed:
            files = [read_file_at(self._repository, tree, path, self._reader) for tree in (before, after)]
            for documents, file in zip(found, files, strict=True):
                known = files[0]
                matched = match_documents(known.documents, file.documents, totals.kind_scopes) if known and file else None
                if matched is None or not self._cache.has_source_file(path):
                    raise NeedsCompletePlan(f"{path} changes more than the content of templates")
                documents.update(matched)
        return found

    def open_templates(self, fetched: Fetched, known: Documents) -> Documents:
        """Return all templates of a commit, which are read on demand, with those that are `known` in place of its own."""
        finder = TemplateFinder(self._repository, fetched.source.tree, self._cache, self._reader)
        return LazyTemplates(
            known, frozenset(), self._cache.template_index, finder.find, partial(read_templates, self._context, fetched)
        )


class _CounterfactualDecisions:
    """Decides workloads of the later commit with some changes taken back. Its engines continue from the state of the last run."""

    def __init__(self, context: RunContext, later: PlannedCommit, cache: PlanCache, reader: _SourceComparer) -> None:
        self._context, self._later, self._cache, self._reader = context, later, cache, reader
        self._current: dict[Key, Document] = {}

    @cached_property
    def _engines(self) -> tuple[PolicyEngine, ...]:
        cache = _open_state(self._context, self._later.fetched)
        if not cache.header.is_same_state(self._cache.header._replace(rule_locations=cache.header.rule_locations)):
            raise NeedsCompletePlan("another process has changed the state")
        return cache.engines

    @cached_property
    def _changed(self) -> Documents:
        """The templates of the later commit that differ from those of the state."""
        before, after = self._reader.read_changes(self._cache.header.source_tree, self._later.fetched.source.tree)
        self._current = dict(before)
        return after

    def decide_some(self, source: DecisionInput, keys: Collection[Key]) -> PartialDecisions:
        """Decide workloads of an input that has only the templates that may differ: see `gitsched.decide.partial_decisions`."""
        totals, fetched = self._later.run.plan.totals, self._later.fetched
        if (source.source_time, source.now, source.config) != (totals.source_time, totals.now, totals.config):
            raise NeedsCompletePlan("another time or other settings are needed")
        documents = {**self._changed, **source.catalog.templates}
        templates = self._reader.open_templates(fetched, documents)
        records, config = open_records(self._context, fetched), totals.config
        holds = make_holds_loader(templates) if config.guard.hold_stateful else None
        snapshot = Snapshot(
            self._cache.api_documents, templates, frozenset(), records, config, totals.source_time, totals.now, load_holds=holds
        )
        for engine in self._engines:
            if (
                not engine.update(snapshot)
                or engine.time is not None
                or (engine.wakeup is not None and engine.wakeup <= totals.now)
            ):
                raise NeedsCompletePlan(f"the engine of {engine.name} cannot continue")
        dirty = frozenset(key for key, document in documents.items() if document != self._current.get(key))
        self._current |= documents
        for tracker in list_dependency_trackers(self._engines):
            tracker.affected_by(dirty)
        outcomes = {}
        for key in keys:
            document = templates.get(key)
            outcome = decide_workload(document, self._engines, snapshot) if document is not None else None
            if outcome is not None:
                outcomes[key] = outcome
        return PartialDecisions(self._engines, outcomes, {}, templates)
