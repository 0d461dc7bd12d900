"""What an event does to a plan: the pure function once more, on documents in which the event has happened."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from gitsched.apis.world import Bearing, Session
from gitsched.model.document import Key, member
from gitsched.model.outcome import Outcome
from gitsched.model.simulation import Effect, Resilience, Scope, Simulation
from gitsched.plan.crowding import find_crowds
from gitsched.plan.ground import Aftermath, Ground, decide_after, list_foreseeing
from gitsched.plan.scenario import Altered, Scenario, alter, describe, list_sites, list_values

Places = dict[Key, dict[str, int | None]]


def simulate(ground: Ground, scenario: Scenario) -> Simulation:
    """Let a scenario happen to a plan. Permanent where it names what is not there."""
    changed = alter(ground.decided.catalog, scenario, ground.config, ground.moment, ground.nodes)
    after = decide_after(ground, changed.catalog, _touched(ground, scenario, changed), scenario.fresh)
    known = ground.decided.outcomes
    places: Places = {key: _without(outcome.shares, changed.lost) for key, outcome in after.outcomes.items()}
    crowding = find_crowds(ground, after, places)
    for key in ground.decided.frozen & known.keys():  # nobody decides about them until their documents are mended
        places[key] = _without(known[key].shares, changed.lost)
    effects = []
    for key in sorted(places, key=lambda key: (key.namespace, key.name, key)):
        effect = _judge(key, known.get(key), after.outcomes.get(key), places[key], crowding.waiting.get(key, 0), changed.lost)
        if effect.moves or effect.worse:
            effects.append(effect)
    inside = list(_judge_loads(ground, after, changed.lost))
    effects += [effect for effect in inside if effect.moves or effect.worse]
    alone = scenario.lose[0] if scenario.lose and scenario == Scenario(lose=scenario.lose[:1], silent=scenario.silent) else None
    return Simulation(
        event=describe(scenario),
        scope=alone,
        lost=changed.lost,
        drained=changed.drained,
        added=changed.added,
        partial=changed.partial,
        workloads=len(known.keys() | after.outcomes.keys()) + len(inside),
        effects=tuple(effects),
        crowds=crowding.crowds,
        assumed=crowding.assumed,
    )


def sweep(ground: Ground, by: str, silent: bool = False) -> Resilience:
    """Every single loss of a cluster, node, zone, region or provider, the worst first; `silent` ones only do not answer."""
    catalog = ground.decided.catalog
    rows = [simulate(ground, Scenario(lose=(Scope(by, name),), silent=silent)) for name in list_values(catalog, by, ground.nodes)]
    rooms = (room for session in list_foreseeing(ground.decided.sessions).values() for room in session.room().items())
    return Resilience(
        by,
        len(list_sites(catalog)),
        len(ground.decided.outcomes) + sum(len(session.loads()) for session in list_bearing(ground.decided.sessions)),
        tuple(sorted(rows, key=_badness)),
        tuple(sorted(name for name, room in rooms if room is None)),
    )


def list_bearing(sessions: Iterable[Session]) -> list[Bearing]:
    """The sessions that place something inside a cluster."""
    return [session for session in sessions if isinstance(session, Bearing)]


def _judge_loads(ground: Ground, after: Aftermath, lost: Collection[str]) -> Iterator[Effect]:
    """What is placed inside a cluster does nothing on a lost node, though it stays there."""
    before = {key: load for session in list_bearing(ground.decided.sessions) for key, load in session.loads().items()}
    for key, load in (entry for session in list_bearing(after.sessions) for entry in session.loads().items()):
        had: Mapping[str, int] = before[key].shares if key in before else {}
        has = {place: count for place, count in load.shares.items() if load.sites.get(place) not in lost}
        down = sum(load.shares.values()) - sum(has.values())
        short_before = max(before[key].wanted - sum(had.values()), 0) if key in before else 0
        short = max(load.wanted - sum(has.values()), 0)
        why = f"{down} of them stay on pods that are down until their node is back" if down else ""
        yield Effect(
            key,
            dict(had),
            dict(has),
            load.wanted,
            short,
            short_before,
            why=why or ("no pod has room for the rest" if short > short_before else ""),
        )


def _badness(row: Simulation) -> tuple[int, int, int, str]:
    return (-len(row.homeless), -(row.short + row.waiting), -row.moved, row.scope.name if row.scope else "")


def _touched(ground: Ground, scenario: Scenario, changed: Altered) -> Collection[Key] | None:
    """The workloads whose decision can be another one; None for all."""
    if scenario.add or scenario.copies or scenario.scale or scenario.fresh:
        return None
    gone = {*changed.lost, *changed.drained}
    return frozenset(key for key, reach in ground.reaches.items() if reach is None or not gone.isdisjoint(reach))


def _without(shares: Mapping[str, int | None], lost: Collection[str]) -> dict[str, int | None]:
    return {name: count for name, count in shares.items() if name not in lost}


def _judge(
    key: Key,
    before: Outcome | None,
    after: Outcome | None,
    places: Mapping[str, int | None],
    waiting: int,
    lost: Collection[str],
) -> Effect:
    now = after or before
    short, was_short = _short(after or before, places), _short(before, before.shares) if before else 0
    lacking = short > was_short or (before is not None and bool(before.shares) and not places)
    return Effect(
        key=key,
        before=before.shares if before else {},
        after=places,
        replicas=now.replicas if now else None,
        short=short,
        short_before=was_short,
        waiting=waiting,
        policy=now.policy if now else "",
        why=_why(after, lost) if lacking else "",
    )


def _short(outcome: Outcome | None, places: Mapping[str, int | None]) -> int:
    """How many replicas have no place; of what is not divided all are, or none."""
    if outcome is None or not outcome.replicas or (places and None in places.values()):
        return 0
    return max(outcome.replicas - sum(count or 0 for count in places.values()), 0)


def _why(outcome: Outcome | None, lost: Collection[str]) -> str:
    """Why nothing better was found, in the words of its API."""
    if outcome is None:
        return "its document is broken, or there twice, so that nobody decides about it"
    for _, body in outcome.documents:
        for condition in member(body, "status", "conditions") or ():
            if condition.get("type") == "Scheduled" and condition.get("status") == "False":
                return str(condition.get("message") or condition.get("reason") or "")
    bound = sorted(outcome.shares.keys() & set(lost))
    return f"it stays bound to {', '.join(bound)}: nothing makes it leave" if bound else outcome.reason
