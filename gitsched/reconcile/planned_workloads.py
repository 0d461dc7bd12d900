"""Some workloads of a commit that the last run has planned, read from the state of that run: for explanations and simulations."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import SelectionTracking
from gitsched.apis.policy_api import Snapshot
from gitsched.decide.catalog import Catalog
from gitsched.decide.changed_documents import SourceDiff, pair_documents
from gitsched.decide.companion_placement import CompanionPlacement, CompanionPlacements, DeliveredCompanion
from gitsched.decide.continued_engines import continue_engines
from gitsched.decide.decisions import DecisionSet, make_holds_loader
from gitsched.decide.delivered_objects import NO_CLUSTERS, DeliveredObjects, ReferenceRequirement
from gitsched.decide.plan_result import PlanDetails
from gitsched.decide.plan_state import workload_sort_key
from gitsched.decide.rendered_tree import RenderedTree
from gitsched.decide.workload_decision import decide_workload
from gitsched.kinds.persistent_data import is_claim
from gitsched.model.document import Document
from gitsched.model.references import RequiredObject
from gitsched.reconcile.changed_files import TemplateFinder
from gitsched.reconcile.named_templates import NamedTemplates
from gitsched.reconcile.output_records import open_records
from gitsched.reconcile.planned_records import list_planned_records
from gitsched.reconcile.source_diff import LazyTemplates, read_templates
from gitsched.reconcile.source_reader import SourceReader, is_manifest_path
from gitsched.reconcile.state_plan import NeedsCompletePlan, open_state, plan_from_state
from gitsched.simulate.baseline import Baseline, list_capacity_reporters, make_baseline

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.plan_state import WorkloadRow
    from gitsched.model.document import Key
    from gitsched.model.scheduling import Outcome
    from gitsched.model.template_index import TemplateIndex
    from gitsched.reconcile.run import Fetched, Planned, RunContext
    from gitsched.simulate.scenario import ChangedCatalog, Scenario

_SHARE = 4
"""At most one part in this of the workloads is decided again: a complete plan is cheaper beyond that."""
_MIN_LIMIT = 100


class PlannedWorkloads:
    """The plan of a commit that moves nothing since the last run, of which workloads are decided on demand.

    Each decision is that of a complete plan: no engine has decisions that depend on other templates.
    """

    def __init__(self, context: RunContext, fetched: Fetched) -> None:
        """Raise NeedsCompletePlan if documents have changed, or where only a complete plan can tell what is decided."""
        found = plan_from_state(context, fetched)
        self.planned: Planned = found.planned
        self._cache, incremental = found.update
        plan, changes, header = self.planned.plan, incremental.changes, self._cache.header
        repository = context.source.repository
        paths = repository.changed_paths(header.source_tree, fetched.source.tree)
        if not header.reading_rules or any(map(is_manifest_path, paths)) or changes.api_documents or plan.moves:
            raise NeedsCompletePlan("the commit is not reconciled")
        if plan.totals.own:
            raise NeedsCompletePlan("an API decides workloads itself")
        if plan.retained or plan.rollout_records or plan.withheld.moves or plan.observations:
            raise NeedsCompletePlan("what the plan does depends on more than decisions")
        totals, tree = incremental.totals, fetched.source.tree
        reader = SourceReader(repository, context.caches.files, totals.config, strict=totals.config.source.strict)
        finder = TemplateFinder(repository, tree, self._cache, reader)
        templates = LazyTemplates({}, (), self._cache.template_index, finder.find, partial(read_templates, context, fetched))
        recorded = open_records(context, fetched)
        self._rows = changes.workloads
        self._records = list_planned_records(recorded, found.update, plan.outcomes)
        holds = make_holds_loader(templates) if totals.config.guard.hold_stateful else None
        self._snapshot = Snapshot(
            self._cache.api_documents,
            templates,
            frozenset(),
            recorded,
            totals.config,
            totals.source_time,
            totals.now,
            load_holds=holds,
        )
        self._totals, self._now = totals, context.settings.now
        self._context, self._fetched = context, fetched
        self._engines: tuple[PolicyEngine, ...] = self._cache.engines
        for engine in self._engines:
            if not isinstance(engine, SelectionTracking) or not engine.update(self._snapshot) or engine.time is not None:
                raise NeedsCompletePlan(f"the engine of {engine.name} cannot continue")
            if engine.reads_other_templates or (engine.wakeup is not None and engine.wakeup <= totals.now):
                raise NeedsCompletePlan(f"decisions of {engine.name} depend on those about other objects")

    @property
    def index(self) -> TemplateIndex:
        """What the state keeps of every template."""
        return self._cache.template_index

    @property
    def catalog(self) -> Catalog:
        """All documents of policy APIs, without templates."""
        documents = dict(self._cache.api_documents)
        return Catalog(documents, NamedTemplates(self._snapshot.templates), {}, {}, {}, {}, self._totals.kind_scopes, ())

    def list_concerned(self, scenario: Scenario, changed: ChangedCatalog) -> frozenset[Key]:
        """Return the workloads that the events of a scenario may concern, those about which more is to be told, and all that a scenario
        scales, placed or not. `changed` are the documents after the scenario, without what it scales.

        Raise NeedsCompletePlan if it concerns all workloads.
        """
        concerned = set(self._list_losing(frozenset((*changed.lost, *changed.drained))))
        if not (scenario.scale or scenario.add or scenario.copies or scenario.fresh):
            return frozenset(concerned)
        if scenario.fresh or any(engine.wakeup is not None for engine in self._engines):
            raise NeedsCompletePlan("all workloads are decided again, also as time passes")
        if len(changed.catalog.templates):
            raise NeedsCompletePlan("templates are added")
        concerned.update(self._totals.wakeups, self._totals.unstable)
        for key, entry in self.index.items() if scenario.scale else ():
            template = Document(key, entry.api_version, {"metadata": {"labels": entry.labels}}, None)
            if any(scaling.selects(template) for scaling in scenario.scale):
                concerned.add(key)
        return frozenset(concerned | self._list_affected(changed.catalog) if changed.added else concerned)

    def _list_losing(self, clusters: frozenset[str]) -> frozenset[Key]:
        """Return the workloads to which one of these clusters may be relevant, and those about which more is to be told."""
        reporting = list_capacity_reporters(self._engines)
        found = {key for engine in reporting.values() for key in engine.list_concerned(self.index, clusters)}
        others = (key for key, entry in self.index.items() if entry.placement is not None and entry.placement.api not in reporting)
        return frozenset(found.union(others, self._rows))

    def _list_affected(self, changed: Catalog) -> frozenset[Key]:
        """Return the workloads that added documents of policy APIs may affect."""
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

    def decide(self, keys: Iterable[Key]) -> tuple[DecisionSet, Baseline]:
        """Return the decisions about some workloads, and a baseline for simulations of what concerns these alone. It lists their templates,
        also those that no policy selects."""
        chosen = sorted(keys, key=workload_sort_key)
        if len(chosen) > _MIN_LIMIT + self._totals.workload_count // _SHARE or any(map(is_claim, chosen)):
            raise NeedsCompletePlan("many workloads are concerned, or a claim that any workload may mount")
        snapshot = self._snapshot
        outcomes: dict[Key, Outcome] = {}
        for key in chosen:
            outcome = decide_workload(snapshot.templates[key], self._engines, snapshot)
            if outcome is not None:
                outcomes[key] = outcome
            elif self.index[key].placement is not None:
                raise NeedsCompletePlan(f"{key} has no placement")
        templates = NamedTemplates(snapshot.templates, listed=tuple(chosen))
        decisions = DecisionSet(
            self.catalog._replace(templates=templates),
            self._engines,
            outcomes,
            templates,
            frozenset(),
            (),
            frozenset(),
            engine_records=self._totals.records,
        )
        plan, others = self.planned.plan, self._totals.workload_count - len(outcomes)
        baseline = make_baseline(decisions, self._totals.config, max(self._now, plan.time), plan.observations)
        return decisions, baseline._replace(records=self._records, others=others)

    def describe(self, key: Key, decisions: DecisionSet) -> PlanDetails:
        """Return what a complete plan has about one workload: what it refers to, its targets and its companions."""
        row = self._read_row(key)
        if row.references.misses or row.companions.is_reported:
            raise NeedsCompletePlan("something is missing, or a companion")
        delivered, outcomes = DeliveredObjects(), dict(decisions.outcomes)
        clusters = frozenset(target.cluster for target in row.outcome.targets)
        required = [(one, where) for references, where in row.references.manifests for one in references.requires]
        implied = [(RequiredObject(one, False), clusters) for one in row.references.implied]
        for one, where in (*required, *implied):
            delivered.requirements.append(ReferenceRequirement(one, key, where))
            if not one.expected and one.key not in self.index:
                continue
            other = self._read_row(one.key).outcome
            outcomes[one.key] = other
            delivered.add(one.key, one.key, frozenset(target.cluster for target in other.targets))
            if not where <= delivered.find_clusters(one.key):
                raise NeedsCompletePlan(f"{one.key} is not in all clusters")
        placements = []
        for companion, targets in (
            (key, row.companions.targets),
            *((one, (key,)) for one in row.companions.companions),
        ):
            outcomes |= {one: self._read_row(one).outcome for one in (companion, *targets) if one not in outcomes}
            found = tuple(_describe_companion(outcomes[one]) for one in targets)
            placements.append(CompanionPlacement(_describe_companion(outcomes[companion]), found, NO_CLUSTERS, NO_CLUSTERS))
        named = decisions._replace(outcomes=outcomes, templates=NamedTemplates(self._snapshot.templates, listed=tuple(outcomes)))
        return PlanDetails(named, _NOTHING_RENDERED, delivered, (), CompanionPlacements(tuple(placements)))

    def _read_row(self, key: Key) -> WorkloadRow:
        row = self._rows[key] if key in self._rows else self._cache.read_workload(key)
        if row is None:
            raise NeedsCompletePlan(f"{key} has no placement")
        return row


_NOTHING_RENDERED = RenderedTree({}, {}, {}, {}, {}, (), {})


def _describe_companion(outcome: Outcome) -> DeliveredCompanion:
    clusters = frozenset(target.cluster for target in outcome.targets)
    active = clusters - {target.cluster for target in outcome.targets if target.evicting}
    return DeliveredCompanion(outcome.key, outcome.key, clusters, active, outcome.state)
