"""Check whether the replicas that a simulated event sends to a cluster fit into its free capacity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.model.document import Key
from gitsched.model.simulation import OverloadedCluster
from gitsched.schedule.estimator import PODS, Capacity, estimate_replicas
from gitsched.simulate.baseline import Baseline, SimulationResult, count_units, list_capacity_reporters, list_increases

PlacedReplicas = Mapping[Key, Mapping[str, int | None]]


class CapacityCheck(NamedTuple):
    """`waiting` counts replicas by workload that exceed the capacity of their cluster; `unknown_capacity` are clusters that receive
    replicas and do not report their free capacity."""

    waiting: Mapping[Key, int]
    overloaded: tuple[OverloadedCluster, ...]
    unknown_capacity: tuple[str, ...]


def check_capacity(baseline: Baseline, after: SimulationResult, placements: PlacedReplicas) -> CapacityCheck:
    """Start replicas in the order of namespaces and names, as long as they fit.

    `placements` are the replicas by cluster of the workloads that were scheduled again. Replicas that the plan itself starts reserve their
    resources first.
    """
    engines = list_capacity_reporters(after.engines)
    free_capacity = {name: dict(engine.free_capacity()) for name, engine in engines.items()}
    reserved: dict[tuple[str, str], dict[str, int]] = {}
    waiting: dict[Key, int] = {}
    arrivals: dict[str, list[int | str]] = {}
    unknown: set[str] = set()
    plan = baseline.decisions.outcomes
    for key, cluster, more in baseline.started:
        api = plan[key].api
        if api in engines:
            request = engines[api].resource_request(baseline.decisions.templates[key], cluster)
            _reserve(reserved.setdefault((api, cluster), {}), request, more)
    for key in sorted(placements, key=lambda key: (key.namespace, key.name, key)):
        api = after.outcomes[key].api
        if api not in engines:
            continue
        outcome, before = after.outcomes[key], plan[key].replicas_by_cluster if key in plan else {}
        for cluster, more in list_increases(count_units(outcome, placements[key]), count_units(outcome, before)):
            capacity = free_capacity[api].get(cluster)
            if capacity is None:
                unknown.add(cluster)
                continue
            request = engines[api].resource_request(baseline.decisions.templates[key], cluster)
            if not request:
                continue
            used = reserved.setdefault((api, cluster), {})
            fits, resource = count_fitting_replicas(capacity, used, request)
            fits = min(fits, more)
            _reserve(used, request, fits)
            entry = arrivals.setdefault(cluster, [0, 0, ""])
            entry[0] = int(entry[0]) + more
            if fits < more:
                waiting[key] = waiting.get(key, 0) + more - fits
                entry[1], entry[2] = int(entry[1]) + more - fits, entry[2] or resource
    full = (
        OverloadedCluster(name, int(sent), int(wait), str(resource))
        for name, (sent, wait, resource) in sorted(arrivals.items())
        if wait
    )
    return CapacityCheck(waiting, tuple(full), tuple(sorted(unknown)))


def count_fitting_replicas(capacity: Capacity, used: Mapping[str, int], request: tuple[tuple[str, int], ...]) -> tuple[int, str]:
    """Return how many more replicas fit beside the `used` resources, and the resource that limits them."""
    limits = ((max(capacity.free.get(name, 0) - used.get(name, 0), 0) // amount, name) for name, amount in request if amount > 0)
    least, resource = min(limits, default=(0, PODS))
    estimated = estimate_replicas(capacity, request) if capacity.grades else least
    return min(least, estimated), resource


def _reserve(used: dict[str, int], request: tuple[tuple[str, int], ...], replicas: int) -> None:
    for name, amount in request:
        used[name] = used.get(name, 0) + amount * replicas
