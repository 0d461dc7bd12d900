"""The plan that a simulation starts from, and decisions about a changed catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from gitsched.apis.capabilities import CapacityReporting, InnerPlacementReporting
from gitsched.apis.gitsched.config import Config
from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.snapshot import Snapshot
from gitsched.decide.catalog import Catalog
from gitsched.decide.decisions import DecisionSet, make_holds_loader
from gitsched.decide.engines import create_engines
from gitsched.decide.workload_decision import DecidedAlone, adapt_outcome, adapt_own_outcome
from gitsched.model.capacity_use import NO_CAPACITY_USE
from gitsched.model.document import Body, Document, Key, workload_sort_key
from gitsched.model.scheduling import Outcome, count_copies
from gitsched.model.time import add_duration
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.added_variants import add_variants
from gitsched.simulate.continued_plan import ContinuedPlan, continue_plan
from gitsched.simulate.simulated_capacity import PlannedUse, SimulatedCapacity, find_planned_use, share_simulated

if TYPE_CHECKING:
    from gitsched.model.changes import RetainedCopy

_TIMER_HORIZON = timedelta(days=1)
"""Timers that an event starts are assumed to have expired if they are not longer than this."""
_MAX_TIMER_ROUNDS = 4
"""The maximum number of consecutive timers that one event starts."""


class PlannedRecords(Mapping[Key, Body]):
    """The records of a plan as the next run would read them."""

    def __init__(self, decided: DecisionSet) -> None:
        self._bodies = dict(decided.engine_records)
        self._bodies |= {key: body for outcome in decided.outcomes.values() for key, body in outcome.records}
        self._kinds: dict[tuple[str, str], list[Key]] = {}
        for key in self._bodies:
            self._kinds.setdefault((key.group, key.kind), []).append(key)

    def __getitem__(self, key: Key) -> Body:
        return self._bodies[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._bodies)

    def __len__(self) -> int:
        return len(self._bodies)

    def of_kind(self, group: str, kind: str) -> Iterator[tuple[Key, Body]]:
        return ((key, self._bodies[key]) for key in self._kinds.get((group, kind), ()))

    def outside_groups(self, groups: Collection[str]) -> Iterator[tuple[Key, Body]]:
        return ((key, body) for key, body in self._bodies.items() if key.group not in groups)


class RelevantClusters(Mapping[Key, frozenset[str] | None]):
    """The clusters that can affect the decision of each workload of a plan, None for all clusters; found out on demand."""

    def __init__(self, decided: DecisionSet) -> None:
        self._decided, self._reporters = decided, list_capacity_reporters(decided.engines)
        self._found: dict[Key, frozenset[str] | None] = {}

    def __getitem__(self, key: Key) -> frozenset[str] | None:
        if key not in self._found:
            reporter = self._reporters.get(self._decided.outcomes[key].api)
            self._found[key] = reporter.relevant_clusters(self._decided.templates[key]) if reporter is not None else None
        return self._found[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._decided.outcomes)

    def __len__(self) -> int:
        return len(self._decided.outcomes)


class RunningReplicas(Mapping[Key, Mapping[str, "int | None"]]):
    """The replicas by cluster of every workload of a plan before it is carried out: those of `changed` ones, and for the others what their
    outcomes have. They are read on demand."""

    def __init__(self, outcomes: Mapping[Key, Outcome], changed: Mapping[Key, Mapping[str, int | None]]) -> None:
        self._outcomes, self._changed = outcomes, changed

    def __getitem__(self, key: Key) -> Mapping[str, int | None]:
        if key in self._changed:
            return self._changed[key]
        return self._outcomes[key].replicas_by_cluster

    def __iter__(self) -> Iterator[Key]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)


class KeptReplicas(NamedTuple):
    """What clusters keep of a workload beside what was decided: everything if its change `is_withheld`, else last copies that stay while no
    other cluster has the workload. `is_gone`: the source does not have it any more, or no policy selects it."""

    replicas: Mapping[str, int | None]
    is_withheld: bool = False
    is_gone: bool = False


class Baseline(NamedTuple):
    """A plan that is assumed to be carried out: `records` are the records that it writes, `time` is the time of the simulated event.

    `running_replicas` are the replicas by cluster before the plan is carried out; their resources are already in use. If the output
    branch has no placements yet, the workloads are assumed to run as planned. `relevant_clusters` are the clusters that can affect the
    decision of a workload, None for all clusters. `started` are the replicas that the plan starts, by workload and cluster. `others` is the
    number of workloads besides those of `decisions`: they run as planned, and the simulated event does not concern them. `continued` are
    the engines of the plan, prepared for events; None if each event needs new engines. `adopted` says why objects that gitsched took over
    keep their placement, by key as text. `find_use` finds what workloads use of clusters when the plan is carried out. `kept` are the
    workloads of which clusters keep more than was decided.
    """

    decisions: DecisionSet
    config: Config
    time: datetime
    observations: Mapping[Any, Any]
    records: Mapping[Key, Body]
    running_replicas: Mapping[Key, Mapping[str, int | None]]
    relevant_clusters: Mapping[Key, frozenset[str] | None]
    started: tuple[tuple[Key, str, int], ...] = ()
    others: int = 0
    continued: ContinuedPlan | None = None
    adopted: Mapping[str, str] = {}
    find_use: PlannedUse = PlannedUse(lambda: NO_CAPACITY_USE)
    kept: Mapping[Key, KeptReplicas] = {}

    @property
    def gone_count(self) -> int:
        """The number of workloads that only clusters still have."""
        return sum(kept.is_gone for kept in self.kept.values())

    @property
    def has_inner_placements(self) -> bool:
        """Whether pods inside a cluster have placements, so that nodes are failure domains."""
        return any(isinstance(engine, InnerPlacementReporting) for engine in self.decisions.engines)


class ClusterEvent(NamedTuple):
    """What happens to clusters: some are `left` by workloads, and with `adds` there are others."""

    left: frozenset[str]
    adds: bool

    def select(self, relevant: Mapping[Key, frozenset[str] | None], affected: Collection[Key] | None) -> Collection[Key] | None:
        """Return the workloads whose decision may change, of those that are `affected` if these are known; None for all."""
        if self.adds:
            return affected
        keys = relevant if affected is None else (key for key in affected if key in relevant)
        return frozenset(key for key in keys if self._concerns(relevant[key]))

    def _concerns(self, clusters: frozenset[str] | None) -> bool:
        return clusters is None or not self.left.isdisjoint(clusters)


class SimulationResult(NamedTuple):
    """The decisions after an event; `outcomes` contains only the workloads that were scheduled again, `own_workloads` are those that
    an API creates itself. `has_more_timers`: timers that the event starts are not simulated, because there are too many in succession.
    `capacity` is what the workloads take capacity from, None if they do not share any.
    `has_waited`: the decisions are those after timers that the event starts."""

    engines: tuple[PolicyEngine, ...]
    outcomes: Mapping[Key, Outcome]
    own_workloads: frozenset[Key] = frozenset()
    has_more_timers: bool = False
    capacity: SimulatedCapacity | None = None
    has_waited: bool = False


def make_baseline(
    decided: DecisionSet,
    config: Config,
    time: datetime,
    observations: Mapping[Any, Any],
    retained: Iterable[RetainedCopy] | None = None,
    completed: Mapping[Key, Outcome] = {},
) -> Baseline:
    """Return the baseline of simulations on a plan. `retained` are the copies that stay for an overlap after it, if they are known.

    `completed` are the outcomes after the last wave of workloads for which clusters wait: what an event leads to is compared with these.
    What workloads use of clusters is that of the clusters which have them.
    """
    outcomes = {**decided.outcomes, **completed} if completed else decided.outcomes
    running = list_running(outcomes, is_first=True)
    return Baseline(
        decided._replace(outcomes=outcomes) if completed else decided,
        config,
        time,
        observations,
        PlannedRecords(decided),
        running,
        RelevantClusters(decided),
        list_started(outcomes, running),
        continued=continue_plan(decided),
        adopted=decided.input.adopted if decided.input is not None else {},
        find_use=find_planned_use(decided, retained),
    )


def list_running(outcomes: Mapping[Key, Outcome], *, is_first: bool) -> dict[Key, Mapping[str, int | None]]:
    """Return the replicas by cluster before a plan is carried out. `is_first` says that the output branch has no other placements."""
    if is_first and not any(outcome.previous_targets for outcome in outcomes.values()):
        return {key: outcome.replicas_by_cluster for key, outcome in outcomes.items()}
    return {key: outcome.previous_replicas for key, outcome in outcomes.items()}


def list_started(
    outcomes: Mapping[Key, Outcome], running: Mapping[Key, Mapping[str, int | None]]
) -> tuple[tuple[Key, str, int], ...]:
    """Return the replicas that a plan with these outcomes starts besides the running ones, by workload and cluster."""
    return tuple(
        (key, cluster, more)
        for key, outcome in outcomes.items()
        for cluster, more in list_increases(count_units(outcome, outcome.replicas_by_cluster), count_units(outcome, running[key]))
    )


def count_units(outcome: Outcome, replicas: Mapping[str, int | None]) -> Mapping[str, int | None]:
    """Return what each cluster has of a workload in units of what its API schedules: replicas, or None for a whole set of objects."""
    return replicas if outcome.replicas is not None else dict.fromkeys(replicas)


def list_increases(after: Mapping[str, int | None], before: Mapping[str, int | None]) -> list[tuple[str, int]]:
    """Return the number of replicas that start, by cluster."""
    increases = ((name, count_copies(after, name) - count_copies(before, name)) for name in sorted(after))
    return [(name, more) for name, more in increases if more > 0]


def list_capacity_reporters(engines: Iterable[PolicyEngine]) -> dict[str, CapacityReporting]:
    """Return the engines that report free capacity, by name."""
    return {engine.name: engine for engine in engines if isinstance(engine, CapacityReporting)}


def decide_changed_catalog(
    baseline: Baseline,
    catalog: Catalog,
    only: Collection[Key] | None = None,
    fresh: bool = False,
    event: ClusterEvent | None = None,
) -> SimulationResult:
    """Decide the workloads of a changed catalog, of the templates `only` these if given; after an `event`, those that it can affect.

    With `fresh`, previous records are ignored. A timer that the change starts is assumed to expire, up to _TIMER_HORIZON.
    """
    end, now = add_duration(baseline.time, _TIMER_HORIZON), baseline.time
    known: Mapping[Key, Outcome] = baseline.decisions.outcomes
    for _ in range(_MAX_TIMER_ROUNDS):
        after = _decide_at(baseline, catalog, {} if fresh else baseline.records, now, only, event)
        wakeups = ((key, outcome.wakeup) for key, outcome in after.outcomes.items() if outcome.wakeup is not None)
        started = (time for key, time in wakeups if key not in known or time != known[key].wakeup)
        due = [time for time in started if now < time <= end]
        if not due:
            break
        now = max(due)
    else:
        return after._replace(has_more_timers=True, has_waited=True)
    return after._replace(has_waited=now != baseline.time)


def _decide_at(
    baseline: Baseline,
    catalog: Catalog,
    records: Mapping[Key, Body],
    now: datetime,
    only: Collection[Key] | None,
    event: ClusterEvent | None,
) -> SimulationResult:
    broken = frozenset((*catalog.broken, *catalog.duplicate_templates))
    variants = add_variants(baseline.decisions.variants, catalog, baseline.config)
    holds_data = baseline.config.guard.hold_stateful
    has_records = any(True for _ in records)
    adopted = baseline.adopted if has_records else {}
    snapshot = Snapshot(
        catalog.api_documents,
        catalog.templates,
        broken,
        records,
        baseline.config,
        baseline.time,
        now,
        baseline.observations,
        catalog.duplicate_api_documents,
        catalog.read_order,
        duplicate_templates=catalog.duplicate_templates,
        variants=variants,
        load_holds=make_holds_loader(catalog.templates, variants, None, adopted, holds_data=holds_data)
        if holds_data or adopted
        else None,
        has_adopted=bool(adopted),
        tenancy=baseline.decisions.tenancy,
        placed=baseline.find_use().placed if has_records else {},
    )
    affected = None
    if baseline.continued is not None and (event is not None or only is not None):
        affected = baseline.continued.find_affected(snapshot, catalog, event.left if event is not None else None)
    if event is not None:
        only = _select_concerned(baseline, event, affected.keys if affected is not None else None)
    engines = affected.engines if affected is not None else create_engines(snapshot)
    chosen = catalog.templates if only is None else sorted((key for key in only if key in catalog.templates), key=workload_sort_key)
    templates = ((key, catalog.templates[key]) for key in chosen)
    outcomes = {
        key: outcome for key, template in templates if (outcome := _decide_template(template, engines, snapshot)) is not None
    }
    return _add_own(baseline, engines, snapshot, outcomes, fresh=not has_records)


def _select_concerned(baseline: Baseline, event: ClusterEvent, affected: Collection[Key] | None) -> Collection[Key] | None:
    """Return the workloads whose decision an event may change, with those that wait for capacity, because each run tries to place them."""
    found, shared = event.select(baseline.relevant_clusters, affected), baseline.decisions.shared
    return found if found is None or shared is None else shared.limited.union(found)


def _add_own(
    baseline: Baseline, engines: tuple[PolicyEngine, ...], snapshot: Snapshot, outcomes: Mapping[Key, Outcome], *, fresh: bool
) -> SimulationResult:
    """Return decisions with those about workloads that APIs create, where all share capacity."""
    created = [entry for engine in engines for entry in engine.own_workloads()]
    own = {document.key: adapt_own_outcome(document, outcome, snapshot) for document, outcome in created}
    documents = {document.key: document for document, _ in created} | {key: snapshot.templates[key] for key in outcomes}
    only_own = frozenset(own.keys() - outcomes.keys())
    alone = DecidedAlone({**own, **outcomes}, documents, engines, snapshot, only_own)
    decided, capacity = share_simulated(baseline.find_use, alone, fresh=fresh)
    return SimulationResult(engines, decided, only_own, capacity=capacity)


def _decide_template(template: Document, engines: tuple[PolicyEngine, ...], snapshot: Snapshot) -> Outcome | None:
    outcome = next((outcome for engine in engines if (outcome := engine.decide(template)) is not None), None)
    return adapt_outcome(template, outcome, snapshot) if outcome is not None else None
