"""Make the document that requests rescheduling of workloads, and simulate its effect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple

from gitsched.apis.capabilities import Rescheduling
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import Outcome
from gitsched.model.time import add_duration
from gitsched.simulate.baseline import Baseline, ClusterEvent, SimulationResult, decide_changed_catalog
from gitsched.simulate.scenario import edit_catalog

_AFTER_PLAN = timedelta(seconds=1)
"""The time between carrying out the plan and the request."""

Replicas = Mapping[str, int | None]
"""Replicas by cluster; None for an object without replicas."""


class RescheduledWorkload(NamedTuple):
    """A workload with its clusters before and after the request.

    `role` is selected, companion (an object that belongs to a selected workload and is scheduled on its own) or dependency (an object
    that follows the workloads that depend on it).
    """

    key: Key
    role: str
    before: Replicas
    after: Replicas

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


def find_displaced(baseline: Baseline, keys: Collection[Key]) -> list[Key]:
    """Return those of these workloads that would run on other clusters if they were scheduled now."""
    displaced: list[Key] = []
    outcomes = baseline.decisions.outcomes
    for name, engine in list_rescheduling_engines(baseline).items():
        own = [key for key in keys if outcomes[key].api == name and outcomes[key].policy]
        if own:
            document = engine.make_rescheduling_document(baseline.decisions.templates[key] for key in own)
            after = _simulate(baseline, document, own).outcomes
            displaced += [
                key for key in own if key in after and after[key].replicas_by_cluster.keys() != _list_clusters(outcomes[key])
            ]
    return displaced


def make_reschedule_request(
    baseline: Baseline,
    keys: Iterable[Key],
    ttl: timedelta | None,
    with_companions: bool = True,
    among: Mapping[Key, Document] | None = None,
) -> RescheduleRequest:
    """Return the request for these workloads, all of which one engine with rescheduling decides.

    Companions, of some templates or of all, are included if the request moves them.
    """
    selected = list(dict.fromkeys(keys))
    templates, outcomes = baseline.decisions.templates, baseline.decisions.outcomes
    engine = list_rescheduling_engines(baseline)[outcomes[selected[0]].api]
    companions: list[Key] = []
    shared: tuple[Key, ...] = ()
    if with_companions:
        found = engine.list_companions([templates[key] for key in selected], among)
        shared = tuple(template.key for template in found.shared)
        candidates = [template.key for template in found.own if template.key in outcomes]
        if candidates:
            tried = [*selected, *candidates]
            after = _simulate(baseline, engine.make_rescheduling_document(templates[key] for key in tried), tried).outcomes
            companions = [key for key in candidates if key in after and _is_moved(outcomes[key], after[key])]
    chosen = [*selected, *companions]
    document = engine.make_reschedule_request([templates[key] for key in chosen], ttl)
    result = _simulate(baseline, document, None)
    roles = dict.fromkeys(selected, "selected") | dict.fromkeys(companions, "companion")
    others = [
        key
        for key, outcome in result.outcomes.items()
        if key not in roles and key in outcomes and _is_moved(outcomes[key], outcome)
    ]
    if others:  # timers of other workloads may end during the simulation
        unrequested = decide_changed_catalog(_after_plan(baseline), baseline.decisions.catalog, set(others)).outcomes
        others = [key for key in others if key in unrequested and _is_moved(unrequested[key], result.outcomes[key])]
    roles |= dict.fromkeys(others, "dependency")
    rows = [
        RescheduledWorkload(key, role, outcomes[key].replicas_by_cluster, result.outcomes[key].replicas_by_cluster)
        for key, role in roles.items()
        if key in result.outcomes
    ]
    return RescheduleRequest(
        document,
        tuple(row for row in rows if row.role == "selected" or row.moves),
        shared,
        tuple(
            finding.message
            for result_engine in result.engines
            for finding in result_engine.findings
            if finding.resource == document.key.resource
        ),
    )


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
    return baseline._replace(time=add_duration(baseline.time, _AFTER_PLAN))


def _is_moved(before: Outcome, after: Outcome) -> bool:
    return before.replicas_by_cluster != after.replicas_by_cluster


def _list_clusters(outcome: Outcome) -> Collection[str]:
    return outcome.replicas_by_cluster.keys()
