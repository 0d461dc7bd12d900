"""The status of a fleet as text in columns, and as `kind: FleetStatus` of docs/cli.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from gitsched.model.finding import format_count
from gitsched.model.fleet_status import ClusterStatus, FleetStatus, WorkloadStatus
from gitsched.model.scheduling import total_replicas
from gitsched.model.time import format_time
from gitsched.report.lines import (
    abbreviate_oid,
    escape_unprintable,
    format_cluster,
    format_columns,
    format_key,
    list_limited,
    serialize_replicas,
)
from gitsched.report.rollouts import describe_remedies, describe_rollouts, serialize_rollouts
from gitsched.report.serialization import API_VERSION, serialize_key

MAX_ROWS = 1_000
"""Rows of a table in text; JSON contains all."""
_MORE = "and {} more; use -o json for all"
_CLUSTERS = ("CLUSTER", "READY", "WORKLOADS", "APPLIED", "HEALTHY", "BEHIND", "SINCE", "MESSAGE")
_WORKLOADS = ("WORKLOAD", "CLUSTERS", "POLICY", "WAITS FOR A WAVE")


def write_fleet_status(status: FleetStatus, *, workloads: bool = False, unclaimed: bool = False) -> str:
    """Return the status as aligned columns: clusters and rollouts, or with these options workloads or objects without a policy."""
    if workloads:
        rows = [_make_workload_row(one) for one in status.workloads]
        lines = list_limited(_format_table(_WORKLOADS, rows), MAX_ROWS, _MORE) if rows else ["No policy places a workload."]
    elif unclaimed:
        rows = [(escape_unprintable(format_key(key)), escape_unprintable(status.nearest.get(key, ""))) for key in status.unclaimed]
        lines = list_limited(format_columns(rows), MAX_ROWS, _MORE) if rows else ["Every object is selected by a policy."]
    else:
        rows = [_make_cluster_row(one) for one in status.clusters]
        lines = list_limited(_format_table(_CLUSTERS, rows), MAX_ROWS, _MORE) if rows else ["There is no cluster."]
        lines += ["", *describe_rollouts(status.rollouts), *describe_remedies(status.rollouts)] if status.rollouts else []
        lines += ["", _count_workloads(status), *_count_waiting(status)]
        lines += filter(None, (_describe_branch(status), status.rewrite))
    return "\n".join(lines) + "\n"


def _count_workloads(status: FleetStatus) -> str:
    """Return the number of workloads that are placed and unplaced, and of the objects that no policy selects."""
    placed = [one for one in status.workloads if one.clusters]
    replicas = total_replicas(count for one in placed for count in one.clusters.values())
    parts = [f"{len(placed):,} placed ({format_count(replicas, 'replica')})"] if placed else []
    unplaced, unclaimed = len(status.workloads) - len(placed), len(status.unclaimed)
    parts += [f"{unplaced:,} unplaced"] if unplaced and status.time is not None else []
    text = f"{format_count(len(status.workloads), 'workload')}{': ' if parts else ''}{', '.join(parts)}"
    return f"{text}; {format_count(unclaimed, 'object')} not selected by any policy (--unclaimed)." if unclaimed else f"{text}."


def _count_waiting(status: FleetStatus) -> list[str]:
    """Return how many workloads wait to move, and until when."""
    if status.next_moves is None:
        return []
    count = format_count(status.moves_waiting, "workload waits", "workloads wait")
    return [f"{count} to move, because observations changed: the next from {format_time(status.next_moves)} on."]


def _describe_branch(status: FleetStatus) -> str:
    if status.time is None and status.unfetched:
        return f"There is no output branch {status.branch} here: {status.unfetched}."
    if status.time is None:
        return f"There is no output branch {status.branch} yet: run gitsched reconcile."
    text = f"{status.branch} is at {abbreviate_oid(status.head)} of {format_time(status.time)}"
    return f"{text}; the source has changes that are not reconciled." if status.pending else f"{text}."


def _make_cluster_row(one: ClusterStatus) -> tuple[str, ...]:
    report = one.report
    if report is None:
        return one.name, _format_ready(one), str(one.workloads), "-", "-", "-", "-", one.unready or "no report"
    healthy = {"Healthy": "True", "Degraded": "False"}.get(report.health, "Progressing")
    behind = "unknown" if one.behind is None else str(one.behind)
    messages = [one.unready, *(f"{each.key.title} is {each.health}: {each.message}".rstrip(": ") for each in report.unhealthy[:1])]
    if one.behind is None:
        messages.append("the commit is not one of the last of the output branch")
    applied, since = abbreviate_oid(report.commit), format_time(report.since)
    return (
        one.name,
        _format_ready(one),
        str(one.workloads),
        applied,
        healthy,
        behind,
        since,
        "; ".join(filter(None, messages)),
    )


def _format_ready(one: ClusterStatus) -> str:
    return "False" if one.unready else "True"


def _make_workload_row(one: WorkloadStatus) -> tuple[str, ...]:
    return format_key(one.key), _format_clusters(one.clusters) or "-", one.policy or "-", ", ".join(one.waiting)


def _format_clusters(clusters: Mapping[str, int | None]) -> str:
    return ", ".join(format_cluster(name, count) for name, count in clusters.items())


def _format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a header and rows as aligned lines, without the last columns that are empty in all rows."""
    used = max((index for row in rows for index, cell in enumerate(row, 1) if cell), default=len(header))
    return format_columns([row[:used] for row in (header, *rows)])


def serialize_fleet_status(status: FleetStatus) -> dict[str, Any]:
    """Return the status with all workloads and all objects without a policy."""
    return {
        "apiVersion": API_VERSION,
        "kind": "FleetStatus",
        "branch": status.branch,
        "commit": status.head,
        "time": _format_optional(status.time),
        "pending": status.pending,
        "rewrite": status.rewrite,
        "clusters": [serialize_cluster_status(one) for one in status.clusters],
        "rollouts": serialize_rollouts(status.rollouts),
        "movesWaiting": status.moves_waiting,
        "nextMoves": _format_optional(status.next_moves),
        "workloads": [serialize_workload_status(one) for one in status.workloads],
        "unclaimed": [
            {**serialize_key(key), **({"nearest": status.nearest[key]} if key in status.nearest else {})}
            for key in status.unclaimed
        ],
    }


def serialize_workload_status(one: WorkloadStatus) -> dict[str, Any]:
    """Return where a workload is as data."""
    return {
        **serialize_key(one.key),
        "policy": one.policy,
        "clusters": [{"name": name, **serialize_replicas(count)} for name, count in one.clusters.items()],
        "waiting": list(one.waiting),
    }


def serialize_cluster_status(one: ClusterStatus) -> dict[str, Any]:
    """Return the status of a cluster as data."""
    report = one.report
    return {
        "name": one.name,
        "ready": not one.unready,
        "reason": one.unready,
        "workloads": one.workloads,
        "appliedCommit": report.commit if report else None,
        "health": report.health if report else None,
        "since": _format_optional(report.since if report else None),
        "behind": one.behind,
        "unhealthy": [
            {**serialize_key(each.key), "health": each.health, "message": each.message}
            for each in (report.unhealthy if report else ())
        ],
    }


def _format_optional(time: datetime | None) -> str | None:
    return format_time(time) if time is not None else None
