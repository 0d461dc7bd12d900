"""Share capacity in an incremental plan: what was decided again starts pods beside what all others use since the last plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.capacity.capacity_totals import find_continued_reader, list_requested, measure_former, negate
from gitsched.decide.capacity.requested_capacity import (
    CapacityReader,
    PodsByCluster,
    list_free,
    measure_retained,
    sum_by_cluster,
)
from gitsched.decide.capacity.shared_decisions import share_capacity
from gitsched.decide.named_templates import NamedTemplates
from gitsched.decide.workload_decision import DecidedAlone
from gitsched.model.capacity_use import add_requests

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.model.capacity_use import Requests
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome
    from gitsched.schedule.estimator import Capacity


def share_changes(changes: IncrementalChanges) -> IncrementalChanges | None:
    """Return the changes where workloads share capacity, groups of clusters or quotas, as a complete plan decides; None if only that can
    tell, or NeedsCompletePlan where a Tenant may not allow something."""
    use, reader = changes.totals.capacity, find_continued_reader(changes)
    if reader is None:
        return None if use.requested or use.limited else changes
    if not (changes.own | changes.totals.engines.own).isdisjoint((*changes.outcomes, *changes.removed)):
        return None  # the state does not have the objects that are delivered in place of a workload
    known = list_requested(changes, reader)
    if known is None:
        return None
    engines, snapshot = changes.continued.engines, changes.snapshot
    templates = NamedTemplates(snapshot.templates, changes.documents)
    made = share_capacity(
        DecidedAlone(changes.outcomes, templates, engines, snapshot),
        find_free=lambda: _list_free(changes, reader, known),
        removed=changes.removed,
    )
    outcomes = {key: outcome for key, outcome in made.outcomes.items() if outcome is not None}
    if len(outcomes) < len(made.outcomes) or not outcomes.keys() <= changes.outcomes.keys():
        return None  # others follow them
    if any(one.bundles or (one.held is not None and one.held.lost) for one in outcomes.values()):
        return None
    if outcomes and snapshot.tenancy is not None:
        from gitsched.decide.incremental.changed_tenants import measure_changes  # few sources have tenants

        measure_changes(changes)  # a complete plan first checks whether Tenants allow what is decided alone
    return changes._replace(
        continued=changes.continued.read_again(),
        outcomes={**changes.outcomes, **outcomes},
        unstable=changes.unstable | made.outcomes.keys() | made.limited,
        limited=made.limited,
        turns=made.turns,
    )


def _list_free(changes: IncrementalChanges, reader: CapacityReader, known: Mapping[str, Requests]) -> dict[str, Capacity]:
    """Return what is free on clusters before the plan places anything, given what is `known` to be requested. What is decided
    again counts as its template requests now."""
    left = sum_by_cluster(measure_former(changes, reader, (*changes.removed, *changes.outcomes)))
    staying = sum_by_cluster(_measure_staying(changes, reader))
    copies = measure_retained(reader, changes.totals.retained, lambda key: _find_retained(changes, key))
    requested = {
        name: add_requests((amounts, staying.get(name, {}), copies.get(name, {}), negate(left.get(name, {}))))
        for name, amounts in known.items()
    }
    return list_free(reader, changes.totals.capacity._replace(requested=requested))


def _find_retained(changes: IncrementalChanges, key: Key) -> tuple[Outcome, Document] | None:
    """Return the outcome and the template of a workload that has a copy for an overlap; None if it is not placed any more."""
    outcome, template = changes.find_outcome(key), changes.documents.get(key) or changes.snapshot.templates.get(key)
    if outcome is None or template is None:
        return None
    return (outcome if key in changes.outcomes else outcome._replace(previous_targets=outcome.targets)), template


def _measure_staying(changes: IncrementalChanges, reader: CapacityReader) -> Iterator[PodsByCluster]:
    """Yield what workloads that are decided again have in the previous output."""
    for key, outcome in changes.outcomes.items():
        if key in changes.documents and outcome.previous_targets:
            yield reader.measure(outcome, changes.documents[key], outcome.previous_replicas)
