"""How many pods the vreplicas need, and which pods could be emptied so that fewer will do.

Both read one snapshot. A factor, the number of zones or nodes that the profile spreads over, keeps pods in equal numbers.
"""

from __future__ import annotations

from gitsched.schedule.vreplicas.placing import Strategy
from gitsched.schedule.vreplicas.plugins import EvenNodes, EvenPodSpread, EvenZones
from gitsched.schedule.vreplicas.state import State


def find_factor(state: State, strategy: Strategy) -> int:
    """How many pods go at a time; 0 where the profile spreads over nodes and none is usable. Filling pods up spreads over nothing, but
    upstream counts what a profile that it does not ask would spread over."""
    if strategy.packs and not strategy.replaces:
        return 1
    if strategy.adding.has(EvenNodes):
        return len(state.zones)
    if strategy.adding.has(EvenZones):
        return len(set(state.zones.values()))
    return 1


def scale(state: State, strategy: Strategy, *, attempt_down: bool) -> int:
    """How many replicas upstream's autoscaler asks for. Where something is pending and there is no usable node to spread over, it has no
    answer: nothing changes."""
    factor = find_factor(state, strategy)
    if strategy.packs:
        wanted = _divide_up(sum(state.expected.values()), state.capacity)
    else:
        wanted = state.last + 1
        pending = sum(state.pending.values())
        if pending and not factor:
            return state.replicas
        if pending:
            room = state.capacity
            if strategy.adding.has(EvenPodSpread):
                room = min((room, *(free for free in state.free if free > 0)))
            wanted += _divide_up(_divide_up(pending, room), factor) * factor
    return wanted if attempt_down or wanted > state.replicas else state.replicas


def scale_up(state: State, strategy: Strategy, helped: int) -> int:
    """The replicas with which `helped` pending vreplicas find room, in whole multiples of the factor; never fewer than there are."""
    if not helped:
        return state.replicas
    factor = max(find_factor(state, strategy), 1)
    pods = _divide_up(_divide_up(helped, state.capacity), factor) * factor
    return max(state.replicas, state.last + 1 + pods)


def scale_down(state: State, strategy: Strategy) -> int:
    """The replicas without the unused pods at the top; a factor of them is left in any case."""
    factor = max(find_factor(state, strategy), 1)
    used = max((o for o, free in enumerate(state.free) if free < state.capacity), default=-1) + 1
    spare = state.replicas - max(used, min(factor, state.replicas))
    return state.replicas - spare // factor * factor


def find_evictable(state: State, strategy: Strategy) -> range:
    """The ordinals at the top whose vreplicas all the others have room for; empty where that is not so. When pods are filled up, only
    what the last one holds is looked at."""
    factor = find_factor(state, strategy)
    last, none = state.last, range(0)
    if last < 1 or not factor or len(state.schedulable) <= factor:
        return none
    top = range(max(last - factor + 1, 0), last + 1)
    if not strategy.packs and state.replicas - factor < factor:
        return none
    free = sum(state.free[ordinal] for ordinal in (top[-1:] if strategy.packs else top))
    held = state.capacity * (1 if strategy.packs else factor) - free
    room = state.free_capacity - free
    return top if room >= held else none


def _divide_up(number: int, by: int) -> int:
    return -(-number // by)
