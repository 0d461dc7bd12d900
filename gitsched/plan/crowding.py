"""What fits together: replicas that an event sends to a cluster, against the room that is left there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.model.document import Key
from gitsched.model.simulation import Crowd
from gitsched.plan.ground import Aftermath, Ground, list_foreseeing
from gitsched.schedule.room import PODS, Room, estimate

Shares = Mapping[Key, Mapping[str, int | None]]


class Crowding(NamedTuple):
    """`waiting` replicas by workload have no room where they are sent. `assumed` are clusters that take
    some and do not say what is free."""

    waiting: Mapping[Key, int]
    crowds: tuple[Crowd, ...]
    assumed: tuple[str, ...]


def find_crowds(ground: Ground, after: Aftermath, places: Shares) -> Crowding:
    """Let replicas start in the order of namespaces and names, as long as there is room.

    `places` are the clusters of what was decided anew. What the plan itself starts takes its room first.
    """
    sessions = list_foreseeing(after.sessions)
    rooms = {name: dict(session.room()) for name, session in sessions.items()}
    taken: dict[tuple[str, str], dict[str, int]] = {}
    waiting: dict[Key, int] = {}
    crowds: dict[str, list[int | str]] = {}
    assumed: set[str] = set()
    plan = ground.decided.outcomes
    for key, outcome in plan.items():
        if outcome.api in sessions:
            for cluster, more in _growth(outcome.shares, ground.running.get(key, {})):
                ask = sessions[outcome.api].ask(ground.decided.templates[key])
                _take(taken.setdefault((outcome.api, cluster), {}), ask, more)
    for key in sorted(places, key=lambda key: (key.namespace, key.name, key)):
        api = after.outcomes[key].api
        if api not in sessions:
            continue
        before = plan[key].shares if key in plan else {}
        for cluster, more in _growth(places[key], before):
            room = rooms[api].get(cluster)
            if room is None:
                assumed.add(cluster)
                continue
            ask = sessions[api].ask(ground.decided.templates[key])
            used = taken.setdefault((api, cluster), {})
            fits, resource = fit(room, used, ask)
            fits = min(fits, more)
            _take(used, ask, fits)
            entry = crowds.setdefault(cluster, [0, 0, ""])
            entry[0] = int(entry[0]) + more
            if fits < more:
                waiting[key] = waiting.get(key, 0) + more - fits
                entry[1], entry[2] = int(entry[1]) + more - fits, entry[2] or resource
    full = (Crowd(name, int(sent), int(late), str(what)) for name, (sent, late, what) in sorted(crowds.items()) if late)
    return Crowding(waiting, tuple(full), tuple(sorted(assumed)))


def _growth(after: Mapping[str, int | None], before: Mapping[str, int | None]) -> list[tuple[str, int]]:
    """The counted replicas that start, by cluster."""
    grown = ((name, (count or 0) - (before.get(name) or 0)) for name, count in sorted(after.items()))
    return [(name, more) for name, more in grown if more > 0]


def fit(room: Room, used: Mapping[str, int], ask: tuple[tuple[str, int], ...]) -> tuple[int, str]:
    """How many more replicas fit beside what others took, and what there is too little of."""
    heap = ((max(room.free.get(name, 0) - used.get(name, 0), 0) // amount, name) for name, amount in ask if amount > 0)
    least, resource = min(heap, default=(0, PODS))
    modelled = estimate(room, ask) if room.grades else least
    return min(least, modelled), resource


def _take(used: dict[str, int], ask: tuple[tuple[str, int], ...], replicas: int) -> None:
    for name, amount in ask:
        used[name] = used.get(name, 0) + amount * replicas
