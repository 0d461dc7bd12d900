"""Capacity that workloads share in a run: what is known of the clusters, what a workload requests, and when its turn comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import ClusterCapacity, QueuePosition
from gitsched.apis.karmada import names
from gitsched.apis.karmada.cluster.candidates import OBSERVED_AT
from gitsched.apis.karmada.failover.failback import EARLIER_GROUP, FAILBACK_ANNOTATION
from gitsched.apis.karmada.policy.matching_clusters import find_matching_mask
from gitsched.apis.karmada.policy.policy_options import read_schedule_priority
from gitsched.apis.karmada.simulation import read_resource_request
from gitsched.model.cluster_facts import MAX_SKEW
from gitsched.model.document import Document, get_field
from gitsched.model.finding import Finding, format_names, locate_document, locate_field
from gitsched.model.scheduling import EqualPods, Outcome
from gitsched.model.time import add_duration, format_time
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.estimator import PODS
from gitsched.schedule.shared_capacity import CapacityShare, SharedCapacity

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState

_BY_CAPACITY = ("dynamic", "aggregated")
"""Ways to assign replicas that follow capacity."""


class UnobservedClusters(NamedTuple):
    """Notes about clusters of which nothing says when their resources were observed, and the first time at which that of one is known."""

    findings: tuple[Finding, ...] = ()
    known_at: datetime | None = None


def list_capacities(state: KarmadaState) -> Mapping[str, ClusterCapacity]:
    """Return the clusters with a known capacity, by name. A time of observation in the future counts as unknown."""
    total, observed, future = state.inventory.allocatable, state.inventory.observed, _list_future(state)
    return {
        one.name: ClusterCapacity(one.capacity, total.get(one.name), None if one.name in future else observed.get(one.name))
        for one in state.fleet.candidates
        if one.capacity is not None
    }


def _list_future(state: KarmadaState) -> dict[str, datetime]:
    """Return the times of observation that are in the future, by cluster."""
    limit = add_duration(state.snapshot.now, MAX_SKEW)
    return {name: time for name, time in state.inventory.observed.items() if time > limit}


def find_unobserved(state: KarmadaState) -> UnobservedClusters:
    """Return the clusters that do not say when their resources were observed. The notes are there if replicas are divided by capacity."""
    future = _list_future(state)
    known_at = min((add_duration(time, -MAX_SKEW) for time in future.values()), default=None)
    if not any(policy.placement.division in _BY_CAPACITY for policy in state.policies.policies.values()):
        return UnobservedClusters((), known_at)
    without, documents = state.inventory.allocatable.keys() - state.inventory.observed.keys(), state.snapshot.documents
    clusters = [
        one for one in documents.get((names.CLUSTER_GROUP, names.CLUSTER), ()) if one.key.name in without or one.key.name in future
    ]
    unknown, wrong = ([one for one in clusters if (one.key.name in future) == is_future] for is_future in (False, True))
    findings = []
    if unknown:
        findings.append(_make_note(unknown, "nothing says when it was observed", "set"))
    if wrong:
        problem = f"the annotation {OBSERVED_AT} says {format_time(future[wrong[0].key.name])}, which is in the future"
        field = locate_field(wrong[0].origin, ("metadata", "annotations", OBSERVED_AT))
        findings.append(_make_note(wrong, problem, "correct")._replace(field=field))
    return UnobservedClusters(tuple(findings), known_at)


def _make_note(documents: Sequence[Document], problem: str, cure: str) -> Finding:
    """Return a note about Clusters of which no time of observation is known."""
    first, more = documents[0], len(documents) > 1
    who = f"{len(documents)} Clusters have" if more else f"Cluster {first.key.name} has"
    named = f" ({format_names([one.key.name for one in documents])})" if more else ""
    message = (
        f"{who} status.resourceSummary, and {problem}{named}: what earlier runs placed counts there only against "
        f"status.resourceSummary.allocatable, not against what is free; collect facts, or {cure} the annotation {OBSERVED_AT}"
    )
    return Finding("info", "capacity-time-unknown", message, locate_document(first), first.key.resource)


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
    return bool(find_matching_mask(state.fleet, policy) & state.fleet.mask(clusters))


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
