"""When a binding is scheduled again (spec/karmada.md §3)."""

from __future__ import annotations

from collections.abc import Collection

from gitsched.apis.karmada.binding import Memory
from gitsched.apis.karmada.placement import placement_changed
from gitsched.apis.karmada.policy import Policy
from gitsched.apis.karmada.workload import Demand
from gitsched.model.document import Body
from gitsched.model.request import Target

REBALANCE = "a rebalance was requested"


def is_rebalance_pending(memory: Memory) -> bool:
    """Whether a rebalance was asked for since the last success; without any success there is nothing to rebalance."""
    return bool(memory.triggered and memory.scheduled and memory.triggered > memory.scheduled)


def why_schedule(
    policy: Policy, demand: Demand, memory: Memory, clusters: tuple[Target, ...], leaving: Collection[str]
) -> str | None:
    """The first reason to schedule a binding, in upstream's order, or None to leave it as it is."""
    placement: Body = policy.spec.get("placement") or {}
    if memory.applied != policy.applied and placement_changed(placement, memory.applied, memory.observed):
        return "the placement changed"
    if policy.placement.declared and _replicas_changed(policy, demand, clusters):
        return "the replicas changed"
    if is_rebalance_pending(memory):
        return REBALANCE
    if not demand.workload or not policy.placement.divided:
        return "it is evaluated on every run"
    if any(target.name in leaving for target in clusters):
        return "a cluster is being deleted"
    return None


def _replicas_changed(policy: Policy, demand: Demand, clusters: tuple[Target, ...]) -> bool:
    wanted = demand.replicas or 0
    if policy.placement.divided:
        return sum(target.replicas for target in clusters) != wanted
    return any(target.replicas != wanted for target in clusters)
