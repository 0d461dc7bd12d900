"""Decide workloads again where their outcomes do not go together: what a run places on a cluster exceeds its capacity, or the members of an
affinity group, or the workloads of a quota, take what the others cannot have then.

1. Every workload is decided alone. Where what they start on a cluster fits together, that stands.
2. The workloads that start pods on the other clusters are decided again, one after the other: those that are placed without regard to
   capacity by other APIs count first, then the order is that of the API's queue. Each sees what those before it have left. So are the
   workloads of groups and quotas that the API names.
3. That may bring them to other clusters, which may be too small then: their workloads are decided as well, until no cluster is new.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
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
from gitsched.schedule.shared_capacity import CapacityShare, SharedCapacity

if TYPE_CHECKING:
    from gitsched.apis.capabilities import Coupling
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
    find_free: Callable[[], Mapping[str, Capacity]] | None = None,
    removed: Collection[Key] | None = None,
) -> CapacityDecisions:
    """Return what is decided otherwise because workloads share capacity, groups of clusters or quotas. Those that are `fixed` keep their
    outcome. `find_free` returns what clusters have before anything is placed; None to find it from `outcomes`, which are all that there are
    then. `removed` are the workloads without an outcome; None for all other templates."""
    reader = find_reader(engines, snapshot.variants.__contains__)
    if reader is None:
        return NOTHING_SHARED
    gone = [key for key in templates if key not in outcomes] if removed is None else removed
    return _Sharing(reader, outcomes, templates, engines, snapshot, fixed, earlier, find_free, gone).decide()


def list_turns(
    reader: CapacityReader, keys: Iterable[Key], templates: Mapping[Key, Document]
) -> dict[Key, tuple[bool, tuple[object, ...]]]:
    """Return whether each workload follows capacity, and when it is decided. No two have the same turn."""
    found: dict[Key, tuple[bool, tuple[object, ...]]] = {}
    for key in keys:
        position = reader.engine.find_queue_position(templates[key])
        last = workload_sort_key(key)
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
        find_free: Callable[[], Mapping[str, Capacity]] | None,
        removed: Collection[Key],
    ) -> None:
        self._find_free = find_free
        self._reader, self._templates, self._engines, self._snapshot = reader, templates, engines, snapshot
        self._alone, self._outcomes, self._fixed, self._earlier = outcomes, dict(outcomes), fixed, earlier
        self._removed = removed
        self._positions: dict[Key, tuple[bool, tuple[object, ...]]] = {}
        self._added: dict[Key, PodsByCluster] = {}
        for key, outcome in outcomes.items():
            self._measure(key, outcome)

    def decide(self) -> CapacityDecisions:
        """Return what changes."""
        engine = self._reader.engine
        engine.begin_turns(self._removed)
        waiting = frozenset(
            key for key, outcome in self._outcomes.items() if key not in self._fixed and engine.reads_capacity(outcome)
        )
        coupling = engine.find_coupling(self._outcomes)
        if not (waiting or coupling.counted or any(self._added.values())):
            return CapacityDecisions(limited=engine.list_limited())
        members, coupled = self._decide_contested(waiting, coupling)
        turns = {key: turn for key, (_, turn) in self._positions.items()}
        if not members:
            self._count_all(turns, coupling)
            return CapacityDecisions(limited=engine.list_limited(), turns=turns)
        limited = (waiting & members) | {key for key in members if self._outcomes[key].targets != self._alone[key].targets}
        stopped = engine.list_limited()
        changed = {
            key: self._outcomes[key] if key in stopped else self._explain(key)
            for key in members
            if self._outcomes[key] != self._alone[key]
        }
        dependents = self._decide_dependents(frozenset(changed), coupled)
        if changed:
            engine.follow_shares()
        return CapacityDecisions({**dependents, **changed}, stopped | limited, turns)

    def _count_all(self, turns: Mapping[Key, tuple[object, ...]], coupling: Coupling) -> None:
        """Count the outcomes that stand, in their turns."""
        for key in sorted(coupling.counted, key=lambda key: turns.get(key, ())):
            self._reader.engine.count(key, self._outcomes[key])

    def _decide_contested(self, waiting: frozenset[Key], coupling: Coupling) -> tuple[frozenset[Key], frozenset[Key]]:
        """Decide those that follow capacity on clusters that lack it, those that wait for it, and those whose outcomes may not go together.
        Return which they are, and which of them are the last."""
        members: frozenset[Key] = frozenset()
        coupled = coupling.members
        self._shares: dict[Key, CapacityShare] = {}
        self._list_positions((*self._added, *waiting, *coupling.counted, *coupling.members))
        for number in range(_MAX_ROUNDS + 1):
            followers = frozenset(key for key in self._added if self._positions[key][0]) - self._fixed
            contested = self._find_contested(followers)
            is_last = number == _MAX_ROUNDS
            following = {key for key in followers if is_last or not contested.isdisjoint(self._added[key])}
            following |= waiting | (coupling.members - self._fixed)
            if is_last:
                following |= coupling.counted - self._fixed
            if members >= following:
                break
            members |= following
            self._decide_in_order(members, coupling)
            coupling = self._reader.engine.find_coupling(self._outcomes)
            coupled |= coupling.members
            self._list_positions((*self._added, *coupling.counted, *coupling.members))
        return members, coupled

    def _list_positions(self, keys: Iterable[Key]) -> None:
        """Find the turns of workloads."""
        new = [key for key in dict.fromkeys(keys) if key not in self._positions and key in self._templates]
        self._positions |= list_turns(self._reader, new, self._templates)

    def _explain(self, key: Key) -> Outcome:
        """Return the outcome of a workload that others limit; if it lacks capacity, its finding says who has it."""
        outcome = self._outcomes[key]
        clusters = self._alone[key].clusters - outcome.clusters
        if not clusters or not any(one.code == _UNSCHEDULABLE for one in outcome.findings):
            return outcome
        share, wanted = self._shares[key], self._reader.measure_added(self._alone[key], self._templates[key])
        taken = collect_by_cluster({one.candidate: one.pods} for one in share.shared.taken[: share.position])
        lacking = {name for name in clusters & wanted.keys() if find_lack(self._free[name], (*taken.get(name, ()), *wanted[name]))}
        if not lacking:
            return outcome
        why = describe_takers(key, share, clusters, self._snapshot.tenancy)
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
        if self._find_free is not None:
            return self._find_free()
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

    def _find_contested(self, followers: Iterable[Key]) -> frozenset[str]:
        """Return the clusters of workloads that follow capacity which lack it for what is started there."""
        wanted = {name for key in followers for name in self._added[key]}
        started = collect_by_cluster(self._added.values()) if wanted else {}
        return frozenset(name for name in wanted if find_lack(self._free[name], started[name]))

    def _decide_in_order(self, members: frozenset[Key], coupling: Coupling) -> None:
        """Decide workloads one after the other, beside all others that take something."""
        shared, engine = SharedCapacity(self._free), self._reader.engine
        engine.begin_turns(self._removed)
        counted = coupling.counted | coupling.members
        for key in sorted(self._positions, key=lambda one: self._positions[one][1]):
            if key in members:
                template = self._templates[key]
                self._shares[key] = CapacityShare(shared, len(shared.taken))
                engine.share_capacity(template, shared)
                outcome = decide_workload(template, self._engines, self._snapshot)
                if outcome is not None:
                    self._outcomes[key] = outcome
                    self._measure(key, outcome)
            shared.take(key, self._added.get(key, {}))
            if key in members or key in counted:
                engine.count(key, self._outcomes[key])

    def _decide_dependents(self, changed: frozenset[Key], coupled: frozenset[Key]) -> dict[Key, Outcome | None]:
        """Return the outcomes of what depends on changed workloads, beside those which are `coupled` and have had their turn."""
        trackers: Iterable[frozenset[Key]] = (
            (one.affected_by(changed) for one in list_dependency_trackers(self._engines)) if changed else ()
        )
        dependents = frozenset[Key]().union(*trackers) - changed - coupled - self._fixed
        return {
            key: decide_workload(self._templates[key], self._engines, self._snapshot)
            for key in sorted(dependents, key=workload_sort_key)
            if key in self._templates
        }
