"""Bring workloads back to earlier placements: name their clusters as preferred, request rescheduling, and simulate what follows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from gitsched.decide.decisions import describe_recorded
from gitsched.decide.engines import list_engine_records
from gitsched.model.document import Body, Document, Key, as_object
from gitsched.model.holds import describe_release
from gitsched.model.preferred_clusters import MAX_PREFERRED, PREFERRED_CLUSTERS, UNUSED
from gitsched.model.time import add_duration, format_time
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.baseline import Baseline, SimulationResult, decide_changed_catalog
from gitsched.simulate.left_data import LeftData, find_left_data
from gitsched.simulate.reschedule_request import (
    AFTER_PLAN,
    Replicas,
    RescheduledWorkload,
    find_evictions,
    is_moved,
    list_rescheduling_engines,
)
from gitsched.simulate.scenario import edit_catalog

_ATTEMPTS = 4
"""Simulations, each without what had no effect in the one before."""
WORKLOAD = "workload"
"""The kind of a goal that is about the clusters of a workload."""


class Goal(NamedTuple):
    """A workload that was elsewhere, or a document whose recorded decision had other targets.

    `target_kind` is WORKLOAD or the kind of the recorded targets. `wanted` are the targets then, `before` those now. `requests` is the
    name of the engine that has to be requested to reschedule it, "" if the annotation is enough. `gone` are wanted clusters that do not
    exist now. `preferred` are the names to annotate it with; `problem` says why its file cannot be edited, so that it has none.
    """

    key: Key
    document: Document
    target_kind: str
    wanted: Replicas
    before: Replicas
    requests: str = ""
    gone: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    problem: str = ""

    @property
    def annotation(self) -> str:
        return ",".join(self.preferred)


class RestoredPlacement(NamedTuple):
    """A goal with its targets after the request. `reason` says why these are not those of the earlier placement; "" if they are. `left` is
    the data that stays behind; None without any."""

    goal: Goal
    after: Replicas
    reason: str = ""
    left: LeftData | None = None


class Restoration(NamedTuple):
    """What brings workloads back: `requests` are documents to commit, `restored` what they and the annotations of the goals move.

    `kept` stay, with the reason. `held` are left out for their data. `others` move because they depend on these.
    """

    restored: tuple[RestoredPlacement, ...] = ()
    kept: tuple[RestoredPlacement, ...] = ()
    held: tuple[LeftData, ...] = ()
    others: tuple[RescheduledWorkload, ...] = ()
    requests: tuple[Document, ...] = ()


class _Simulated(NamedTuple):
    """The result of a simulation: targets by goal, why an annotation has no effect, by resource, and the clusters that still evict each
    workload, with the ends."""

    result: SimulationResult
    after: Mapping[Key, Replicas]
    reasons: Mapping[tuple[str, str, str], str]
    evictions: Mapping[Key, Mapping[str, datetime]]


def list_preferred_names(wanted: Replicas, gone: Collection[str]) -> tuple[str, ...]:
    """Return the targets of an earlier placement as an annotation names them: those with the most replicas first."""
    names = sorted((name for name in wanted if name not in gone), key=lambda name: -(wanted[name] or 0))
    return tuple(names[:MAX_PREFERRED])


def is_elsewhere(wanted: Replicas, present: Replicas) -> bool:
    """Return whether a workload has other targets than then, or as many replicas that are divided otherwise."""
    return _measure_distance(wanted, present) != (0, 0)


def _measure_distance(wanted: Replicas, present: Replicas) -> tuple[int, int]:
    """Return how many targets differ, and how many replicas are on other targets. A number of replicas that changed is no difference."""
    counts = {name: (wanted.get(name) or 0, present.get(name) or 0) for name in wanted.keys() | present.keys()}
    then, now = (sum(column) for column in zip(*counts.values(), strict=True)) if counts else (0, 0)
    moved = sum(abs(one - other) for one, other in counts.values()) if then == now else 0
    return len(wanted.keys() ^ present.keys()), moved


def plan_restoration(baseline: Baseline, goals: Iterable[Goal], ttl: timedelta | None, releases: Collection[Key]) -> Restoration:
    """Return what brings workloads back as far as their policies allow. Workloads that are held for their data are left out, except those
    in `releases`.

    An annotation names only targets that the workload reaches by it, and is left out where policies leave no choice.
    """
    wanted, kept, held = list(goals), list[RestoredPlacement](), dict[Key, LeftData]()
    later = baseline._replace(time=add_duration(baseline.time, AFTER_PLAN), continued=None)
    for _ in range(_ATTEMPTS):
        requests = _make_requests(baseline, wanted, ttl)
        simulated = _simulate(later, wanted, requests)
        left = find_left_data(baseline, simulated.result.outcomes, [goal.key for goal in wanted if goal.target_kind == WORKLOAD])
        held |= {key: data for key, data in left.items() if data.is_held and key not in releases}
        going, staying = _divide(wanted, simulated, held)
        kept += staying
        if going == wanted:
            break
        wanted = going
    else:
        requests = _make_requests(baseline, wanted, ttl)
        simulated = _simulate(later, wanted, requests)
        left = find_left_data(baseline, simulated.result.outcomes, [goal.key for goal in wanted if goal.target_kind == WORKLOAD])
    restored = (
        RestoredPlacement(goal, simulated.after[goal.key], _explain(goal, simulated), left.get(goal.key)) for goal in wanted
    )
    return Restoration(
        tuple(restored), tuple(kept), tuple(held.values()), tuple(_list_others(later, wanted, simulated.result)), requests
    )


def _make_requests(baseline: Baseline, goals: Sequence[Goal], ttl: timedelta | None) -> tuple[Document, ...]:
    engines, templates = list_rescheduling_engines(baseline), baseline.decisions.templates
    own = {name: [templates[goal.key] for goal in goals if goal.requests == name] for name in engines}
    return tuple(engines[name].make_reschedule_request(documents, ttl) for name, documents in own.items() if documents)


def _simulate(later: Baseline, goals: Sequence[Goal], requests: Sequence[Document]) -> _Simulated:
    annotated = {goal.key: annotate(goal.document, goal.annotation) for goal in goals if goal.preferred}
    result = decide_changed_catalog(later, edit_catalog(later.decisions.catalog, annotated, requests))
    recorded = describe_recorded(list_engine_records(result.engines), (result.outcomes[key] for key in result.own_workloads))
    targets = {(one.subject, one.target_kind): {target.name: target.amount for target in one.targets} for one in recorded}
    after = {
        goal.key: result.outcomes[goal.key].replicas_by_cluster
        if goal.target_kind == WORKLOAD and goal.key in result.outcomes
        else targets.get((goal.key, goal.target_kind), {})
        for goal in goals
    }
    findings = [finding for outcome in result.outcomes.values() for finding in outcome.findings]
    findings += [finding for engine in result.engines for finding in engine.findings]
    reasons = {
        finding.resource: finding.message.partition(": ")[2]
        for finding in findings
        if finding.code == UNUSED and finding.resource is not None
    }
    return _Simulated(result, after, reasons, find_evictions(later, (goal.key for goal in goals if goal.target_kind == WORKLOAD)))


def annotate(document: Document, value: str) -> Document:
    """Return a document with the annotation that names its preferred clusters."""
    return document._replace(body=add_annotation(document.body, value))


def add_annotation(body: Body, value: str) -> Body:
    """Return an object with the annotation that names its preferred clusters."""
    metadata = as_object(body.get("metadata"))
    return {**body, "metadata": {**metadata, "annotations": {**as_object(metadata.get("annotations")), PREFERRED_CLUSTERS: value}}}


def _divide(goals: Iterable[Goal], simulated: _Simulated, held: Collection[Key]) -> tuple[list[Goal], list[RestoredPlacement]]:
    """Return the goals that come nearer to their earlier placement, with names that have an effect, and the others with the reason."""
    going, staying = list[Goal](), list[RestoredPlacement]()
    for goal in goals:
        after = simulated.after[goal.key]
        if goal.key in held:
            continue
        if _measure_distance(goal.wanted, after) >= _measure_distance(goal.wanted, goal.before):
            staying.append(RestoredPlacement(goal, goal.before, _explain(goal, simulated)))
            continue
        preferred = tuple(name for name in goal.preferred if name in after)
        if preferred == goal.preferred and goal.key.resource in simulated.reasons:
            preferred = ()
        going.append(goal._replace(preferred=preferred))
    return going, staying


def _explain(goal: Goal, simulated: _Simulated) -> str:
    """Return why a workload does not get its earlier placement; "" if it does."""
    after = simulated.after[goal.key]
    if not is_elsewhere(goal.wanted, after):
        return ""
    outcome = simulated.result.outcomes.get(goal.key)
    evictions = simulated.evictions.get(goal.key, {})
    evicting = {name: evictions[name] for name in sorted(goal.wanted) if name in evictions and name not in after}
    parts = []
    if goal.gone:
        parts.append(f"{', '.join(goal.gone)} {'is' if len(goal.gone) == 1 else 'are'} not in the source any more")
    if outcome is not None and outcome.held is not None:
        parts.append(f"it is held for its data; {describe_release(goal.key, outcome.held)}")
    elif evicting:
        parts.append(f"it is evicted from {', '.join(evicting)} until {format_time(max(evicting.values()))}: try again then")
    elif goal.key.resource in simulated.reasons:
        parts.append(simulated.reasons[goal.key.resource])
    elif outcome is not None and outcome.state != "placed":
        parts.append(outcome.reason)
    if goal.problem:
        parts.append(f"it is not annotated, because {goal.problem}")
    if not parts and after.keys() == goal.wanted.keys():
        parts.append("its policy divides the replicas otherwise now")
    return "; ".join(parts) or "its policy chooses other clusters now"


def _list_others(later: Baseline, goals: Iterable[Goal], result: SimulationResult) -> Iterator[RescheduledWorkload]:
    """Yield the workloads that follow those of the goals."""
    own, before = {goal.key for goal in goals}, later.decisions.outcomes
    moved = [key for key, outcome in result.outcomes.items() if key not in own and key in before and is_moved(before[key], outcome)]
    if not moved:
        return
    # Timers of other workloads may end during the simulation.
    unrequested = decide_changed_catalog(later, later.decisions.catalog).outcomes
    for key in moved:
        if key in unrequested and is_moved(unrequested[key], result.outcomes[key]):
            replicas = before[key].replicas_by_cluster, result.outcomes[key].replicas_by_cluster
            yield RescheduledWorkload(key, "dependency", *replicas)
