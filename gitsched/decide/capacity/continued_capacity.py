"""Share capacity in an incremental plan: what was decided again starts pods beside what all others use since the last plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.capacity.capacity_totals import find_continued_reader, list_requested, measure_former, negate
from gitsched.decide.capacity.requested_capacity import (
    CapacityReader,
    PodsByCluster,
    collect_by_cluster,
    find_lack,
    list_free,
    sum_by_cluster,
)
from gitsched.decide.capacity.shared_decisions import list_turns, share_capacity
from gitsched.decide.named_templates import NamedTemplates
from gitsched.model.capacity_use import add_requests
from gitsched.model.document import Key

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.schedule.estimator import Capacity


def share_changes(changes: IncrementalChanges) -> IncrementalChanges | None:
    """Return the changes where workloads share capacity, as a complete plan decides; None if only that can tell."""
    use, reader = changes.totals.capacity, find_continued_reader(changes)
    if reader is None:
        return None if use.requested else changes
    if not (changes.own | changes.totals.engines.own).isdisjoint((*changes.outcomes, *changes.removed)):
        return None  # the state does not have the objects that are delivered in place of a workload
    started = _measure_started(changes, reader)
    turns = list_turns(reader, started, changes.documents, changes.snapshot)
    following = {name for key, (follows, _) in turns.items() if follows for name in started[key]}
    if any(copy.cluster in following for copy in changes.totals.retained):
        return None
    waits = any(map(reader.engine.reads_capacity, changes.outcomes.values()))
    if not (waits or following):
        return changes if list_requested(changes, reader) is not None else None
    free = _list_free(changes, reader)
    if free is None:
        return None
    contested = collect_by_cluster(started.values())
    if not waits and not any(find_lack(free[name], contested[name]) for name in following):
        return changes
    places = [turn[:2] for _, turn in turns.values()]
    if len(set(places)) < len(places) or changes.totals.retained or changes.snapshot.tenancy is not None:
        return None  # the state has neither the order of files nor the templates of what stays
    return _decide_contested(changes, free)


def _measure_started(changes: IncrementalChanges, reader: CapacityReader) -> dict[Key, PodsByCluster]:
    """Return the pods that workloads start."""
    known = ((key, outcome, changes.documents.get(key)) for key, outcome in changes.outcomes.items())
    pods = ((key, reader.measure_added(outcome, template)) for key, outcome, template in known if template is not None)
    return {key: groups for key, groups in pods if groups}


def _list_free(changes: IncrementalChanges, reader: CapacityReader) -> dict[str, Capacity] | None:
    """Return what is free on clusters before the plan places anything; None if the state does not say it. What is decided again counts as
    its template requests now."""
    known = list_requested(changes, reader)
    if known is None:
        return None
    left = sum_by_cluster(measure_former(changes, reader, (*changes.removed, *changes.outcomes)))
    staying = sum_by_cluster(_measure_staying(changes, reader))
    requested = {
        name: add_requests((amounts, staying.get(name, {}), negate(left.get(name, {})))) for name, amounts in known.items()
    }
    return list_free(reader, changes.totals.capacity._replace(requested=requested))


def _measure_staying(changes: IncrementalChanges, reader: CapacityReader) -> Iterator[PodsByCluster]:
    """Yield what workloads that are decided again have in the previous output."""
    for key, outcome in changes.outcomes.items():
        if key in changes.documents and outcome.previous_targets:
            yield reader.measure(outcome, changes.documents[key], outcome.previous_replicas)


def _decide_contested(changes: IncrementalChanges, free: Mapping[str, Capacity]) -> IncrementalChanges | None:
    """Decide again what others limit."""
    engines, snapshot = changes.continued.engines, changes.snapshot
    before = [(engine.findings, tuple(engine.records())) for engine in engines]
    templates = NamedTemplates(snapshot.templates, changes.documents)
    made = share_capacity(changes.outcomes, templates, engines, snapshot, frozenset(), free=free)
    if before != [(engine.findings, tuple(engine.records())) for engine in engines]:
        return None
    outcomes = {key: outcome for key, outcome in made.outcomes.items() if outcome is not None}
    if len(outcomes) < len(made.outcomes) or not outcomes.keys() <= changes.outcomes.keys():
        return None  # others follow them
    if any(one.bundles or (one.held is not None and one.held.lost) for one in outcomes.values()):
        return None
    return changes._replace(
        outcomes={**changes.outcomes, **outcomes},
        unstable=changes.unstable | made.outcomes.keys() | made.limited,
        limited=made.limited,
    )
