"""Clusters whose known capacity is exceeded by a workload whose replicas are assigned without regard to capacity.

The replicas that a cluster had before are part of what its summary calls allocated, so only further ones have to fit. They are recorded in
the binding until the cluster reports another capacity: until then the summary does not count them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gitsched.apis.karmada.binding.resource_binding import PreviousState
from gitsched.model.document import Document, read_json
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Assignment, Request, TargetCluster
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.estimator import PODS, UNLIMITED, Capacity, ResourceRequest, estimate_replicas
from gitsched.schedule.fleet import Fleet

EXCEEDED_CAPACITY = "gitsched.io/capacity-exceeded"
"""On a binding: the replicas that were added to a cluster without capacity for them, with a digest of its free capacity, as JSON."""

_DIVISIONS = {"duplicated": "Duplicated", "static": "a static weight"}
"""Ways to assign replicas that ignore capacity."""


class UncountedReplicas(NamedTuple):
    """Replicas that the summary of a cluster does not count yet, and the digest of the free capacity in that summary."""

    replicas: int
    capacity: str


ExceededCapacity = Mapping[str, UncountedReplicas]
"""The replicas beyond the capacity, by cluster."""


class _Estimate(NamedTuple):
    """How many replicas of a workload fit on a cluster, how many would `fit_on_empty` cluster, and of which resources more is requested
    there than allocatable."""

    fits: int
    fit_on_empty: int
    overcommitted: tuple[str, ...]


class _EstimatesByCluster(dict[str, _Estimate | None]):
    """The estimates of clusters for replicas with one resource request, computed on first use; None without a known capacity.

    It is not stored with the engine.
    """

    __slots__ = ("_allocatable", "_fleet", "_request")

    def __init__(self, fleet: Fleet, request: ResourceRequest | None, allocatable: Mapping[str, Capacity]) -> None:
        self._fleet, self._request, self._allocatable = fleet, request, allocatable

    def __reduce__(self) -> tuple[type[_EstimatesByCluster], tuple[Fleet, ResourceRequest | None, Mapping[str, Capacity]]]:
        return type(self), (self._fleet, self._request, self._allocatable)

    def __missing__(self, cluster: str) -> _Estimate | None:
        free, total = _find_capacity(self._fleet, cluster), self._allocatable.get(cluster)
        estimate = None
        if free is not None:
            fit_on_empty = estimate_replicas(_ignore_unknown_pods(total), self._request) if total is not None else UNLIMITED
            overcommitted = [name for name in (PODS, *dict(self._request or ())) if free.free.get(name, 0) < 0]
            estimate = _Estimate(estimate_replicas(free, self._request), fit_on_empty, tuple(dict.fromkeys(overcommitted)))
        self[cluster] = estimate
        return estimate


def annotate_exceeded_capacity(
    fleet: Fleet,
    request: Request,
    previous: PreviousState,
    clusters: Iterable[Assignment],
    allocatable: Mapping[str, Capacity],
) -> dict[str, str]:
    """Return the annotation of a binding about clusters without capacity for the replicas added since their summary was reported.

    `clusters` are the assignments after the pass, or those of them that `list_uncertain_fits` returns; `allocatable` is what each cluster
    with a summary has in total. Nothing is returned if there are no such clusters.
    """
    if request.division not in _DIVISIONS:
        return {}
    before = {assignment.name: assignment.replicas for assignment in previous.clusters}
    known = read_exceeded_capacity(previous.annotations)
    find_estimate = _make_estimate_lookup(fleet, request, allocatable)
    exceeded = {}
    for name, replicas in clusters:
        estimate = find_estimate(name)
        recorded = known.get(name) if name in before else None
        added = replicas - before.get(name, 0)
        if estimate is None or (recorded is None and added <= estimate.fits):
            continue
        digest = _digest_capacity(fleet, name)
        if recorded is not None and recorded.capacity == digest:
            added += recorded.replicas
        if added > estimate.fits:
            exceeded[name] = UncountedReplicas(added, digest)
    return _write_exceeded_capacity(exceeded)


def list_uncertain_fits(
    fleet: Fleet, request: Request, previous: PreviousState, clusters: Iterable[Assignment], allocatable: Mapping[str, Capacity]
) -> list[Assignment]:
    """Return the assignments to clusters that may be full, or that are recorded as such: the other ones certainly have capacity for all
    of their replicas."""
    if request.division not in _DIVISIONS:
        return []
    find_fit = _list_certain_fits(fleet, request, allocatable).get
    uncertain = [pair for pair in clusters if find_fit(pair[0], 0) < (pair[1] or 1)]
    known = read_exceeded_capacity(previous.annotations)
    return uncertain if not known else list(clusters)


def find_full_clusters(
    fleet: Fleet,
    template: Document,
    request: Request,
    group: str,
    targets: Iterable[TargetCluster],
    exceeded: ExceededCapacity,
    allocatable: Mapping[str, Capacity],
    *,
    is_shared: bool,
) -> Iterator[Finding]:
    """Report the clusters that have no capacity for a workload.

    `group` is the affinity group in use, and `allocatable` is what each cluster with a summary has
    in total. `is_shared` says that what is placed counts for what is placed next.
    A cluster where more is requested than exists has waiting pods, also when nothing was added.
    """
    if request.division not in _DIVISIONS:
        return
    groups = [affinity_group.name for affinity_group in request.groups]
    later = ", ".join(groups[groups.index(group) + 1 :] if group in groups else ())
    stays = f"it does not go to group {later}" if later else "no other cluster gets its replicas"
    setting = "" if is_shared else "; karmada.overcommitProtection is false, so several such workloads together may still exceed it"
    find_estimate = _make_estimate_lookup(fleet, request, allocatable)
    find_fit = _list_certain_fits(fleet, request, allocatable).get
    for target in [one for one in targets if find_fit(one[0], 0) < (one[1] or 1) or one[0] in exceeded]:
        name, replicas = target.cluster, target.replicas or 0
        if target.evicting:
            continue
        estimate, uncounted = find_estimate(name), exceeded.get(name)
        if estimate is not None and (uncounted is not None or replicas > estimate.fit_on_empty or estimate.overcommitted):
            what = _describe_shortage(name, replicas, uncounted, estimate)
            message = (
                f"{template.key} {what}; {_DIVISIONS[request.division]} ignores capacity, as in Karmada, "
                f"so {stays}; divide replicas by capacity (replicaSchedulingType: Divided with Aggregated or dynamicWeight){setting}"
            )
            yield Finding("warning", "capacity-exceeded", message, locate_document(template), template.key.resource)


def read_exceeded_capacity(annotations: Mapping[str, str]) -> ExceededCapacity:
    """Read the record from the annotations of a binding; malformed entries are ignored."""
    text = annotations.get(EXCEEDED_CAPACITY)
    if text is None:
        return {}
    try:
        entries: Any = read_json(text)
    except ValueError:
        return {}
    return {name: entry for name, value in entries.items() if (entry := _parse_entry(value))} if isinstance(entries, dict) else {}


def _write_exceeded_capacity(exceeded: ExceededCapacity) -> dict[str, str]:
    """Return the annotation of a binding; nothing if no capacity is exceeded."""
    if not exceeded:
        return {}
    entries = {name: entry._asdict() for name, entry in sorted(exceeded.items())}
    return {EXCEEDED_CAPACITY: json.dumps(entries, separators=(",", ":"))}


def _parse_entry(value: Any) -> UncountedReplicas | None:
    replicas, capacity = (value.get("replicas"), value.get("capacity")) if isinstance(value, dict) else (None, None)
    valid = isinstance(replicas, int) and not isinstance(replicas, bool) and 0 < replicas < 2**31
    return UncountedReplicas(replicas, capacity) if valid and isinstance(replicas, int) and isinstance(capacity, str) else None


def _list_certain_fits(fleet: Fleet, request: Request, allocatable: Mapping[str, Capacity]) -> Mapping[str, int]:
    """Return how many replicas of a workload certainly have capacity on a cluster. A cluster where none fits, or that is not in the
    result, has to be looked at."""

    def list_fits() -> dict[str, int]:
        pooled, estimates = _find_pooled(fleet, allocatable), fleet.estimate_for(request)
        fits = zip(fleet.names, estimates, strict=True)
        return dict(fits) if len(pooled) == len(fleet) else {name: count for name, count in fits if name in pooled}

    return fleet.capacities.get_or_compute(("certain fits", request.resource_request, request.variants), allocatable, list_fits)


def _find_pooled(fleet: Fleet, allocatable: Mapping[str, Capacity]) -> Mapping[str, int]:
    """Return the indices of the clusters without a resource model and with no more free than allocatable: those on which a replica fits
    have more than nothing of each resource that it requests, and it fits there when they are empty."""

    def is_pooled(name: str, capacity: Capacity | None) -> bool:
        if capacity is None:
            return True
        total = allocatable[name].free if name in allocatable else {}
        return not capacity.grades and all(amount <= total.get(resource, UNLIMITED) for resource, amount in capacity.free.items())

    def find_pooled() -> dict[str, int]:
        return {name: index for name, index in fleet.index.items() if is_pooled(name, fleet.candidates[index].capacity)}

    return fleet.capacities.get_or_compute("pooled capacity", allocatable, find_pooled)


def _make_estimate_lookup(fleet: Fleet, request: Request, allocatable: Mapping[str, Capacity]) -> Callable[[str], _Estimate | None]:
    """Return a function that returns the estimate of a cluster for a workload. It is computed once for equal resource requests."""

    def find_estimates(resource_request: ResourceRequest | None) -> _EstimatesByCluster:
        return fleet.get_or_compute(
            ("capacity estimates", resource_request), lambda: _EstimatesByCluster(fleet, resource_request, allocatable)
        )

    if request.variants is None:
        return find_estimates(request.resource_request).__getitem__
    return lambda cluster: find_estimates(request.find_resource_request(cluster))[cluster]


def _find_capacity(fleet: Fleet, cluster: str) -> Capacity | None:
    capacity = fleet.candidates[fleet.index[cluster]].capacity if cluster in fleet.index else None
    return _ignore_unknown_pods(capacity) if capacity is not None else None


def _ignore_unknown_pods(capacity: Capacity) -> Capacity:
    """Return a capacity that does not limit the number of pods if the summary does not contain it."""
    return capacity if PODS in capacity.free else capacity._replace(free={**capacity.free, PODS: UNLIMITED})


def _digest_capacity(fleet: Fleet, cluster: str) -> str:
    """Return the digest of the free capacity of a cluster with a known one."""
    return fleet.get_or_compute(("capacity digest", cluster), lambda: _compute_digest(_find_capacity(fleet, cluster)))


def _compute_digest(capacity: Capacity | None) -> str:
    text = json.dumps([sorted(capacity.free.items()), capacity.grades] if capacity is not None else None, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _describe_shortage(cluster: str, replicas: int, uncounted: UncountedReplicas | None, estimate: _Estimate) -> str:
    """Say what a cluster lacks for the replicas of a workload."""
    if uncounted is not None:
        plural = "s" if uncounted.replicas > 1 else ""
        return (
            f"exceeds the capacity of cluster {cluster}: {uncounted.replicas} replica{plural} added, capacity for {estimate.fits}"
        )
    if replicas > estimate.fit_on_empty:
        plural = "s" if replicas > 1 else ""
        return f"exceeds the size of cluster {cluster}: {replicas} replica{plural}, and {estimate.fit_on_empty} would fit if it were empty"
    resources = " and ".join(estimate.overcommitted)
    return f"stays in cluster {cluster}, which is full: more {resources} is requested there than allocatable, so pods wait"
