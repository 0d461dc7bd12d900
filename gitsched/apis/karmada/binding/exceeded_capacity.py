"""Clusters whose known capacity is exceeded by a workload whose replicas are assigned without regard to capacity.

The replicas that a cluster had before are part of what its summary calls allocated, so only further ones have to fit. They are recorded in
the binding until the cluster reports another capacity: until then the summary does not count them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from gitsched.apis.karmada.binding.resource_binding import PreviousState
from gitsched.model.document import Document, read_json
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Assignment, Request
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


def annotate_exceeded_capacity(
    fleet: Fleet, request: Request, previous: PreviousState, clusters: Iterable[Assignment]
) -> dict[str, str]:
    """Return the annotation of a binding about clusters without capacity for the replicas added since their summary was reported.

    `clusters` are the assignments after the pass. Nothing is returned if there are no such clusters.
    """
    if request.division not in _DIVISIONS:
        return {}
    before = {assignment.name: assignment.replicas for assignment in previous.clusters}
    known = read_exceeded_capacity(previous.annotations)
    exceeded = {}
    for name, replicas in clusters:
        capacity = _find_capacity(fleet, name)
        if capacity is None:
            continue
        digest = _digest_capacity(capacity)
        recorded = known.get(name)
        added = replicas - before.get(name, 0)
        if recorded is not None and recorded.capacity == digest and name in before:
            added += recorded.replicas
        if added > estimate_replicas(capacity, request.find_resource_request(name)):
            exceeded[name] = UncountedReplicas(added, digest)
    return _write_exceeded_capacity(exceeded)


def find_full_clusters(
    fleet: Fleet,
    template: Document,
    request: Request,
    group: str,
    clusters: Mapping[str, int],
    exceeded: ExceededCapacity,
    allocatable: Mapping[str, Capacity],
) -> Iterator[Finding]:
    """Report the clusters that have no capacity for a workload.

    `group` is the affinity group in use, `clusters` are the replicas by cluster, and `allocatable` is what each cluster with a summary has
    in total. A cluster where more is requested than exists has waiting pods, also when nothing was added.
    """
    if request.division not in _DIVISIONS:
        return
    groups = [affinity_group.name for affinity_group in request.groups]
    later = ", ".join(groups[groups.index(group) + 1 :] if group in groups else ())
    stays = f"it does not go to group {later}" if later else "no other cluster gets its replicas"
    for name, replicas in clusters.items():
        what = _describe_shortage(
            fleet, name, request.find_resource_request(name), replicas, exceeded.get(name), allocatable.get(name)
        )
        if what:
            message = (
                f"{template.key} {what}; {_DIVISIONS[request.division]} ignores capacity, as in Karmada, "
                f"so {stays}; divide replicas by capacity (replicaSchedulingType: Divided with Aggregated or dynamicWeight)"
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


def _find_capacity(fleet: Fleet, cluster: str) -> Capacity | None:
    capacity = fleet.candidates[fleet.index[cluster]].capacity if cluster in fleet.index else None
    return _ignore_unknown_pods(capacity) if capacity is not None else None


def _ignore_unknown_pods(capacity: Capacity) -> Capacity:
    """Return a capacity that does not limit the number of pods if the summary does not contain it."""
    return capacity if PODS in capacity.free else capacity._replace(free={**capacity.free, PODS: UNLIMITED})


def _digest_capacity(capacity: Capacity) -> str:
    text = json.dumps([sorted(capacity.free.items()), capacity.grades], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _describe_shortage(
    fleet: Fleet,
    cluster: str,
    resource_request: ResourceRequest | None,
    replicas: int,
    uncounted: UncountedReplicas | None,
    allocatable: Capacity | None,
) -> str:
    """Say what a cluster lacks for the replicas of a workload; "" if nothing is lacking."""
    free = _find_capacity(fleet, cluster)
    if free is None:
        return ""
    if uncounted is not None:
        plural, fits = "s" if uncounted.replicas > 1 else "", estimate_replicas(free, resource_request)
        return f"exceeds the capacity of cluster {cluster}: {uncounted.replicas} replica{plural} added, capacity for {fits}"
    fits = estimate_replicas(_ignore_unknown_pods(allocatable), resource_request) if allocatable is not None else UNLIMITED
    if replicas > fits:
        plural = "s" if replicas > 1 else ""
        return f"exceeds the size of cluster {cluster}: {replicas} replica{plural}, and {fits} would fit if it were empty"
    overcommitted = [name for name in (PODS, *dict(resource_request or ())) if free.free.get(name, 0) < 0]
    if overcommitted:
        resources = " and ".join(dict.fromkeys(overcommitted))
        return f"stays in cluster {cluster}, which is full: more {resources} is requested there than allocatable, so pods wait"
    return ""
