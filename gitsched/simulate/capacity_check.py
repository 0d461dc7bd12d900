"""Check whether the replicas that a simulated event sends to a cluster fit into its free capacity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.model.document import Key
from gitsched.model.simulation import OverloadedCluster
from gitsched.schedule.estimator import PODS, Capacity, estimate_replicas
from gitsched.simulate.baseline import Baseline, SimulationResult, list_capacity_reporters

PlacedReplicas = Mapping[Key, Mapping[str, int | None]]


class CapacityCheck(NamedTuple):
    """`waiting` counts replicas by workload that exceed the capacity of their cluster; `unknown_capacity` are clusters that receive
    replicas and do not report their free capacity."""

    waiting: Mapping[Key, int]
    overloaded: tuple[OverloadedCluster, ...]
    unknown_capacity: tuple[str, ...]


def check_capacity(baseline: Baseline, after: SimulationResult, places: PlacedReplicas) -> CapacityCheck:
    """Let replicas start in the order of namespaces and names, as long as there is room.

    `places` are the clusters of what was decided anew. What the plan itself starts takes its room first.
    """
    sessions = list_capacity_reporters(after.engines)
    rooms = {name: dict(session.free_capacity()) for name, session in sessions.items()}
    taken: dict[tuple[str, str], dict[str, int]] = {}
    waiting: dict[Key, int] = {}
    crowds: dict[str, list[int | str]] = {}
    assumed: set[str] = set()
    plan = baseline.decisions.outcomes
    for key, outcome in plan.items():
        if outcome.api in sessions:
            for cluster, more in _list_increases(outcome.replicas_by_cluster, baseline.running_replicas.get(key, {})):
                ask = sessions[outcome.api].resource_request(baseline.decisions.templates[key])
                _reserve(taken.setdefault((outcome.api, cluster), {}), ask, more)
    for key in sorted(places, key=lambda key: (key.namespace, key.name, key)):
        api = after.outcomes[key].api
        if api not in sessions:
            continue
        before = plan[key].replicas_by_cluster if key in plan else {}
        for cluster, more in _list_increases(places[key], before):
            room = rooms[api].get(cluster)
            if room is None:
                assumed.add(cluster)
                continue
            ask = sessions[api].resource_request(baseline.decisions.templates[key])
            used = taken.setdefault((api, cluster), {})
            fits, resource = count_fitting_replicas(room, used, ask)
            fits = min(fits, more)
            _reserve(used, ask, fits)
            entry = crowds.setdefault(cluster, [0, 0, ""])
            entry[0] = int(entry[0]) + more
            if fits < more:
                waiting[key] = waiting.get(key, 0) + more - fits
                entry[1], entry[2] = int(entry[1]) + more - fits, entry[2] or resource
    full = (OverloadedCluster(name, int(sent), int(late), str(what)) for name, (sent, late, what) in sorted(crowds.items()) if late)
    return CapacityCheck(waiting, tuple(full), tuple(sorted(assumed)))


def _list_increases(after: Mapping[str, int | None], before: Mapping[str, int | None]) -> list[tuple[str, int]]:
    """The counted replicas that start, by cluster."""
    grown = ((name, (count or 0) - (before.get(name) or 0)) for name, count in sorted(after.items()))
    return [(name, more) for name, more in grown if more > 0]


def count_fitting_replicas(room: Capacity, used: Mapping[str, int], ask: tuple[tuple[str, int], ...]) -> tuple[int, str]:
    """How many more replicas fit beside what others took, and what there is too little of."""
    heap = ((max(room.free.get(name, 0) - used.get(name, 0), 0) // amount, name) for name, amount in ask if amount > 0)
    least, resource = min(heap, default=(0, PODS))
    modelled = estimate_replicas(room, ask) if room.grades else least
    return min(least, modelled), resource


def _reserve(used: dict[str, int], ask: tuple[tuple[str, int], ...], replicas: int) -> None:
    for name, amount in ask:
        used[name] = used.get(name, 0) + amount * replicas
