"""Share capacity in an incremental plan: what was decided again starts pods beside what all others use since the last plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.capacity.capacity_totals import list_requested, measure_former, negate
from gitsched.decide.capacity.requested_capacity import (
    CapacityReader,
    PodsByCluster,
    collect_by_cluster,
    find_lack,
    find_reader,
    list_free,
    sum_by_cluster,
)
from gitsched.decide.capacity.shared_decisions import list_turns, share_capacity
from gitsched.model.capacity_use import add_requests
from gitsched.model.document import Document, Key

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.schedule.estimator import Capacity


def share_changes(changes: IncrementalChanges) -> IncrementalChanges | None:
    """Return the changes where workloads share capacity, as a complete plan decides; None if only that can tell."""
    use, reader = changes.totals.capacity, find_reader(changes.continued.engines, changes.totals.source.with_variants.__contains__)
    if reader is None:
        return None if use.requested else changes
    if not (changes.own | changes.totals.engines.own).isdisjoint((*changes.outcomes, *changes.removed)):
        return None  # the state does not have the objects that are delivered in place of a workload
    started = _measure_started(changes, reader)
    turns = list_turns(reader, started, changes.documents, changes.snapshot)
    following = {name for key, (follows, _) in turns.items() if follows for name in started[key]}
    free = _list_free(changes, reader)
    if free is None or any(copy.cluster in following for copy in changes.totals.retained):
        return None
    contested = collect_by_cluster(started.values())
    waits = any(map(reader.engine.reads_capacity, changes.outcomes.values()))
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
    templates = _Templates(changes.documents, snapshot.templates)
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


class _Templates(Mapping[Key, Document]):
    """The templates of a plan, those that were decided again first."""

    def __init__(self, decided: Mapping[Key, Document], all_templates: Mapping[Key, Document]) -> None:
        self._decided, self._all = decided, all_templates

    def __getitem__(self, key: Key) -> Document:
        return self._decided[key] if key in self._decided else self._all[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)
