"""What simulations and comparisons ask of the engine: free capacity, resource requests, relevant clusters and rescheduling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.resource_binding import read_previous
from gitsched.apis.karmada.policy.propagation_policy import is_activation_pending
from gitsched.model.document import Body, Document, Key
from gitsched.model.scheduling import Outcome
from gitsched.schedule.estimator import PODS, Capacity

if TYPE_CHECKING:
    from gitsched.apis.karmada.engine import KarmadaEngine


def list_free_capacity(session: KarmadaEngine) -> Mapping[str, Capacity | None]:
    """What is free on each cluster; a broken one has nothing for anybody."""
    return {c.name: Capacity({}) if c.frozen else c.capacity for c in session.fleet.candidates}


def read_resource_request(session: KarmadaEngine, template: Document) -> tuple[tuple[str, int], ...]:
    """What one replica takes: its pod, and what it requests."""
    demand = session.read_requirements(template)
    return tuple(({PODS: 1} | dict(demand.resource_request or ())).items()) if demand.is_workload else ()


def find_relevant_clusters(session: KarmadaEngine, template: Document) -> frozenset[str] | None:
    """The clusters of all its groups, and those that hold it; any where the decision comes from another workload's."""
    if session.dependencies.find_attachment(template) is not None:
        return None
    previous = session.snapshot.previous.get(names.binding_key(template.key))
    policy, _ = session.find_policy(template, previous)
    memory, fleet = read_previous(previous), session.fleet
    held = {*(target.name for target in memory.clusters), *(str(task.get("fromCluster")) for task in memory.eviction_tasks)}
    mask = 0
    for group in policy.placement.groups if policy is not None else ():
        mask |= fleet.all if group.affinity is None else fleet.matching(group.affinity)
        for affinity in group.overflow:
            mask |= fleet.matching(affinity)
    return frozenset(held) | fleet.get_or_compute(("names", mask), lambda: frozenset(fleet.names[i] for i in fleet.members(mask)))


_REBALANCER_NAME = "gitsched-what-if"


def make_rescheduling_document(templates: Iterable[Document]) -> Document:
    """A WorkloadRebalancer that names these workloads."""
    workloads: list[Body] = []
    for template in templates:
        key = template.key
        workload = {"apiVersion": template.api_version, "kind": key.kind, "name": key.name, "namespace": key.namespace}
        workloads.append({name: value for name, value in workload.items() if value})
    body: Body = {
        "apiVersion": names.APPS_VERSION,
        "kind": names.REBALANCER,
        "metadata": {"name": _REBALANCER_NAME},
        "spec": {"workloads": workloads},
    }
    return Document(Key(names.APPS_GROUP, names.REBALANCER, "", _REBALANCER_NAME), names.APPS_VERSION, body)


def describe_remedy(session: KarmadaEngine, template: Document, stays: Outcome, anew: Outcome | None, wanted: Outcome) -> str:
    """What would bring a workload where it would be `wanted` by the rules alone; `anew` is what a rebalance of it comes to."""
    places, goal = stays.replicas_by_cluster.keys(), wanted.replicas_by_cluster.keys()
    if anew is not None and anew.replicas_by_cluster.keys() == goal:
        return f"a WorkloadRebalancer that names it brings it there{_describe_failback(session, stays, wanted)}"
    previous = session.snapshot.previous.get(names.binding_key(template.key))
    policy, _ = session.find_policy(template, previous)
    if policy is not None and is_activation_pending(policy, template, previous):
        return "its policy is Lazy: an edit of the workload itself lets the policy act on it"
    leaving = sorted(place.cluster for place in stays.targets if place.evicting and place.cluster in goal)
    if leaving:
        return (
            f"a WorkloadRebalancer that names it can bring it there when its eviction from {names.format_clusters(leaving)} is over"
        )
    if anew is not None and anew.replicas_by_cluster.keys() != places:
        return f"a WorkloadRebalancer that names it brings it to {names.format_clusters(sorted(anew.replicas_by_cluster))}"
    return "a WorkloadRebalancer that names it would leave it where it is"


def _describe_failback(session: KarmadaEngine, stays: Outcome, wanted: Outcome) -> str:
    if stays.group == wanted.group:
        return ""
    if session.settings.failback.mode == "AfterStabilization":
        return "; by itself it returns when the time of karmada.failback is over"
    return ", or karmada.failback in gitsched.yaml"
