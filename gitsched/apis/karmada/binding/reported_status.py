"""status.aggregatedStatus and the condition FullyApplied of a binding, from the reports of clusters in a committed binding.

Upstream: pkg/util/helper/workstatus.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from gitsched.model.document import Body, get_field, list_objects
from gitsched.model.time import format_time, parse_time

_FULLY_APPLIED = "FullyApplied"
_APPLIED = ("FullyAppliedSuccess", "All works have been successfully applied")
_NOT_APPLIED = ("FullyAppliedFailed", "Failed to apply all works, see status.aggregatedStatus for details")
_MEMBERS = ("applied", "appliedMessage", "clusterName", "health", "status")


def add_reported_status(binding: Body, previous: Body | None, reports: Mapping[str, Body], time: datetime) -> None:
    """Add what clusters report about a workload to the status of its binding; nothing without a report.

    `reports` are entries of aggregatedStatus by cluster. Only clusters that have a copy are written: those of the binding, of its
    dependents, and those that the workload is being evicted from. FullyApplied is written once a report says whether the manifest was
    applied; `previous` is the previous binding, whose transition time is kept while the condition does not change.
    """
    clusters = _list_clusters(binding["spec"]) if reports else set()
    entries = [_select_members(reports[name]) for name in sorted(clusters) if name in reports]
    if not entries:
        return
    status = binding["status"] = {**binding.get("status", {}), "aggregatedStatus": entries}
    if any("applied" in entry or "appliedMessage" in entry for entry in entries):
        applied = len(entries) == len(clusters) and all(entry.get("applied") is True for entry in entries)
        condition = _make_condition(applied, list_objects(get_field(previous or {}, "status", "conditions")), time)
        status["conditions"] = [*status.get("conditions", ()), condition]


def _list_clusters(spec: Body) -> set[str]:
    """Return the clusters that have a copy, or should have one."""
    dependents = (entry.get("clusters") for entry in list_objects(spec.get("requiredBy")))
    targets = (list_objects(value) for value in (spec.get("clusters"), *dependents))
    names = {str(target.get("name")) for entries in targets for target in entries}
    return names | {str(task.get("fromCluster")) for task in list_objects(spec.get("gracefulEvictionTasks"))}


def _select_members(entry: Body) -> dict[str, Any]:
    return {name: entry[name] for name in _MEMBERS if name in entry}


def _make_condition(applied: bool, previous: Iterable[Body], time: datetime) -> Body:
    status = "True" if applied else "False"
    last = next((condition for condition in previous if condition.get("type") == _FULLY_APPLIED), {})
    transition = parse_time(last.get("lastTransitionTime")) if last.get("status") == status else None
    reason, message = _APPLIED if applied else _NOT_APPLIED
    return {
        "type": _FULLY_APPLIED,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": format_time(transition or time),
    }
