"""Failback: return a workload to an earlier affinity group.

Karmada never goes back by itself. With `AfterStabilization` every group before the one in use that could take the workload has a clock;
the instant at which it started is on the binding, and it is gone as soon as the group could not take the workload any more. When a clock
has run for the configured time, the workload is placed in that group as if for the first time. What it leaves stays, as in a graceful
eviction, until the new copies have had time to start.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.karmada.settings import FailbackConfig
from gitsched.model.document import Body
from gitsched.model.scheduling import Assignment, Decision, Request
from gitsched.model.time import add_duration, format_time, parse_time
from gitsched.schedule import pipeline
from gitsched.schedule.filters import ClusterAffinityFilter
from gitsched.schedule.fleet import Fleet

FAILBACK_ANNOTATION = "gitsched.io/failback"
"""On a binding: since when each earlier group could take the workload, as JSON."""

FailbackTimers = tuple[tuple[str, datetime], ...]
"""Names of earlier groups, in order, and since when each could take the workload."""


class SchedulingAttempt(NamedTuple):
    """What the scheduler is asked, why (None: it is not), and what it says."""

    request: Request
    trigger: str | None
    decision: Decision | None


def read_failback_timers(annotations: Mapping[str, str]) -> FailbackTimers:
    """The clocks on a binding; anything else than what `write_clocks` makes is no clock."""
    try:
        noted: Any = json.loads(annotations.get(FAILBACK_ANNOTATION, "{}"))
    except ValueError:
        return ()
    entries = noted.items() if isinstance(noted, dict) else ()
    return tuple((name, since) for name, text in entries if (since := parse_time(text)) is not None)


def write_failback_timers(clocks: FailbackTimers) -> str:
    """The text of the annotation."""
    return json.dumps({name: format_time(since) for name, since in clocks}, separators=(",", ":"), ensure_ascii=False)


def update_failback_timers(
    settings: FailbackConfig, request: Request, clocks: FailbackTimers, fleet: Fleet, moment: datetime
) -> FailbackTimers:
    """The clocks of a workload at a moment; `request.start` is the group in use."""
    if settings.mode != "AfterStabilization":
        return ()
    known = dict(clocks)
    ready = (group.name for i, group in enumerate(request.groups[: request.first_group]) if _fits_group(request, i, fleet))
    return tuple((name, known.get(name, moment)) for name in ready)


def find_failback_time(settings: FailbackConfig, clocks: FailbackTimers) -> datetime | None:
    """When the first clock will have run long enough."""
    return min((add_duration(since, settings.after) for _, since in clocks), default=None)


def schedule_with_failback(
    settings: FailbackConfig, request: Request, why: str | None, clocks: FailbackTimers, fleet: Fleet, moment: datetime
) -> SchedulingAttempt:
    """Schedule a workload where there is a reason to, or where the clock of an earlier group has run long enough.

    A workload that no group from the present one on can take does not wait: there is nothing to protect from being moved.
    """
    running = update_failback_timers(settings, request, clocks, fleet, moment)
    for name, since in running:
        if add_duration(since, settings.after) <= moment:
            return _schedule_from_group(
                request, name, f"group {name} comes first and could take it since {format_time(since)}", fleet
            )
    if why is None:
        return SchedulingAttempt(request, None, None)
    decision = pipeline.schedule(request, fleet)
    if decision.status == "no-fit" and running:
        name = running[0][0]
        return _schedule_from_group(request, name, f"no later group has a place for it, and group {name} has", fleet)
    return SchedulingAttempt(request, why, decision)


def make_failback_tasks(
    turn: SchedulingAttempt, observed: str, held: Iterable[Assignment], known: Container[str], moment: datetime
) -> tuple[Body, ...]:
    """Graceful eviction tasks for the clusters that a workload leaves when it returns to an earlier group than the observed one."""
    decision, order = turn.decision, [group.name for group in turn.request.groups]
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
            "creationTimestamp": format_time(moment),
        }
        for target in held
        if target.name in known and target.name not in chosen
    )


def _fits_group(request: Request, position: int, fleet: Fleet) -> bool:
    asked = _make_fresh_request(request, position, fleet)
    return pipeline.schedule_in_group(asked, asked.groups[position], fleet).status == "scheduled"


def _schedule_from_group(request: Request, name: str, why: str, fleet: Fleet) -> SchedulingAttempt:
    position = next(i for i, group in enumerate(request.groups) if group.name == name)
    asked = _make_fresh_request(request, position, fleet)
    return SchedulingAttempt(asked, why, pipeline.schedule(asked, fleet))


def _make_fresh_request(request: Request, position: int, fleet: Fleet) -> Request:
    """The request from a group on, without history. What is held outside of the group says nothing about it: the scheduler would take a
    cluster that holds the workload and whose document is broken for one of every group."""
    inside = ClusterAffinityFilter().mask(request, request.groups[position], fleet, 0)
    held = tuple(target for target in request.previous if fleet.mask((target.name,)) & inside)
    return request._replace(first_group=position, fresh=True, previous=held)
