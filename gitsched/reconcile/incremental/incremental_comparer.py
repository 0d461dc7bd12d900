"""Compare commits by incremental plans that start from the state of the last run, which is only read.

The report is the same as that of complete plans. Where only these can tell something, `NeedsCompletePlan` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import ReferenceReading
from gitsched.apis.gitsched.reserve_config import requires_reserve
from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.registered import Registered
from gitsched.apis.snapshot import Snapshot
from gitsched.decide.catalog import Catalog
from gitsched.decide.decisions import DecisionInput, make_holds_loader
from gitsched.decide.engines import list_dependency_trackers
from gitsched.decide.incremental.changed_documents import SourceDiff, pair_documents
from gitsched.decide.incremental.continued_engines import continue_engines
from gitsched.decide.partial_decisions import PartialDecisions, combine_own
from gitsched.decide.plan_result import describe_reason, mark_copies, mark_preserved
from gitsched.decide.plan_totals import list_unclaimed, select_unclaimed
from gitsched.decide.registry import reserved_groups
from gitsched.decide.workload_decision import decide_workload
from gitsched.diff.counterfactual_placements import DecidedCommit
from gitsched.diff.document_changes import DocumentChanges
from gitsched.diff.plans import make_removal_move
from gitsched.diff.policy_names import PolicyNames
from gitsched.model.changes import Move, RetainedWorkload, UnplacedObject
from gitsched.model.document import Body, Document, Key, workload_sort_key
from gitsched.model.errors import NeedsCompletePlan
from gitsched.model.observation import Observations, read_observations
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.facts.facts_branches import find_recorded_facts
from gitsched.reconcile.incremental.compared_documents import (
    Documents,
    SourceComparer,
    SourceVersion,
    select_api_documents,
    select_templates,
)
from gitsched.reconcile.incremental.planned_records import list_planned_records
from gitsched.reconcile.incremental.source_diff import LazyTemplates, find_owners, merge_documents, read_templates
from gitsched.reconcile.incremental.state_plan import continue_planned_engines, open_state, plan_from_state
from gitsched.reconcile.output.output_records import open_records
from gitsched.reconcile.review.compared_plans import ComparedInputs, PlannedCommit, plan_commit
from gitsched.reconcile.review.unplaced_objects import list_added, list_unplaced, list_unselected, may_be_unselected
from gitsched.reconcile.run import Fetched, RunContext, StateUpdate

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.apis.capabilities import DocumentPair
    from gitsched.decide.incremental.plan_state import WorkloadRow
    from gitsched.model.commit import Commit
    from gitsched.model.scheduling import Outcome
    from gitsched.reconcile.cache.plan_cache import PlanCache


_SHARE_CHANGES = Registered("gitsched.decide.capacity.continued_capacity", "share_changes")


class IncrementalComparer:
    """Makes incremental plans: see `gitsched.reconcile.review.compared_plans.CommitComparer`."""

    def __init__(self) -> None:
        self._clusters: set[str] = set()

    def plan(self, context: RunContext, fetched: Fetched, /) -> PlannedCommit:
        planned, update = plan_from_state(context, fetched)
        found = plan_commit(context, fetched, planned)
        if found.update is None:
            raise NeedsCompletePlan("a bug shows on a document")
        configs, recorded = (found.config, fetched.trusted.config), fetched.record.tenants if fetched.record is not None else ()
        if requires_reserve((config.reserve for config in configs), (*found.tenants, *recorded)):
            raise NeedsCompletePlan("a reserve is about losses that may concern any workload")
        self._clusters |= {*update.incremental.changes.clusters, *found.run.plan.retiring, *update.cache.header.totals.retiring}
        return found

    def list_moves(self, earlier: PlannedCommit, later: PlannedCommit, /) -> tuple[Move, ...]:
        keys = {key for planned in (earlier, later) for key in _get_update(planned).incremental.changes.workloads}
        before, after = earlier.run.plan.outcomes, later.run.plan.outcomes
        moves, removed = [], []
        for key in sorted(keys, key=workload_sort_key):
            outcome, replicas = after.get(key), before[key].replicas_by_cluster if key in before else {}
            if outcome is not None and replicas != outcome.replicas_by_cluster:
                moves.append(Move(key, replicas, outcome.replicas_by_cluster, describe_reason(outcome)))
            elif outcome is None and replicas:
                removed.append(make_removal_move(before[key], is_in_source=_has_template(later, key)))
        return mark_copies(mark_preserved((*moves, *removed), later.run.plan.retained), earlier.run.plan.retained)

    def list_unplaced(self, earlier: PlannedCommit, later: PlannedCommit, /) -> Iterator[UnplacedObject]:
        updates = [_get_update(planned) for planned in (earlier, later)]
        before, after = earlier.run.plan.outcomes, later.run.plan.outcomes
        if later.run.plan.state_counts.get("pending"):
            yield from list_unplaced({key for one in updates for key in one.incremental.changes.workloads}, before, after)
        old, new = (list_unclaimed(one.incremental.decided) for one in updates)
        found = {key for key, (_, is_unclaimed) in new.items() if is_unclaimed and not old.get(key, (False, new[key][0]))[1]}
        found |= {key for key, (is_stored, is_unclaimed) in old.items() if key not in new and is_stored and not is_unclaimed}
        added = {key for key in found if not _has_template(earlier, key)}
        if found := {key for key in found if may_be_unselected(key, before, found - added)}:
            templates = updates[1].incremental.decided.snapshot.templates
            yield from list_unselected([templates[key] for key in found], added, continue_planned_engines(updates[1]))

    def list_added(self, inputs: ComparedInputs, later: PlannedCommit, /) -> Iterator[UnplacedObject]:
        added = [key for key, change in inputs.changes.by_key.items() if change.before is None and _has_template(later, key)]
        unclaimed = select_unclaimed(_get_update(later).incremental.decided, added) if added else frozenset[Key]()
        return list_added(inputs.changes, unclaimed, continue_planned_engines(_get_update(later)) if unclaimed else ())

    def compare(self, context: RunContext, earlier: PlannedCommit, later: PlannedCommit, /) -> ComparedInputs:
        totals, reader = earlier.run.plan.totals, _open_reader(context, later)
        if _get_update(earlier).trees and not _get_update(later).trees:
            raise NeedsCompletePlan("documents of the earlier commit depend on files that the later plan has not read")
        before = _EarlierInput(_find_version(reader, earlier), (totals.source_time, totals.now), Observations())
        return _compare_inputs(context, reader, before, later, _name_policies(context, earlier))

    def compare_with_recorded(
        self, context: RunContext, fetched: Fetched, earlier: Commit, later: PlannedCommit, /
    ) -> ComparedInputs | None:
        record = fetched.record
        if record is None:
            return None
        reader, observed = _open_reader(context, later), read_observations(record.observations, record.observed_at)
        facts = find_recorded_facts(context.source.repository, record.facts, fetched.facts)
        before = _EarlierInput(reader.read_version(earlier.tree, facts, record.time, {}), (record.time, record.time), observed)
        return _compare_inputs(context, reader, before, later, PolicyNames({}))

    def list_retained(
        self, context: RunContext, inputs: ComparedInputs, earlier: Commit, later: Commit, planned: PlannedCommit, /
    ) -> tuple[RetainedWorkload, ...]:
        if not any(key.group in reserved_groups for key in inputs.changes.by_key):
            return ()
        from gitsched.reconcile.incremental.retained_workloads import find_retained  # most changes are of workloads

        reader, facts = _open_reader(context, planned), planned.fetched.facts
        recorded = planned.fetched.record.facts if planned.fetched.record is not None else {}
        before = reader.read_version(earlier.tree, facts, context.settings.now, recorded)
        changes = pair_documents(*reader.read_changes(before, _find_version(reader, planned)))
        return find_retained(context, inputs, changes, later, planned, _get_update(planned))

    def list_clusters(self, _context: RunContext, planned: PlannedCommit, /) -> set[str]:
        """Return only those of the clusters that one of the plans adds, removes or changes: the others are in all plans."""
        update = _get_update(planned)
        changed = update.incremental.changes.clusters
        rows = {name: changed[name] if name in changed else update.cache.read_cluster(name) for name in self._clusters}
        return {name for name, row in rows.items() if row is not None} - planned.run.plan.retiring.keys()


def _get_update(planned: PlannedCommit) -> StateUpdate:
    assert planned.update is not None, "the plan is incremental"
    return planned.update


def _has_template(planned: PlannedCommit, key: Key) -> bool:
    """Return whether the source of an incremental plan has a template."""
    update = _get_update(planned)
    changed = update.incremental.changes.templates
    return changed[key] is not None if key in changed else key in update.cache.template_index


def _open_reader(context: RunContext, planned: PlannedCommit) -> SourceComparer:
    return SourceComparer(context, planned.fetched, _get_update(planned))


def _find_version(reader: SourceComparer, planned: PlannedCommit) -> SourceVersion:
    return reader.find_planned(planned.fetched.source.tree, _get_update(planned))


class _EarlierInput(NamedTuple):
    """What an earlier plan was made from: its source, its times and observed values."""

    version: SourceVersion
    times: tuple[datetime, datetime]
    observed: Observations


def _compare_inputs(
    context: RunContext, reader: SourceComparer, earlier: _EarlierInput, later: PlannedCommit, policy_names: PolicyNames
) -> ComparedInputs:
    """Return what changed since an earlier plan with policies of these names."""
    cache, plan = _get_update(later).cache, later.run.plan
    totals, version = plan.totals, _find_version(reader, later)
    before, after = reader.read_changes(earlier.version, version)
    changes = DocumentChanges(
        _make_input(before, later, earlier.times, earlier.observed),
        _make_input(after, later, (totals.source_time, totals.now), Observations()),
    )
    is_moved, tenancy = _differ_in_paths(before, after), _get_update(later).incremental.decided.snapshot.tenancy
    if is_moved and tenancy is not None and _differ_in_paths(before, after, tenancy.paths.find_owner):
        raise NeedsCompletePlan("an object has another owner")
    if any(key.group in reserved_groups for key in changes.by_key) and (is_moved or changes.others):
        raise NeedsCompletePlan("policies differ, and so do observed values or the order of documents")

    def read_decided() -> DecidedCommit:
        if is_moved:
            raise NeedsCompletePlan("the order of documents may be what moves workloads")
        if totals.capacity.limited or cache.header.totals.capacity.limited:
            raise NeedsCompletePlan("what others take may be what moves workloads")
        decisions = _CounterfactualDecisions(context, later, cache, reader, (before, after))
        update = _get_update(later)
        engines = update.incremental.changes.engines or cache.engines
        if update.incremental.decided.snapshot.tenancy is not None:
            engines = continue_planned_engines(update)  # stored ones do not know whose documents are whose
        counts = totals.source.input_counts
        return DecidedCommit(plan.outcomes, decisions.templates, engines, *counts, decisions.decide_some)

    return ComparedInputs(changes, (policy_names, _name_policies(context, later)), read_decided)


def _differ_in_paths(before: Documents, after: Documents, read: Callable[[str], str] = lambda path: path) -> bool:
    """Return whether a document is in another file, so that the order of documents may differ, or whether what is to `read` of its path
    differs."""
    return any(read(before[key].path) != read(after[key].path) for key in before.keys() & after.keys())


def _name_policies(context: RunContext, planned: PlannedCommit) -> PolicyNames:
    """Return the names of the policies of an incremental plan. Only rows of the namespaces that are asked for are read."""
    update, outcomes = _get_update(planned), planned.run.plan.outcomes
    state, changed = update.cache, update.incremental.changes.workloads

    def read_row(key: Key) -> WorkloadRow | None:
        return changed[key] if key in changed else state.read_workload(key)

    @cache
    def read_records() -> Mapping[Key, Body]:
        return list_planned_records(open_records(context, planned.fetched), update, outcomes)

    def list_records(outcome: Outcome) -> Iterator[tuple[Key, Body]]:
        row, records = read_row(outcome.key), read_records()
        return ((key, records[key]) for key in (row.record_keys if row is not None else ()) if key in records)

    def list_owners(namespace: str) -> Iterator[tuple[Key, str]]:
        keys = (key for key in dict.fromkeys((*state.template_index, *changed)) if key.namespace in ("", namespace))
        rows = (row for key in keys if (row := read_row(key)) is not None and row.outcome.policy)
        return ((key, row.outcome.policy) for row in rows for key in row.record_keys if key.namespace == namespace)

    return PolicyNames(outcomes, list_records, list_owners)


def _make_input(
    documents: Documents, planned: PlannedCommit, times: tuple[datetime, datetime], observed: Observations
) -> DecisionInput:
    """Return the part of the input of a plan that differs from another one."""
    by_kind: dict[tuple[str, str], tuple[Document, ...]] = {}
    for key, document in sorted(select_api_documents(documents).items()):
        by_kind[key[:2]] = (*by_kind.get(key[:2], ()), document)
    catalog = Catalog(by_kind, select_templates(documents), {}, {}, {}, {}, {}, (), tuple(documents))
    return DecisionInput(catalog, {}, planned.run.plan.totals.config, *times, observed)


class _CounterfactualDecisions:
    """Decides workloads of the later commit with some changes taken back. Its engines continue from the state of the last run."""

    def __init__(
        self,
        context: RunContext,
        later: PlannedCommit,
        cache: PlanCache,
        reader: SourceComparer,
        compared: tuple[Documents, Documents],
    ) -> None:
        self._context, self._fetched, self._totals = context, later.fetched, later.run.plan.totals
        decided = self._decided = _get_update(later).incremental.decided
        self._cache, self._tenancy, self._tenants = cache, decided.snapshot.tenancy, decided.diff.tenants
        self._find = reader.make_finder()
        before, after = reader.read_changes(reader.state, _find_version(reader, later))
        if _differ_in_paths(before, after):
            raise NeedsCompletePlan("the order of documents differs from that of the last run")
        self._compared = compared[0].keys() | compared[1].keys()
        # The documents that may differ, in the later commit and in the state. Where the state has the same file, it has the same documents.
        self._after = {**after, **compared[1]}
        self._before = {**{key: one for key, one in self._after.items() if key not in after}, **before}
        self._keys = self._before.keys() | self._after.keys() | self._compared
        self._engines: tuple[PolicyEngine, ...] | None = None
        self._current: Documents = self._before

    @property
    def templates(self) -> Documents:
        """All templates of the later commit."""
        return self._open_templates(self._after)

    def _open_templates(self, documents: Documents) -> Documents:
        """Return the templates of the later commit, which are read on demand, with those of the documents that may differ."""
        known, after = select_templates(documents), select_templates(self._after)

        def read() -> Documents:
            if known.keys() != after.keys():
                raise NeedsCompletePlan("all templates of a counterfactual are needed")
            return read_templates(self._context, self._fetched)

        return LazyTemplates(known, self._keys - known.keys(), self._cache.template_index, self._find, read)

    def decide_some(self, source: DecisionInput, keys: Collection[Key]) -> PartialDecisions:
        """Decide workloads of an input that has only the documents that may differ: see `gitsched.decide.partial_decisions`."""
        totals, config = self._totals, self._totals.config
        if (source.source_time, source.now, source.config) != (totals.source_time, totals.now, config):
            raise NeedsCompletePlan("another time or other settings are needed")
        others = {key: document for key, document in self._after.items() if key not in self._compared}
        documents = {**others, **source.catalog.templates, **source.catalog.api_documents_by_key}
        templates = self._open_templates(documents)
        holds, holds_data = None, config.guard.hold_stateful
        if holds_data or totals.adopted:
            holds = make_holds_loader(templates, adopted=totals.adopted, holds_data=holds_data)
        api_changes = pair_documents(select_api_documents(self._before), select_api_documents(documents))
        stored = merge_documents(self._cache.api_documents, api_changes)
        changed = pair_documents(select_templates(self._before), select_templates(documents))
        snapshot = Snapshot(
            stored,
            templates,
            frozenset(),
            open_records(self._context, self._fetched),
            config,
            totals.source_time,
            totals.now,
            load_holds=holds,
            has_adopted=bool(totals.adopted),
            tenancy=find_owners(self._tenancy, self._cache, stored, {**api_changes, **changed}),
            part_kinds=totals.source.part_kinds,
            unused=totals.source.unused,
        )
        engines, dirty = self._continue_engines(snapshot, documents, api_changes, changed)
        for tracker in list_dependency_trackers(engines):
            tracker.affected_by(dirty)
        outcomes = {}
        for key in keys:
            document = templates.get(key)
            outcome = decide_workload(document, engines, snapshot) if document is not None else None
            if outcome is not None:
                outcomes[key] = outcome
        if any(engine.shares_capacity for engine in engines):
            self._check_capacity(engines, snapshot, changed, outcomes)
        return combine_own(PartialDecisions(engines, outcomes, {}, templates), snapshot, keys)

    def _check_capacity(
        self,
        engines: tuple[PolicyEngine, ...],
        snapshot: Snapshot,
        changed: Mapping[Key, DocumentPair],
        outcomes: Mapping[Key, Outcome],
    ) -> None:
        """Raise NeedsCompletePlan unless these outcomes go together with all others of the later commit."""
        later, templates = self._decided, snapshot.templates
        others = {key: one for key, one in later.outcomes.items() if key not in outcomes and key in templates}
        gone = (key for key in (*later.removed, *later.outcomes, *changed) if key not in outcomes and key not in others)
        removed = {key: row for key in gone if (row := later.rows.read_workload(key)) is not None}
        decided = {**others, **outcomes}
        documents = {key: templates[key] for key in decided}
        diff, continued = later.diff._replace(templates=changed), later.continued._replace(engines=engines)
        found = _SHARE_CHANGES(
            later._replace(
                diff=diff, snapshot=snapshot, continued=continued, documents=documents, outcomes=decided, removed=removed
            )
        )
        if found is None or found.limited or found.outcomes != decided:
            raise NeedsCompletePlan("what others take may be what moves workloads")

    def _continue_engines(
        self,
        snapshot: Snapshot,
        documents: Documents,
        api_changes: Mapping[Key, DocumentPair],
        changed: Mapping[Key, DocumentPair],
    ) -> tuple[tuple[PolicyEngine, ...], frozenset[Key]]:
        """Return engines for a snapshot, and the workloads about which they have to be told that they changed."""
        reads_templates = any(isinstance(engine, ReferenceReading) for engine in self._cache.engines)
        differs = reads_templates or api_changes or self._tenants or self._cache.header.totals.engines.has_new_records
        if differs or documents.keys() != self._before.keys():
            cache = self._open_state()
            diff = SourceDiff(select_templates(documents), {}, changed, api_changes, tenants=self._tenants)
            found = continue_engines(cache.header.totals, cache, diff, snapshot, cache.header.kinds)
            if found is None:
                raise NeedsCompletePlan("an engine cannot continue")
            return found.engines, frozenset(changed) | found.affected
        self._engines = self._engines or self._open_state().engines
        for engine in self._engines:
            is_due = engine.wakeup is not None and engine.wakeup <= snapshot.now
            if not engine.update(snapshot) or engine.time is not None or is_due:
                raise NeedsCompletePlan(f"the engine of {engine.name} cannot continue")
        dirty = frozenset(pair_documents(self._current, documents))
        self._current = documents
        return self._engines, dirty

    def _open_state(self) -> PlanCache:
        """Return the state of the last run once more, with engines that nothing else uses."""
        cache = open_state(self._context, self._fetched)
        if not cache.header.is_same_state(self._cache.header._replace(rule_locations=cache.header.rule_locations)):
            raise NeedsCompletePlan("another process has changed the state")
        return cache
