"""One run of the scheduler and the autoscaler: place the vreplicas of every source, then scale the StatefulSet or empty some of its
pods.

Both see the same snapshot. `keep` waits a refresh period before it takes pods away, and then empties them in the same breath; `replace`
does at once what Knative does, and leaves the moving to the next run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from gitsched.apis.gitsched.config import AutoscalerConfig
from gitsched.apis.knative.vpods import AdapterPods
from gitsched.schedule.vreplicas import autoscaler
from gitsched.schedule.vreplicas.scheduler import SchedulingStrategy, count_placeable_on_new_pods, schedule_vpod
from gitsched.schedule.vreplicas.state import AdapterStatefulSet, FreeCapacity, State, Vpod, VreplicasByOrdinal, collect_state

MAX_DEADLINES = 64
"""Deadlines that one run makes up for at most."""

SourcePlacements = dict[str, VreplicasByOrdinal]
"""What each source has, by its name, in the order in which they are placed."""


class AdapterState(NamedTuple):
    """What a run hands to the next. `marks` are the pods that gitsched marked, `lifted` those where the mark that it took back has come to
    stand in the source meanwhile; `since` is when fewer pods began to do; `compacted` is when some were emptied last."""

    replicas: int
    marked: frozenset[int] = frozenset()
    unmarked: frozenset[int] = frozenset()
    surplus_since: datetime | None = None
    compacted_at: datetime | None = None


class VpodSchedulingInput(NamedTuple):
    """What does not change during a run. `others` is held by sources that cannot be read now."""

    adapter_pods: AdapterPods
    capacity: int
    strategy: SchedulingStrategy
    autoscaler: AutoscalerConfig
    desired: Mapping[str, int]
    other_placements: Sequence[VreplicasByOrdinal] = ()


class VpodSchedulingResult(NamedTuple):
    """`adapter` and `state` are as they are after the run. `helped` is by source how many of the
    vreplicas that wait new pods could take.
    `evicted` are the pods that were marked in this run. `time` is the deadline that changed something, None where none did."""

    adapter_state: AdapterState
    placements: SourcePlacements
    adapter: AdapterStatefulSet
    state: State
    placeable_on_new_pods: Mapping[str, int] = MappingProxyType({})
    evicted: frozenset[int] = frozenset()
    wakeup: datetime | None = None
    time: datetime | None = None


def schedule_vpods(
    question: VpodSchedulingInput, memory: AdapterState, held: SourcePlacements, at: datetime, now: datetime
) -> VpodSchedulingResult:
    """A run at the source's moment, and one at each deadline between it and now, so that a late run does what punctual ones would."""
    step = _run_replace_mode if question.strategy.reschedules_all else _run_keep_mode
    settled = step(question, memory, held, at)
    for _ in range(MAX_DEADLINES):
        deadline = settled.wakeup
        if deadline is None or deadline > now:
            break
        evicted = settled.evicted
        settled = step(question, settled.adapter_state, settled.placements, deadline)
        settled = settled._replace(time=deadline, evicted=evicted | settled.evicted)
    return settled


def _make_adapter(question: VpodSchedulingInput, memory: AdapterState) -> AdapterStatefulSet:
    marks = (question.adapter_pods.marked - memory.unmarked) | memory.marked
    return question.adapter_pods.make_adapter(question.capacity, memory.replicas, marks)


def _place_all(
    question: VpodSchedulingInput, adapter: AdapterStatefulSet, held: SourcePlacements
) -> tuple[SourcePlacements, State]:
    ledger = FreeCapacity(adapter, (*held.values(), *question.other_placements))
    placed = {
        name: schedule_vpod(Vpod(name, question.desired[name], shares), adapter, ledger, question.strategy)
        for name, shares in held.items()
    }
    return placed, _collect_state(question, adapter, placed)


def _collect_state(question: VpodSchedulingInput, adapter: AdapterStatefulSet, held: SourcePlacements) -> State:
    return collect_state(
        adapter, [Vpod(name, question.desired[name], shares) for name, shares in held.items()], question.other_placements
    )


def _run_replace_mode(
    question: VpodSchedulingInput, memory: AdapterState, held: SourcePlacements, moment: datetime
) -> VpodSchedulingResult:
    settings, strategy = question.autoscaler, question.strategy
    adapter = _make_adapter(question, memory)
    placed, state = _place_all(question, adapter, held)
    settled = VpodSchedulingResult(memory, placed, adapter, state)
    if settings.skip or not settings.leader:
        return settled
    replicas = autoscaler.compute_replicas(state, strategy, attempt_down=settings.attempt_scale_down)
    if replicas != memory.replicas:
        return settled._replace(adapter_state=memory._replace(replicas=replicas))
    if not settings.attempt_scale_down:
        return settled
    since = memory.compacted_at if settings.compact_age is None else moment - settings.compact_age
    evicted = _find_occupied(autoscaler.find_evictable_ordinals(state, strategy), placed)
    if since is not None and since + settings.refresh_period > moment:
        return settled._replace(wakeup=since + settings.refresh_period if evicted else None)
    if not evicted:
        return settled
    return settled._replace(
        adapter_state=memory._replace(marked=memory.marked | evicted, unmarked=memory.unmarked - evicted, compacted_at=moment),
        evicted=evicted,
    )


