"""The plan that a simulation starts from, and decisions about a changed catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.apis.engine import CapacityReporting, InnerPlacementReporting, PolicyEngine, Snapshot
from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import Catalog
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.registry import create_engines
from gitsched.model.document import Body, Document, Key
from gitsched.model.scheduling import Outcome

_TIMER_HORIZON = timedelta(days=1)
"""Timers that an event starts are assumed to have expired if they are not longer than this."""
_MAX_TIMER_ROUNDS = 4
"""The maximum number of consecutive timers that one event starts."""


class PlannedRecords(Mapping[Key, Body]):
    """The records of a plan as the next run would read them."""

    def __init__(self, decided: DecisionSet) -> None:
        self._bodies = {key: body for session in decided.engines for key, body in session.records()}
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


class Baseline(NamedTuple):
    """A plan as if it were carried out: `records` are its own, `moment` is when something happens to it.

    `running` is where workloads run before the plan is carried out: room that they use is used already. The first plan of an output
    branch is taken to describe what runs. `reaches` are the clusters without which a decision could be another one, None where it could
    be any.
    """

    decisions: DecisionSet
    config: Config
    time: datetime
    observations: Mapping[Any, Any]
    records: Mapping[Key, Body]
    running_replicas: Mapping[Key, Mapping[str, int | None]]
    relevant_clusters: Mapping[Key, frozenset[str] | None]

    @property
    def has_inner_placements(self) -> bool:
        """Whether pods inside a cluster have placements, so that nodes are failure domains."""
        return any(isinstance(session, InnerPlacementReporting) for session in self.decisions.engines)


class SimulationResult(NamedTuple):
    """The decisions after an event; `outcomes` contains only the workloads that were scheduled again."""

    engines: tuple[PolicyEngine, ...]
    outcomes: Mapping[Key, Outcome]


def make_baseline(decided: DecisionSet, config: Config, moment: datetime, observations: Mapping[Any, Any]) -> Baseline:
    """Return the baseline of simulations on a plan."""
    outcomes = decided.outcomes
    first = not any(outcome.previous_targets for outcome in outcomes.values())
    running = {
        key: outcome.replicas_by_cluster
        if first
        else {place.cluster: place.replicas for place in outcome.previous_targets if not place.evicting}
        for key, outcome in outcomes.items()
    }
    foreseeing = list_capacity_reporters(decided.engines)
    reaches = {
        key: foreseeing[outcome.api].relevant_clusters(decided.templates[key]) if outcome.api in foreseeing else None
        for key, outcome in outcomes.items()
    }
    return Baseline(decided, config, moment, observations, PlannedRecords(decided), running, reaches)


def list_capacity_reporters(sessions: Iterable[PolicyEngine]) -> dict[str, CapacityReporting]:
    """Return the engines that report free capacity, by name."""
    return {session.name: session for session in sessions if isinstance(session, CapacityReporting)}


def decide_changed_catalog(
    baseline: Baseline, catalog: Catalog, only: Collection[Key] | None = None, fresh: bool = False
) -> SimulationResult:
    """Decide the workloads of a changed catalog; of the templates `only` these, where they are named. `fresh` knows of no records."""
    end, now = baseline.time + _TIMER_HORIZON, baseline.time
    known: Mapping[Key, datetime | None] = {key: outcome.wakeup for key, outcome in baseline.decisions.outcomes.items()}
    for _ in range(_MAX_TIMER_ROUNDS):
        after = _decide_at(baseline, catalog, {} if fresh else baseline.records, now, only)
        started = (o.wakeup for key, o in after.outcomes.items() if o.wakeup is not None and o.wakeup != known.get(key))
        due = [moment for moment in started if now < moment <= end]
        if not due:
            break
        now = max(due)
    return after


def _decide_at(
    baseline: Baseline, catalog: Catalog, records: Mapping[Key, Body], now: datetime, only: Collection[Key] | None
) -> SimulationResult:
    broken = frozenset((*catalog.broken, *catalog.duplicate_templates))
    world = Snapshot(
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
    )
    sessions = create_engines(world)
    wanted = (
        catalog.templates.items() if only is None else ((key, catalog.templates[key]) for key in catalog.templates if key in only)
    )
    outcomes = {key: found for key, template in wanted if (found := _decide_template(template, sessions)) is not None}
    for session in sessions:
        for document, outcome in session.own_workloads():
            outcomes.setdefault(document.key, outcome)
    return SimulationResult(sessions, outcomes)


def _decide_template(template: Document, sessions: tuple[PolicyEngine, ...]) -> Outcome | None:
    return next((outcome for session in sessions if (outcome := session.decide(template)) is not None), None)
