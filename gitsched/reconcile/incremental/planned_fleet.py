"""What a plan says about a whole fleet, without every decision: from the state of the last run, or from a complete plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from gitsched.apis.capabilities import ReferenceReading
from gitsched.decide.capacity.cluster_use import list_cluster_use
from gitsched.decide.cluster_metadata import list_cluster_metadata
from gitsched.decide.engines import collect_cluster_facts, collect_unavailable_clusters
from gitsched.decide.pod_amounts import runs_pods
from gitsched.decide.workload_explanation import describe_near_selections
from gitsched.model.document import workload_sort_key
from gitsched.model.errors import NeedsCompletePlan
from gitsched.model.finding import locate_document
from gitsched.model.fleet_status import UnclaimedObject
from gitsched.model.rollouts import ROLLOUT_KIND
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.facts.observations import observe_all_statuses
from gitsched.reconcile.incremental.planned_clusters import list_cluster_facts, make_catalog
from gitsched.reconcile.incremental.source_diff import awaits_reports
from gitsched.reconcile.incremental.state_plan import continue_planned_engines, plan_from_state, try_with_state
from gitsched.reconcile.source_plan import use_plan

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.catalog import Catalog
    from gitsched.decide.plan_result import Plan
    from gitsched.model.document import Document
    from gitsched.model.fleet_topology import ResourceUse
    from gitsched.model.observation import Observation, ObservationKey
    from gitsched.model.planned_files import ClusterInfo
    from gitsched.reconcile.run import Fetched, Planned, RunContext


T = TypeVar("T")


class PlannedFleet(NamedTuple):
    """A plan with its clusters by name, why some of them are not ready, and the objects that no policy selects. `catalog` has the documents
    of policy APIs, `observations` what the plan observed and the commit statuses of all clusters. `current` are the clusters with a
    document, also a broken one, and `resources` those of clusters with a known capacity."""

    planned: Planned
    catalog: Catalog
    clusters: Mapping[str, ClusterInfo]
    unready: Mapping[str, str]
    unclaimed: tuple[UnclaimedObject, ...]
    observations: Mapping[ObservationKey, Observation]
    current: frozenset[str]
    resources: Mapping[str, tuple[ResourceUse, ...]]

    @property
    def plan(self) -> Plan:
        return self.planned.plan


def use_fleet(
    context: RunContext, fetched: Fetched, use: Callable[[PlannedFleet], T], *, written: bool = False, withholds: bool = False
) -> tuple[PlannedFleet, T]:
    """Plan the fetched commit, and return what `use` makes of it as well, which has no effect but its value.

    Only a complete plan has all decisions, and only one that is `written` has records with content. With `withholds`, changes over the
    limits of the guard are left out, as a run does.
    """

    def use_state() -> tuple[PlannedFleet, T]:
        fleet = _plan_from_state(context, fetched)
        if withholds and fleet.plan.withheld.moves:
            raise NeedsCompletePlan("only a complete plan leaves out what the guard withholds")
        return fleet, use(fleet)

    def use_complete(planned: Planned) -> tuple[PlannedFleet, T]:
        fleet = _make_fleet(context, fetched, planned)
        return fleet, use(fleet)

    plan = partial(use_plan, context, fetched, context.settings.now, use_complete)
    return try_with_state(use_state) or plan(written=written, withholds=withholds, refuses=False)[1]


def _make_fleet(context: RunContext, fetched: Fetched, planned: Planned) -> PlannedFleet:
    plan, decisions = planned.plan, planned.plan.decisions
    templates = decisions.catalog.templates
    staying = (key for key in decisions.withheld if key in templates and not decisions.outcomes[key].policy)
    unclaimed = [templates[key] for key in sorted((*decisions.list_unclaimed(), *staying), key=workload_sort_key)]
    return PlannedFleet(
        planned,
        decisions.catalog,
        plan.cluster_facts,
        collect_unavailable_clusters(decisions.engines),
        _describe_unclaimed(unclaimed, decisions.engines, plan.totals.config),
        _observe_clusters(context, fetched, plan, decisions.catalog),
        frozenset(collect_cluster_facts(decisions.engines)),
        list_cluster_use(decisions.engines, plan.totals, plan.moves, decisions.outcomes, decisions.templates),
    )


def _describe_unclaimed(
    documents: Collection[Document], engines: Iterable[PolicyEngine], config: Config
) -> tuple[UnclaimedObject, ...]:
    """Return objects that no policy selects with their places, and with the policies that nearly select them."""
    nearest = describe_near_selections(engines, documents)
    texts = {key: near.text for key, near in nearest.items()}
    return tuple(
        UnclaimedObject(one.key, locate_document(one), texts.get(one.key, ""), runs_pods(one, config)) for one in documents
    )


def _observe_clusters(context: RunContext, fetched: Fetched, plan: Plan, catalog: Catalog) -> Mapping[ObservationKey, Observation]:
    """Return what a plan observed, with the commit statuses of all clusters, for which only Rollouts let plans wait."""
    if fetched.trusted.config.observations.statuses is None or ROLLOUT_KIND in catalog.api_documents:
        return plan.observations
    clusters = {one.name for one in list_cluster_metadata(chain.from_iterable(catalog.api_documents.values()))}
    observed = observe_all_statuses(context, fetched, plan.totals.config, clusters, context.settings.now)
    return {**plan.observations, **observed.observations}


def _plan_from_state(context: RunContext, fetched: Fetched) -> PlannedFleet:
    found = plan_from_state(context, fetched)
    plan, cache, incremental = found.planned.plan, found.update.cache, found.update.incremental
    decided, changes = incremental.decided, incremental.changes
    catalog = make_catalog(decided.snapshot)
    if fetched.trusted.config.observations.statuses is not None and (
        ROLLOUT_KIND in catalog.api_documents or awaits_reports(catalog.api_documents)
    ):
        raise NeedsCompletePlan("a rollout may wait for reports of clusters")
    if plan.observations:
        raise NeedsCompletePlan("what the plan does depends on more than its rows")
    engines, snapshot = continue_planned_engines(found.update), decided.snapshot
    clusters = list_cluster_facts(found.update)
    placed = {key: entry.placement is not None for key, entry in cache.template_index.items()}
    placed |= {key: entry is not None and entry.placement is not None for key, entry in changes.templates.items()}
    gone = {key for key, entry in changes.templates.items() if entry is None}
    claimed = {key for key, _ in plan.totals.engines.records} | plan.totals.engines.own
    claimed |= {key for engine in engines if isinstance(engine, ReferenceReading) for key in engine.referenced_keys()}
    unclaimed = tuple(sorted((key for key in placed if not placed[key] and key not in gone | claimed), key=workload_sort_key))
    if len(unclaimed) != plan.unclaimed or len(clusters) != plan.cluster_count:
        raise NeedsCompletePlan("the rows have not everything")
    return PlannedFleet(
        found.planned,
        catalog,
        clusters,
        collect_unavailable_clusters(engines),
        _describe_unclaimed([snapshot.templates[key] for key in unclaimed], engines, plan.totals.config),
        _observe_clusters(context, fetched, plan, catalog),
        frozenset(collect_cluster_facts(engines)),
        list_cluster_use(engines, plan.totals, plan.moves, plan.outcomes, snapshot.templates),
    )
