"""What simulations start from, and a decision about documents that somebody changed: no record is kept of either."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.apis.world import Bearing, Foreseeing, Session, World
from gitsched.model.document import Body, Document, Key
from gitsched.model.outcome import Outcome
from gitsched.plan.catalog import Catalog
from gitsched.plan.deciding import Decided
from gitsched.plan.registry import APIS

_HORIZON = timedelta(days=1)
"""Timers that an event starts are taken to have run out; longer ones are not waited for."""
_WAITS = 4
"""Timers that one event may start one after another."""


class Records(Mapping[Key, Body]):
    """The records of a plan as the next run would find them."""

    def __init__(self, decided: Decided) -> None:
        self._bodies = {key: body for session in decided.sessions for key, body in session.documents()}
        self._bodies |= {key: body for outcome in decided.outcomes.values() for key, body in outcome.documents}
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


class Ground(NamedTuple):
    """A plan as if it were carried out: `records` are its own, `moment` is when something happens to it.

    `running` is where workloads run before the plan is carried out: room that they use is used already. The first plan of an output
    branch is taken to describe what runs. `reaches` are the clusters without which a decision could be another one, None where it could
    be any.
    """

    decided: Decided
    config: Config
    moment: datetime
    observations: Mapping[Any, Any]
    records: Mapping[Key, Body]
    running: Mapping[Key, Mapping[str, int | None]]
    reaches: Mapping[Key, frozenset[str] | None]

    @property
    def nodes(self) -> bool:
        """Whether nodes matter: something is placed inside a cluster."""
        return any(isinstance(session, Bearing) for session in self.decided.sessions)


class Aftermath(NamedTuple):
    """What is decided after an event; `outcomes` has only what was looked at."""

    sessions: tuple[Session, ...]
    outcomes: Mapping[Key, Outcome]


def make_ground(decided: Decided, config: Config, moment: datetime, observations: Mapping[Any, Any]) -> Ground:
    """Where simulations of a plan start."""
    outcomes = decided.outcomes
    first = not any(outcome.before for outcome in outcomes.values())
    running = {
        key: outcome.shares if first else {place.cluster: place.replicas for place in outcome.before if not place.leaving}
        for key, outcome in outcomes.items()
    }
    foreseeing = list_foreseeing(decided.sessions)
    reaches = {
        key: foreseeing[outcome.api].reach(decided.templates[key]) if outcome.api in foreseeing else None
        for key, outcome in outcomes.items()
    }
    return Ground(decided, config, moment, observations, Records(decided), running, reaches)


def list_foreseeing(sessions: Iterable[Session]) -> dict[str, Foreseeing]:
    """The sessions that know what room there is, by name."""
    return {session.name: session for session in sessions if isinstance(session, Foreseeing)}


def decide_after(ground: Ground, catalog: Catalog, only: Collection[Key] | None = None, fresh: bool = False) -> Aftermath:
    """Decide the workloads of a changed catalog; of the templates `only` these, where they are named. `fresh` knows of no records."""
    end, now = ground.moment + _HORIZON, ground.moment
    known: Mapping[Key, datetime | None] = {key: outcome.wakeup for key, outcome in ground.decided.outcomes.items()}
    for _ in range(_WAITS):
        after = _decide(ground, catalog, {} if fresh else ground.records, now, only)
        started = (o.wakeup for key, o in after.outcomes.items() if o.wakeup is not None and o.wakeup != known.get(key))
        due = [moment for moment in started if now < moment <= end]
        if not due:
            break
        now = max(due)
    return after


def _decide(
    ground: Ground, catalog: Catalog, records: Mapping[Key, Body], now: datetime, only: Collection[Key] | None
) -> Aftermath:
    broken = frozenset((*catalog.broken, *catalog.twins))
    world = World(
        catalog.settings,
        catalog.templates,
        broken,
        records,
        ground.config,
        ground.moment,
        now,
        ground.observations,
        catalog.contested,
        catalog.arrival,
    )
    sessions = tuple(api.open(world) for api in APIS if api.is_used(world))
    wanted = (
        catalog.templates.items() if only is None else ((key, catalog.templates[key]) for key in catalog.templates if key in only)
    )
    outcomes = {key: found for key, template in wanted if (found := _place(template, sessions)) is not None}
    for session in sessions:
        for document, outcome in session.own():
            outcomes.setdefault(document.key, outcome)
    return Aftermath(sessions, outcomes)


def _place(template: Document, sessions: tuple[Session, ...]) -> Outcome | None:
    return next((outcome for session in sessions if (outcome := session.place(template)) is not None), None)
