"""Capacity that workloads share after a simulated event, as in the next run: what the plan uses counts, and what is placed in its turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from gitsched.decide.capacity.capacity_totals import measure_capacity
from gitsched.decide.capacity.requested_capacity import (
    CapacityReader,
    PodsByCluster,
    find_reader,
    list_free,
    measure_retained,
    reduce_capacity,
)
from gitsched.decide.capacity.shared_decisions import list_turns, share_capacity
from gitsched.decide.workload_decision import DecidedAlone
from gitsched.model.capacity_use import NO_CAPACITY_USE, CapacityUse, add_requests
from gitsched.model.document import Document, Key, workload_sort_key
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.capabilities import ClusterCapacity
    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.changes import RetainedCopy
    from gitsched.model.scheduling import Outcome
    from gitsched.schedule.estimator import Capacity


class PlannedUse:
    """What workloads use of clusters after a plan, found out on demand, and what that leaves of clusters."""

    def __init__(self, find: Callable[[], CapacityUse]) -> None:
        self._find = cache(find)
        self._known: dict[str, tuple[ClusterCapacity, Capacity]] = {}

    def __call__(self) -> CapacityUse:
        """Return what workloads use."""
        return self._find()

    def list_free(self, reader: CapacityReader) -> dict[str, Capacity]:
        """Return what each cluster has free. It is computed again for clusters that are not as in the last call: most events change few."""
        use, known = self(), self._known
        for name, cluster in reader.clusters.items():
            if name not in known or known[name][0] != cluster:
                known[name] = cluster, reduce_capacity(cluster, use.requested.get(name, {}), use.placed.get(name, ()))
        return {name: known[name][1] for name in reader.clusters}


class SimulatedCapacity(NamedTuple):
    """What clusters have `free` before an event places anything, and the order in which workloads take it."""

    reader: CapacityReader
    free: Mapping[str, Capacity]
    templates: Mapping[Key, Document]
    turns: Mapping[Key, tuple[object, ...]]

    def limit(self, known: Mapping[str, Capacity | None]) -> dict[str, Capacity | None]:
        """Return known capacities of clusters, those that workloads share with what is free of them."""
        return {name: self.free.get(name, one) if one is not None and one.free else one for name, one in known.items()}

    def measure_added(self, outcome: Outcome) -> PodsByCluster:
        """Return the pods that a workload starts."""
        return self.reader.measure_added(outcome, self.templates[outcome.key])

    def sort(self, keys: Iterable[Key]) -> list[Key]:
        """Return workloads in their turns; those that nothing says anything about are the last."""
        return sorted(keys, key=lambda key: (key not in self.turns, self.turns.get(key, ()), workload_sort_key(key)))


def find_planned_use(decided: DecisionSet, retained: Iterable[RetainedCopy] | None = None) -> PlannedUse:
    """Return what finds the use of a complete plan. `retained` are the copies that stay for an overlap after it; None for those that were
    there before it."""

    def find() -> CapacityUse:
        if decided.input is None or not any(engine.shares_capacity for engine in decided.engines):
            return NO_CAPACITY_USE
        use = measure_capacity(decided, decided.input.now)
        copies = decided.input.earlier.retained if retained is None else retained
        return add_copies(use, decided, copies)

    return PlannedUse(find)


def add_copies(use: CapacityUse, decided: DecisionSet, copies: Iterable[RetainedCopy]) -> CapacityUse:
    """Return the use of a plan with what copies request that stay for an overlap."""
    reader = find_reader(decided.engines, decided.variants.__contains__)
    if reader is None:
        return use

    def find(key: Key) -> tuple[Outcome, Document] | None:
        outcome = decided.outcomes.get(key)
        template = decided.templates.get(key) if outcome is not None else None
        return (
            (outcome._replace(previous_targets=outcome.targets), template) if outcome is not None and template is not None else None
        )

    more = measure_retained(reader, copies, find)
    requested = {name: add_requests((amounts, more.get(name, {}))) for name, amounts in use.requested.items()}
    return use._replace(requested=requested)


def list_planned(decided: DecisionSet, find_use: PlannedUse) -> Mapping[str, Capacity]:
    """Return what clusters have free after a plan; nothing if workloads do not share capacity."""
    reader = find_reader(decided.engines, decided.variants.__contains__)
    return find_use.list_free(reader) if reader is not None else {}


def share_simulated(
    find_use: PlannedUse, decided: DecidedAlone, *, fresh: bool
) -> tuple[dict[Key, Outcome], SimulatedCapacity | None]:
    """Return the outcomes where workloads take capacity in their turns, and what they take it from; None if they do not share any.
    With `fresh` nothing runs before."""
    reader = find_reader(decided.engines, decided.snapshot.variants.__contains__)
    if reader is None:
        return dict(decided.outcomes), None
    free = list_free(reader, NO_CAPACITY_USE) if fresh else find_use.list_free(reader)
    made = share_capacity(decided, find_free=lambda: free, removed=()).outcomes
    shared = {key: one for key, one in {**decided.outcomes, **made}.items() if one is not None}
    turns = {key: turn for key, (_, turn) in list_turns(reader, shared, decided.templates).items()}
    return shared, SimulatedCapacity(reader, free, decided.templates, turns)
