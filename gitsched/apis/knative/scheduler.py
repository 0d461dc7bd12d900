"""One run of the scheduler and the autoscaler: place the vreplicas of every source, then scale the StatefulSet or empty some of its
pods.

Both use the same snapshot. The mode `keep` waits a refresh period before it removes pods, and empties them in the same run; `replace`
follows Knative: it does not wait, and moves vreplicas in the next run.

In the mode `keep`, a run that changes placements does not lower the replicas: the sources must leave a pod before the StatefulSet removes
it, and they learn their placements from the output commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from gitsched.apis.knative.settings import AutoscalerConfig
from gitsched.apis.knative.vpods import AdapterPods
from gitsched.model.time import add_duration
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.vreplicas.autoscaler import compute_replicas, compute_scale_down, compute_scale_up, find_evictable_ordinals
from gitsched.schedule.vreplicas.scheduler import SchedulingStrategy, count_placeable_on_new_pods, schedule_vpod
from gitsched.schedule.vreplicas.state import AdapterStatefulSet, FreeCapacity, State, Vpod, VreplicasByOrdinal, collect_state

MAX_DEADLINES = 64
"""Maximum number of missed deadlines that one run processes."""

SourcePlacements = dict[str, VreplicasByOrdinal]
"""Placements by source name, in scheduling order."""


class AdapterState(NamedTuple):
    """The state that a run passes to the next run.

    `marked` are the pods that gitsched marked unschedulable; `unmarked` are pods that the source marks and gitsched unmarked.
    `surplus_since` is the time since which fewer pods are sufficient; `compacted_at` is the time of the last compaction.
    """

    replicas: int
    marked: frozenset[int] = frozenset()
    unmarked: frozenset[int] = frozenset()
    surplus_since: datetime | None = None
    compacted_at: datetime | None = None


class VpodSchedulingInput(NamedTuple):
    """The inputs that do not change during a run.

    `other_placements` belong to quarantined sources and reservations. `removed` are the placements of sources that no longer have a
    document. `committed` are all placements before the run, which the sources know. `preferred` are the ordinals that sources prefer.
    """

    adapter_pods: AdapterPods
    capacity: int
    strategy: SchedulingStrategy
    autoscaler: AutoscalerConfig
    desired: Mapping[str, int]
    other_placements: Sequence[VreplicasByOrdinal] = ()
    removed: Mapping[str, VreplicasByOrdinal] = MappingProxyType({})
    committed: SourcePlacements = {}
    preferred: Mapping[str, tuple[int, ...]] = MappingProxyType({})


class VpodSchedulingResult(NamedTuple):
    """The result of a run; `adapter` and `state` are those after the run.

    `placeable_on_new_pods` counts by source the pending vreplicas that new pods could take. `evicted` are the pods marked in this run.
    `time` is the last deadline that was processed, or None. `uncommitted_since` is the time at which the replicas would have been
    lowered if the sources knew their placements, or None.
    """

    adapter_state: AdapterState
    placements: SourcePlacements
    adapter: AdapterStatefulSet
    state: State
    placeable_on_new_pods: Mapping[str, int] = MappingProxyType({})
    evicted: frozenset[int] = frozenset()
    wakeup: datetime | None = None
    time: datetime | None = None
    uncommitted_since: datetime | None = None


def schedule_vpods(
    scheduling_input: VpodSchedulingInput,
    adapter_state: AdapterState,
    placements: SourcePlacements,
    source_time: datetime,
    now: datetime,
) -> VpodSchedulingResult:
    """Run at the source's time and at each deadline until now, so that a late run has the same placements as runs on time.

    `placements` are those that the sources know. While the result has others, the replicas are not lowered: see `_wait_for_sources`.
    """
    run_mode = _run_replace_mode if scheduling_input.strategy.reschedules_all else _run_keep_mode
    scheduling_input = scheduling_input._replace(committed={**placements, **scheduling_input.removed})
    result = run_mode(scheduling_input, adapter_state, placements, source_time)
    for _ in range(MAX_DEADLINES):
        deadline = result.wakeup
        if deadline is None or deadline > now or result.uncommitted_since:
            break
        evicted = result.evicted
        result = run_mode(scheduling_input, result.adapter_state, result.placements, deadline)
        result = result._replace(time=deadline, evicted=evicted | result.evicted)
    return _wait_for_sources(result, now, scheduling_input.autoscaler.refresh_period) if result.uncommitted_since else result


def _wait_for_sources(result: VpodSchedulingResult, now: datetime, period: timedelta) -> VpodSchedulingResult:
    """Begin another refresh period before the replicas are lowered, because the sources do not know the placements yet.

    It begins with the commit of the placements: at `now`, in whole seconds as commits have it, if the run is late by more than a tenth of
    the period.
    """
    now = now.replace(microsecond=0)
    since = result.uncommitted_since or now
    since = now if now - since > period / 10 else since
    return result._replace(
        adapter_state=result.adapter_state._replace(surplus_since=since), wakeup=add_duration(since, period), time=since
    )


def _make_adapter(scheduling_input: VpodSchedulingInput, adapter_state: AdapterState) -> AdapterStatefulSet:
    marked = (scheduling_input.adapter_pods.marked - adapter_state.unmarked) | adapter_state.marked
    return scheduling_input.adapter_pods.make_adapter(scheduling_input.capacity, adapter_state.replicas, marked)


def _place_all(
    scheduling_input: VpodSchedulingInput, adapter: AdapterStatefulSet, placements: SourcePlacements
) -> tuple[SourcePlacements, State]:
    """Schedule each source in turn. Sources that shrink are the first, so that the others can use the capacity that they release; if
    vreplicas of one of them cannot leave a marked pod, it is scheduled again after the others."""
    free_capacity = FreeCapacity(adapter, (*placements.values(), *scheduling_input.other_placements))
    strategy, desired = scheduling_input.strategy, scheduling_input.desired
    new_placements = dict(placements)

    def schedule(names: Iterable[str]) -> None:
        for name in names:
            vpod = Vpod(name, desired[name], new_placements[name], scheduling_input.preferred.get(name, ()))
            new_placements[name] = schedule_vpod(vpod, adapter, free_capacity, strategy)

    if strategy.reschedules_all:
        schedule(placements)
    else:
        shrinking = dict.fromkeys(name for name, vreplicas in placements.items() if sum(vreplicas.values()) > desired[name])
        schedule(shrinking)
        schedule(name for name in placements if name not in shrinking)
        schedule(name for name in shrinking if count_on_marked_pods(adapter, new_placements[name]))
    return new_placements, _collect_state(scheduling_input, adapter, new_placements)


def _collect_state(scheduling_input: VpodSchedulingInput, adapter: AdapterStatefulSet, placements: SourcePlacements) -> State:
    return collect_state(
        adapter,
        [Vpod(name, scheduling_input.desired[name], vreplicas) for name, vreplicas in placements.items()],
        scheduling_input.other_placements,
    )


def _run_replace_mode(
    scheduling_input: VpodSchedulingInput, adapter_state: AdapterState, placements: SourcePlacements, time: datetime
) -> VpodSchedulingResult:
    settings, strategy = scheduling_input.autoscaler, scheduling_input.strategy
    adapter = _make_adapter(scheduling_input, adapter_state)
    new_placements, state = _place_all(scheduling_input, adapter, placements)
    result = VpodSchedulingResult(adapter_state, new_placements, adapter, state)
    if settings.skip or not settings.leader:
        return result
    replicas = compute_replicas(state, strategy, attempt_down=settings.attempt_scale_down)
    if replicas != adapter_state.replicas:
        return result._replace(adapter_state=adapter_state._replace(replicas=replicas))
    if not settings.attempt_scale_down:
        return result
    since = adapter_state.compacted_at if settings.compact_age is None else add_duration(time, -settings.compact_age)
    evicted = _find_occupied(find_evictable_ordinals(state, strategy), new_placements)
    if since is not None and add_duration(since, settings.refresh_period) > time:
        return result._replace(wakeup=add_duration(since, settings.refresh_period) if evicted else None)
    if not evicted:
        return result
    return result._replace(
        adapter_state=adapter_state._replace(
            marked=adapter_state.marked | evicted, unmarked=adapter_state.unmarked - evicted, compacted_at=time
        ),
        evicted=evicted,
    )


def _run_keep_mode(
    scheduling_input: VpodSchedulingInput, adapter_state: AdapterState, placements: SourcePlacements, time: datetime
) -> VpodSchedulingResult:
    settings = scheduling_input.autoscaler
    adapter = _make_adapter(scheduling_input, adapter_state)
    new_placements, state = _place_all(scheduling_input, adapter, placements)
    unplaceable = _count_unplaceable(adapter, new_placements, state)
    if unplaceable and any(mark < adapter_state.replicas for mark in adapter_state.marked):
        # The pods that are being emptied are needed again.
        adapter_state = adapter_state._replace(
            marked=frozenset(),
            unmarked=adapter_state.unmarked | (adapter_state.marked & scheduling_input.adapter_pods.marked),
            surplus_since=None,
        )
        adapter = _make_adapter(scheduling_input, adapter_state)
        new_placements, state = _place_all(scheduling_input, adapter, placements)
        unplaceable = _count_unplaceable(adapter, new_placements, state)
    placeable = _count_placeable_on_new_pods(scheduling_input, adapter, new_placements, state, unplaceable)
    result = VpodSchedulingResult(adapter_state, new_placements, adapter, state, placeable)
    if settings.skip or not settings.leader:
        return result._replace(adapter_state=adapter_state._replace(surplus_since=None))
    unusable = adapter.unschedulable | scheduling_input.adapter_pods.find_without_usable_node()
    replicas = compute_scale_up(state, scheduling_input.strategy, sum(placeable.values()), unusable)
    if replicas > adapter_state.replicas:
        return result._replace(adapter_state=adapter_state._replace(replicas=replicas, surplus_since=None))
    if not settings.attempt_scale_down or unplaceable:
        return result._replace(adapter_state=adapter_state._replace(surplus_since=None))
    return _scale_down(scheduling_input, result, time)


def _scale_down(scheduling_input: VpodSchedulingInput, result: VpodSchedulingResult, time: datetime) -> VpodSchedulingResult:
    """Remove or empty pods after that has been possible for a refresh period; a further step waits another period."""
    period = scheduling_input.autoscaler.refresh_period
    scaled_down = _find_scale_down(scheduling_input, result, time)
    since = result.adapter_state.surplus_since
    if scaled_down is not None and since is not None and add_duration(since, period) <= time:
        if scaled_down.adapter_state.replicas < result.adapter_state.replicas and result.placements != scheduling_input.committed:
            return result._replace(uncommitted_since=time)
        result = scaled_down
        scaled_down, since = _find_scale_down(scheduling_input, result, time), None
    if scaled_down is None:
        return result._replace(adapter_state=result.adapter_state._replace(surplus_since=None), wakeup=None)
    since = since or time
    return result._replace(adapter_state=result.adapter_state._replace(surplus_since=since), wakeup=add_duration(since, period))


def _find_scale_down(
    scheduling_input: VpodSchedulingInput, result: VpodSchedulingResult, time: datetime
) -> VpodSchedulingResult | None:
    """Return the next step towards fewer pods, or None: remove unused pods, else empty the last ones if their vreplicas fit elsewhere."""
    adapter_state, state = result.adapter_state, result.state
    replicas = compute_scale_down(state, scheduling_input.strategy)
    if replicas < adapter_state.replicas:
        marked, unmarked = (
            frozenset(o for o in ordinals if o < replicas) for ordinals in (adapter_state.marked, adapter_state.unmarked)
        )
        adapter_state = adapter_state._replace(replicas=replicas, marked=marked, unmarked=unmarked)
        adapter = _make_adapter(scheduling_input, adapter_state)
        return result._replace(
            adapter_state=adapter_state, adapter=adapter, state=_collect_state(scheduling_input, adapter, result.placements)
        )
    top_ordinals = frozenset(find_evictable_ordinals(state, scheduling_input.strategy))
    evicted = _find_occupied(top_ordinals, result.placements)
    if not evicted:
        return None
    adapter = result.adapter.mark_unschedulable(top_ordinals)
    new_placements, state = _place_all(scheduling_input, adapter, result.placements)
    if _find_occupied(top_ordinals, new_placements) or any(state.pending.values()):
        return None
    adapter_state = adapter_state._replace(
        marked=adapter_state.marked | top_ordinals, unmarked=adapter_state.unmarked - top_ordinals, compacted_at=time
    )
    return result._replace(
        adapter_state=adapter_state, placements=new_placements, adapter=adapter, state=state, evicted=result.evicted | evicted
    )


def _find_occupied(ordinals: range | frozenset[int], placements: SourcePlacements) -> frozenset[int]:
    return frozenset(ordinal for ordinal in ordinals if any(ordinal in vreplicas for vreplicas in placements.values()))


def count_on_marked_pods(adapter: AdapterStatefulSet, vreplicas: VreplicasByOrdinal) -> int:
    """Return the number of vreplicas that remain on marked pods because no other pod can take them."""
    return sum(number for ordinal, number in vreplicas.items() if ordinal in adapter.unschedulable)


def _count_unplaceable(adapter: AdapterStatefulSet, placements: SourcePlacements, state: State) -> dict[str, int]:
    """Return by source the vreplicas that need a pod: pending ones, and those that cannot leave a marked pod."""
    unplaceable = {name: state.pending[name] + count_on_marked_pods(adapter, vreplicas) for name, vreplicas in placements.items()}
    return {name: number for name, number in unplaceable.items() if number}


def _count_placeable_on_new_pods(
    scheduling_input: VpodSchedulingInput,
    adapter: AdapterStatefulSet,
    placements: SourcePlacements,
    state: State,
    unplaceable: Mapping[str, int],
) -> dict[str, int]:
    """Return by source how many unplaceable vreplicas new pods could take; with 0, more pods do not help."""
    profile = scheduling_input.strategy.scheduler_profile
    if scheduling_input.strategy.max_fill_up or profile.accepts_new_pods:
        return dict(unplaceable)
    free_capacity = FreeCapacity(adapter, (*placements.values(), *scheduling_input.other_placements))
    return {
        name: count_placeable_on_new_pods(placements[name], number, state.last_ordinal + 1, adapter, free_capacity, profile)
        for name, number in unplaceable.items()
    }
