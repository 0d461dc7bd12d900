"""Check whether the replicas that a simulated event sends to a cluster fit into its free capacity."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.capabilities import CapacityReporting
from gitsched.decide.capacity.requested_capacity import PodsByCluster
from gitsched.model.capacity_use import add_amounts
from gitsched.model.document import Key, workload_sort_key
from gitsched.model.simulation import OverloadedCluster
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.capacity_ledger import sum_pods
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
    """Start replicas as long as they fit: in the turns of their workloads if these share capacity, else in the order of namespaces and
    names.

    `placements` are the replicas by cluster of the workloads that were scheduled again. What the plan uses reserves its resources first.
    """
    engines, shared = list_capacity_reporters(after.engines), after.capacity
    free_capacity = {name: dict(engine.free_capacity()) for name, engine in engines.items()}
    reserved: dict[tuple[str, str], dict[str, int]] = {}
    waiting: dict[Key, int] = {}
    arrivals: dict[str, list[int | str]] = {}
    unknown: set[str] = set()
    plan = baseline.decisions.outcomes
    if shared is None:
        _reserve_started(reserved, baseline, engines)
    else:
        free_capacity = {api: shared.limit(known) for api, known in free_capacity.items()}
    ordered = sorted(placements, key=workload_sort_key) if shared is None else shared.sort(placements)
    for key in ordered:
        api = after.outcomes[key].api
        if api not in engines:
            if shared is not None:
                _reserve_pods(reserved, free_capacity, shared.measure_added(after.outcomes[key]))
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


def _reserve_started(
    reserved: dict[tuple[str, str], dict[str, int]], baseline: Baseline, engines: Mapping[str, CapacityReporting]
) -> None:
    """Reserve what the plan starts."""
    decisions = baseline.decisions
    for key, cluster, more in baseline.started:
        api = decisions.outcomes[key].api
        if api in engines:
            request = engines[api].resource_request(decisions.templates[key], cluster)
            _reserve(reserved.setdefault((api, cluster), {}), request, more)


def _reserve_pods(
    reserved: dict[tuple[str, str], dict[str, int]], known: Mapping[str, Mapping[str, object]], pods: PodsByCluster
) -> None:
    """Reserve what a workload of another API starts, for each API that knows the cluster."""
    for cluster, groups in pods.items():
        for api in (api for api, clusters in known.items() if cluster in clusters):
            add_amounts(reserved.setdefault((api, cluster), {}), sum_pods(groups))
