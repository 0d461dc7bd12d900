"""Cluster failover by NoExecute taints and application failover by reported health (spec/karmada.md §9).

Eviction moves a cluster from a binding's targets into a graceful eviction task. The task keeps the old copy, and the scheduler away from
that cluster, until its time is over or the new copies are reported healthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal, NamedTuple

from gitsched.apis.karmada.binding.resource_binding import PreviousState, ScheduleResult
from gitsched.apis.karmada.failover.graceful_eviction import (
    APPLICATION_FAILURE,
    HEALTH_AT_EVICTION,
    TAINT_UNTOLERATED,
    UNHEALTHY_SINCE,
    AggregatedStatus,
    AggregatedStatuses,
    UnhealthySince,
    apply_suppress_deletion,
    drop_expired_tasks,
    find_eviction_time,
    make_eviction_task,
    read_applied_tolerations,
    read_unhealthy_since,
    update_unhealthy_since,
    write_unhealthy_since,
)
from gitsched.apis.karmada.failover.state_preservation import (
    PRESERVED_STATE,
    list_preservation_rules,
    preserve_state,
    write_preserved_state,
)
from gitsched.apis.karmada.names import APPLIED_PLACEMENT_ANNOTATION, BINDING, binding_key
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.settings import KarmadaConfig
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Assignment
from gitsched.model.taints import NO_EXECUTE, Toleration
from gitsched.model.time import add_duration
from gitsched.schedule.fleet import Fleet

_FAILOVER_PRODUCER = "resource-binding-application-failover-controller"


class UnhealthyCluster(NamedTuple):
    """What a report and the failover rules of a policy make of a workload: since when it is unhealthy, and for how many seconds it may be.
    Without both there is nothing to tell, and no timer runs."""

    status: AggregatedStatus
    since: UnhealthySince
    toleration_seconds: int

    def list_overdue(self, moment: datetime) -> list[str]:
        """The clusters where it is unhealthy for too long."""
        return [
            name
            for name in self.status.unhealthy_clusters
            if name in self.since and add_duration(self.since[name], self.toleration_seconds) <= moment
        ]


class FailoverTimer(NamedTuple):
    """Since when a workload is unhealthy in a cluster, and when it leaves it."""

    cluster: str
    since: datetime
    end: datetime


class Exclusion(NamedTuple):
    """Why a workload is kept out of a cluster: an eviction from there still goes on, it is ill there, or its toleration has run out.
    `end` is when an eviction is over by time, None where only a person ends it."""

    reason: Literal["evicted", "ill", "intolerant"]
    end: datetime | None = None


class Failover:
    """Evictions from one fleet."""

    __slots__ = ("_expired_tolerations", "_fleet", "_no_execute", "_settings", "_statuses")

    def __init__(self, fleet: Fleet, settings: KarmadaConfig, reports: Iterable[Document]) -> None:
        self._fleet, self._settings, self._statuses = fleet, settings, AggregatedStatuses(reports)
        hot = (c.name for c in fleet.candidates if any(t.effect == NO_EXECUTE for t in c.taints))
        self._no_execute = frozenset(hot) if settings.taint_eviction else frozenset[str]()
        self._expired_tolerations: tuple[datetime | None, dict[tuple[Toleration, ...], tuple[str, ...]]] = (None, {})

    def read_purge_mode(self, policy: PropagationPolicy) -> str:
        """What becomes of the copy in a cluster that a workload leaves for the cluster's sake."""
        cluster = get_field(policy.spec, "failover", "cluster")
        return self._settings.eviction_purge_mode if cluster is None else str(cluster.get("purgeMode") or "Gracefully")

    def drop_finished_tasks(self, template: Document, memory: PreviousState, moment: datetime) -> PreviousState:
        """The memory without the tasks that are over: their time is, a person let them go, or every target is reported healthy.

        The report must be another one than the one known at the eviction, for that cannot speak of what came after it.
        """
        report = self._statuses.get(binding_key(template.key)) if memory.eviction_tasks else None
        tasks = memory.eviction_tasks if report is None else apply_suppress_deletion(memory.eviction_tasks, report)
        live = drop_expired_tasks(tasks, self._settings.graceful_eviction_timeout, moment).active
        if report is not None and self._has_recovered(report, memory):
            live = tuple(task for task in live if task.get("suppressDeletion") is True)
        return memory._replace(eviction_tasks=live)

    def evict(self, template: Document, policy: PropagationPolicy, memory: PreviousState, moment: datetime) -> PreviousState:
        """Move the clusters that the workload must leave at this moment from its targets into tasks."""
        cold = not any(target.name in self._no_execute for target in memory.clusters)
        ill = self._read_unhealthy(template, policy, memory)
        failed = ill.list_overdue(moment) if ill else []
        if cold and not failed:
            return memory
        tolerations = read_applied_tolerations(memory.applied_placement)
        evicting = {task.get("fromCluster") for task in memory.eviction_tasks}
        stay: list[Assignment] = []
        tasks = list(memory.eviction_tasks)
        for target in memory.clusters:
            end = self._find_toleration_end(target.name, tolerations, moment)
            tainted = end is not None and end <= moment
            if not tainted and (target.name not in failed or target.name in evicting):
                stay.append(target)
            elif target.name not in evicting:
                flight = self._evict_tainted(template, policy, target, moment) if tainted else None
                tasks.append(flight or self._evict_failed(template, policy, memory.clusters, target, moment))
        return memory._replace(clusters=tuple(stay), eviction_tasks=tuple(tasks))

    def list_excluded_clusters(
        self, template: Document, policy: PropagationPolicy, memory: PreviousState, moment: datetime
    ) -> tuple[str, ...]:
        """The clusters that would evict the workload as soon as it came: its toleration has run out there, or it failed there and nobody
        says that it would do better now. Upstream places it there nevertheless and evicts it again, for ever; here that would be a
        commit each time. What it holds is left to eviction."""
        ill = self._read_unhealthy(template, policy, memory)
        failed = ill.list_overdue(moment) if ill else []
        if not self._no_execute and not failed:
            return ()
        held = {target.name for target in memory.clusters}
        return tuple(
            name for name in (*self._list_expired_tolerations(policy.placement.tolerations, moment), *failed) if name not in held
        )

    def find_exclusion(
        self, template: Document, policy: PropagationPolicy, memory: PreviousState, cluster: str, moment: datetime
    ) -> Exclusion | None:
        """What keeps a workload out of a cluster, where an eviction that was, or would be, does; None where none does."""
        for task in memory.eviction_tasks:
            if task.get("fromCluster") == cluster:
                return Exclusion(
                    "evicted",
                    drop_expired_tasks((task,), self._settings.graceful_eviction_timeout, moment).wakeup,
                )
        ill = self._read_unhealthy(template, policy, memory)
        if ill is not None and cluster in ill.list_overdue(moment):
            return Exclusion("ill")
        return Exclusion("intolerant") if cluster in self._list_expired_tolerations(policy.placement.tolerations, moment) else None

    def write_annotations(
        self, template: Document, policy: PropagationPolicy, before: PreviousState, result: ScheduleResult, moment: datetime
    ) -> Mapping[str, str]:
        """What the binding has to remember about health, and about the state that went along, as annotations."""
        notes: dict[str, str] = {}
        ill = self._read_unhealthy(template, policy, before)
        if ill is not None:
            held = [target.name for target in result.clusters]
            since = update_unhealthy_since(ill.status, ill.since, held, ill.list_overdue(moment), moment)
            if since:
                notes[UNHEALTHY_SINCE] = write_unhealthy_since(since)
        known = {(task.get("fromCluster"), task.get("creationTimestamp")) for task in before.eviction_tasks}
        report = self._statuses.get(binding_key(template.key)) if result.eviction_tasks else None
        seen = before.annotations.get(HEALTH_AT_EVICTION, "")
        if any((task.get("fromCluster"), task.get("creationTimestamp")) not in known for task in result.eviction_tasks):
            seen = report.digest if report else ""
        if seen and result.eviction_tasks:
            notes[HEALTH_AT_EVICTION] = seen
        if any(list_preservation_rules(behavior) for behavior in (policy.spec.get("failover") or {}).values()):
            state = write_preserved_state(before.annotations, result.clusters, result.eviction_tasks)
            notes |= {PRESERVED_STATE: state} if state else {}
        return notes

    def find_wakeup(
        self, template: Document, policy: PropagationPolicy, result: ScheduleResult, moment: datetime
    ) -> datetime | None:
        """The next deadline; `moment` itself where the tolerations just applied, or those of ill health, have run out already."""
        ends = [drop_expired_tasks(result.eviction_tasks, self._settings.graceful_eviction_timeout, moment).wakeup]
        if any(target.name in self._no_execute for target in result.clusters):
            tolerations = read_applied_tolerations(result.applied_placement)
            ends += [self._find_toleration_end(target.name, tolerations, moment) for target in result.clusters]
        ends += [
            max(end, moment)
            for _, _, end in self.list_health_timers(template, policy, result.annotations, [t.name for t in result.clusters])
        ]
        return min((end for end in ends if end is not None), default=None)

    def list_health_timers(
        self, template: Document, policy: PropagationPolicy, notes: Mapping[str, str], clusters: Iterable[str]
    ) -> list[FailoverTimer]:
        """Which of its clusters a workload is going to leave because of its health, by the annotations of its binding."""
        report, seconds = self._statuses.get(binding_key(template.key)), _read_toleration_seconds(policy)
        if report is None or seconds is None:
            return []
        since, ill = read_unhealthy_since(notes), frozenset(report.unhealthy_clusters)
        return [
            FailoverTimer(name, since[name], add_duration(since[name], seconds))
            for name in clusters
            if name in ill and name in since
        ]

    def list_toleration_timers(self, notes: Mapping[str, str], clusters: Iterable[str], moment: datetime) -> list[FailoverTimer]:
        """Which of its clusters a workload is going to leave because it tolerates a taint for a time only, by the annotations of its
        binding; `since` is the moment asked about."""
        tolerations = read_applied_tolerations(notes.get(APPLIED_PLACEMENT_ANNOTATION))
        ends = ((name, self._find_toleration_end(name, tolerations, moment)) for name in clusters)
        return [FailoverTimer(name, moment, end) for name, end in ends if end is not None and end > moment]

    def find_unpreserved_state(self, template: Document, policy: PropagationPolicy, tasks: Iterable[Body]) -> Iterator[Finding]:
        """Evictions that took no state along, although the policy wants it preserved."""
        behaviors = {TAINT_UNTOLERATED: "cluster", APPLICATION_FAILURE: "application"}
        for task in tasks:
            rules = list_preservation_rules(get_field(policy.spec, "failover", behaviors.get(str(task.get("reason")), "")))
            if rules and not task.get("preservedLabelState"):
                cluster = str(task.get("fromCluster"))
                report = self._statuses.get(binding_key(template.key))
                why = preserve_state(rules, report.statuses.get(cluster) if report else None, cluster).reason
                message = f"{template.key} left cluster {cluster} without the state that its policy wants preserved"
                message = f"{message}: {why}" if why else message
                yield Finding("warning", "state-not-preserved", message, locate_document(template), template.key.resource)

    def _read_unhealthy(self, template: Document, policy: PropagationPolicy, memory: PreviousState) -> UnhealthyCluster | None:
        report = self._statuses.get(binding_key(template.key))
        seconds = _read_toleration_seconds(policy) if report is not None and report.health else None
        if report is None or seconds is None:
            return None
        return UnhealthyCluster(report, read_unhealthy_since(memory.annotations), seconds)

    def _has_recovered(self, report: AggregatedStatus, memory: PreviousState) -> bool:
        caught_up = memory.condition.get("reason") == "Success"
        news = bool(report.digest) and report.digest != memory.annotations.get(HEALTH_AT_EVICTION)
        return caught_up and news and report.is_healthy_in_all([target.name for target in memory.clusters])

    def _evict_tainted(self, template: Document, policy: PropagationPolicy, target: Assignment, moment: datetime) -> Body:
        state = self._preserve_state(binding_key(template.key), get_field(policy.spec, "failover", "cluster"), target)
        return make_eviction_task(target, self.read_purge_mode(policy), moment, preservedLabelState=state)

    def _evict_failed(
        self, template: Document, policy: PropagationPolicy, held: Iterable[Assignment], target: Assignment, moment: datetime
    ) -> Body:
        rules, key = policy.spec["failover"]["application"], binding_key(template.key)
        mode = str(rules.get("purgeMode") or "Gracefully")
        state = self._preserve_state(key, rules, target)
        return make_eviction_task(
            target,
            mode,
            moment,
            APPLICATION_FAILURE,
            _FAILOVER_PRODUCER if key.kind == BINDING else f"cluster-{_FAILOVER_PRODUCER}",
            gracePeriodSeconds=rules.get("gracePeriodSeconds") if mode == "Gracefully" else None,
            suppressDeletion=mode == "Never",
            preservedLabelState=state,
            clustersBeforeFailover=[one.name for one in held] if state else None,
        )

    def _preserve_state(self, binding: Key, rules: Body | None, target: Assignment) -> Body:
        report = self._statuses.get(binding)
        status = report.statuses.get(target.name) if report is not None else None
        return {**preserve_state(list_preservation_rules(rules), status, target.name).labels}

    def _list_expired_tolerations(self, tolerations: tuple[Toleration, ...], moment: datetime) -> tuple[str, ...]:
        if self._expired_tolerations[0] != moment:
            self._expired_tolerations = (moment, {})
        known = self._expired_tolerations[1]
        if tolerations not in known:
            ends = ((name, self._find_toleration_end(name, tolerations, moment)) for name in sorted(self._no_execute))
            known[tolerations] = tuple(name for name, end in ends if end is not None and end <= moment)
        return known[tolerations]

    def _find_toleration_end(self, cluster: str, tolerations: tuple[Toleration, ...] | None, moment: datetime) -> datetime | None:
        if cluster not in self._no_execute or tolerations is None:
            return None
        return find_eviction_time(self._fleet.candidates[self._fleet.index[cluster]].taints, tolerations, moment)


def _read_toleration_seconds(policy: PropagationPolicy) -> int | None:
    """For how many seconds a workload may be unhealthy; None for ever, which is also so without its dependencies."""
    application = get_field(policy.spec, "failover", "application")
    if application is None or not policy.spec.get("propagateDeps"):
        return None
    seconds = get_field(application, "decisionConditions", "tolerationSeconds")
    return 300 if seconds is None else int(seconds)
