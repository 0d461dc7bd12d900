"""Some workloads of a commit that the last run has planned, read from the state of that run: for explanations and simulations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import InnerPlacementReporting, InputListing
from gitsched.decide.capacity.capacity_explanation import PlacedWorkloads
from gitsched.decide.capacity.shared_decisions import CapacityDecisions
from gitsched.decide.catalog import Catalog
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.incremental.changed_documents import SourceDiff, pair_documents
from gitsched.decide.incremental.continued_engines import continue_engines
from gitsched.decide.incremental.own_workloads import read_own_workloads
from gitsched.decide.incremental.plan_contents import update_template_index
from gitsched.decide.incremental.plan_state import StoredOutcomes
from gitsched.decide.named_templates import NamedTemplates
from gitsched.decide.plan_result import PlanDetails
from gitsched.decide.rendered_tree import RenderCache, RenderedTree, render_workload
from gitsched.decide.workload_decision import decide_workload
from gitsched.kinds.persistent_data import is_claim
from gitsched.model.document import Document, workload_sort_key
from gitsched.model.errors import NeedsCompletePlan
from gitsched.reconcile.fetch import find_output_blob
from gitsched.reconcile.incremental.planned_records import list_planned_records
from gitsched.reconcile.incremental.state_plan import continue_planned_engines, open_state
from gitsched.reconcile.output.output_records import open_records
from gitsched.simulate.baseline import (
    Baseline,
    RelevantClusters,
    RunningReplicas,
    list_capacity_reporters,
    list_running,
    list_started,
    make_baseline,
)
from gitsched.simulate.cluster_description import KnownPlacements
from gitsched.simulate.continued_plan import ContinuedPlan
from gitsched.simulate.simulated_capacity import PlannedUse, add_copies

if TYPE_CHECKING:
    from gitsched.decide.plan_result import Plan
    from gitsched.model.capacity_use import CapacityUse
    from gitsched.model.document import Key
    from gitsched.model.scheduling import Outcome
    from gitsched.model.template_index import TemplateIndex
    from gitsched.reconcile.run import Fetched, RunContext, StateUpdate
    from gitsched.simulate.scenario import ChangedCatalog, Scenario

_SHARE = 4
"""At most one part in this of the workloads is decided again: a complete plan is cheaper beyond that."""
_MIN_LIMIT = 100
NOTHING_RENDERED = RenderedTree({}, {}, {}, {}, {}, (), {})
"""The tree of a plan of which no file is needed."""


class PlannedWorkloads:
    """The plan of a commit from the state of the last run, of which workloads are decided on demand.

    Each decision is that of a complete plan.
    """

    def __init__(self, context: RunContext, fetched: Fetched, plan: Plan, update: StateUpdate) -> None:
        """Raise NeedsCompletePlan where only a complete plan can tell what is decided."""
        if any((plan.withheld.kept, plan.observations, plan.totals.capacity.limited)):
            raise NeedsCompletePlan("what the plan does depends on more than decisions")
        self.plan, self._context, self._fetched = plan, context, fetched
        self._cache, incremental = update.cache, update.incremental
        self._incremental = incremental
        self._changes, self._totals, self._snapshot = incremental.changes, incremental.totals, incremental.decided.snapshot
        self.engines = continue_planned_engines(update)
        for engine in self.engines:
            if engine.time is not None or (engine.wakeup is not None and engine.wakeup <= self._totals.now):
                raise NeedsCompletePlan(f"the engine of {engine.name} has to check again")
        own = read_own_workloads(self.engines, self._snapshot)
        if own is None or not all(self._is_decided_by(key, one.outcome.api) for key, one in own.items()):
            raise NeedsCompletePlan("several APIs may decide the same workload")
        if own and self._totals.source.with_variants:
            raise NeedsCompletePlan("a Bundle may be a part of a workload that an API decides itself")
        self._own = own
        listing = [(engine, frozenset(engine.list_inputs())) for engine in self.engines if isinstance(engine, InputListing)]
        self._inputs = frozenset(key for _, inputs in listing for key in inputs if key in self._snapshot.templates)
        self._dependent = frozenset(key for engine, inputs in listing if engine.decides_templates for key in inputs) & self._inputs
        recorded = open_records(context, fetched)
        self._records = list_planned_records(recorded, update, plan.outcomes)

    @cached_property
    def index(self) -> TemplateIndex:
        """What the state keeps of every template of the commit."""
        return update_template_index(self._cache.template_index, self._changes.templates)

    @cached_property
    def _current_outcomes(self) -> Mapping[Key, Outcome | None]:
        """The outcomes that are not those of the last run; None for workloads that are no more."""
        decided, own = self._incremental.decided, {key: one.outcome for key, one in self._own.items()}
        return {**dict.fromkeys(decided.removed), **decided.outcomes, **own}

    @cached_property
    def _changed_outcomes(self) -> dict[Key, Outcome]:
        """The outcomes that are not those of the last run, of the workloads that are left."""
        return {key: outcome for key, outcome in self._current_outcomes.items() if outcome is not None}

    def _is_decided_by(self, key: Key, api: str) -> bool:
        """Return whether no other API decides a template that one decides itself."""
        entry = self.index.get(key)
        return entry is None or (entry.placement is not None and entry.placement.api == api)

    @property
    def catalog(self) -> Catalog:
        """All documents of policy APIs, and of the templates those that engines read whatever they decide."""
        return self._make_catalog(())

    @property
    def _has_many_inputs(self) -> bool:
        """Whether new engines would read so many templates that they cost more than a complete plan."""
        return len(self._inputs) > _MIN_LIMIT + self._totals.overview.workload_count // _SHARE

    def _make_catalog(self, keys: Iterable[Key]) -> Catalog:
        """Return all documents of policy APIs, with some templates, and those that engines read whatever they decide."""
        listed = tuple(sorted(self._inputs.union(key for key in keys if key not in self._own), key=workload_sort_key))
        documents, templates = dict(self._snapshot.documents), NamedTemplates(self._snapshot.templates, listed=listed)
        return Catalog(documents, templates, {}, {}, {}, {}, self._totals.source.kind_scopes, (), listed)

    @property
    def has_inner_placements(self) -> bool:
        """Whether pods inside a cluster have placements, so that nodes are failure domains."""
        return any(isinstance(engine, InnerPlacementReporting) for engine in self.engines)

    def list_concerned(self, scenario: Scenario, changed: ChangedCatalog) -> frozenset[Key]:
        """Return the workloads that the events of a scenario may concern, those about which more is to be told, and all that a scenario
        scales, placed or not. `changed` are the documents after the scenario, without what it scales.

        Raise NeedsCompletePlan if it concerns all workloads.
        """
        concerned = set(self._list_losing(frozenset((*changed.lost, *changed.drained))))
        if not (scenario.scale or scenario.add or scenario.copies or scenario.fresh):
            return frozenset(concerned)
        if self._has_many_inputs or scenario.fresh or any(engine.wakeup is not None for engine in self.engines):
            raise NeedsCompletePlan("all workloads are decided again, also as time passes")
        if not self._inputs.issuperset(changed.catalog.templates):
            raise NeedsCompletePlan("templates are added")
        concerned.update(self._totals.wakeups, self._totals.unstable)
        for key, entry in self.index.items() if scenario.scale else ():
            template = Document(key, entry.api_version, {"metadata": {"labels": entry.labels}}, None)
            if any(scaling.selects(template) for scaling in scenario.scale):
                concerned.add(key)
        return frozenset(concerned | self._list_affected(changed.catalog) if changed.added else concerned)

    def _list_losing(self, clusters: frozenset[str]) -> frozenset[Key]:
        """Return the workloads to which one of these clusters may be relevant, and those about which more is to be told."""
        reporting = list_capacity_reporters(self.engines)
        found = {key for engine in reporting.values() for key in engine.list_concerned(self.index, clusters)}
        others = (key for key, entry in self.index.items() if entry.placement is not None and entry.placement.api not in reporting)
        changed = (key for key, row in self._changes.workloads.items() if row is not None)
        return frozenset(found.union(others, changed, self._own, self._dependent))

    def _list_affected(self, changed: Catalog) -> frozenset[Key]:
        """Return the workloads that added documents of policy APIs may affect. Raise NeedsCompletePlan if others changed as well since the
        last run."""
        if self._changes.api_documents or self._changes.templates:
            raise NeedsCompletePlan("the commit is not reconciled")
        cache = open_state(self._context, self._fetched)
        known, present = self.catalog.api_documents_by_key, changed.api_documents_by_key
        added = {key: document for key, document in present.items() if known.get(key) != document}
        removed = {key: document for key, document in known.items() if present.get(key) != document}
        diff = SourceDiff({}, {}, {}, pair_documents(removed, added))
        snapshot = self._snapshot._replace(documents=changed.api_documents)
        found = continue_engines(cache.header.totals, cache, diff, snapshot, cache.header.kinds)
        if found is None:
            raise NeedsCompletePlan("an engine cannot continue")
        return found.affected

    def decide_few(self, keys: Collection[Key]) -> tuple[DecisionSet, Baseline]:
        """Return the decisions about some workloads, and a baseline for simulations of what concerns these alone."""
        if len(keys) > _MIN_LIMIT + self._totals.overview.workload_count // _SHARE or any(map(is_claim, keys)):
            raise NeedsCompletePlan("many workloads are concerned, or a claim that any workload may mount")
        for engine in self.engines:
            if engine.decides_templates and not isinstance(engine, InputListing):
                raise NeedsCompletePlan(f"decisions of {engine.name} may depend on any object")
        decisions = self.decide(keys)
        others = self._totals.overview.workload_count - len(decisions.outcomes)
        completed = {key: outcome for key, outcome in self.plan.completed.items() if key in decisions.outcomes}
        now = max(self._context.settings.now, self.plan.time)
        baseline = make_baseline(decisions, self._totals.config, now, self.plan.observations, completed=completed)
        continued = self._continue_plan(decisions.catalog, decisions.outcomes, is_partial=self._has_many_inputs)
        return decisions, baseline._replace(
            records=self._records,
            others=others,
            continued=continued,
            adopted=self._totals.adopted,
            find_use=PlannedUse(self._find_use),
        )

    def _continue_plan(self, catalog: Catalog, outcomes: Mapping[Key, Outcome], *, is_partial: bool) -> ContinuedPlan:
        index, changes = self.index, self._changes
        unsettled = frozenset((*self._totals.wakeups, *self._totals.unstable, *changes.workloads, *changes.templates))
        own = self._own.keys()
        return ContinuedPlan(self.engines, catalog, unsettled - own, lambda: index, outcomes.get, is_partial=is_partial)

    def split_settled(self) -> KnownPlacements:
        """Return which workloads run as the last plan decided, and which may not."""
        current, changes = self._current_outcomes, self._changes
        totals = self._totals
        changed = {
            *totals.wakeups,
            *totals.unstable,
            *totals.source.with_variants,
            *changes.workloads,
            *changes.templates,
            *current,
        }
        placed = ((key, entry, entry.placement) for key, entry in self.index.items() if entry.placement is not None)
        settled = {key: entry for key, entry, placement in placed if placement.is_settled and key not in changed}
        others = (
            key for key, entry in self.index.items() if entry.placement is not None and key not in settled and key not in current
        )
        return KnownPlacements(settled, (*others, *self._changed_outcomes))

    def make_fleet_baseline(self) -> Baseline:
        """Return a baseline for simulated events of clusters, for which all workloads count. A simulation raises NeedsNewEngines where
        only a complete plan can tell what an event affects."""
        current = {**self._current_outcomes, **self.plan.completed}
        decisions = self.decisions
        if self.plan.completed:
            outcomes = StoredOutcomes(self._cache, self._totals.overview.workload_count, current)
            decisions = decisions._replace(outcomes=outcomes)
        is_first = not any(entry.placement.clusters for key, entry in self.index.items() if key not in current and entry.placement)
        changed = {**self._changed_outcomes, **self.plan.completed}
        running = list_running(changed, is_first=is_first)
        return Baseline(
            decisions,
            self._totals.config,
            max(self._context.settings.now, self.plan.time),
            self.plan.observations,
            self._records,
            RunningReplicas(decisions.outcomes, running),
            RelevantClusters(decisions),
            list_started(changed, running),
            continued=self._continue_plan(decisions.catalog, decisions.outcomes, is_partial=True),
            adopted=self._totals.adopted,
            find_use=PlannedUse(self._find_use),
        )

    @cached_property
    def decisions(self) -> DecisionSet:
        """The decisions about all workloads, which are read on demand."""
        outcomes = StoredOutcomes(self._cache, self._totals.overview.workload_count, self._current_outcomes)
        documents = {key: one.document for key, one in self._own.items()}
        return self._make_decision_set(self.catalog, outcomes, NamedTemplates(self._snapshot.templates, documents))

    def list_placed(self) -> PlacedWorkloads:
        """Return the workloads of all clusters. Its keys raise NeedsCompletePlan where clusters have too many."""
        decisions, current = self.decisions, self._current_outcomes
        running = RunningReplicas(decisions.outcomes, list_running(self._changed_outcomes, is_first=False))

        def list_keys(clusters: Collection[str]) -> Collection[Key]:
            placements = ((key, entry.placement) for key, entry in self.index.items() if key not in current)
            found = [key for key, one in placements if one is not None and not set(clusters).isdisjoint(one.clusters)]
            if len(found) > _MIN_LIMIT + self._totals.overview.workload_count // _SHARE:
                raise NeedsCompletePlan("many workloads have taken capacity")
            return (*current, *found)

        return PlacedWorkloads(decisions.outcomes, decisions.templates, lambda key: running[key], list_keys)

    def _find_use(self) -> CapacityUse:
        """Return what workloads use of clusters after the plan."""
        return add_copies(self._totals.capacity, self.decisions, self.plan.retained)

    def decide(self, keys: Collection[Key]) -> DecisionSet:
        """Return the decisions about some workloads, and about all that APIs decide themselves. Its catalog lists the templates of the
        former, also those that no policy selects."""
        snapshot, own, catalog = self._snapshot, self._own, self._make_catalog(keys)
        outcomes, known = {key: workload.outcome for key, workload in own.items()}, self._incremental.decided.outcomes
        for key in sorted((key for key in keys if key not in own), key=workload_sort_key):
            # What the plan has decided may share capacity with others, or wait for a wave of a rollout.
            outcome = known[key] if key in known else decide_workload(snapshot.templates[key], self.engines, snapshot)
            if outcome is not None:
                outcomes[key] = outcome
            elif self.index[key].placement is not None:
                raise NeedsCompletePlan(f"{key} has no placement")
        documents = {key: one.document for key, one in own.items()}
        templates = NamedTemplates(catalog.templates, documents, tuple({**dict.fromkeys(catalog.templates), **documents}))
        return self._make_decision_set(catalog, outcomes, templates)

    def _make_decision_set(
        self, catalog: Catalog, outcomes: Mapping[Key, Outcome], templates: Mapping[Key, Document]
    ) -> DecisionSet:
        return DecisionSet(
            catalog,
            self.engines,
            outcomes,
            templates,
            frozenset(),
            (),
            frozenset(),
            frozenset(self._own),
            engine_records=self._totals.engines.records,
            shared=CapacityDecisions(turns=self._incremental.decided.turns),
            variants=self._snapshot.variants,
            tenancy=self._snapshot.tenancy,
        )

    def describe(self, decisions: DecisionSet) -> PlanDetails:
        """Return what a complete plan has about some workloads: what they refer to, their targets and their companions."""
        outcomes = StoredOutcomes(self._cache, self._totals.overview.workload_count, self._current_outcomes)
        return PlanDetails(decisions._replace(outcomes=outcomes), NOTHING_RENDERED, self._incremental.relations)

    def render(self, key: Key, decisions: DecisionSet) -> RenderedTree:
        """Return the files of one workload, as in the tree of a complete plan. Its records have no content."""
        if any(held.workload == key for record in self.plan.rollout_records for held in record.held):
            raise NeedsCompletePlan("a cluster keeps the files of the previous output")
        if key in self._totals.source.with_variants:
            raise NeedsCompletePlan("clusters get other files of a workload with variants")
        cache, find_blob = RenderCache(written=False), partial(find_output_blob, self._fetched)
        files = render_workload(decisions.outcomes[key], decisions.templates[key], False, find_blob, cache)
        return NOTHING_RENDERED._replace(workloads={key: files})