def _run_keep_mode(
    question: VpodSchedulingInput, memory: AdapterState, held: SourcePlacements, moment: datetime
) -> VpodSchedulingResult:
    settings = question.autoscaler
    adapter = _make_adapter(question, memory)
    placed, state = _place_all(question, adapter, held)
    stuck = _count_unplaceable(adapter, placed, state)
    if stuck and any(mark < memory.replicas for mark in memory.marked):
        # The pods that are being emptied are needed after all.
        memory = memory._replace(
            marked=frozenset(), unmarked=memory.unmarked | (memory.marked & question.adapter_pods.marked), surplus_since=None
        )
        adapter = _make_adapter(question, memory)
        placed, state = _place_all(question, adapter, held)
        stuck = _count_unplaceable(adapter, placed, state)
    helped = _count_placeable_on_new_pods(question, adapter, placed, state, stuck)
    settled = VpodSchedulingResult(memory, placed, adapter, state, helped)
    if settings.skip or not settings.leader:
        return settled._replace(adapter_state=memory._replace(surplus_since=None))
    replicas = autoscaler.compute_scale_up(state, question.strategy, sum(helped.values()))
    if replicas > memory.replicas:
        return settled._replace(adapter_state=memory._replace(replicas=replicas, surplus_since=None))
    if not settings.attempt_scale_down or stuck:
        return settled._replace(adapter_state=memory._replace(surplus_since=None))
    return _scale_down(question, settled, moment)


def _scale_down(question: VpodSchedulingInput, settled: VpodSchedulingResult, moment: datetime) -> VpodSchedulingResult:
    """Take pods away, or empty some, once that has been possible for a refresh period; what is possible after that starts anew."""
    period = question.autoscaler.refresh_period
    smaller = _find_scale_down(question, settled, moment)
    since = settled.adapter_state.surplus_since
    if smaller is not None and since is not None and since + period <= moment:
        settled = smaller
        smaller, since = _find_scale_down(question, settled, moment), None
    if smaller is None:
        return settled._replace(adapter_state=settled.adapter_state._replace(surplus_since=None), wakeup=None)
    since = since or moment
    return settled._replace(adapter_state=settled.adapter_state._replace(surplus_since=since), wakeup=since + period)


def _find_scale_down(question: VpodSchedulingInput, settled: VpodSchedulingResult, moment: datetime) -> VpodSchedulingResult | None:
    """The next step towards fewer pods; None when there is none. Unused pods go, else the top ones are emptied, where all of what
    they hold finds another place."""
    memory, state = settled.adapter_state, settled.state
    replicas = autoscaler.compute_scale_down(state, question.strategy)
    if replicas < memory.replicas:
        marks, lifted = (frozenset(o for o in some if o < replicas) for some in (memory.marked, memory.unmarked))
        memory = memory._replace(replicas=replicas, marked=marks, unmarked=lifted)
        adapter = _make_adapter(question, memory)
        return settled._replace(adapter_state=memory, adapter=adapter, state=_collect_state(question, adapter, settled.placements))
    top = frozenset(autoscaler.find_evictable_ordinals(state, question.strategy))
    evicted = _find_occupied(top, settled.placements)
    if not evicted:
        return None
    adapter = settled.adapter.mark_unschedulable(top)
    placed, state = _place_all(question, adapter, settled.placements)
    if _find_occupied(top, placed) or any(state.pending.values()):
        return None
    memory = memory._replace(marked=memory.marked | top, unmarked=memory.unmarked - top, compacted_at=moment)
    return settled._replace(
        adapter_state=memory, placements=placed, adapter=adapter, state=state, evicted=settled.evicted | evicted
    )


def _find_occupied(ordinals: range | frozenset[int], held: SourcePlacements) -> frozenset[int]:
    return frozenset(ordinal for ordinal in ordinals if any(ordinal in shares for shares in held.values()))


def count_on_marked_pods(adapter: AdapterStatefulSet, shares: VreplicasByOrdinal) -> int:
    """Vreplicas of a source that sit on marked pods, since no other pod can take them."""
    return sum(number for ordinal, number in shares.items() if ordinal in adapter.unschedulable)


def _count_unplaceable(adapter: AdapterStatefulSet, held: SourcePlacements, state: State) -> dict[str, int]:
    """By source, the vreplicas that wait for a pod: those without a place, and those that cannot leave a marked one."""
    stuck = {name: state.pending[name] + count_on_marked_pods(adapter, shares) for name, shares in held.items()}
    return {name: number for name, number in stuck.items() if number}


def _count_placeable_on_new_pods(
    question: VpodSchedulingInput, adapter: AdapterStatefulSet, held: SourcePlacements, state: State, stuck: Mapping[str, int]
) -> dict[str, int]:
    """By source, how many of those that wait new pods could take: where it is none, the fault is not that there are too few."""
    profile = question.strategy.scheduler_profile
    if question.strategy.max_fill_up or profile.accepts_new_pods:
        return dict(stuck)
    ledger = FreeCapacity(adapter, (*held.values(), *question.other_placements))
    return {
        name: count_placeable_on_new_pods(held[name], number, state.last_ordinal + 1, adapter, ledger, profile)
        for name, number in stuck.items()
    }
