"""Workloads that the previous output placed and that no API places now."""

from __future__ import annotations

from typing import NamedTuple

from gitsched.apis.policy_api import RemovedWorkload
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.plan_state import PreviousOutput
from gitsched.decide.registry import apis_by_group
from gitsched.model.changes import Move
from gitsched.model.document import Body, Key, parse_api_group

REMOVED_REASON = "removed from the source"
UNSELECTED_REASON = "no longer selected by a policy"
INDEPENDENT_REASON = "no workload depends on it"


class RemovedPlacement(NamedTuple):
    """A removed workload, the policy API that placed it, and its previous record."""

    workload: RemovedWorkload
    api: str
    record: tuple[Key, Body]


def list_removed_placements(decisions: DecisionSet, previous: PreviousOutput) -> dict[Key, RemovedPlacement]:
    """Return the removed workloads by key."""
    recorded = [key for outcome in decisions.outcomes.values() for key, _ in outcome.records]
    removed: dict[Key, RemovedPlacement] = {}
    for body in previous.list_other_records(recorded):
        found = _read_removed_placement(body)
        if found is not None:
            removed[found.workload.key] = found
    return removed


def _read_removed_placement(record: Body) -> RemovedPlacement | None:
    """Return the workload that a record belongs to; None for a record without a placement."""
    group = parse_api_group(str(record.get("apiVersion") or record.get("api") or ""))
    api, metadata = apis_by_group.get(group), record.get("metadata")
    workload = api.read_removed_workload(record) if api is not None and api.read_removed_workload is not None else None
    if api is None or workload is None or not isinstance(metadata, dict):
        return None
    key = Key(group, str(record.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name")))
    return RemovedPlacement(workload, api.name, (key, record))


def make_removal_move(removed: RemovedPlacement, decisions: DecisionSet) -> Move:
    """Return the move of a removed workload."""
    workload, reason = removed.workload, REMOVED_REASON
    if workload.key in decisions.templates:
        reason = INDEPENDENT_REASON if workload.dependent else UNSELECTED_REASON
    return Move(workload.key, workload.replicas, {}, reason)
