"""Decide the workloads of a complete plan once more, with the records that it wrote, so that the next plan need not."""

from __future__ import annotations

from gitsched.decide.decisions import DecisionSet, decide_workload, is_unchanged, list_dependency_trackers
from gitsched.model.document import Key
from gitsched.render.output_files import make_record, strip_record


def find_unstable(decisions: DecisionSet) -> frozenset[Key] | None:
    """Return the workloads that the next plan of the same source may decide in another way; None if its engines must be new ones.

    A decision that changed a record is made again with this record. It is stable if the outcome is the same. Afterwards the engines
    have the records of this plan as the previous ones.
    """
    if decisions.input is None or not decisions.unstable or _depend_on_others(decisions):
        return decisions.unstable
    written = {key: body for outcome in decisions.outcomes.values() for key, body in outcome.records}
    written.update(decisions.engine_records)
    previous = {key: strip_record(make_record(body)) for key, body in written.items()}
    snapshot = decisions.input._replace(previous=previous).make_snapshot()
    if not all(engine.update(snapshot) for engine in decisions.engines):
        return None
    stable = set()
    for key in decisions.unstable:
        outcome = decisions.outcomes[key]
        again = decide_workload(decisions.templates[key], decisions.engines, snapshot)
        if again is None or not is_unchanged(again, previous):
            continue
        if again._replace(previous_targets=outcome.previous_targets) == outcome:
            stable.add(key)
    return decisions.unstable - stable


def _depend_on_others(decisions: DecisionSet) -> bool:
    """Return whether a decision depends on another workload, whose decision may change with it."""
    trackers = list_dependency_trackers(decisions.engines)
    return any(engine.decision_inputs(template) for engine in trackers for template in decisions.templates.values())
