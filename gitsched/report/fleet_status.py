"""The status of a fleet as text in columns, and as `kind: FleetStatus` of docs/development/json.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from gitsched.model.changes import RetainedCopy
from gitsched.model.document import Key
from gitsched.model.finding import count_shown, format_count, format_names
from gitsched.model.fleet_status import ClusterStatus, FleetStatus, UnclaimedObject, WorkloadStatus
from gitsched.model.fleet_topology import round_share
from gitsched.model.mistakes import KUSTOMIZE_UNBUILT
from gitsched.model.rollouts import RolloutStatus
from gitsched.model.scheduling import total_replicas
from gitsched.model.time import format_age, format_time
from gitsched.report.explained_rollouts import describe_rollouts_with_history
from gitsched.report.fleet_problems import ROLLOUTS_SHOWN, describe_problems
from gitsched.report.held import serialize_held
from gitsched.report.lines import (
    COLUMN_GAP,
    WRAPPED_WIDTH,
    abbreviate_oid,
    escape_unprintable,
    format_cluster,
    format_columns,
    format_key,
    list_limited,
    serialize_replicas,
    wrap,
    wrap_lines,
)
from gitsched.report.paint import Paint, Role, paint_column
from gitsched.report.recent_runs import serialize_recent_runs
from gitsched.report.retained_copies import AWAITED, UNTIL_ALLOWED, name_workload
from gitsched.report.rollouts import serialize_rollouts
from gitsched.report.serialization import API_VERSION, serialize_key, serialize_withheld

MAX_ROWS = 1_000
"""Rows of a table in text; JSON contains all."""
_MIN_MESSAGE = 40
"""Characters of a line of messages, however narrow the terminal is."""
_MORE = "and {} more; use -o json for all"
_REQUESTED = "REQUESTED"
"""The column of the resource of which the largest share is requested. It is left out where the table would be too wide."""
_CLUSTERS = ("CLUSTER", "READY", "WORKLOADS", _REQUESTED, "APPLIED", "HEALTHY", "BEHIND", "SINCE", "OBSERVED", "MESSAGE")
_WORKLOADS = ("WORKLOAD", "CLUSTERS", "ALSO IN", "POLICY", "WAITS FOR A WAVE", "STATE")
_READY_ROLES: Mapping[str, Role] = {"True": "added", "False": "error", "Gone": "error", "Unknown": "changed"}


def write_fleet_status(
    status: FleetStatus,
    width: int = WRAPPED_WIDTH,
    *,
    workloads: bool = False,
    unclaimed: bool = False,
    namespace: str = "",
    paint: Paint | None = None,
) -> str:
    """Return whether anything is wrong, what is, and the clusters and rollouts as aligned columns; with one of these options the workloads,
    or the objects without a policy, of a namespace or of all."""
    if workloads:
        chosen = (one for one in status.workloads if namespace in ("", one.key.namespace))
        copies = dict[Key, list[RetainedCopy]]()
        for copy in status.retained:
            copies.setdefault(copy.workload, []).append(copy)
        rows = [_make_workload_row(one, copies.get(one.key, ())) for one in chosen]
        lines = list_limited(_format_table(_WORKLOADS, rows), MAX_ROWS, _MORE) if rows else ["No policy places a workload."]
    elif unclaimed:
        objects = (one for one in status.unclaimed if namespace in ("", one.key.namespace))
        kept = {move.key for move in status.withheld.moves}
        rows = [_make_unclaimed_row(one, status.withheld.withheld_by if one.key in kept else "") for one in objects]
        found = [*format_columns(rows), *_list_unbuilt(status, namespace)]
        lines = list_limited(found, MAX_ROWS, _MORE) if found else ["Every object is selected by a policy."]
    else:
        first, later = _divide_rollouts(status)
        lines = [*describe_problems(status, width, paint), *_list_rollouts(status, first, width), ""]
        lines += _list_clusters(status, width, paint) if status.clusters else ["There is no cluster."]
        counts = [_count_workloads(status), *_count_waiting(status), *_count_copies(status), *_describe_observations(status)]
        counts += filter(None, (_describe_branch(status), status.rewrite))
        lines += _list_rollouts(status, later, width)
        lines += ["", *wrap_lines(counts, width)]
    return "\n".join(lines) + "\n"


def _divide_rollouts(status: FleetStatus) -> tuple[list[RolloutStatus], list[RolloutStatus]]:
    """Return the rollouts that come before the clusters, besides those that are listed with what is wrong, and those that come after."""
    wrong = status.wrong_rollouts[:ROLLOUTS_SHOWN]
    others = [one for one in status.rollouts if one not in wrong]
    first = [one for one in others if one.state != "complete"][: ROLLOUTS_SHOWN - len(wrong)]
    return first, [one for one in others if one not in first]


def _list_rollouts(status: FleetStatus, rollouts: Sequence[RolloutStatus], width: int) -> list[str]:
    """Return an empty line, and the lines of these rollouts; [] without any."""
    found = describe_rollouts_with_history(rollouts, status.rollout_histories, status.now)
    return ["", *wrap_lines(found, width)] if found else []


def _make_unclaimed_row(one: UnclaimedObject, withheld_by: str) -> tuple[str, ...]:
    texts = (f"still placed: {withheld_by} withholds that it becomes unplaced" if withheld_by else "", one.nearest)
    place = f"{one.location.path}:{one.location.line}" if one.location is not None else ""
    return tuple(map(escape_unprintable, (format_key(one.key), place, "; ".join(filter(None, texts)))))


def _list_unbuilt(status: FleetStatus, namespace: str) -> Iterator[str]:
    """Yield the findings about workloads of a namespace, or of all, that nothing builds."""
    for one in status.source.mistakes:
        if one.code == KUSTOMIZE_UNBUILT and namespace in ("", (one.resource or ("", "", ""))[1]):
            yield escape_unprintable(str(one))


def _list_clusters(status: FleetStatus, width: int, paint: Paint | None) -> list[str]:
    """Return the table of the clusters, those that need attention first, also for a rollout; without reports, it has no columns for them.
    Messages are wrapped below each other."""
    reported = any(one.report is not None for one in status.clusters)
    failures = _describe_failures(status)
    urgent = {one.name for one in status.clusters if one.needs_attention or one.is_drained}.union(one.name for one in status.gone)
    ordered = sorted(status.clusters, key=lambda one: not (one.name in urgent or one.name in failures))
    shown = ordered[: count_shown(len(ordered), MAX_ROWS)]
    measured = any(one.fullest is not None for one in status.clusters)
    rows = [_make_cluster_row(one, status.now, failures.get(one.name), reported=reported, measured=measured) for one in shown]
    head, *lines = _format_cluster_table(rows, width)
    offset = max(map(len, (head, *lines))) + len(COLUMN_GAP)
    lengths = [*map(len, lines)]
    messages = [wrap(row[-1], max(width - offset, _MIN_MESSAGE)) if row[-1] else [""] for row in rows]
    if paint is not None:
        lines = paint_column(lines, head.index(_CLUSTERS[1]), [row[1] for row in rows], _READY_ROLES, paint)
    title = f"{head:<{offset}}{_CLUSTERS[-1]}" if any(row[-1] for row in rows) else head
    found = [paint(title, "heading") if paint is not None else title]
    for line, length, (first, *rest) in zip(lines, lengths, messages, strict=True):
        gap = " " * (offset - length) if first else ""
        found += [f"{line}{gap}{first}", *(f"{'':{offset}}{part}" for part in rest)]
    return [*found, *([_MORE.format(f"{len(ordered) - len(shown):,}")] if len(ordered) > len(shown) else [])]


def _describe_failures(status: FleetStatus) -> dict[str, str]:
    """Return by cluster in which Rollout it failed, or is waited for too long, and why."""
    wrong = status.wrong_rollouts
    return {
        each.cluster: f"{'failed in' if each.state == 'failed' else 'awaited by'} Rollout {rollout.name}: {each.detail}".removesuffix(
            ": "
        )
        for rollout in status.rollouts
        for each in rollout.clusters
        if each.state == "failed" or (each.state == "progressing" and rollout in wrong)
    }


def _format_cluster_table(rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """Return the header and the rows without their messages, and without what is requested where they would be wider."""
    lines = _format_table(_CLUSTERS[:-1], [row[:-1] for row in rows])
    if max(map(len, lines)) <= width:
        return lines
    at = _CLUSTERS.index(_REQUESTED)
    return _format_table((*_CLUSTERS[:at], *_CLUSTERS[at + 1 : -1]), [(*row[:at], *row[at + 1 : -1]) for row in rows])


def _count_workloads(status: FleetStatus) -> str:
    """Return the number of workloads that are placed and unplaced, and of the objects that no policy selects."""
    placed = [one for one in status.workloads if one.clusters]
    replicas = total_replicas(count for one in placed for count in one.clusters.values())
    parts = [f"{len(placed):,} placed ({format_count(replicas, 'replica')})"] if placed else []
    unplaced = sum(one.is_unplaced for one in status.workloads)
    stopped = len(status.workloads) - len(placed) - unplaced
    parts += [f"{unplaced:,} unplaced"] if unplaced and status.time is not None else []
    parts += [f"{stopped:,} with 0 replicas"] if stopped else []
    refused = len(status.refused)
    parts += [f"{refused:,} over a limit of a Tenant"] if refused else []
    missing = sum(one.missing for one in status.short)
    parts += [f"{format_count(missing, 'replica')} missing"] if missing else []
    text = f"{format_count(len(status.workloads) + refused, 'workload')}{': ' if parts else ''}{', '.join(parts)}"
    return f"{text}; {_count_unclaimed(status, placed)}." if status.unclaimed else f"{text}."


def _count_unclaimed(status: FleetStatus, placed: Iterable[WorkloadStatus]) -> str:
    """Return the number of objects that no policy selects, and how many of them still run."""
    kept = len({one.key for one in placed}.intersection(one.key for one in status.unclaimed))
    still = f", of which {kept:,} {'is' if kept == 1 else 'are'} still placed" if kept else ""
    return f"{format_count(len(status.unclaimed), 'object')} not selected by any policy (--unclaimed){still}"


def _count_waiting(status: FleetStatus) -> list[str]:
    """Return how many workloads wait to move, and until when, and how many wait for a wave of a rollout."""
    lines = []
    if status.next_moves is not None:
        count = format_count(status.moves_waiting, "workload waits", "workloads wait")
        lines.append(f"{count} to move, because observations changed: the next from {format_time(status.next_moves)} on.")
    waves = [format_key(one.key) for one in status.workloads if one.waiting]
    if waves:
        count = format_count(len(waves), "workload waits", "workloads wait")
        lacking = sum(bool(one.lacking) for one in status.workloads)
        part = f" ({lacking:,} with nothing yet in some of the clusters)" if lacking else ""
        lines.append(escape_unprintable(f"{count} for a wave of a rollout{part}: {format_names(waves)}."))
    return lines


def _count_copies(status: FleetStatus) -> list[str]:
    """Return how many workloads still run where they leave, and until when."""
    copies = [copy for copy in status.retained if not (copy.preserved or copy.release)]
    latest = max((copy.until for copy in copies if copy.until is not None), default=None)
    groups: dict[tuple[bool, str], list[RetainedCopy]] = {}
    for copy in copies:
        until = UNTIL_ALLOWED if copy.until is None or latest is None else f"for an overlap until {format_time(latest)}"
        groups.setdefault((copy.start is None, AWAITED[copy.awaits] if copy.start is None else until), []).append(copy)
    return [escape_unprintable(_count_group(found, until)) for (_, until), found in sorted(groups.items())]


def _count_group(copies: Sequence[RetainedCopy], until: str) -> str:
    """Return how many workloads have these copies, which stay equally long."""
    names = list(dict.fromkeys(format_key(copy.workload) for copy in copies))
    if copies[0].start is None:
        count = format_count(len(names), "workload runs where it was", "workloads run where they were")
        return f"{count} before ({format_names(names)}), {name_workload(until, copies)}."
    count = format_count(len(names), "workload also runs where it was", "workloads also run where they were")
    return f"{count} before, {until}: {format_names(names)} (gitsched tree NAME)."


def _describe_observations(status: FleetStatus) -> list[str]:
    """Return when metric values were observed."""
    if status.observed is None:
        return []
    return [f"Metric values were observed at {format_time(status.observed)} ({format_age(status.observed, status.now)} ago)."]


def _describe_branch(status: FleetStatus) -> str:
    if status.time is None and status.unfetched:
        return f"There is no output branch {status.branch} here: {status.unfetched}."
    if status.time is None:
        return f"There is no output branch {status.branch} yet: run gitsched reconcile."
    age = format_age(status.time, status.now)
    text = f"{status.branch} is at {abbreviate_oid(status.head)} of {format_time(status.time)} ({age} ago)"
    text += ", as this clone fetched it last (later runs: git fetch, or --fetch origin)" if status.from_origin else ""
    return f"{text}; the source has changes that are not reconciled." if status.pending else f"{text}."


def _make_cluster_row(one: ClusterStatus, now: datetime, failure: str | None, *, reported: bool, measured: bool) -> tuple[str, ...]:
    """Return the cells of a cluster. `failure` says in which Rollout it failed or is waited for, and why."""
    report, observed = one.report, f"{format_age(one.observed, now)} ago" if one.observed is not None else ""
    fullest = _format_fullest(one, measured=measured)
    taints = [*map(str, one.taints), *(["its facts are stale: check that gitsched collect runs"] if one.is_stale else ())]
    messages = [*(taints if one.is_drained else (one.unready, *taints))]
    is_gone = one.ready == "Gone"
    workloads = str(one.workloads + one.copies if is_gone else one.workloads)
    leave = is_gone or one.is_drained
    messages += [format_count(one.copies, "copy stays there", "copies stay there")] if leave and one.copies else []
    messages += [failure] if failure is not None else []
    if report is None:
        cells = ("-",) * 4 if reported else ("",) * 4
        messages += ["no report"] if reported and not is_gone else []
        return one.name, one.ready, workloads, fullest, *cells, observed, "; ".join(filter(None, messages))
    healthy = {"Healthy": "True", "Degraded": "False"}.get(report.health, "Progressing")
    behind = "unknown" if one.behind is None else str(one.behind)
    if failure is None:
        messages += (f"{each.key.title} is {each.health}: {each.message}".rstrip(": ") for each in report.unhealthy[:1])
        messages += ["its report does not say what failed"] if report.health == "Degraded" and not report.unhealthy else []
    if one.behind is None:
        messages.append("the commit is not one of the last of the output branch")
    applied, since = abbreviate_oid(report.commit), f"{format_age(report.since, now)} ago"
    cells = (applied, healthy, behind, since)
    return one.name, one.ready, workloads, fullest, *cells, observed, "; ".join(filter(None, messages))


def _format_fullest(one: ClusterStatus, *, measured: bool) -> str:
    """Return the resource with the largest share, rounded as pages do; where the capacity is not known, "" unless others are `measured`."""
    if one.fullest is None:
        return "unknown" if measured and one.ready != "Gone" else ""
    return f"{one.fullest.resource} {round_share(one.fullest.share)} %"


def _make_workload_row(one: WorkloadStatus, copies: Iterable[RetainedCopy]) -> tuple[str, ...]:
    also = _format_clusters({copy.cluster: copy.replicas for copy in copies})
    return format_key(one.key), _format_clusters(one.clusters) or "-", also, one.policy or "-", ", ".join(one.waiting), one.state


def _format_clusters(clusters: Mapping[str, int | None]) -> str:
    return ", ".join(format_cluster(name, count) for name, count in clusters.items())


def _format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a header and rows as aligned lines, without the columns that are empty in all rows."""
    used = [index for index in range(len(header)) if any(row[index] for row in rows)]
    return format_columns([[row[index] for index in used] for row in (header, *rows)])


