"""What keeps a workload in a wave of a rollout, as text and as data: which clusters wait, since when, and what continues the rollout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gitsched.model.finding import format_count, format_names
from gitsched.model.rollouts import REVERT_CHANGE
from gitsched.model.scheduling import total_replicas
from gitsched.model.time import format_age, format_time
from gitsched.report.history import SOURCES_SHOWN, describe_source
from gitsched.report.lines import escape_unprintable, format_clusters, format_key, list_limited
from gitsched.report.recent_runs import describe_revert
from gitsched.report.rollouts import CLUSTERS_SHOWN, describe_remedies, describe_rollout, describe_wait, serialize_rollouts
from gitsched.report.serialization import serialize_source

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from gitsched.model.explanation import ExplainedRollout
    from gitsched.model.fleet_status import WorkloadStatus
    from gitsched.model.history import RolloutHistory
    from gitsched.model.rollouts import RolloutStatus


def describe_explained_rollout(found: ExplainedRollout) -> list[str]:
    """Return for one workload what a rollout waits for, since when, what each cluster has of it, and what continues it."""
    rollout = found.status
    lines = [*map(str.strip, describe_rollout(rollout)), *describe_history(rollout, found.history, found.now)]
    remedy = _name_commits(rollout.remedy or describe_wait(rollout, found.now), found.history)
    return [*lines, f"this workload: {_describe_waiting(found)}", remedy]


def _describe_waiting(found: ExplainedRollout) -> str:
    """Return in which clusters the change of a workload is, in which the content from before, and in which nothing of it: with the replicas
    of each that has it, and of all."""
    parts: list[str] = []
    for clusters, what in ((found.updated, "the change"), (found.kept, "the content from before")):
        if clusters:
            verb = "" if parts else " is"
            parts.append(f"{what}{verb} in {format_clusters(clusters, CLUSTERS_SHOWN)}{_format_total(clusters)}")
    if found.lacking:
        verb, names = "" if parts else " is", format_names([*found.lacking], CLUSTERS_SHOWN)
        parts.append(f"nothing of it yet{verb} in {names}{_format_total(found.lacking, 'waits', 'wait')}")
    return "; ".join(parts)


def _format_total(counts: Mapping[str, int | None], one: str = "", several: str = "") -> str:
    """Return the replicas of several clusters, or those that wait, in parentheses; "" if no number says more than the clusters do."""
    total = total_replicas(counts.values())
    if not total or (len(counts) == 1 and not one):
        return ""
    verb = one if total == 1 else several
    return f" ({format_count(total, 'replica')}{f' {verb}' if verb else ''})"


def describe_stage(found: ExplainedRollout) -> str:
    """Return in one sentence why some clusters do not have a workload as it was decided."""
    rollout = found.status
    state = f"is stopped, because {rollout.waits_for}" if rollout.state == "stopped" else f"waits for {rollout.waits_for}"
    return f"The Rollout {rollout.name} {state}: {_describe_waiting(found)}."


def describe_history(rollout: RolloutStatus, history: RolloutHistory, now: datetime) -> list[str]:
    """Return a line that says when a rollout began and with which commit of the source, and when it stopped; [] if nothing is known."""
    begun = min((one.since for one in rollout.clusters if one.since is not None), default=None)
    parts = [_describe_time(begun, now)] if begun is not None else []
    named = format_names([*map(describe_source, history.sources)], SOURCES_SHOWN)
    parts += [f"with {escape_unprintable(named)}"] if named else []
    stopped = f", and stopped {_describe_time(history.stopped, now)}" if history.stopped is not None else ""
    note = f"; {escape_unprintable(history.note)}" if history.note else ""
    return [f"Rollout {rollout.name} began {' '.join(parts)}{stopped}{note}"] if parts else []


def describe_rollouts_with_history(
    rollouts: Iterable[RolloutStatus],
    histories: Mapping[str, RolloutHistory],
    now: datetime,
    workloads: Collection[WorkloadStatus] = (),
) -> list[str]:
    """Return for each rollout its state, when it began and stopped, and how to go on; of one that has stopped or will stop also which
    clusters have the change of its `workloads`."""
    lines = []
    for one in rollouts:
        lines += describe_rollout(one)
        changed = frozenset(one.workloads if one.remedy else ())
        found = [each for each in workloads if each.key in changed]
        lines += list_limited(
            [*map(_describe_contents, found)], CLUSTERS_SHOWN, "  and {} more workloads; gitsched tree NAME shows each"
        )
        lines += describe_history(one, histories[one.name], now) if one.name in histories else []
        lines += [_name_commits(line, histories.get(one.name)) for line in describe_remedies([one], now)]
    return lines


def _name_commits(remedy: str, history: RolloutHistory | None) -> str:
    """Return how to go on with a rollout, or back, with the commits of the source to revert, if they are known."""
    if history is None or not 0 < len(history.sources) <= SOURCES_SHOWN:
        return remedy
    return remedy.replace(REVERT_CHANGE, ", then ".join(map(describe_revert, history.sources)))


def _describe_contents(workload: WorkloadStatus) -> str:
    """Return which clusters have the change of a workload, which keep what they have, and which have nothing of it."""
    changed = [name for name in workload.clusters if name not in workload.waiting]
    kept = [name for name in workload.waiting if name not in workload.lacking]
    parts = ("new content", changed), ("content from before", kept), ("nothing of it yet", workload.lacking)
    texts = [f"{what} in {format_names(names, CLUSTERS_SHOWN)}" for what, names in parts if names]
    return f"  {format_key(workload.key)}: {'; '.join(texts)}"


def _describe_time(time: datetime, now: datetime) -> str:
    return f"{format_time(time)} ({format_age(time, now)} ago)"


def serialize_explained_rollouts(rollouts: Iterable[ExplainedRollout]) -> list[dict[str, Any]]:
    """Return the rollouts that a workload waits for, without other workloads."""
    found = []
    for one, entry in zip(rollouts, serialize_rollouts(each.status for each in rollouts), strict=True):
        del entry["workloads"]
        sources, stopped = one.history.sources, one.history.stopped
        found.append(
            entry
            | {
                "kept": list(one.kept),
                "lacking": list(one.lacking),
                "sources": [*map(serialize_source, sources)],
                "stoppedAt": format_time(stopped) if stopped is not None else None,
            }
        )
    return found
