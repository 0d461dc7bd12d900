"""Take the next step of a rollout: determine the results of the clusters that have got the change, and choose those that get it now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from gitsched.apis.gitsched.rollout import RolloutSpec
from gitsched.decide.incremental.plan_state import PlanTimes
from gitsched.decide.rollouts.cluster_reports import KnownReports
from gitsched.decide.rollouts.lost_clusters import ELSEWHERE, EVICTED, LostCluster
from gitsched.decide.rollouts.pending_files import PendingFiles
from gitsched.model.finding import format_names
from gitsched.model.rollouts import (
    ACCEPT_ANNOTATION,
    REVERT_CHANGE,
    ChangedCluster,
    ClusterState,
    RolloutCluster,
    RolloutRecord,
    RolloutState,
    RolloutStatus,
)
from gitsched.model.time import EPOCH, add_duration, choose_start, format_time
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.rollout import (
    FAILURE,
    SUCCESS,
    ClusterRevision,
    RolloutGroup,
    RolloutReport,
    RolloutStrategy,
    UnconfirmedClusters,
    advance_rollout,
    determine_result,
)

BLOCKED: Final = "does not change there"
"""Why a cluster waits where dispatching is suspended or an override fails, after the manifests."""
_UNCHANGED = "what it has does not change now"
_CURRENT, _EARLIER = "current", "earlier"
_REPORTS = {
    SUCCESS: RolloutReport(SUCCESS, datetime.min.replace(tzinfo=EPOCH.tzinfo)),
    FAILURE: RolloutReport(FAILURE, datetime.min.replace(tzinfo=EPOCH.tzinfo)),
}
_PUNCTUAL = timedelta(minutes=10)
"""A change without minSuccessTime and progressDeadline counts from its event in a run that is late by at most a tenth of this."""


class RolloutStep(NamedTuple):
    """A rollout after a step: what the output records, what a plan says, when it can go on without a commit, and the times of the events
    that changed it. `unused` are accepted failures without effect. A rollout `is_over` if all clusters have the change and have reported,
    and no more of them failed than may. `empty_groups` are the mandatory groups without a cluster."""

    record: RolloutRecord
    status: RolloutStatus
    wakeups: tuple[datetime, ...]
    events: tuple[datetime, ...]
    unused: tuple[str, ...] = ()
    is_over: bool = False
    empty_groups: tuple[str, ...] = ()


class StepInput(NamedTuple):
    """What a step of a rollout depends on.

    `record` is that of the previous output. `changes` are the workloads of each cluster whose content is not the wanted one, `kept` the
    clusters with manifests that an earlier run has held back and that do not change now, and `is_new` says that the rollout has not begun
    to deliver a change. `ends` are by cluster the ends of the overlaps that have kept copies there
    until this run. `lost` are the lost clusters, `is_known` says whether a cluster has a document, and `head` is the last output commit.
    """

    spec: RolloutSpec
    groups: Sequence[RolloutGroup]
    record: RolloutRecord
    changes: Mapping[str, Sequence[PendingFiles]]
    kept: frozenset[str]
    is_new: bool
    ends: Mapping[str, datetime]
    lost: Mapping[str, LostCluster]
    is_known: Callable[[str], bool]
    reports: KnownReports
    times: PlanTimes
    head: str

    @property
    def clusters(self) -> frozenset[str]:
        """All clusters of the rollout."""
        return frozenset(name for group in self.groups for name in group.clusters)

    @property
    def strategy(self) -> RolloutStrategy:
        return self.spec.strategy

    def choose_start(self, event: datetime) -> datetime:
        """Return when a change that follows from an event is delivered."""
        limit = self.strategy.progress_deadline or self.strategy.min_success_time or _PUNCTUAL
        return max(choose_start(event, self.times.now, limit), self.times.source_time)


class _Verdict(NamedTuple):
    """What is known about a cluster that has got the change: Success, Failure, or "" while it is progressing; since when or until when.
    `lost` says why it is lost, if that is why it failed."""

    changed: ChangedCluster
    state: str
    time: datetime | None
    accepted: bool = False
    lost: str = ""

    @property
    def cluster_state(self) -> ClusterState:
        if self.accepted:
            return "accepted"
        return "succeeded" if self.state == SUCCESS else "failed" if self.state == FAILURE else "progressing"

    @property
    def is_failure(self) -> bool:
        """Whether it failed, and this is not accepted."""
        return self.state == FAILURE and not self.accepted


def advance(given: StepInput) -> RolloutStep:
    """Take the next step of a rollout."""
    spec, record, changes, times, chosen = given.spec, given.record, given.changes, given.times, given.clusters
    verdicts = {name: _determine(given, changed) for name, changed in _list_entries(given).items()}
    if not record.held and given.is_new:  # a failure of the last change does not stop this one
        verdicts = {name: one for name, one in verdicts.items() if name in given.lost or not (one.state or one.accepted)}
    superseded = {name: verdict for name, verdict in verdicts.items() if name in changes}
    current = {name: verdict for name, verdict in verdicts.items() if name not in changes}
    unconfirmed = UnconfirmedClusters(
        frozenset(name for name, verdict in superseded.items() if not verdict.state),
        frozenset(name for name, verdict in superseded.items() if verdict.state == FAILURE),
    )
    progress = advance_rollout(
        spec.strategy,
        given.groups,
        _CURRENT,
        _list_revisions(chosen, changes, current),
        {name: _find_result(current.get(name)) for name in sorted(chosen - changes.keys()) if not _is_open(current.get(name))},
        times.now,
        unconfirmed,
    )
    begun = {name for name in changes if progress.revisions[name].revision == _CURRENT}
    held = tuple(one.held for name in sorted(changes) for one in changes[name] if one.is_postponed or name not in begun)
    updated = {name for name in begun if not all(one.is_postponed for one in changes[name])}
    event = _find_event(verdicts.values(), times)
    applied_at = given.choose_start(max((event, *(end for name, end in given.ends.items() if name in updated))))
    left = {name: lost.since for name, lost in given.lost.items() if lost.has_left}
    delivered = {name: ChangedCluster(name, given.head, applied_at, lost=left.get(name)) for name in sorted(updated)}
    kept = {**superseded, **current}
    holds = bool(held or given.kept)
    is_over = not holds and progress.is_complete
    skipped = {} if is_over else {one.cluster: one._replace(skipped=True) for one in _list_skipped(given)}
    entries = (
        {name: _record(verdict) for name, verdict in kept.items() if not (is_over and name in given.lost)} | delivered | skipped
    )
    if not holds and all(entry.succeeded or entry.skipped for entry in entries.values()):
        entries = {}
    failed = {name: verdict for name, verdict in current.items() if verdict.is_failure}
    record_after = record._replace(changed=tuple(entries[name] for name in sorted(entries)), held=held)
    fails = _exceeds_failures(given, begun, failed, unconfirmed)
    status = _describe(given, delivered, begun, kept, failed, tuple(skipped.values()), holds=holds, fails=fails)
    status = status._replace(workloads=tuple(sorted({files.workload for files in held})))
    wakeups = [verdict.time for verdict in kept.values() if not verdict.state and verdict.time is not None]
    if spec.strategy.progress_deadline is not None:
        wakeups += [add_duration(entry.applied_at, spec.strategy.progress_deadline) for entry in delivered.values()]
    events = [applied_at] if delivered else []
    events += [verdict.time for verdict in failed.values() if verdict.time is not None and not verdict.changed.failed]
    used = {(verdict.changed.cluster, verdict.changed.applied_at) for verdict in verdicts.values() if verdict.accepted}
    unused = tuple(sorted(name for name, time in spec.accepted if (name, time) not in used))
    later, empty = tuple(time for time in wakeups if time > times.now), _list_empty_groups(given)
    return RolloutStep(record_after, status, later, tuple(events), unused, is_over, empty)


def _exceeds_failures(
    given: StepInput, begun: Collection[str], failed: Mapping[str, _Verdict], unconfirmed: UnconfirmedClusters
) -> bool:
    """Return whether failures stop a rollout even if all other clusters with the change succeed."""
    if not failed:
        return False
    others = {name: files for name, files in given.changes.items() if name not in begun}
    progress = advance_rollout(
        given.strategy,
        given.groups,
        _CURRENT,
        _list_revisions(given.clusters, others, failed),
        {name: _find_result(failed.get(name)) for name in sorted(given.clusters - others.keys())},
        given.times.now,
        unconfirmed,
    )
    if others:
        return all(progress.revisions[name].revision != _CURRENT for name in others)
    return given.strategy.type != "All" and not progress.is_complete


def _list_entries(given: StepInput) -> dict[str, ChangedCluster]:
    """Return the clusters with the change. For those that have left, another change begins without having reached them, as does one that an
    earlier run has held back there: what they have reported is about what they had before."""
    known = {one.cluster: one for one in given.record.changed if one.cluster in given.clusters}
    unreached = {one.cluster for one in given.record.held}
    reached = {name for name, one in known.items() if one.succeeded or one.lost is not None or name not in unreached}
    begin = given.choose_start(given.times.source_time)
    known |= {
        name: ChangedCluster(name, given.head, begin)
        for name, lost in given.lost.items()
        if lost.has_left and (given.is_new or name not in reached)
    }
    since = {name: lost.since for name, lost in given.lost.items()}
    return {name: one._replace(lost=since.get(name), skipped=False) for name, one in known.items()}


def _list_empty_groups(given: StepInput) -> tuple[str, ...]:
    known = {value for group in given.groups if group.clusters for value in (group.name, group.group_index)}
    return tuple(str(wanted) for wanted in given.strategy.mandatory_groups if wanted not in known)


def _list_skipped(given: StepInput) -> Iterator[ChangedCluster]:
    """Yield the clusters with the change that the rollout goes on without: they have none of its workloads any more, and are not lost."""
    for one in given.record.changed:
        is_settled = one.succeeded or (one.cluster, one.applied_at) in given.spec.accepted
        if one.cluster not in given.clusters and not is_settled and not (one.skipped and given.is_new):
            yield one


def _determine(given: StepInput, changed: ChangedCluster) -> _Verdict:
    report, lost, now = given.reports.find(changed), given.lost.get(changed.cluster), given.times.now
    state, time = determine_result(given.strategy, changed.applied_at, report, now)
    if changed.succeeded and (report is None or report.state != FAILURE):
        state, time = SUCCESS, None
    elif lost is not None and not _succeeded_before(lost, report, state, time):
        state, time = FAILURE, lost.since
    else:
        lost = None
    accepted = state != SUCCESS and (changed.cluster, changed.applied_at) in given.spec.accepted
    return _Verdict(changed, state, time, accepted, lost.reason if lost is not None and state == FAILURE else "")


def _succeeded_before(lost: LostCluster, report: RolloutReport | None, state: str, time: datetime | None) -> bool:
    """Return whether a cluster has been healthy for long enough before it was lost, or since, if it still has its workloads."""
    if state != SUCCESS or report is None or time is None:
        return False
    return time <= lost.since or (report.time > lost.since and not lost.has_left)


def _is_open(verdict: _Verdict | None) -> bool:
    """Return whether a cluster with the change has no result yet."""
    return verdict is not None and not verdict.state and not verdict.accepted


def _find_result(verdict: _Verdict | None) -> RolloutReport:
    return _REPORTS[FAILURE if verdict is not None and verdict.is_failure else SUCCESS]


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
    changed, succeeded = verdict.changed, verdict.state == SUCCESS
    return changed._replace(succeeded=succeeded, failed=verdict.is_failure, lost=None if succeeded else changed.lost)


def _describe(
    given: StepInput,
    delivered: Mapping[str, ChangedCluster],
    begun: Collection[str],
    verdicts: Mapping[str, _Verdict],
    failed: Mapping[str, _Verdict],
    skipped: Iterable[ChangedCluster],
    *,
    holds: bool,
    fails: bool,
) -> RolloutStatus:
    clusters = []
    for number, group in enumerate(given.spec.order(given.groups), 1):
        label = f"{number} ({group.name})" if group.name else str(number)
        for name in group.clusters:
            verdict = verdicts.get(name)
            if name in delivered:
                clusters.append(RolloutCluster(name, label, "updated", delivered[name].applied_at))
            elif name in given.changes:
                detail = _describe_postponement(given.changes[name]) if name in begun else ""
                clusters.append(RolloutCluster(name, label, "waiting", detail=detail))
            elif name in given.kept:
                clusters.append(RolloutCluster(name, label, "waiting", detail=_UNCHANGED))
            elif verdict is not None:
                detail = _describe_verdict(verdict, given.reports)
                clusters.append(RolloutCluster(name, label, verdict.cluster_state, verdict.changed.applied_at, detail))
            else:
                clusters.append(RolloutCluster(name, label, "unchanged"))
    clusters += [RolloutCluster(one.cluster, "", "skipped", one.applied_at, _describe_absence(given, one)) for one in skipped]
    if all(one.state == "unchanged" for one in clusters):
        clusters = []
    pending = [one for one in clusters if one.state in ("updated", "progressing")]
    postponed = sorted(begun - delivered.keys())
    blocked = [name for name in postponed if any(one.blocked for one in given.changes[name])]
    is_stopped = holds and not pending and not postponed and bool(failed)
    state: RolloutState = "stopped" if is_stopped else "progressing" if holds or pending else "complete"
    if is_stopped:
        waits = f"{format_names(sorted(failed))} failed"
    elif pending:
        waits = f"reports of {format_names([one.cluster for one in pending])}"
    elif blocked:
        waits = f"{format_names(blocked)}, where the manifest does not change"
    elif postponed:
        waits = f"the overlap in {format_names(postponed)}"
    elif holds:
        waits = f"{format_names(sorted(given.kept))}, where nothing changes now" if given.kept else "a cluster that can begin"
    else:
        waits = ""
    remedy = _describe_remedy(failed.values(), state, fails=fails)
    is_timed = _has_deadline(verdicts.values()) or bool(postponed and not (pending or blocked))  # an overlap ends
    return RolloutStatus(given.spec.name, given.strategy.type, state, waits, tuple(clusters), remedy=remedy, is_timed=is_timed)


def _has_deadline(verdicts: Iterable[_Verdict]) -> bool:
    """Return whether some cluster gets a result at some time even without a report."""
    return any(not (one.state or one.accepted) and one.time is not None for one in verdicts)


def _describe_postponement(found: Iterable[PendingFiles]) -> str:
    """Return why a cluster whose turn has come does not get a change yet."""
    blocked = [str(one.held.workload) for one in found if one.blocked]
    return f"the manifest of {format_names(blocked)} {BLOCKED}" if blocked else "its copies stay for an overlap first"


def _describe_remedy(failed: Iterable[_Verdict], state: RolloutState, *, fails: bool) -> str:
    """Return how to go on after failures, or back; "" for a rollout that is complete, or goes on in spite of them."""
    if state == "complete" or not (fails or state == "stopped"):
        return ""
    emptied = sorted(one.changed.cluster for one in failed if one.lost in (EVICTED, ELSEWHERE))
    lost = sorted(one.changed.cluster for one in failed if one.lost not in ("", EVICTED, ELSEWHERE))
    accepted = ", ".join(f"{one.changed.cluster}@{format_time(one.changed.applied_at)}" for one in sorted(failed))
    ways = [f"make {format_names(lost)} available again"] if lost else []
    ways += [f"place the workloads in {format_names(emptied)} again (gitsched rebalance)"] if emptied else []
    ways += [f"remove {format_names(sorted((*lost, *emptied)))} from the fleet or from its policies"] if lost or emptied else []
    ways += ["push a fix"] if any(not one.lost for one in failed) else []
    return (
        f'to go on, {", ".join(ways)}, or accept the failure with the annotation {ACCEPT_ANNOTATION}: "{accepted}" on the Rollout; '
        f"to go back, {REVERT_CHANGE}"
    )


def _describe_absence(given: StepInput, changed: ChangedCluster) -> str:
    """Return why nothing waits for a cluster."""
    return "no policy places its workloads there any more" if given.is_known(changed.cluster) else "its document is removed"


def _describe_verdict(verdict: _Verdict, reports: KnownReports) -> str:
    """Return what is known about a cluster with the change, in one line."""
    if verdict.lost:
        return f"lost before it reported that it is healthy: {verdict.lost}"
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
