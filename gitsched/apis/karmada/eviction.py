"""Eviction by NoExecute taints, and the graceful eviction tasks it leaves (spec/karmada.md §9)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.model.document import Body
from gitsched.model.request import Target
from gitsched.model.taints import NO_EXECUTE, Taint, Toleration, parse_toleration
from gitsched.model.time import format_time, later, parse_time

TAINT, FAILURE = "TaintUntolerated", "ApplicationFailure"
"""Reasons of evictions."""


class Tasks(NamedTuple):
    """Graceful eviction tasks that still live, and the first moment at which one of them ends."""

    live: tuple[Body, ...]
    wakeup: datetime | None


def applied_tolerations(applied: str | None) -> tuple[Toleration, ...] | None:
    """The tolerations of the placement last acted on: those, not the present policy's, decide about eviction.

    None where nobody knows them: then nothing is evicted, until the workload was scheduled under a placement that is known.
    """
    try:
        placement: Any = json.loads(applied) if applied else None
    except ValueError:
        return None
    if not isinstance(placement, dict):
        return None
    entries = placement.get("clusterTolerations")
    return tuple(map(parse_toleration, entries if isinstance(entries, list) else ()))


def evict_at(taints: Iterable[Taint], tolerations: tuple[Toleration, ...], moment: datetime) -> datetime | None:
    """When a placement must leave a cluster with these taints: a moment, `moment` itself for now, or None for never.

    Each NoExecute taint needs a toleration; the first that tolerates it is used. A used toleration with seconds ends that long after each
    taint it tolerates was added.
    """
    harmful = [taint for taint in taints if taint.effect == NO_EXECUTE]
    used: list[Toleration] = []
    for taint in harmful:
        toleration = next((t for t in tolerations if t.tolerates(taint)), None)
        if toleration is None:
            return moment
        used.append(toleration)
    ends = [
        later(taint.since or moment, max(toleration.seconds, 0))
        for toleration in used
        if toleration.seconds is not None
        for taint in harmful
        if toleration.tolerates(taint)
    ]
    return max(min(ends), moment) if ends else None


def make_task(
    target: Target,
    purge_mode: str,
    moment: datetime,
    reason: str = TAINT,
    producer: str = "TaintManager",
    **more: Any,
) -> Body:
    """The graceful eviction task that one of Karmada's controllers writes, by default its taint manager; `more` are members of its own,
    of which empty ones are left out."""
    task: Body = {"fromCluster": target.name, "purgeMode": purge_mode}
    if target.replicas:
        task["replicas"] = target.replicas
    task |= {"reason": reason, "producer": producer}
    return {**task, **{name: value for name, value in more.items() if value}, "creationTimestamp": format_time(moment)}


def sweep_tasks(tasks: Iterable[Body], timeout: timedelta, moment: datetime) -> Tasks:
    """Drop the tasks that are over at `moment`; one without a creation time starts now.

    suppressDeletion true keeps a task for ever and false ends it; otherwise it ends gracePeriodSeconds (or `timeout`) after its creation.
    """
    live: list[Body] = []
    ends: list[datetime] = []
    for task in tasks:
        created = parse_time(task.get("creationTimestamp"))
        entry = task if created else {**task, "creationTimestamp": format_time(moment)}
        suppressed = task.get("suppressDeletion")
        if suppressed is False:
            continue
        if suppressed is not True:
            grace = task.get("gracePeriodSeconds")
            end = later(created or moment, max(grace, 0) if isinstance(grace, int) else timeout)
            if end <= moment:
                continue
            ends.append(end)
        live.append(entry)
    return Tasks(tuple(live), min(ends, default=None))
