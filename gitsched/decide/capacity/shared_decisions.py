"""Decide workloads again where all that a run places on a cluster exceeds its capacity.

1. Every workload is decided alone. Where what they start on a cluster fits together, that stands.
2. The workloads that start pods on the other clusters are decided again, one after the other: those that are placed without regard to
   capacity by other APIs count first, then the order is that of the API's queue. Each sees what those before it have left.
3. That may bring them to other clusters, which may be too small then: their workloads are decided as well, until no cluster is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.capacity.capacity_takers import describe_takers
from gitsched.decide.capacity.requested_capacity import (
    CapacityReader,
    PodsByCluster,
    collect_by_cluster,
    find_lack,
    find_reader,
    list_free,
    measure_retained,
    sum_by_cluster,
)
from gitsched.decide.engines import list_dependency_trackers
from gitsched.decide.workload_decision import decide_workload
from gitsched.model.capacity_use import NO_PLACEMENTS, CapacityUse, EarlierPlacements, add_amounts
from gitsched.model.document import Key, workload_sort_key
from gitsched.schedule.shared_capacity import CapacityShare, SharedCapacity, limit_capacity

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.model.document import Document
    from gitsched.model.scheduling import Outcome
    from gitsched.schedule.estimator import Capacity

_UNSCHEDULABLE = "unschedulable"
_FIRST = 0
"""Begins the turn of a workload that is placed without regard to capacity."""
_MAX_ROUNDS = 8
"""After so many rounds all workloads that start pods are decided one after the other."""


class CapacityDecisions(NamedTuple):
    """The outcomes that differ from those of workloads which are decided alone, None for a workload that no policy selects; the workloads
    that are `limited` by what others take; and the `turns` in which workloads start pods, as values that sort."""

    outcomes: Mapping[Key, Outcome | None] = {}
    limited: frozenset[Key] = frozenset()
    turns: Mapping[Key, tuple[object, ...]] = {}


NOTHING_SHARED = CapacityDecisions()


def share_capacity(
    outcomes: Mapping[Key, Outcome],
    templates: Mapping[Key, Document],
    engines: tuple[PolicyEngine, ...],
    snapshot: Snapshot,
    fixed: frozenset[Key],
    earlier: EarlierPlacements = NO_PLACEMENTS,
    free: Mapping[str, Capacity] | None = None,
) -> CapacityDecisions:
    """Return what is decided otherwise because workloads share capacity. Those that are `fixed` keep their outcome. `free` is what clusters
    have before anything is placed; None to find it from `outcomes`, which are all that there are then."""
    reader = find_reader(engines, snapshot.variants.__contains__)
    if reader is None:
        return NOTHING_SHARED
    return _Sharing(reader, outcomes, templates, engines, snapshot, fixed, earlier, free).decide()


def list_turns(
    reader: CapacityReader, keys: Iterable[Key], templates: Mapping[Key, Document], snapshot: Snapshot
) -> dict[Key, tuple[bool, tuple[object, ...]]]:
    """Return whether each workload follows capacity, and when it is decided."""
    read_order = {key: number for number, key in enumerate(snapshot.input_order)}
    found: dict[Key, tuple[bool, tuple[object, ...]]] = {}
    for key in keys:
        position = reader.engine.find_queue_position(templates[key])
        last = (read_order.get(key, len(read_order)), workload_sort_key(key))
        if position is None:
            found[key] = False, (_FIRST, (), last)
        else:
            found[key] = position.follows_capacity, (_FIRST + 1, position.order, last)
    return found


class _Sharing:
    """The state of one run: `_added` are the pods that each workload starts."""

    def __init__(
        self,
        reader: CapacityReader,
        outcomes: Mapping[Key, Outcome],
        templates: Mapping[Key, Document],
        engines: tuple[PolicyEngine, ...],
        snapshot: Snapshot,
        fixed: frozenset[Key],
        earlier: EarlierPlacements,
        free: Mapping[str, Capacity] | None,
    ) -> None:
        self._given = free
        self._reader, self._templates, self._engines, self._snapshot = reader, templates, engines, snapshot
        self._alone, self._outcomes, self._fixed, self._earlier = outcomes, dict(outcomes), fixed, earlier
        self._added: dict[Key, PodsByCluster] = {}
        for key, outcome in outcomes.items():
            self._measure(key, outcome)

    def decide(self) -> CapacityDecisions:
        """Return what changes."""
        reads = self._reader.engine.reads_capacity
        waiting = frozenset(key for key, outcome in self._outcomes.items() if key not in self._fixed and reads(outcome))
        if not (waiting or any(self._added.values())):
            return NOTHING_SHARED
        positions = list_turns(self._reader, self._added, self._templates, self._snapshot)
        is_new = self._reader.engine.limit_queue(self._limit(positions))
        if is_new is not None:
            return self._decide_queue({key: turn for key, (_, turn) in positions.items()}, is_new=is_new)
        if waiting:
            positions |= list_turns(self._reader, waiting - positions.keys(), self._templates, self._snapshot)
        turns = {key: turn for key, (_, turn) in positions.items()}
        members = self._decide_contested(frozenset(key for key, (follows, _) in positions.items() if follows), waiting, turns)
        if not members:
            return CapacityDecisions(turns=turns)
        limited = (waiting & members) | {key for key in members if self._outcomes[key].targets != self._alone[key].targets}
        changed = {key: self._explain(key) for key in members if self._outcomes[key] != self._alone[key]}
        dependents = self._decide_dependents(frozenset(changed))
        if changed:
            self._reader.engine.follow_shares()
        return CapacityDecisions({**dependents, **changed}, frozenset(limited), turns)

    def _limit(self, positions: Mapping[Key, tuple[bool, tuple[object, ...]]]) -> dict[str, Capacity]:
        """Return what is free beside what other APIs start, which come first."""
        first = (key for key in self._added if key in self._fixed or positions[key][1][0] == _FIRST)
        taken = sum_by_cluster(self._added[key] for key in first)
        return {name: limit_capacity(one, None, {}, taken.get(name, {})) for name, one in self._free.items()}

    def _decide_queue(self, turns: Mapping[Key, tuple[object, ...]], *, is_new: bool) -> CapacityDecisions:
        """Return what the API of a queue decides otherwise with another capacity."""
        if not is_new:
            return CapacityDecisions(turns=turns)
        changed: dict[Key, Outcome | None] = {}
        for key, outcome in self._alone.items():
            if key not in self._fixed and key in self._templates and outcome.api == self._reader.api:
                found = decide_workload(self._templates[key], self._engines, self._snapshot)
                if found != outcome:
                    changed[key] = found
        if changed:
            self._reader.engine.follow_shares()
        limited = frozenset(key for key, one in changed.items() if one is None or one.targets != self._alone[key].targets)
        return CapacityDecisions(changed, limited, turns)

    def _decide_contested(
        self, followers: frozenset[Key], waiting: frozenset[Key], turns: Mapping[Key, tuple[object, ...]]
    ) -> frozenset[Key]:
        """Decide those that follow capacity on clusters that lack it, and those that wait for it. Return which they are."""
        members: frozenset[Key] = frozenset()
        self._shares: dict[Key, CapacityShare] = {}
        for number in range(_MAX_ROUNDS + 1):
            contested = self._find_contested()
            following = {key for key in followers - self._fixed if not contested.isdisjoint(self._added.get(key, ()))}
            following |= waiting if number < _MAX_ROUNDS else followers - self._fixed
            if members >= following:
                break
            members |= following
            self._decide_in_order(members, turns)
        return members

    def _explain(self, key: Key) -> Outcome:
        """Return the outcome of a workload that others limit; if it is not placed, its finding says who."""
        outcome = self._outcomes[key]
        clusters = self._alone[key].clusters - outcome.clusters
        if not clusters or not any(one.code == _UNSCHEDULABLE for one in outcome.findings):
            return outcome
        why = describe_takers(key, self._shares[key], clusters, self._snapshot.tenancy)
        findings = (
            one._replace(message=f"{one.message}; {why}") if one.code == _UNSCHEDULABLE else one for one in outcome.findings
        )
        return outcome._replace(findings=tuple(findings))

    def _measure(self, key: Key, outcome: Outcome) -> None:
        """Set the pods that a workload starts."""
        self._added.pop(key, None)
        if outcome.replicas_by_cluster != outcome.previous_replicas and key in self._templates:
            pods = self._reader.measure_added(outcome, self._templates[key])
            if pods:
                self._added[key] = pods

    @cached_property
    def _free(self) -> Mapping[str, Capacity]:
        """What is free on each cluster before this run places anything."""
        if self._given is not None:
            return self._given
        reader, outcomes = self._reader, self._alone
        staying = sum_by_cluster(
            reader.measure(outcome, self._templates[key], outcome.previous_replicas)
            for key, outcome in outcomes.items()
            if outcome.previous_targets and key in self._templates
        )

        def find(key: Key) -> tuple[Outcome, Document] | None:
            return (outcomes[key], self._templates[key]) if key in outcomes and key in self._templates else None

        copies = measure_retained(reader, self._earlier.retained, find)
        for name, more in copies.items():
            add_amounts(staying.setdefault(name, {}), more)
        return list_free(reader, CapacityUse(staying, self._earlier.placed))

    def _find_contested(self) -> frozenset[str]:
        """Return the clusters that lack capacity for what is started there."""
        started = collect_by_cluster(self._added.values())
        return frozenset(name for name, groups in started.items() if find_lack(self._free[name], groups))

    def _decide_in_order(self, members: frozenset[Key], turns: Mapping[Key, tuple[object, ...]]) -> None:
        """Decide workloads one after the other, beside all others that take capacity."""
        shared = SharedCapacity(self._free)
        for key in sorted(turns, key=turns.__getitem__):
            if key in members:
                template = self._templates[key]
                self._shares[key] = CapacityShare(shared, len(shared.taken))
                self._reader.engine.share_capacity(template, shared)
                outcome = decide_workload(template, self._engines, self._snapshot)
                if outcome is not None:
                    self._outcomes[key] = outcome
                    self._measure(key, outcome)
            shared.take(key, self._added.get(key, {}))

    def _decide_dependents(self, changed: frozenset[Key]) -> dict[Key, Outcome | None]:
        """Return the outcomes of what depends on changed workloads."""
        trackers: Iterable[frozenset[Key]] = (
            (one.affected_by(changed) for one in list_dependency_trackers(self._engines)) if changed else ()
        )
        dependents = frozenset[Key]().union(*trackers) - changed - self._fixed
        return {
            key: decide_workload(self._templates[key], self._engines, self._snapshot)
            for key in sorted(dependents, key=workload_sort_key)
            if key in self._templates
        }
