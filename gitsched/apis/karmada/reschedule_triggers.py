"""Apply the WorkloadRebalancers of a snapshot: set the reschedule triggers of bindings and record the results."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from datetime import datetime, timedelta

from gitsched.apis.capabilities import ExpiredDocument
from gitsched.apis.karmada.binding.resource_binding import REBALANCE_REQUESTED, PreviousState, binding_key
from gitsched.apis.karmada.names import APPS_GROUP, REBALANCER
from gitsched.apis.karmada.rebalancer import (
    BindingLookup,
    DecideWorkload,
    WorkloadRebalancer,
    expire_rebalancer,
    is_expired,
    read_last_scheduled,
    read_rebalancer,
    read_references,
    update_observed_workloads,
    write_rebalancer_record,
)
from gitsched.apis.karmada.rebalancer_findings import (
    ExplainUnmoved,
    find_lost_requests,
    find_missing_targets,
    find_unmoved_targets,
    list_remark_findings,
    make_expiry_finding,
)
from gitsched.apis.snapshot import EMPTY_SNAPSHOT, Snapshot
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.finding import Finding
from gitsched.model.time import add_duration, format_time

_RESOLUTION = timedelta(seconds=1)
"""The resolution of times in records."""


class RescheduleTriggers:
    """The WorkloadRebalancers of a snapshot and the reschedule triggers of bindings.

    `records`, `findings`, `wakeup`, `time` and `expired` are set by `reconcile`. `wakeup` is when the next rebalancer expires, `time` when
    the latest one expired that this run found expired, and `expired` are the rebalancers that were handled in an earlier run and have
    expired.
    """

    __slots__ = ("_naming", "_trigger_times", "absent", "expired", "findings", "rebalancers", "records", "time", "wakeup")

    def __init__(self, snapshot: Snapshot) -> None:
        self.rebalancers = tuple(
            read_rebalancer(document, snapshot.previous.get(document.key), _find_creation_time(document, snapshot))
            for document in snapshot.documents.get((APPS_GROUP, REBALANCER), ())
            if not get_field(document.body, "metadata", "deletionTimestamp")  # being deleted
        )
        self._naming: dict[Key, list[WorkloadRebalancer]] | None = None
        self._trigger_times: dict[Key, datetime] = {}
        for rebalancer in self.rebalancers:
            for workload in rebalancer.pending:
                known = self._trigger_times.get(workload.binding)
                self._trigger_times[workload.binding] = max(known or rebalancer.created, rebalancer.created)
        self.records: tuple[tuple[Key, Body], ...] = ()
        self.findings: tuple[Finding, ...] = ()
        self.expired: tuple[ExpiredDocument, ...] = ()
        self.wakeup: datetime | None = None
        self.time: datetime | None = None
        self.absent = frozenset[Key]()

    @property
    def pending(self) -> bool:
        """Whether a workload has not been rebalanced yet."""
        return bool(self._trigger_times)

    def apply_trigger(self, binding: Key, current: PreviousState) -> PreviousState:
        """Set spec.rescheduleTriggeredAt of a binding as the rebalancers do: only to a later time."""
        triggered = self._trigger_times.get(binding)
        return (
            current
            if triggered is None or (current.reschedule_triggered and current.reschedule_triggered >= triggered)
            else current._replace(reschedule_triggered=triggered)
        )

    def keeps_available(self, binding: Key, current: PreviousState) -> bool:
        """Return whether the rebalancers that trigger the present rebalance of a binding ask to keep what is available."""
        triggering = [one for one in self.list_naming(binding) if one.created == current.reschedule_triggered]
        return bool(triggering) and all(one.keeps_available for one in triggering)

    def add_companions(self, list_companions: Callable[[Key], Iterable[Key]]) -> None:
        """Set the triggers of the companions that follow a workload of a rebalancer."""
        for rebalancer in self.rebalancers:
            for workload in rebalancer.pending:
                for companion in list_companions(workload.key):
                    binding = binding_key(companion)
                    self._trigger_times[binding] = max(self._trigger_times.get(binding) or rebalancer.created, rebalancer.created)

    def list_concerned(self, other: RescheduleTriggers) -> frozenset[Key]:
        """Return the bindings that one of both triggers, and those that a rebalancer names which is not the same in both."""
        named = ({(each.title, each.created, each.named) for each in triggers.rebalancers} for triggers in (self, other))
        differing = frozenset(workload.binding for _, _, workloads in set.symmetric_difference(*named) for workload in workloads)
        return differing.union(self._trigger_times, other._trigger_times)

    def list_missing(self, templates: Container[Key]) -> frozenset[Key]:
        """Return the bindings of the workloads that have not been rebalanced yet and are not among these templates, named as they are."""
        named = (workload for rebalancer in self.rebalancers for workload in rebalancer.pending)
        return frozenset(workload.binding for workload in named if workload.key not in templates)

    def list_naming(self, binding: Key) -> list[WorkloadRebalancer]:
        """Return the rebalancers of the source that name the workload of a binding."""
        if self._naming is None:
            self._naming = {}
            for rebalancer in self.rebalancers:
                for named in {workload.binding for workload in rebalancer.named}:
                    self._naming.setdefault(named, []).append(rebalancer)
        return self._naming.get(binding, [])

    def describe_trigger(self, binding: Key, current: PreviousState) -> str:
        """Describe the reschedule trigger of a binding: the rebalancers, if they still exist, and the time."""
        names = [rebalancer.title for rebalancer in self.list_naming(binding) if rebalancer.created == current.reschedule_triggered]
        by = f" by {', '.join(names)}" if names else ""
        return f"{REBALANCE_REQUESTED}{by}" + (
            f" at {format_time(current.reschedule_triggered)}" if current.reschedule_triggered else ""
        )

    def describe_last(self, binding: Key, current: PreviousState) -> str:
        """Describe the rebalance by which a binding was scheduled last; "" if something else scheduled it last."""
        triggered, scheduled = current.reschedule_triggered, current.last_scheduled
        if triggered is None or scheduled is None or triggered > scheduled:
            return ""
        handled = [entry for entry in self.list_naming(binding) if entry.created == triggered]
        if scheduled not in (triggered, *(entry.finished for entry in handled)):
            return ""
        names = ", ".join(entry.title for entry in handled) or "a WorkloadRebalancer that is not in the source now"
        regard = (
            "keeping what was available"
            if handled and all(entry.keeps_available for entry in handled)
            else "without regard to where its replicas were"
        )
        return f"{names} rescheduled it at {format_time(scheduled)}, {regard}"

    def reconcile(self, snapshot: Snapshot, decide: DecideWorkload, explain_unmoved: ExplainUnmoved) -> None:
        """Update the observed workloads of each rebalancer.

        The bindings are those of this run: a workload that the same commit adds has one, a workload that it removes has none.
        """
        bindings = BindingLookup(snapshot, decide, self.absent)
        self.wakeup = self.time = None
        findings: list[Finding] = []
        expired: list[ExpiredDocument] = []
        quarantined = sorted(filter(_is_rebalancer, snapshot.quarantined))
        records = [(key, snapshot.previous[key]) for key in quarantined if key in snapshot.previous]
        for before in self.rebalancers:
            time = _find_handling_time(before, snapshot)
            observed = update_observed_workloads(before, map(bindings.find_availability, before.pending), time)
            after = expire_rebalancer(observed, snapshot.now)
            unmoved = find_unmoved_targets(before, after, snapshot.previous, bindings, explain_unmoved)
            after = after._replace(remarks=(*before.remarks, *unmoved))
            records.append((after.document.key, write_rebalancer_record(after, keep_results=not snapshot.single_cycle)))
            if after.expired is None and after.expiry is not None:
                self.wakeup = min(self.wakeup or after.expiry, after.expiry)
            elif before.expired is None and after.expired is not None and after.expired > snapshot.at:
                self.time = max(self.time or after.expired, after.expired)
            if after.finished is not None and before.finished != after.finished > snapshot.at:
                self.time = max(self.time or after.finished, after.finished)
            if after.expired is not None and not before.pending:
                expired.append(ExpiredDocument(after.document, after.expired))
            # Before its commit is reconciled, a rebalancer that expires at once is still needed.
            if after.expired is not None and (not before.pending or after.expired > snapshot.at):
                findings.append(make_expiry_finding(after))
            findings += list_remark_findings(after)
            findings += find_missing_targets(after)
            findings += find_lost_requests(before, snapshot.previous)
        self.records, self.findings, self.expired = tuple(records), tuple(findings), tuple(expired)


NO_TRIGGERS = RescheduleTriggers(EMPTY_SNAPSHOT)
"""Of a snapshot without WorkloadRebalancers."""


def _is_rebalancer(key: Key) -> bool:
    return (key.group, key.kind) == (APPS_GROUP, REBALANCER)


def _find_handling_time(rebalancer: WorkloadRebalancer, snapshot: Snapshot) -> datetime:
    """Return when the pending workloads of a rebalancer are handled: at the commit.

    Where an earlier run has left them pending, this run may be later than the commit because of an allowance, or of a freeze that was
    lifted. Then its own time counts if the run is late by more than a tenth of ttlSecondsAfterFinished, which starts then.
    """
    if rebalancer.ttl is None or not rebalancer.was_pending:
        return snapshot.at
    is_late = snapshot.now > add_duration(snapshot.at, timedelta(seconds=max(rebalancer.ttl, 0) / 10))
    return snapshot.now.replace(microsecond=0) if is_late else snapshot.at


def _find_creation_time(document: Document, snapshot: Snapshot) -> datetime:
    """Return the creation time of a rebalancer whose document has none and that no earlier run has recorded.

    It is the time of the commit, but later than what earlier runs scheduled: they may have scheduled a workload for a deadline after the
    commit, or within the same second. An API server, too, dates an object when it is created there, not when its manifest was written.
    """
    record = snapshot.previous.get(document.key)
    if get_field(document.body, "metadata", "creationTimestamp") or (record is not None and not is_expired(record)):
        return snapshot.at
    scheduled = (read_last_scheduled(snapshot.previous.get(workload.binding)) for workload in read_references(document))
    return max((snapshot.at, *(add_duration(time, _RESOLUTION) for time in scheduled if time is not None)))