def serialize_fleet_status(status: FleetStatus) -> dict[str, Any]:
    """Return the status with all workloads and all objects without a policy."""
    return {
        "apiVersion": API_VERSION,
        "kind": "FleetStatus",
        "branch": status.branch,
        "commit": status.head,
        "time": _format_optional(status.time),
        "pending": status.pending,
        "diverges": status.diverges,
        "lacksHistory": bool(status.lacks_history),
        "problems": list(status.list_problems()),
        "uncommitted": list(status.source.uncommitted),
        "freezes": [
            {"reason": one.reason, "place": one.place, "author": one.author, "since": _format_optional(one.since)}
            for one in status.freezes
        ],
        "edits": [
            {
                "commit": one.commit,
                "subject": one.subject,
                "author": one.author,
                "time": format_time(one.time),
                "files": list(one.files),
            }
            for one in status.edits
        ],
        "held": serialize_held(status.held),
        "withheld": serialize_withheld(status.withheld),
        "withheldData": [
            {"workload": serialize_key(key), "data": list(data)} for key, data in status.withheld_history.data.items()
        ],
        "withheldSince": _format_optional(status.withheld_history.since),
        "recent": serialize_recent_runs(status.recent),
        "observedAt": _format_optional(status.observed),
        "rewrite": status.rewrite,
        "clusters": [serialize_cluster_status(one) for one in status.clusters],
        "rollouts": serialize_rollouts(status.rollouts),
        "movesWaiting": status.moves_waiting,
        "nextMoves": _format_optional(status.next_moves),
        "workloads": [serialize_workload_status(one) for one in status.workloads],
        "unclaimed": [
            {
                **serialize_key(one.key),
                "location": one.location.to_json() if one.location is not None else None,
                **({"nearest": one.nearest} if one.nearest else {}),
            }
            for one in status.unclaimed
        ],
    }


def serialize_workload_status(one: WorkloadStatus) -> dict[str, Any]:
    """Return where a workload is as data."""
    return {
        **serialize_key(one.key),
        "policy": one.policy,
        "clusters": [{"name": name, **serialize_replicas(count)} for name, count in one.clusters.items()],
        "waiting": list(one.waiting),
        "state": one.state,
        "reason": one.reason,
        "missing": one.missing,
    }


def serialize_cluster_status(one: ClusterStatus) -> dict[str, Any]:
    """Return the status of a cluster as data."""
    report = one.report
    return {
        "name": one.name,
        "ready": None if one.ready == "Unknown" else one.ready == "True",
        "gone": one.ready == "Gone",
        "drained": one.is_drained,
        "reason": one.unready,
        "taints": [{"taint": str(each.taint), "evicts": each.evicts, "location": each.location} for each in one.taints],
        "workloads": one.workloads,
        "copies": one.copies,
        "resources": [
            {"resource": each.resource, "allocatable": each.allocatable, "requested": each.used} for each in one.resources
        ],
        "observedAt": _format_optional(one.observed),
        "stale": one.is_stale,
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
