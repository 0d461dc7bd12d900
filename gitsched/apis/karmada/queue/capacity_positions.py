"""Capacity that workloads share in a run: what is known of the clusters, what a workload requests, and when its turn comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import ClusterCapacity, QueuePosition
from gitsched.apis.karmada import names
from gitsched.apis.karmada.failover.failback import EARLIER_GROUP, FAILBACK_ANNOTATION
from gitsched.apis.karmada.policy.policy_options import read_schedule_priority
from gitsched.apis.karmada.simulation import read_resource_request
from gitsched.model.document import Document, get_field
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.scheduling import AffinityGroup, EqualPods, Outcome
from gitsched.schedule.estimator import PODS
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.shared_capacity import CapacityShare, SharedCapacity

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState

_BY_CAPACITY = ("dynamic", "aggregated")
"""Ways to assign replicas that follow capacity."""


def list_capacities(state: KarmadaState) -> Mapping[str, ClusterCapacity]:
    """Return the clusters with a known capacity, by name."""
    total, observed = state.inventory.allocatable, state.inventory.observed
    return {
        one.name: ClusterCapacity(one.capacity, total.get(one.name), observed.get(one.name))
        for one in state.fleet.candidates
        if one.capacity is not None
    }


def find_unobserved(state: KarmadaState) -> tuple[Finding, ...]:
    """Return a note about the clusters that do not say when their resources were observed, if replicas are divided by capacity."""
    if not any(policy.placement.division in _BY_CAPACITY for policy in state.policies.policies.values()):
        return ()
    known = state.inventory.allocatable.keys() - state.inventory.observed.keys()
    documents = [one for one in state.snapshot.documents.get((names.CLUSTER_GROUP, names.CLUSTER), ()) if one.key.name in known]
    if not documents:
        return ()
    first, more = documents[0], len(documents) > 1
    who = f"{len(documents)} Clusters have" if more else f"Cluster {first.key.name} has"
    named = f" ({format_names([one.key.name for one in documents])})" if more else ""
    message = (
        f"{who} status.resourceSummary, and nothing says when it was observed{named}: what earlier runs placed counts there only against "
        "status.resourceSummary.allocatable, not against what is free; collect facts, or set the annotation gitsched.io/observed-at"
    )
    return (Finding("info", "capacity-time-unknown", message, locate_document(first), first.key.resource),)


def find_queue_position(state: KarmadaState, template: Document) -> QueuePosition | None:
    """Return when a workload is decided in Karmada's queue: after those of higher priority; among equals those that have a binding come
    first, and each time the order is that of namespace and name. None if no policy selects it."""
    record = state.find_record(template)
    policy, _ = state.find_policy(template, record)
    if policy is None:
        return None
    read = read_schedule_priority(policy, state.snapshot.templates) if template.key.namespace else None
    order = (-int((read or {}).get("priority", 0)), record is None)
    return QueuePosition(order, policy.placement.division in _BY_CAPACITY)


def may_reach(state: KarmadaState, template: Document, clusters: Iterable[str]) -> bool:
    """Return whether a workload that has no cluster yet may get one of these: whether an affinity group of its policy has one."""
    policy, _ = state.find_policy(template, state.find_record(template))
    if policy is None:
        return True  # other workloads may bring it along
    groups, fleet = policy.placement.groups, state.fleet
    return bool(fleet.get_or_compute(("reachable", groups), lambda: _find_reachable(groups, fleet)) & fleet.mask(clusters))


def _find_reachable(groups: Iterable[AffinityGroup], fleet: Fleet) -> int:
    found = 0
    for group in groups:
        affinities = (group.affinity, *group.overflow)
        found |= reduce(or_, (fleet.all if one is None else fleet.matching(one) for one in affinities))
    return found


def measure_pods(
    state: KarmadaState, template: Document, replicas: Mapping[str, int | None]
) -> Mapping[str, tuple[EqualPods, ...]]:
    """Return the pods of a workload in clusters, given its replicas there, None for as many as it has itself, or the number of sets of one
    that is placed whole."""
    if state.snapshot.variants and template.key in state.snapshot.variants:
        sets = {name: 1 if count is None else count for name, count in replicas.items()}
        return {name: _repeat(dict(read_resource_request(state, template, name)), count) for name, count in sets.items()}
    requirements = state.read_wanted_requirements(template)  # clusters get the template, also if a quota refuses the binding
    if requirements.components:
        return dict.fromkeys(replicas, tuple(one.pods for one in requirements.components))
    if not requirements.is_workload:
        return {}
    own = 1 if requirements.replicas is None else requirements.replicas
    counts = {name: own if count is None else int(count) for name, count in replicas.items()}
    return {name: (EqualPods(count, requirements.resource_request),) for name, count in counts.items()}


def _repeat(request: dict[str, int], count: int) -> tuple[EqualPods, ...]:
    """Return pods with the same request, or whole sets of several pods that have one together."""
    pods = request.pop(PODS, 0)
    if not pods:
        return ()
    return (EqualPods(count, tuple(request.items())), *((EqualPods(count * (pods - 1), None),) if pods > 1 else ()))


def reads_capacity(outcome: Outcome) -> bool:
    """Return whether an outcome says that an earlier affinity group could run the workload: as a finding, or by a failback timer."""
    annotations = get_field(outcome.records[0][1], "metadata", "annotations") if outcome.records else None
    return FAILBACK_ANNOTATION in (annotations or ()) or any(one.code == EARLIER_GROUP for one in outcome.findings)


def share_capacity(state: KarmadaState, template: Document, shared: SharedCapacity) -> None:
    """Let a workload be decided with what is left now."""
    state.share_capacity(template.key, CapacityShare(shared, len(shared.taken)))
