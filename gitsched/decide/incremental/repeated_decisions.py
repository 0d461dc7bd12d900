"""Decide workloads once more, with the records that a plan wrote, so that the next plan need not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import CapacitySharing, Repeating
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.engines import list_dependency_trackers, list_engine_records
from gitsched.decide.incremental.changed_records import ChangedRecords
from gitsched.decide.workload_decision import decide_workload, is_unchanged
from gitsched.model.document import Key
from gitsched.render.output_files import read_back

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.incremental_plan import IncrementalPlan
    from gitsched.model.document import Document
    from gitsched.model.scheduling import Outcome


def find_unstable(decisions: DecisionSet) -> frozenset[Key] | None:
    """Return the workloads that the next plan of the same source may decide in another way; None if its engines must be new ones.

    A decision that changed a record is made again with this record, and so is what depends on it. It is stable if the outcome is the
    same. Afterwards the engines have the records of this plan as the previous ones.
    """
    if decisions.input is None or not decisions.unstable:
        return decisions.unstable
    written = {key: body for outcome in decisions.outcomes.values() for key, body in outcome.records}
    written.update(decisions.engine_records)
    previous = {key: read_back(body) for key, body in written.items()}
    snapshot = decisions.input._replace(previous=previous).make_snapshot()
    return _decide_again(decisions.engines, snapshot, decisions.unstable, decisions.templates, decisions.outcomes)


def find_limited(decisions: DecisionSet, unstable: frozenset[Key]) -> frozenset[Key]:
    """Return those of the workloads that others limit which each run has to decide again: not those that stay where they are now.
    `unstable` is what `find_unstable` has returned."""
    limited = decisions.shared.limited if decisions.shared is not None else frozenset[Key]()
    engines = [engine for engine in decisions.engines if isinstance(engine, CapacitySharing)] if limited - unstable else []
    kept = limited & unstable.union(*(engine.list_limited() for engine in engines))
    outcomes = ((key, decisions.outcomes.get(key)) for key in limited - kept)
    waiting = (
        key for key, outcome in outcomes if outcome is not None and any(engine.reads_capacity(outcome) for engine in engines)
    )
    return kept.union(waiting)


def find_unstable_changes(incremental: IncrementalPlan) -> frozenset[Key] | None:
    """As `find_unstable`, for an incremental plan. All are unstable if something depends on them that it has not decided."""
    decided, snapshot = incremental.decided, incremental.decided.snapshot
    if not decided.unstable or not decided.unstable <= decided.outcomes.keys():
        return decided.unstable
    written = {key: read_back(body) for found in decided.outcomes.values() for key, body in found.records}
    written.update((key, read_back(body)) for key, body in decided.continued.records)
    before = (key for row in decided.removed.values() for key in row.record_keys)
    previous = ChangedRecords(snapshot.previous, {**dict.fromkeys(before), **written})
    snapshot = snapshot._replace(previous=previous)
    return _decide_again(decided.continued.engines, snapshot, decided.unstable, decided.documents, decided.outcomes)


def _decide_again(
    engines: tuple[PolicyEngine, ...],
    snapshot: Snapshot,
    known: frozenset[Key],
    documents: Mapping[Key, Document],
    outcomes: Mapping[Key, Outcome],
) -> frozenset[Key] | None:
    """Return those of the `known` workloads, and of the others whose decisions depend on them, whose outcome is another one in a snapshot;
    all that are known if this cannot be said. `documents` were decided, with these outcomes."""
    trackers = list_dependency_trackers(engines)
    findings = [engine.findings for engine in engines]
    records = list_engine_records(engines)
    if not all(engine.update(snapshot) for engine in engines):
        return None
    if [engine.findings for engine in engines] != findings or list_engine_records(engines) != records:
        return None
    if any(engine.time is not None for engine in engines):
        return known
    revisions = [tracker.revision for tracker in trackers]
    affected = known.union(*(tracker.affected_by(known) for tracker in trackers))
    if revisions != [tracker.revision for tracker in trackers]:
        return known  # others depend on each other than when they were decided
    if not affected <= documents.keys():
        return known
    # Where several APIs could select a workload, another one may claim it.
    repeating = engines[0] if len(engines) == 1 and isinstance(engines[0], Repeating) else None
    return frozenset(
        key for key in sorted(affected) if not _is_stable(documents[key], engines, repeating, snapshot, outcomes.get(key))
    )


def _is_stable(
    document: Document, engines: tuple[PolicyEngine, ...], repeating: Repeating | None, snapshot: Snapshot, outcome: Outcome | None
) -> bool:
    if outcome is None:
        return decide_workload(document, engines, snapshot) is None
    if repeating is not None and is_unchanged(outcome, snapshot.previous) and repeating.repeats(document, outcome):
        return True
    again = decide_workload(document, engines, snapshot)
    if again is None or not is_unchanged(again, snapshot.previous):
        return False
    # An engine of an earlier run keeps the time at which it decided what did not change.
    return again._replace(previous_targets=outcome.previous_targets, time=outcome.time) == outcome
