"""Autoscaler: how many pods the vreplicas need, and which pods can be emptied to scale down.

Both read one snapshot of the state. The scale factor, the number of zones or nodes that the profile spreads over, keeps the number of
pods in each of them equal.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.schedule.vreplicas.plugins import AvailabilityNodePriority, AvailabilityZonePriority, EvenPodSpread
from gitsched.schedule.vreplicas.scheduler import SchedulingStrategy
from gitsched.schedule.vreplicas.state import State


def find_scale_factor(state: State, strategy: SchedulingStrategy) -> int:
    """Return how many pods are added or removed at a time; 0 when the profile spreads over nodes and none is usable. Filling up
    pods does not spread, but upstream uses the factor of the unused profile."""
    if strategy.max_fill_up and not strategy.reschedules_all:
        return 1
    if strategy.scheduler_profile.has_plugin(AvailabilityNodePriority):
        return len(state.zones)
    if strategy.scheduler_profile.has_plugin(AvailabilityZonePriority):
        return len(set(state.zones.values()))
    return 1


def compute_replicas(state: State, strategy: SchedulingStrategy, *, attempt_down: bool) -> int:
    """Return the replicas that upstream's autoscaler sets. With pending vreplicas and no usable node to spread over, nothing
    changes."""
    factor = find_scale_factor(state, strategy)
    if strategy.max_fill_up:
        replicas = _ceil_div(sum(state.expected.values()), state.capacity)
    else:
        replicas = state.last_ordinal + 1
        pending = sum(state.pending.values())
        if pending and not factor:
            return state.replicas
        if pending:
            capacity = state.capacity
            if strategy.scheduler_profile.has_plugin(EvenPodSpread):
                capacity = min((capacity, *(free for free in state.free if free > 0)))
            replicas += _ceil_div(_ceil_div(pending, capacity), factor) * factor
    return replicas if attempt_down or replicas > state.replicas else state.replicas


def compute_scale_up(state: State, strategy: SchedulingStrategy, placeable: int, unusable: Iterable[int]) -> int:
    """Return the replicas with which `placeable` pending vreplicas fit, in multiples of the factor; never fewer than present. `unusable`
    are pods that take none of them, so that they come on top."""
    if not placeable:
        return state.replicas
    factor = max(find_scale_factor(state, strategy), 1)
    replicas = state.last_ordinal + 1 + _ceil_div(_ceil_div(placeable, state.capacity), factor) * factor
    for ordinal in sorted(unusable):
        replicas += state.last_ordinal < ordinal < replicas
    return max(state.replicas, replicas)


def compute_scale_down(state: State, strategy: SchedulingStrategy) -> int:
    """Return the replicas without the unused pods at the top; at least a factor of them remains."""
    factor = max(find_scale_factor(state, strategy), 1)
    used = max((o for o, free in enumerate(state.free) if free < state.capacity), default=-1) + 1
    surplus = state.replicas - max(used, min(factor, state.replicas))
    return state.replicas - surplus // factor * factor


def find_evictable_ordinals(state: State, strategy: SchedulingStrategy) -> range:
    """Return the ordinals at the top that the autoscaler may compact: all their vreplicas fit on the other pods; empty otherwise. When
    pods are filled up, only the vreplicas of the last pod count."""
    factor = find_scale_factor(state, strategy)
    last, none = state.last_ordinal, range(0)
    if last < 1 or not factor or len(state.schedulable) <= factor:
        return none
    last_pods = range(max(last - factor + 1, 0), last + 1)
    if not strategy.max_fill_up and state.replicas - factor < factor:
        return none
    free = sum(state.free[ordinal] for ordinal in (last_pods[-1:] if strategy.max_fill_up else last_pods))
    used_vreplicas = state.capacity * (1 if strategy.max_fill_up else factor) - free
    capacity = state.free_capacity - free
    return last_pods if capacity >= used_vreplicas else none


def _ceil_div(number: int, divisor: int) -> int:
    return -(-number // divisor)
