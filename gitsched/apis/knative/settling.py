"""One run: place every source, then let the autoscaler change the number of pods or empty some of them.

Both see the same snapshot. `keep` waits a refresh period before it takes pods away, and then empties them in the same breath; `replace`
does at once what Knative does, and leaves the moving to the next run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from gitsched.apis.gitsched.config import Autoscaler
from gitsched.apis.knative.pods import Cluster
from gitsched.schedule.vreplicas import autoscaling
from gitsched.schedule.vreplicas.adapter import Adapter, Shares, Vpod
from gitsched.schedule.vreplicas.ledger import Ledger
from gitsched.schedule.vreplicas.placing import Strategy, place, try_new_pods
from gitsched.schedule.vreplicas.state import State, collect

DEADLINES = 64
"""Deadlines that one run makes up for at most."""

Held = dict[str, Shares]
"""What each source has, by its name, in the order in which they are placed."""


class Memory(NamedTuple):
    """What a run hands to the next. `marks` are the pods that gitsched marked, `lifted` those where the mark that it took back has come to
    stand in the source meanwhile; `since` is when fewer pods began to do; `compacted` is when some were emptied last."""

    replicas: int
    marks: frozenset[int] = frozenset()
    lifted: frozenset[int] = frozenset()
    since: datetime | None = None
    compacted: datetime | None = None


class Question(NamedTuple):
    """What does not change during a run. `others` is held by sources that cannot be read now."""

    cluster: Cluster
    capacity: int
    strategy: Strategy
    autoscaler: Autoscaler
    wanted: Mapping[str, int]
    others: Sequence[Shares] = ()


class Settled(NamedTuple):
    """`adapter` and `state` are as they are after the run. `helped` is by source how many of the
    vreplicas that wait new pods could take.
    `evicted` are the pods that were marked in this run. `time` is the deadline that changed something, None where none did."""

    memory: Memory
    held: Held
    adapter: Adapter
    state: State
    helped: Mapping[str, int] = MappingProxyType({})
    evicted: frozenset[int] = frozenset()
    wakeup: datetime | None = None
    time: datetime | None = None


def settle(question: Question, memory: Memory, held: Held, at: datetime, now: datetime) -> Settled:
    """A run at the source's moment, and one at each deadline between it and now, so that a late run does what punctual ones would."""
    step = _replace if question.strategy.replaces else _keep
    settled = step(question, memory, held, at)
    for _ in range(DEADLINES):
        deadline = settled.wakeup
        if deadline is None or deadline > now:
            break
        evicted = settled.evicted
        settled = step(question, settled.memory, settled.held, deadline)
        settled = settled._replace(time=deadline, evicted=evicted | settled.evicted)
    return settled


def _adapt(question: Question, memory: Memory) -> Adapter:
    marks = (question.cluster.marked - memory.lifted) | memory.marks
    return question.cluster.adapt(question.capacity, memory.replicas, marks)


def _place_all(question: Question, adapter: Adapter, held: Held) -> tuple[Held, State]:
    ledger = Ledger(adapter, (*held.values(), *question.others))
    placed = {
        name: place(Vpod(name, question.wanted[name], shares), adapter, ledger, question.strategy) for name, shares in held.items()
    }
    return placed, _collect(question, adapter, placed)


def _collect(question: Question, adapter: Adapter, held: Held) -> State:
    return collect(adapter, [Vpod(name, question.wanted[name], shares) for name, shares in held.items()], question.others)


def _replace(question: Question, memory: Memory, held: Held, moment: datetime) -> Settled:
    settings, strategy = question.autoscaler, question.strategy
    adapter = _adapt(question, memory)
    placed, state = _place_all(question, adapter, held)
    settled = Settled(memory, placed, adapter, state)
    if settings.skip or not settings.leader:
        return settled
    replicas = autoscaling.scale(state, strategy, attempt_down=settings.attempt_scale_down)
    if replicas != memory.replicas:
        return settled._replace(memory=memory._replace(replicas=replicas))
    if not settings.attempt_scale_down:
        return settled
    since = memory.compacted if settings.compact_age is None else moment - settings.compact_age
    evicted = _occupied(autoscaling.find_evictable(state, strategy), placed)
    if since is not None and since + settings.refresh_period > moment:
        return settled._replace(wakeup=since + settings.refresh_period if evicted else None)
    if not evicted:
        return settled
    return settled._replace(
        memory=memory._replace(marks=memory.marks | evicted, lifted=memory.lifted - evicted, compacted=moment), evicted=evicted
    )


