"""Decide workloads again where their outcomes do not go together: what a run places on a cluster exceeds its capacity, or the members of an
affinity group, or the workloads of a quota, take what the others cannot have then.

1. Every workload is decided alone. Where what they start on a cluster fits together, that stands.
2. The workloads that start pods on the other clusters are decided again, one after the other: those that are placed without regard to
   capacity by other APIs count first, then the order is that of the API's queue. Each sees what those before it have left. So are the
   workloads of groups and quotas that the API names. Of new members of groups this is known before, so that they are decided alone only
   if that may say which others have to be decided again.
3. That may bring them to other clusters, which may be too small then: their workloads are decided as well, until no cluster is new.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import TurnPostponing
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
from gitsched.decide.engines import (
    EngineRecords,
    list_dependency_trackers,
    list_engine_findings,
    list_engine_records,
    replace_engine_findings,
)
from gitsched.decide.workload_decision import DecidedAlone, decide_workload
from gitsched.model.capacity_use import CapacityUse, EarlierPlacements, add_amounts
from gitsched.model.document import Key, workload_sort_key
from gitsched.model.errors import DocumentFault
from gitsched.model.finding import UNSCHEDULABLE
from gitsched.model.system_errors import is_bug
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.shared_capacity import CapacityShare, SharedCapacity

if TYPE_CHECKING:
    from gitsched.apis.capabilities import Coupling
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.model.document import Document
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import Outcome
    from gitsched.schedule.estimator import Capacity

_FIRST = 0
"""Begins the turn of a workload that is placed without regard to capacity."""
_MAX_ROUNDS = 8
"""After so many rounds all workloads that start pods are decided one after the other."""


class CapacityDecisions(NamedTuple):
    """The outcomes that differ from those of workloads which are decided alone, None for a workload that no policy selects; the workloads
    that are `limited` by what others take; the `turns` in which workloads start pods, as values that sort; whether engines have `counted`
    outcomes, so that their records may differ; and what workloads `started`, with the outcomes for which that is known."""

    outcomes: Mapping[Key, Outcome | None] = {}
    limited: frozenset[Key] = frozenset()
    turns: Mapping[Key, tuple[object, ...]] = {}
    counted: bool = False
    started: Mapping[Key, tuple[Outcome, PodsByCluster]] = {}


NOTHING_SHARED = CapacityDecisions()


class SharedOutcomes(NamedTuple):
    """The outcomes of a complete plan where workloads share something, with the findings and the records of all engines, and what is
    decided otherwise than alone, None if nothing is shared."""

    outcomes: dict[Key, Outcome]
    findings: list[Finding]
    records: EngineRecords
    decisions: CapacityDecisions | None


def share_outcomes(
    decided: DecidedAlone, findings: Iterable[Finding], records: EngineRecords, before: frozenset[Finding] | None = None
) -> SharedOutcomes:
    """Return the outcomes of a complete plan after `share_capacity`, and what follows from them for findings and records. `before` are the
    findings of engines that may be out of date; None for those that they have now."""
    engines = decided.engines
    known = frozenset(list_engine_findings(engines)) if before is None else before
    made = share_capacity(decided)
    after = {key: one for key, one in {**decided.outcomes, **made.outcomes}.items() if one is not None}
    if decided.postponed:
        after = dict(sorted(after.items(), key=lambda entry: workload_sort_key(entry[0])))
    found = list(findings)
    if made.outcomes or before is not None:  # what engines say of workloads may follow from the decisions about these
        found = replace_engine_findings(found, known, engines)
    if made.counted:
        records = tuple({**dict(records), **dict(list_engine_records(engines))}.items())
    return SharedOutcomes(after, found, records, made)


def share_capacity(
    decided: DecidedAlone,
    find_free: Callable[[], Mapping[str, Capacity]] | None = None,
    removed: Collection[Key] | None = None,
) -> CapacityDecisions:
    """Return what is decided otherwise because workloads share capacity, groups of clusters or quotas. `find_free` returns what clusters
    have before anything is placed; None to find it from the outcomes, which are all that there are then. `removed` are the workloads
    without an outcome; None for all other templates."""
    reader = find_reader(decided.engines, decided.snapshot.variants.__contains__)
    if reader is None:
        return NOTHING_SHARED
    if removed is None:
        removed = [key for key in decided.templates if key not in decided.outcomes and key not in decided.postponed]
    sharing = _Sharing(reader, decided, find_free, removed)
    made = sharing.decide()._replace(started=sharing.list_started())
    return made._replace(outcomes={**sharing.completed, **made.outcomes}) if sharing.completed else made


def list_postponed(engines: tuple[PolicyEngine, ...], snapshot: Snapshot, earlier: EarlierPlacements) -> frozenset[Key]:
    """Return the workloads that need not be decided alone, since they will be decided in turns."""
    if len(engines) > 1 or snapshot.tenancy is not None:
        return frozenset()  # another API may claim them, and Tenants check what is decided alone
    (engine,) = engines
    if not isinstance(engine, TurnPostponing):
        return frozenset()
    others = {document.key for document, _ in engine.own_workloads()}.union(copy.workload for copy in earlier.retained)
    return engine.list_certain_turns() - others


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
    """The state of one run: `_added` are the pods that each workload starts, `completed` the outcomes of postponed workloads that are
    decided alone after all."""

    def __init__(
        self,
        reader: CapacityReader,
        decided: DecidedAlone,
        find_free: Callable[[], Mapping[str, Capacity]] | None,
        removed: Collection[Key],
    ) -> None:
        outcomes, self._templates, self._engines, self._snapshot, self._fixed, self._earlier, self._postponed = decided
        self._reader, self._find_free, self._removed = reader, find_free, removed
        self._alone, self._outcomes = dict(outcomes), dict(outcomes)
        self.completed: dict[Key, Outcome | None] = {}
        self._shares: dict[Key, CapacityShare] = {}
        self._faults: dict[Key, Exception] = {}
        self._positions: dict[Key, tuple[bool, tuple[object, ...]]] = {}
        self._added: dict[Key, PodsByCluster] = {}
        for key, outcome in outcomes.items():
            self._measure(key, outcome)

    def list_started(self) -> Mapping[Key, tuple[Outcome, PodsByCluster]]:
        """Return the pods that workloads start, with their outcomes."""
        return {key: (self._outcomes[key], pods) for key, pods in self._added.items()}

    def decide(self) -> CapacityDecisions:
        """Return what changes."""
        engine = self._reader.engine
        engine.begin_turns(self._removed)
        waiting = frozenset(
            key for key, outcome in self._outcomes.items() if key not in self._fixed and engine.reads_capacity(outcome)
        )
        coupling = self._find_coupling()
        if not (waiting or coupling.counted or any(self._added.values())):
            return CapacityDecisions(limited=engine.list_limited())
        members, coupled = self._decide_contested(waiting, coupling)
        turns = self._list_own_turns(members)
        if not members:
            self._count_all(coupling)
            return CapacityDecisions(limited=engine.list_limited(), turns=turns, counted=True)
        pairs = [(key, self._outcomes[key], self._alone.get(key)) for key in members if key in self._outcomes]
        limited = {key for key, outcome, alone in pairs if key in waiting or alone is None or outcome.targets != alone.targets}
        stopped = engine.list_limited()
        changed = {
            key: outcome if key in stopped else self._explain(key, outcome, alone)
            for key, outcome, alone in pairs
            if outcome != alone
        }
        dependents = self._decide_dependents(frozenset(changed), coupled)
        if changed:
            engine.follow_shares()
        return CapacityDecisions({**dependents, **changed}, stopped | limited, turns, counted=True)

    def _list_own_turns(self, members: Collection[Key]) -> dict[Key, tuple[object, ...]]:
        """Return the turns without those of workloads that only count for others, and stay as they were before the run."""
        return {key: turn for key, (_, turn) in self._positions.items() if key in self._added or key in members}

    def _count_all(self, coupling: Coupling) -> None:
        """Count the outcomes that stand, in their turns."""
        for key in sorted(coupling.counted, key=lambda key: self._positions[key][1] if key in self._positions else ()):
            self._reader.engine.count(key, self._outcomes[key])

    def _decide_contested(self, waiting: frozenset[Key], coupling: Coupling) -> tuple[frozenset[Key], frozenset[Key]]:
        """Decide those that follow capacity on clusters that lack it, those that wait for it, and those whose outcomes may not go together.
        Return which they are, and which of them are the last."""
        members: frozenset[Key] = frozenset()
        coupled = coupling.members
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
            coupling = self._find_coupling()
            coupled |= coupling.members
            self._list_positions((*self._added, *coupling.counted, *coupling.members))
        return members, coupled

    def _list_positions(self, keys: Iterable[Key]) -> None:
        """Find the turns of workloads."""
        new = [key for key in dict.fromkeys(keys) if key not in self._positions and key in self._templates]
        self._positions |= list_turns(self._reader, new, self._templates)

    def _find_coupling(self) -> Coupling:
        """Return which outcomes count for others, and which may not go together. Postponed workloads of which this cannot be told are
        decided alone first, and so are those that may take what others need which are not decided in turns."""
        engine, postponed = self._reader.engine, self._postponed - self._outcomes.keys()
        coupling = engine.find_coupling(self._outcomes, postponed)
        if not postponed or self._shares:
            return coupling
        self._list_positions(self._added)
        others = (key for key in self._added if self._positions[key][0] and key not in coupling.members and key not in self._fixed)
        clusters = {name for key in others for name in self._added[key]}
        needed = coupling.unclear
        if clusters and isinstance(engine, TurnPostponing):
            needed |= {key for key in postponed if engine.may_reach(self._templates[key], clusters)}
        for key in sorted(needed, key=workload_sort_key):
            outcome = self.completed[key] = self._decide(key)
            if outcome is not None:
                self._alone[key] = self._outcomes[key] = outcome
                self._measure(key, outcome)
        self._raise_faults()
        self._postponed -= needed
        if not needed:
            return coupling
        self._added = dict(sorted(self._added.items(), key=lambda entry: workload_sort_key(entry[0])))
        return engine.find_coupling(self._outcomes, self._postponed)

    def _decide_alone(self, key: Key) -> Outcome | None:
        """Decide a workload that has had a turn as if it had none."""
        engine = self._reader.engine
        with engine.outside_turns() if isinstance(engine, TurnPostponing) else nullcontext():
            return self._decide(key)

    def _decide(self, key: Key) -> Outcome | None:
        """Decide a workload. What fails because of a bug is raised with that of all others."""
        try:
            return decide_workload(self._templates[key], self._engines, self._snapshot)
        except Exception as error:
            if not is_bug(error):
                raise
            self._faults[key] = error
            return None

    def _raise_faults(self) -> None:
        if self._faults:
            raise DocumentFault(self._faults)

    def _explain(self, key: Key, outcome: Outcome, alone: Outcome | None) -> Outcome:
        """Return the outcome of a workload that others limit; if it lacks capacity, its finding says who has it."""
        if not any(one.code == UNSCHEDULABLE for one in outcome.findings):
            return outcome
        alone = alone or self._decide_alone(key)
        clusters = alone.clusters - outcome.clusters if alone is not None else frozenset[str]()
        if alone is None or not clusters:
            return outcome
        share, wanted = self._shares[key], self._reader.measure_added(alone, self._templates[key])
        taken = collect_by_cluster({one.candidate: one.pods} for one in share.shared.taken[: share.position])
        lacking = {name for name in clusters & wanted.keys() if find_lack(self._free[name], (*taken.get(name, ()), *wanted[name]))}
        if not lacking:
            return outcome
        why = describe_takers(key, share, clusters, self._snapshot.tenancy)
        findings = (one._replace(message=f"{one.message}; {why}") if one.code == UNSCHEDULABLE else one for one in outcome.findings)
        return outcome._replace(findings=tuple(findings))

    def _measure(self, key: Key, outcome: Outcome) -> None:
        """Set the pods that a workload starts."""
        self._added.pop(key, None)
        is_new = not outcome.previous_targets or outcome.replicas_by_cluster != outcome.previous_replicas
        if is_new and key in self._templates:
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
        withheld = sum_by_cluster(pods for key, pods in self._earlier.withheld.items() if key not in outcomes)
        for name, more in (*copies.items(), *withheld.items()):
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
                outcome = self._decide(key)
                if outcome is not None:
                    self._outcomes[key] = outcome
                    self._measure(key, outcome)
            shared.take(key, self._added.get(key, {}))
            if (key in members or key in counted) and key in self._outcomes:
                engine.count(key, self._outcomes[key])
        self._raise_faults()

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
