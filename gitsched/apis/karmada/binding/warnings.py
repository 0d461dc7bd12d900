"""Warnings about the clusters of a binding: an earlier affinity group fits, a cluster is not ready, a cluster is full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gitsched.apis.karmada.binding.resource_binding import SchedulingPass
from gitsched.apis.karmada.failover.failback import SchedulingAttempt, find_earlier_group
from gitsched.apis.karmada.state import KarmadaState
from gitsched.model.document import Document
from gitsched.model.finding import Finding, locate_document
from gitsched.schedule.estimator import PODS, UNLIMITED, Capacity, ResourceRequest, estimate_replicas
from gitsched.schedule.fleet import Fleet

_DIVISIONS = {"duplicated": "Duplicated", "static": "a static weight"}
"""Ways to assign replicas that ignore capacity."""


def find_binding_warnings(state: KarmadaState, template: Document, passes: Sequence[SchedulingPass]) -> Iterator[Finding]:
    """Yield the warnings about a binding after the passes of a run. The one about a cluster that is not ready is the same for all its
    workloads."""
    last = passes[-1]
    clusters = last.outcome.replicas_by_cluster
    if state.unready_clusters:
        yield from (state.unready_clusters[name] for name in clusters if name in state.unready_clusters)
    attempt = SchedulingAttempt(last.request, last.trigger, last.decision)
    if group := find_earlier_group(attempt, state.fleet):
        used = last.request.groups[last.request.first_group].name
        message = (
            f"{template.key} is unplaced although affinity group {group} can run it: as in Karmada, scheduling resumes at group {used}, "
            "which was used last, and does not try earlier groups; set karmada.failback: WhenUnschedulable, or commit a "
            "WorkloadRebalancer that names it"
        )
        yield Finding("warning", "earlier-group-fits", message, locate_document(template), template.key.resource)
    if last.request.division in _DIVISIONS:
        before = {target.name: target.replicas for target in passes[0].previous.clusters}
        yield from _find_full_clusters(state.fleet, template, last, {name: count or 0 for name, count in clusters.items()}, before)


def _find_full_clusters(
    fleet: Fleet, template: Document, last: SchedulingPass, clusters: Mapping[str, int], before: Mapping[str, int]
) -> Iterator[Finding]:
    """Report clusters whose known capacity is exceeded by a workload whose replicas are assigned without regard to capacity.

    The replicas that a cluster had before are part of what its summary calls allocated, so only further ones have to fit. A cluster where
    more is requested than exists has waiting pods, also when nothing is added.
    """
    request, key = last.request, template.key
    groups = [group.name for group in request.groups]
    later = ", ".join(groups[groups.index(last.outcome.group) + 1 :] if last.outcome.group in groups else ())
    stays = f"it does not go to group {later}" if later else "no other cluster gets its replicas"
    for name, replicas in clusters.items():
        capacity = fleet.candidates[fleet.index[name]].capacity if name in fleet.index else None
        added = replicas - before.get(name, 0)
        what = _describe_shortage(name, capacity, request.resource_request, added) if capacity else ""
        if what:
            message = (
                f"{key} {what}; {_DIVISIONS[request.division]} ignores capacity, as in Karmada, "
                f"so {stays}; divide replicas by capacity (replicaSchedulingType: Divided with Aggregated or dynamicWeight)"
            )
            yield Finding("warning", "capacity-exceeded", message, locate_document(template), key.resource)


def _describe_shortage(cluster: str, capacity: Capacity, resource_request: ResourceRequest | None, added: int) -> str:
    """Say what a cluster lacks for the added replicas, or for those that it has; "" if nothing is lacking.

    A summary without pods does not limit their number here, since it is unknown.
    """
    known = capacity if PODS in capacity.free else capacity._replace(free={**capacity.free, PODS: UNLIMITED})
    fits = estimate_replicas(known, resource_request)
    if added > fits:
        return f"exceeds the capacity of cluster {cluster}: {added} replica{'s' if added > 1 else ''} added, capacity for {fits}"
    overcommitted = [name for name in (PODS, *dict(resource_request or ())) if known.free.get(name, 0) < 0]
    if overcommitted:
        resources = " and ".join(dict.fromkeys(overcommitted))
        return f"stays in cluster {cluster}, which is full: more {resources} is requested there than allocatable, so pods wait"
    return ""