def _keep(question: Question, memory: Memory, held: Held, moment: datetime) -> Settled:
    settings = question.autoscaler
    adapter = _adapt(question, memory)
    placed, state = _place_all(question, adapter, held)
    stuck = _count_stuck(adapter, placed, state)
    if stuck and any(mark < memory.replicas for mark in memory.marks):
        # The pods that are being emptied are needed after all.
        memory = memory._replace(marks=frozenset(), lifted=memory.lifted | (memory.marks & question.cluster.marked), since=None)
        adapter = _adapt(question, memory)
        placed, state = _place_all(question, adapter, held)
        stuck = _count_stuck(adapter, placed, state)
    helped = _find_helped(question, adapter, placed, state, stuck)
    settled = Settled(memory, placed, adapter, state, helped)
    if settings.skip or not settings.leader:
        return settled._replace(memory=memory._replace(since=None))
    replicas = autoscaling.scale_up(state, question.strategy, sum(helped.values()))
    if replicas > memory.replicas:
        return settled._replace(memory=memory._replace(replicas=replicas, since=None))
    if not settings.attempt_scale_down or stuck:
        return settled._replace(memory=memory._replace(since=None))
    return _take_away(question, settled, moment)


def _take_away(question: Question, settled: Settled, moment: datetime) -> Settled:
    """Take pods away, or empty some, once that has been possible for a refresh period; what is possible after that starts anew."""
    period = question.autoscaler.refresh_period
    smaller = _find_smaller(question, settled, moment)
    since = settled.memory.since
    if smaller is not None and since is not None and since + period <= moment:
        settled = smaller
        smaller, since = _find_smaller(question, settled, moment), None
    if smaller is None:
        return settled._replace(memory=settled.memory._replace(since=None), wakeup=None)
    since = since or moment
    return settled._replace(memory=settled.memory._replace(since=since), wakeup=since + period)


def _find_smaller(question: Question, settled: Settled, moment: datetime) -> Settled | None:
    """The next step towards fewer pods; None when there is none. Unused pods go, else the top ones are emptied, where all of what
    they hold finds another place."""
    memory, state = settled.memory, settled.state
    replicas = autoscaling.scale_down(state, question.strategy)
    if replicas < memory.replicas:
        marks, lifted = (frozenset(o for o in some if o < replicas) for some in (memory.marks, memory.lifted))
        memory = memory._replace(replicas=replicas, marks=marks, lifted=lifted)
        adapter = _adapt(question, memory)
        return settled._replace(memory=memory, adapter=adapter, state=_collect(question, adapter, settled.held))
    top = frozenset(autoscaling.find_evictable(state, question.strategy))
    evicted = _occupied(top, settled.held)
    if not evicted:
        return None
    adapter = settled.adapter.mark(top)
    placed, state = _place_all(question, adapter, settled.held)
    if _occupied(top, placed) or any(state.pending.values()):
        return None
    memory = memory._replace(marks=memory.marks | top, lifted=memory.lifted - top, compacted=moment)
    return settled._replace(memory=memory, held=placed, adapter=adapter, state=state, evicted=settled.evicted | evicted)


def _occupied(ordinals: range | frozenset[int], held: Held) -> frozenset[int]:
    return frozenset(ordinal for ordinal in ordinals if any(ordinal in shares for shares in held.values()))


def count_lingering(adapter: Adapter, shares: Shares) -> int:
    """Vreplicas of a source that sit on marked pods, since no other pod can take them."""
    return sum(number for ordinal, number in shares.items() if ordinal in adapter.marked)


def _count_stuck(adapter: Adapter, held: Held, state: State) -> dict[str, int]:
    """By source, the vreplicas that wait for a pod: those without a place, and those that cannot leave a marked one."""
    stuck = {name: state.pending[name] + count_lingering(adapter, shares) for name, shares in held.items()}
    return {name: number for name, number in stuck.items() if number}


def _find_helped(question: Question, adapter: Adapter, held: Held, state: State, stuck: Mapping[str, int]) -> dict[str, int]:
    """By source, how many of those that wait new pods could take: where it is none, the fault is not that there are too few."""
    profile = question.strategy.adding
    if question.strategy.packs or profile.welcomes:
        return dict(stuck)
    ledger = Ledger(adapter, (*held.values(), *question.others))
    return {name: try_new_pods(held[name], number, state.last + 1, adapter, ledger, profile) for name, number in stuck.items()}
