"""Autoscaler: how many pods the vreplicas need, and which pods can be emptied to scale down.

Both read one snapshot. A factor, the number of zones or nodes that the profile spreads over, keeps pods in equal numbers.
"""

from __future__ import annotations

from gitsched.schedule.vreplicas.plugins import AvailabilityNodePriority, AvailabilityZonePriority, EvenPodSpread
from gitsched.schedule.vreplicas.scheduler import SchedulingStrategy
from gitsched.schedule.vreplicas.state import State


def find_scale_factor(state: State, strategy: SchedulingStrategy) -> int:
    """How many pods go at a time; 0 where the profile spreads over nodes and none is usable. Filling pods up spreads over nothing, but
    upstream counts what a profile that it does not ask would spread over."""
    if strategy.max_fill_up and not strategy.reschedules_all:
        return 1
    if strategy.scheduler_profile.has_plugin(AvailabilityNodePriority):
        return len(state.zones)
    if strategy.scheduler_profile.has_plugin(AvailabilityZonePriority):
        return len(set(state.zones.values()))
    return 1


def compute_replicas(state: State, strategy: SchedulingStrategy, *, attempt_down: bool) -> int:
    """How many replicas upstream's autoscaler asks for. Where something is pending and there is no usable node to spread over, it has no
    answer: nothing changes."""
    factor = find_scale_factor(state, strategy)
    if strategy.max_fill_up:
        wanted = _ceil_div(sum(state.expected.values()), state.capacity)
    else:
        wanted = state.last_ordinal + 1
        pending = sum(state.pending.values())
        if pending and not factor:
            return state.replicas
        if pending:
            room = state.capacity
            if strategy.scheduler_profile.has_plugin(EvenPodSpread):
                room = min((room, *(free for free in state.free if free > 0)))
            wanted += _ceil_div(_ceil_div(pending, room), factor) * factor
    return wanted if attempt_down or wanted > state.replicas else state.replicas


def compute_scale_up(state: State, strategy: SchedulingStrategy, helped: int) -> int:
    """The replicas with which `helped` pending vreplicas find room, in whole multiples of the factor; never fewer than there are."""
    if not helped:
        return state.replicas
    factor = max(find_scale_factor(state, strategy), 1)
    pods = _ceil_div(_ceil_div(helped, state.capacity), factor) * factor
    return max(state.replicas, state.last_ordinal + 1 + pods)


def compute_scale_down(state: State, strategy: SchedulingStrategy) -> int:
    """The replicas without the unused pods at the top; a factor of them is left in any case."""
    factor = max(find_scale_factor(state, strategy), 1)
    used = max((o for o, free in enumerate(state.free) if free < state.capacity), default=-1) + 1
    spare = state.replicas - max(used, min(factor, state.replicas))
    return state.replicas - spare // factor * factor


def find_evictable_ordinals(state: State, strategy: SchedulingStrategy) -> range:
    """The ordinals at the top whose vreplicas all the others have room for; empty where that is not so. When pods are filled up, only
    what the last one holds is looked at."""
    factor = find_scale_factor(state, strategy)
    last, none = state.last_ordinal, range(0)
    if last < 1 or not factor or len(state.schedulable) <= factor:
        return none
    top = range(max(last - factor + 1, 0), last + 1)
    if not strategy.max_fill_up and state.replicas - factor < factor:
        return none
    free = sum(state.free[ordinal] for ordinal in (top[-1:] if strategy.max_fill_up else top))
    held = state.capacity * (1 if strategy.max_fill_up else factor) - free
    room = state.free_capacity - free
    return top if room >= held else none


def _ceil_div(number: int, by: int) -> int:
    return -(-number // by)
