"""Capacity that workloads share after a simulated event, as in the next run: what the plan uses counts, and what is placed in its turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.capacity.capacity_totals import measure_capacity
from gitsched.decide.capacity.requested_capacity import CapacityReader, PodsByCluster, find_reader, list_free, measure_retained
from gitsched.decide.capacity.shared_decisions import list_turns, share_capacity
from gitsched.model.capacity_use import NO_CAPACITY_USE, CapacityUse, add_requests
from gitsched.model.document import Document, Key, workload_sort_key

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.changes import RetainedCopy
    from gitsched.model.scheduling import Outcome
    from gitsched.schedule.estimator import Capacity

FindUse = Callable[[], CapacityUse]
"""What workloads use of clusters, found out on demand."""


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


def use_nothing() -> CapacityUse:
    """Return the use of a plan that is not known."""
    return NO_CAPACITY_USE


def find_planned_use(decided: DecisionSet, retained: Iterable[RetainedCopy] | None = None) -> FindUse:
    """Return what finds the use of a complete plan. `retained` are the copies that stay for an overlap after it; None for those that were
    there before it."""

    @cache
    def find() -> CapacityUse:
        if decided.input is None or not any(engine.shares_capacity for engine in decided.engines):
            return NO_CAPACITY_USE
        use = measure_capacity(decided, decided.input.now)
        copies = decided.input.earlier.retained if retained is None else retained
        return add_copies(use, decided, copies)

    return find


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


def list_planned(decided: DecisionSet, find_use: FindUse) -> Mapping[str, Capacity]:
    """Return what clusters have free after a plan; nothing if workloads do not share capacity."""
    reader = find_reader(decided.engines, decided.variants.__contains__)
    return list_free(reader, find_use()) if reader is not None else {}


def share_simulated(
    find_use: FindUse,
    outcomes: Mapping[Key, Outcome],
    templates: Mapping[Key, Document],
    engines: tuple[PolicyEngine, ...],
    snapshot: Snapshot,
    fixed: Collection[Key],
    *,
    fresh: bool,
) -> tuple[dict[Key, Outcome], SimulatedCapacity | None]:
    """Return the outcomes where workloads take capacity in their turns, and what they take it from; None if they do not share any.
    With `fresh` nothing runs before."""
    reader = find_reader(engines, snapshot.variants.__contains__)
    if reader is None:
        return dict(outcomes), None
    free = list_free(reader, NO_CAPACITY_USE if fresh else find_use())
    made = share_capacity(outcomes, templates, engines, snapshot, frozenset(fixed), find_free=lambda: free, removed=()).outcomes
    shared = {key: one for key, one in {**outcomes, **made}.items() if one is not None}
    turns = {key: turn for key, (_, turn) in list_turns(reader, shared, templates).items()}
    return shared, SimulatedCapacity(reader, free, templates, turns)
