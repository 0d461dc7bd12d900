"""Failback: return a workload to an earlier affinity group.

Karmada does not fail back: it schedules a workload in the group in use and in later ones. With `WhenUnschedulable` a workload that none of
these can run is scheduled in the first earlier group that can. With `AfterStabilization`, in addition, each earlier group that could run
the workload has a timer; an annotation of the binding stores when it started, and it is removed when the group can no longer run the
workload. When a timer has run for the configured time, the workload is scheduled in that group. Either way its previous clusters are
disregarded, and graceful eviction tasks keep the old copies until the new ones have had time to start.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from typing import Any

from gitsched.apis.karmada.settings import FailbackConfig
from gitsched.model.document import Body, read_json
from gitsched.model.scheduling import Assignment, Decision, Request
from gitsched.model.time import add_duration, format_time, parse_time
from gitsched.named_tuples import NamedTuple
from gitsched.schedule import pipeline
from gitsched.schedule.fleet import ClusterAffinityFilter, Fleet

FAILBACK_ANNOTATION = "gitsched.io/failback"
"""On a binding: since when each earlier affinity group could run the workload, as JSON."""
EARLIER_GROUP = "earlier-group-fits"
"""Code of the finding that a group before those that are tried could run an unplaced workload."""

FailbackTimers = tuple[tuple[str, datetime], ...]
"""Names of earlier affinity groups, in order, and since when each could run the workload."""


class SchedulingAttempt(NamedTuple):
    """The scheduler's request, the trigger (None: the scheduler is not called) and the decision."""

    request: Request
    trigger: str | None
    decision: Decision | None


def read_failback_timers(annotations: Mapping[str, str]) -> FailbackTimers:
    """Read the timers from the annotations of a binding; malformed text gives none."""
    text = annotations.get(FAILBACK_ANNOTATION)
    if text is None:
        return ()
    try:
        value: Any = read_json(text)
    except ValueError:
        return ()
    entries = value.items() if isinstance(value, dict) else ()
    return tuple((name, since) for name, text in entries if (since := parse_time(text)) is not None)


def write_failback_timers(timers: FailbackTimers) -> str:
    """Return the value of the annotation."""
    return json.dumps({name: format_time(since) for name, since in timers}, separators=(",", ":"), ensure_ascii=False)


def update_failback_timers(
    settings: FailbackConfig, request: Request, timers: FailbackTimers, fleet: Fleet, time: datetime
) -> FailbackTimers:
    """Return the timers at `time`: for each group before `request.first_group`, the one in use, that could run the workload."""
    if settings.mode != "AfterStabilization" or not request.first_group:
        return ()
    known = dict(timers)
    ready = (group.name for i, group in enumerate(request.groups[: request.first_group]) if _fits_group(request, i, fleet))
    return tuple((name, known.get(name, time)) for name in ready)


def find_failback_time(settings: FailbackConfig, timers: FailbackTimers) -> datetime | None:
    """Return when the first timer ends."""
    return min((add_duration(since, settings.after) for _, since in timers), default=None)


def schedule_with_failback(
    settings: FailbackConfig, request: Request, trigger: str | None, timers: FailbackTimers, fleet: Fleet, time: datetime
) -> SchedulingAttempt:
    """Schedule a workload when there is a trigger, or when the timer of an earlier group has ended.

    A workload that fits neither the group in use nor a later one does not wait for a timer.
    """
    for name, since in update_failback_timers(settings, request, timers, fleet, time):
        if add_duration(since, settings.after) <= time:
            return _schedule_from_group(
                request, name, f"group {name} comes first and could run it since {format_time(since)}", fleet
            )
    if trigger is None:
        return SchedulingAttempt(request, None, None)
    decision = pipeline.schedule(request, fleet)
    attempt = SchedulingAttempt(request, trigger, decision)
    if settings.returns_unplaced_workloads and (name := find_earlier_group(attempt, fleet)):
        return _schedule_from_group(
            request, name, f"group {decision.group} and later ones cannot run it, but group {name} can", fleet
        )
    return attempt


def find_earlier_group(attempt: SchedulingAttempt, fleet: Fleet) -> str:
    """Return the first group before those that were tried that can run a workload which is left without any cluster, or ""."""
    request, decision = attempt.request, attempt.decision
    if decision is None or decision.status == "scheduled" or (decision.status != "no-fit" and request.previous):
        return ""
    earlier = enumerate(request.groups[: request.first_group])
    return next((group.name for position, group in earlier if _fits_group(request, position, fleet)), "")


def make_failback_tasks(
    attempt: SchedulingAttempt, observed: str, previous: Iterable[Assignment], existing: Container[str], time: datetime
) -> tuple[Body, ...]:
    """Return graceful eviction tasks for the clusters that a workload leaves when it returns to a group before the observed one."""
    decision, order = attempt.decision, [group.name for group in attempt.request.groups]
    if decision is None or decision.status != "scheduled" or observed not in order:
        return ()
    if order.index(decision.group) >= order.index(observed):
        return ()
    chosen = {target.name for target in decision.assignments}
    return tuple(
        {
            "fromCluster": target.name,
            "purgeMode": "Gracefully",
            **({"replicas": target.replicas} if target.replicas else {}),
            "reason": "Failback",
            "producer": "gitsched",
            "creationTimestamp": format_time(time),
        }
        for target in previous
        if target.name in existing and target.name not in chosen
    )


def _fits_group(request: Request, position: int, fleet: Fleet) -> bool:
    fresh_request = _make_fresh_request(request, position, fleet)
    return pipeline.schedule_in_group(fresh_request, fresh_request.groups[position], fleet).status == "scheduled"


def _schedule_from_group(request: Request, name: str, trigger: str, fleet: Fleet) -> SchedulingAttempt:
    position = next(i for i, group in enumerate(request.groups) if group.name == name)
    fresh_request = _make_fresh_request(request, position, fleet)
    return SchedulingAttempt(fresh_request, trigger, pipeline.schedule(fresh_request, fleet))


def _make_fresh_request(request: Request, position: int, fleet: Fleet) -> Request:
    """Return the request that starts at a group and ignores the previous assignment.

    Previous clusters outside of the group are removed: a previous cluster with an invalid document would pass the filters of every
    group.
    """
    inside = ClusterAffinityFilter().mask(request, request.groups[position], fleet, 0)
    previous = tuple(target for target in request.previous if fleet.mask((target.name,)) & inside)
    return request._replace(first_group=position, fresh=True, previous=previous)
