"""Make the document that requests rescheduling of workloads, and simulate its effect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from gitsched.apis.capabilities import Rescheduling
from gitsched.kinds.persistent_data import is_claim
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import Outcome
from gitsched.model.time import add_duration
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.baseline import Baseline, ClusterEvent, SimulationResult, decide_changed_catalog
from gitsched.simulate.left_data import LeftData, find_left_data
from gitsched.simulate.scenario import edit_catalog

AFTER_PLAN = timedelta(seconds=1)
"""The time between carrying out the plan and the request."""

Replicas = Mapping[str, int | None]
"""Replicas by cluster; None for an object without replicas."""


class RescheduledWorkload(NamedTuple):
    """A workload with its clusters before and after the request.

    `role` is selected, companion (an object that belongs to a selected workload and is scheduled on its own) or dependency (an object
    that follows the workloads that depend on it). `left` is the data that it leaves behind; None without any.
    """

    key: Key
    role: str
    before: Replicas
    after: Replicas
    left: LeftData | None = None

    @property
    def moves(self) -> bool:
        return dict(self.before) != dict(self.after)


class RescheduleRequest(NamedTuple):
    """A document to commit, and its effect.

    `shared` are objects that also belong to other workloads and are not part of the request. `remarks` say why workloads stay on their
    clusters.
    """

    document: Document
    workloads: tuple[RescheduledWorkload, ...]
    shared: tuple[Key, ...]
    remarks: tuple[str, ...]


class WaitingWorkload(NamedTuple):
    """A workload that would run on other clusters if its evictions were over: the clusters that evict it, and until when. Then it
    `returns` by itself, or a request is needed."""

    key: Key
    clusters: tuple[str, ...]
    until: datetime
    returns: bool


class SelectedWorkloads(NamedTuple):
    """The workloads of a request, and those that are held for their data, so that only a request which names them may move them. The
    `waiting` ones can move when their evictions are over, and the `unplaced` ones fit in no cluster now either."""

    keys: list[Key]
    held: tuple[LeftData, ...] = ()
    waiting: tuple[WaitingWorkload, ...] = ()
    unplaced: tuple[Key, ...] = ()


def select_displaced(baseline: Baseline, keys: Collection[Key]) -> SelectedWorkloads:
    """Return those of these workloads that would run on other clusters, or with more of the replicas that they lack, if they were scheduled
    now."""
    outcomes, after = baseline.decisions.outcomes, _reschedule(baseline, keys)
    moving = [key for key in keys if key in after and _is_displaced(outcomes[key], after[key])]
    found = _leave_held(baseline, moving, after)
    staying = [key for key in keys if key not in set(moving)]
    unplaced = tuple(key for key in staying if not outcomes[key].targets and outcomes[key].replicas != 0)
    return found._replace(waiting=_list_waiting(baseline, staying), unplaced=unplaced)


def _is_displaced(now: Outcome, after: Outcome) -> bool:
    gains = (now.unassigned or 0) > (after.unassigned or 0)
    return gains or _list_clusters(after) != _list_clusters(now)


def _list_waiting(baseline: Baseline, keys: Iterable[Key]) -> tuple[WaitingWorkload, ...]:
    """Return those of these workloads that would run on other clusters when all their evictions are over."""
    outcomes, evictions = baseline.decisions.outcomes, find_evictions(baseline, keys)
    if not evictions:
        return ()
    later = baseline._replace(time=max(end for ends in evictions.values() for end in ends.values()))
    requested = _reschedule(later, evictions.keys())
    alone = decide_changed_catalog(_after_plan(later), baseline.decisions.catalog, set(evictions)).outcomes
    return tuple(
        WaitingWorkload(key, tuple(sorted(ends)), max(ends.values()), _list_clusters(alone[key]) == _list_clusters(requested[key]))
        for key, ends in evictions.items()
        if key in requested and key in alone and _list_clusters(requested[key]) != _list_clusters(outcomes[key])
    )


def find_evictions(baseline: Baseline, keys: Iterable[Key]) -> dict[Key, dict[str, datetime]]:
    """Return the clusters that still evict these workloads, which cannot go back there before, with the ends."""
    templates, outcomes, engines = baseline.decisions.templates, baseline.decisions.outcomes, list_rescheduling_engines(baseline)
    evictions: dict[Key, dict[str, datetime]] = {}
    for key in keys:
        outcome = outcomes.get(key)
        if outcome is None or outcome.wakeup is None or outcome.api not in engines or key not in templates:
            continue
        found = engines[outcome.api].list_evictions(templates[key], outcome)
        ends = {name: end for name, end in found.items() if end is not None}
        if ends:
            evictions[key] = ends
    return evictions


def select_unheld(baseline: Baseline, keys: Collection[Key]) -> SelectedWorkloads:
    """Return these workloads without those that would leave data behind and are held."""
    return _leave_held(baseline, keys, _reschedule(baseline, keys))


def _leave_held(baseline: Baseline, keys: Collection[Key], after: Mapping[Key, Outcome]) -> SelectedWorkloads:
    held = {key: left for key, left in find_left_data(baseline, after, keys).items() if left.is_held}
    return SelectedWorkloads([key for key in keys if key not in held], tuple(held.values()))


def _reschedule(baseline: Baseline, keys: Collection[Key]) -> dict[Key, Outcome]:
    """Return the outcomes of workloads of engines with rescheduling after a request for all of them."""
    found: dict[Key, Outcome] = {}
    outcomes = baseline.decisions.outcomes
    for name, engine in list_rescheduling_engines(baseline).items():
        own = [key for key in keys if outcomes[key].api == name and outcomes[key].policy]
        if own:
            document = engine.make_rescheduling_document(baseline.decisions.templates[key] for key in own)
            found |= _simulate(baseline, document, own).outcomes
    return found


def make_reschedule_request(
    baseline: Baseline,
    keys: Iterable[Key],
    ttl: timedelta | None,
    with_companions: bool = True,
    among: Mapping[Key, Document] | None = None,
    *,
    only_unavailable: bool = False,
) -> RescheduleRequest:
    """Return the request for these workloads, all of which one engine with rescheduling decides.

    Companions, of some templates or of all, are included if the request moves them. With `only_unavailable`, replicas that clusters report
    as available stay.
    """
    selected = list(dict.fromkeys(keys))
    templates, outcomes = baseline.decisions.templates, baseline.decisions.outcomes
    engine = list_rescheduling_engines(baseline)[outcomes[selected[0]].api]
    companions, shared = list[Key](), tuple[Key, ...]()
    if with_companions:
        found = engine.list_companions([templates[key] for key in selected], among)
        shared = tuple(template.key for template in found.shared)
        companions = _select_moving(baseline, engine, selected, [one.key for one in found.own if one.key in outcomes])
    chosen = [*selected, *companions]
    document = engine.make_reschedule_request([templates[key] for key in chosen], ttl, only_unavailable=only_unavailable)
    result = _simulate(baseline, document, None)
    roles = dict.fromkeys(selected, "selected") | dict.fromkeys(companions, "companion")
    others = _list_moved(outcomes, result.outcomes, outcomes.keys() - roles.keys())
    if others:  # timers of other workloads may end during the simulation
        unrequested = decide_changed_catalog(_after_plan(baseline), baseline.decisions.catalog, set(others)).outcomes
        others = _list_moved(unrequested, result.outcomes, set(others))
    roles |= dict.fromkeys(others, "dependency")
    left = find_left_data(baseline, result.outcomes, roles)
    rows = [
        RescheduledWorkload(key, role, outcomes[key].replicas_by_cluster, result.outcomes[key].replicas_by_cluster, left.get(key))
        for key, role in roles.items()
        if key in result.outcomes
    ]
    findings = (finding for result_engine in result.engines for finding in result_engine.findings)
    return RescheduleRequest(
        document,
        tuple(row for row in rows if row.role == "selected" or row.moves),
        shared,
        tuple(finding.message for finding in findings if finding.resource == document.key.resource),
    )


def _select_moving(baseline: Baseline, engine: Rescheduling, selected: Sequence[Key], companions: Sequence[Key]) -> list[Key]:
    """Return the companions that a request for them and the selected workloads moves, without those that are held for their data."""
    if not companions:
        return []
    tried = [*selected, *companions]
    document = engine.make_rescheduling_document(baseline.decisions.templates[key] for key in tried)
    after = _simulate(baseline, document, tried).outcomes
    outcomes = baseline.decisions.outcomes
    moving = [key for key in companions if key in after and is_moved(outcomes[key], after[key])]
    held = find_left_data(baseline, after, [key for key in moving if not is_claim(key)])
    return [key for key in moving if key not in held or not held[key].is_held]


def _list_moved(before: Mapping[Key, Outcome], after: Mapping[Key, Outcome], among: Collection[Key]) -> list[Key]:
    """Return the workloads among some whose clusters differ, in the order of the outcomes after."""
    return [key for key, outcome in after.items() if key in among and key in before and is_moved(before[key], outcome)]


def list_rescheduling_engines(baseline: Baseline) -> dict[str, Rescheduling]:
    """Return the engines that can reschedule workloads on request, by name."""
    return {engine.name: engine for engine in baseline.decisions.engines if isinstance(engine, Rescheduling)}


def _simulate(baseline: Baseline, document: Document, only: Collection[Key] | None) -> SimulationResult:
    """Decide with a request, `only` some workloads or all that it can affect."""
    changed = edit_catalog(baseline.decisions.catalog, {}, (document,))
    if only is not None:
        return decide_changed_catalog(_after_plan(baseline), changed, set(only))
    return decide_changed_catalog(_after_plan(baseline), changed, event=ClusterEvent(frozenset(), adds=True))


def _after_plan(baseline: Baseline) -> Baseline:
    return baseline._replace(time=add_duration(baseline.time, AFTER_PLAN))


def is_moved(before: Outcome, after: Outcome) -> bool:
    """Return whether a workload has other clusters or replicas."""
    return before.replicas_by_cluster != after.replicas_by_cluster


def _list_clusters(outcome: Outcome) -> Collection[str]:
    return outcome.replicas_by_cluster.keys()
