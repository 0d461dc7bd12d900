"""Take the next step of a rollout: determine the results of the clusters that have got the change, and choose those that get it now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from gitsched.apis.gitsched.rollout import RolloutSpec
from gitsched.decide.incremental.plan_state import PlanTimes
from gitsched.decide.rollouts.cluster_reports import KnownReports
from gitsched.model.finding import format_names
from gitsched.model.rollouts import (
    ChangedCluster,
    ClusterState,
    HeldFiles,
    RolloutCluster,
    RolloutRecord,
    RolloutState,
    RolloutStatus,
)
from gitsched.model.time import EPOCH, add_duration, choose_start, format_time
from gitsched.schedule.rollout import (
    FAILURE,
    SUCCESS,
    ClusterRevision,
    RolloutGroup,
    RolloutReport,
    UnconfirmedClusters,
    advance_rollout,
    determine_result,
)

_CURRENT, _EARLIER = "current", "earlier"
_REPORTS = {
    SUCCESS: RolloutReport(SUCCESS, datetime.min.replace(tzinfo=EPOCH.tzinfo)),
    FAILURE: RolloutReport(FAILURE, datetime.min.replace(tzinfo=EPOCH.tzinfo)),
}
_PUNCTUAL = timedelta(minutes=10)
"""A change without minSuccessTime and progressDeadline counts from its event in a run that is late by at most a tenth of this."""


class RolloutStep(NamedTuple):
    """A rollout after a step: what the output records, what a plan says, when it can go on without a commit, and the times of the events
    that changed it. `unused` are accepted failures without effect."""

    record: RolloutRecord
    status: RolloutStatus
    wakeups: tuple[datetime, ...]
    events: tuple[datetime, ...]
    unused: tuple[str, ...] = ()


class _Verdict(NamedTuple):
    """What is known about a cluster that has got the change: Success, Failure, or "" while it is progressing; since when or until when."""

    changed: ChangedCluster
    state: str
    time: datetime | None
    accepted: bool = False

    @property
    def cluster_state(self) -> ClusterState:
        if self.accepted:
            return "accepted"
        return "succeeded" if self.state == SUCCESS else "failed" if self.state == FAILURE else "progressing"


def advance(
    spec: RolloutSpec,
    groups: Sequence[RolloutGroup],
    record: RolloutRecord,
    changes: Mapping[str, Sequence[HeldFiles]],
    urgent: frozenset[str],
    reports: KnownReports,
    times: PlanTimes,
    head: str,
) -> RolloutStep:
    """Take the next step of a rollout.

    `record` is that of the previous output. `changes` are the workloads of each cluster whose files differ from those of the previous
    output, `urgent` clusters with changes that do not wait. `head` is the last output commit.
    """
    chosen = {name for group in groups for name in group.clusters}
    is_over = not record.held
    verdicts = {
        changed.cluster: _determine(spec, changed, reports, times.now) for changed in record.changed if changed.cluster in chosen
    }
    if is_over and changes:  # a failure of the last change does not stop this one
        verdicts = {name: verdict for name, verdict in verdicts.items() if verdict.state == "" and not verdict.accepted}
    superseded = {name: verdict for name, verdict in verdicts.items() if name in changes}
    current = {name: verdict for name, verdict in verdicts.items() if name not in changes}
    progress = advance_rollout(
        spec.strategy,
        groups,
        _CURRENT,
        _list_revisions(chosen, changes, current),
        {name: _find_result(current.get(name)) for name in sorted(chosen - changes.keys()) if not _is_open(current.get(name))},
        times.now,
        UnconfirmedClusters(
            frozenset(name for name, verdict in superseded.items() if not verdict.state),
            frozenset(name for name, verdict in superseded.items() if verdict.state == FAILURE),
        ),
    )
    updated = {name for name in changes if progress.revisions[name].revision == _CURRENT}
    held = tuple(files for name in sorted(changes.keys() - updated) for files in changes[name])
    event = _find_event(verdicts.values(), times)
    limit = spec.strategy.progress_deadline or spec.strategy.min_success_time or _PUNCTUAL
    applied_at = max(choose_start(event, times.now, limit), times.source_time)
    delivered = {name: ChangedCluster(name, head, applied_at) for name in sorted(updated | (urgent - changes.keys()))}
    kept = {**superseded, **current}
    entries = {name: _record(verdict) for name, verdict in kept.items()} | delivered
    if not held and all(entry.succeeded for entry in entries.values()):
        entries = {}
    failed = {name: verdict for name, verdict in current.items() if verdict.state == FAILURE and not verdict.accepted}
    record_after = RolloutRecord(spec.name, tuple(entries[name] for name in sorted(entries)), held)
    status = _describe(spec, groups, changes, delivered, kept, failed, bool(held), reports)
    status = status._replace(workloads=tuple(sorted({files.workload for files in held})))
    wakeups = [verdict.time for verdict in kept.values() if not verdict.state and verdict.time is not None]
    if spec.strategy.progress_deadline is not None:
        wakeups += [add_duration(entry.applied_at, spec.strategy.progress_deadline) for entry in delivered.values()]
    events = [applied_at] if delivered else []
    events += [verdict.time for verdict in failed.values() if verdict.time is not None and not verdict.changed.failed]
    used = {(verdict.changed.cluster, verdict.changed.applied_at) for verdict in verdicts.values() if verdict.accepted}
    unused = tuple(sorted(name for name, time in spec.accepted if (name, time) not in used))
    return RolloutStep(record_after, status, tuple(time for time in wakeups if time > times.now), tuple(events), unused)


def _determine(spec: RolloutSpec, changed: ChangedCluster, reports: KnownReports, now: datetime) -> _Verdict:
    report = reports.find(changed)
    state, time = determine_result(spec.strategy, changed.applied_at, report, now)
    if changed.succeeded and (report is None or report.state != FAILURE):
        state, time = SUCCESS, None
    accepted = state != SUCCESS and (changed.cluster, changed.applied_at) in spec.accepted
    return _Verdict(changed, state, time, accepted)


def _is_open(verdict: _Verdict | None) -> bool:
    """Return whether a cluster with the change has no result yet."""
    return verdict is not None and not verdict.state and not verdict.accepted


def _find_result(verdict: _Verdict | None) -> RolloutReport:
    return _REPORTS[FAILURE if verdict is not None and verdict.state == FAILURE and not verdict.accepted else SUCCESS]


def _list_revisions(
    chosen: Iterable[str], changes: Mapping[str, object], current: Mapping[str, _Verdict]
) -> dict[str, ClusterRevision]:
    """Return what the strategy decides about: clusters with and without the change. A result counts from any time."""
    earliest = _REPORTS[SUCCESS].time
    revisions = {}
    for name in sorted(chosen):
        verdict = current.get(name)
        applied_at = verdict.changed.applied_at if verdict is not None and _is_open(verdict) else earliest
        revisions[name] = ClusterRevision(_EARLIER if name in changes else _CURRENT, applied_at)
    return revisions


def _find_event(verdicts: Iterable[_Verdict], times: PlanTimes) -> datetime:
    """Return the time of the last event that a step can follow from: the commit, a success that is long enough, a failure."""
    happened = [verdict.time for verdict in verdicts if verdict.state and verdict.time is not None]
    return max((times.source_time, *(time for time in happened if time <= times.now)))


def _record(verdict: _Verdict) -> ChangedCluster:
    return verdict.changed._replace(succeeded=verdict.state == SUCCESS, failed=verdict.state == FAILURE and not verdict.accepted)


def _describe(
    spec: RolloutSpec,
    groups: Sequence[RolloutGroup],
    changes: Mapping[str, object],
    delivered: Mapping[str, ChangedCluster],
    verdicts: Mapping[str, _Verdict],
    failed: Mapping[str, _Verdict],
    holds: bool,
    reports: KnownReports,
) -> RolloutStatus:
    ordered = _order_groups(spec, groups)
    clusters = []
    for number, group in enumerate(ordered, 1):
        label = f"{number} ({group.name})" if group.name else str(number)
        for name in group.clusters:
            verdict = verdicts.get(name)
            if name in delivered:
                clusters.append(RolloutCluster(name, label, "updated", delivered[name].applied_at))
            elif name in changes:
                clusters.append(RolloutCluster(name, label, "waiting"))
            elif verdict is not None:
                detail = _describe_report(verdict, reports)
                clusters.append(RolloutCluster(name, label, verdict.cluster_state, verdict.changed.applied_at, detail))
            else:
                clusters.append(RolloutCluster(name, label, "unchanged"))
    if all(one.state == "unchanged" for one in clusters):
        clusters = []
    pending = [one for one in clusters if one.state in ("updated", "progressing")]
    is_stopped = holds and not pending and bool(failed)
    state: RolloutState = "stopped" if is_stopped else "progressing" if holds or pending else "complete"
    if is_stopped:
        waits = f"{format_names(sorted(failed))} failed"
    elif holds:
        waits = f"reports of {format_names([one.cluster for one in pending])}" if pending else "a cluster that can begin"
    else:
        waits = f"reports of {format_names([one.cluster for one in pending])}" if pending else ""
    return RolloutStatus(spec.name, spec.strategy.type, state, waits, tuple(clusters))


def _order_groups(spec: RolloutSpec, groups: Sequence[RolloutGroup]) -> list[RolloutGroup]:
    """Return the groups in the order of the waves: mandatory ones first."""
    first = [group for wanted in spec.strategy.mandatory_groups for group in groups if wanted in (group.name, group.group_index)]
    ordered = list(dict.fromkeys([*first, *groups]))
    return [group for group in ordered if group.clusters]


def _describe_report(verdict: _Verdict, reports: KnownReports) -> str:
    """Return what a cluster reported about the change, in one line."""
    last = reports.by_cluster.get(verdict.changed.cluster)
    about = reports.find(verdict.changed)
    if about is None:
        deadline = f" before {format_time(verdict.time)}" if verdict.state == FAILURE and verdict.time is not None else ""
        return "" if verdict.state == SUCCESS else f"no report about the change{deadline}"
    if about.state == SUCCESS:
        if verdict.time is not None and about.time > verdict.time:
            return f"healthy only from {format_time(about.time)} on, which is in the future: check its clock"
        return "" if verdict.state == SUCCESS or verdict.time is None else f"healthy, succeeds at {format_time(verdict.time)}"
    unhealthy = last.unhealthy[:2] if last is not None else ()
    names = "; ".join(f"{one.key.title} is {one.health}{f': {one.message}' if one.message else ''}" for one in unhealthy)
    return names or ("reported a failure" if about.state == FAILURE else "not healthy yet")
