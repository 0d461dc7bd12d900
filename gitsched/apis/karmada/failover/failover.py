"""Cluster failover by NoExecute taints and application failover by reported health (spec/karmada.md §9).

An eviction moves a cluster from the clusters of a binding into a graceful eviction task. Until the task times out, or the new copies are
reported healthy, the old copy is kept and the scheduler does not choose that cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal

from gitsched.apis.karmada.binding.resource_binding import PreviousState, ScheduleResult, binding_key
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
from gitsched.apis.karmada.names import APPLIED_PLACEMENT_ANNOTATION, BINDING
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.settings import KarmadaConfig
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Assignment
from gitsched.model.taints import NO_EXECUTE, Toleration
from gitsched.model.time import add_duration
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Fleet

_FAILOVER_PRODUCER = "resource-binding-application-failover-controller"


class UnhealthyCluster(NamedTuple):
    """Health of a workload whose policy has application failover.

    `since` is when it became unhealthy, by cluster; `toleration_seconds` is how long it may stay unhealthy.
    """

    status: AggregatedStatus
    since: UnhealthySince
    toleration_seconds: int

    def list_overdue(self, time: datetime) -> list[str]:
        """Return the clusters where the workload has been unhealthy for longer than is tolerated."""
        return [
            name
            for name in self.status.unhealthy_clusters
            if name in self.since and add_duration(self.since[name], self.toleration_seconds) <= time
        ]


class FailoverTimer(NamedTuple):
    """A pending eviction from a cluster: when its timer started and when it ends."""

    cluster: str
    since: datetime
    end: datetime


class Exclusion(NamedTuple):
    """Why the scheduler must not choose a cluster for a workload: graceful eviction from it, bad health there, or an expired toleration.

    `end` is when the graceful eviction times out; None if it ends only by suppressDeletion.
    """

    reason: Literal["evicted", "unhealthy", "toleration-expired"]
    end: datetime | None = None


class Failover:
    """Evictions from the clusters of one fleet. `bindings` are committed bindings that report health."""

    __slots__ = ("_expired_tolerations", "_fleet", "_no_execute", "_settings", "_statuses")

    def __init__(self, fleet: Fleet, settings: KarmadaConfig, bindings: Iterable[Document]) -> None:
        documents = tuple(bindings)
        self._fleet, self._settings = fleet, settings
        self._statuses = AggregatedStatuses(documents) if documents else None
        no_execute = (c.name for c in fleet.candidates if any(t.effect == NO_EXECUTE for t in c.taints))
        self._no_execute = frozenset(no_execute) if settings.taint_eviction else frozenset[str]()
        self._expired_tolerations: tuple[datetime | None, dict[tuple[Toleration, ...], tuple[str, ...]]] = (None, {})

    def read_purge_mode(self, policy: PropagationPolicy) -> str:
        """Return the purge mode of an eviction by taints."""
        cluster = get_field(policy.spec, "failover", "cluster")
        return self._settings.eviction_purge_mode if cluster is None else str(cluster.get("purgeMode") or "Gracefully")

    def purges_directly(self, policy: PropagationPolicy) -> bool:
        """Return whether workloads of a policy never run in the cluster that they leave and in another one at the same time."""
        rules = policy.spec.get("failover") or {}
        if rules.get("cluster") is None and rules.get("application") is not None:
            return bool(rules["application"].get("purgeMode") == "Directly")
        return self.read_purge_mode(policy) == "Directly"

    def list_ended_tasks(self, template: Document, tasks: tuple[Body, ...]) -> frozenset[str]:
        """Return the clusters of graceful eviction tasks that a person has ended by suppressDeletion."""
        status = self._find_status(template.key)
        ended = apply_suppress_deletion(tasks, status) if status is not None else tasks
        return frozenset(str(task.get("fromCluster")) for task in ended if task.get("suppressDeletion") is False)

    def drop_finished_tasks(self, template: Document, current: PreviousState, time: datetime) -> PreviousState:
        """Remove graceful eviction tasks that have timed out, were released by suppressDeletion, or whose new copies are all healthy.

        Only a status that differs from the one at the time of the eviction counts: the earlier one describes the earlier placement.
        """
        if not current.eviction_tasks:
            return current
        status = self._find_status(template.key)
        tasks = current.eviction_tasks if status is None else apply_suppress_deletion(current.eviction_tasks, status)
        active = drop_expired_tasks(tasks, self._settings.graceful_eviction_timeout, time).active
        if status is not None and self._has_recovered(status, current):
            active = tuple(task for task in active if task.get("suppressDeletion") is True)
        return current._replace(eviction_tasks=active)

    def evict(self, template: Document, policy: PropagationPolicy, current: PreviousState, time: datetime) -> PreviousState:
        """Move the clusters that the workload must leave at `time` from its clusters into graceful eviction tasks."""
        untainted = not any(target.name in self._no_execute for target in current.clusters)
        unhealthy = self._read_unhealthy(template, policy, current)
        failed = unhealthy.list_overdue(time) if unhealthy else []
        if untainted and not failed:
            return current
        tolerations = read_applied_tolerations(current.applied_placement)
        evicting = {task.get("fromCluster") for task in current.eviction_tasks}
        kept: list[Assignment] = []
        tasks = list(current.eviction_tasks)
        for target in current.clusters:
            end = self._find_toleration_end(target.name, tolerations, time)
            tainted = end is not None and end <= time
            if not tainted and (target.name not in failed or target.name in evicting):
                kept.append(target)
            elif target.name not in evicting:
                if tainted:
                    tasks.append(self._evict_tainted(template, policy, target, time))
                else:
                    tasks.append(self._evict_failed(template, policy, current.clusters, target, time))
        return current._replace(clusters=tuple(kept), eviction_tasks=tuple(tasks))

    def list_excluded_clusters(
        self, template: Document, policy: PropagationPolicy, current: PreviousState, time: datetime
    ) -> tuple[str, ...]:
        """Return the clusters that would evict the workload at once: its toleration has expired, or it has been unhealthy there.

        Upstream schedules it there and evicts it again without end; here that would be a commit each time. Clusters of the binding are
        not listed: `evict` handles them.
        """
        unhealthy = self._read_unhealthy(template, policy, current)
        failed = unhealthy.list_overdue(time) if unhealthy else []
        if not self._no_execute and not failed:
            return ()
        bound = {target.name for target in current.clusters}
        return tuple(
            name for name in (*self._list_expired_tolerations(policy.placement.tolerations, time), *failed) if name not in bound
        )

    def read_health(self, workload: Key) -> Mapping[str, str]:
        """Return the health that clusters report for a workload, without clusters where it is not known."""
        status = self._find_status(workload)
        return {cluster: health for cluster, health in status.health.items() if health} if status is not None else {}

    def list_reports(self, workload: Key) -> Mapping[str, Body]:
        """Return the entries of aggregatedStatus that were committed for a workload, by cluster."""
        status = self._find_status(workload)
        return status.entries if status is not None else {}

    def find_exclusion(
        self, template: Document, policy: PropagationPolicy, current: PreviousState, cluster: str, time: datetime
    ) -> Exclusion | None:
        """Return why eviction, past or expected, excludes a cluster for a workload; None when it does not."""
        for task in current.eviction_tasks:
            if task.get("fromCluster") == cluster:
                return Exclusion(
                    "evicted",
                    drop_expired_tasks((task,), self._settings.graceful_eviction_timeout, time).wakeup,
                )
        unhealthy = self._read_unhealthy(template, policy, current)
        if unhealthy is not None and cluster in unhealthy.list_overdue(time):
            return Exclusion("unhealthy")
        return (
            Exclusion("toleration-expired")
            if cluster in self._list_expired_tolerations(policy.placement.tolerations, time)
            else None
        )

    def write_annotations(
        self, template: Document, policy: PropagationPolicy, previous: PreviousState, result: ScheduleResult, time: datetime
    ) -> dict[str, str]:
        """Return the annotations of the binding about health and preserved state."""
        if self._statuses is None and not (result.eviction_tasks or policy.spec.get("failover")):
            return {}  # almost every workload
        annotations: dict[str, str] = {}
        unhealthy = self._read_unhealthy(template, policy, previous)
        if unhealthy is not None:
            bound = [target.name for target in result.clusters]
            since = update_unhealthy_since(unhealthy.status, unhealthy.since, bound, unhealthy.list_overdue(time), time)
            if since:
                annotations[UNHEALTHY_SINCE] = write_unhealthy_since(since)
        known = {(task.get("fromCluster"), task.get("creationTimestamp")) for task in previous.eviction_tasks}
        status = self._find_status(template.key) if result.eviction_tasks else None
        seen = previous.annotations.get(HEALTH_AT_EVICTION, "")
        if any((task.get("fromCluster"), task.get("creationTimestamp")) not in known for task in result.eviction_tasks):
            seen = status.digest if status else ""
        if seen and result.eviction_tasks:
            annotations[HEALTH_AT_EVICTION] = seen
        if any(list_preservation_rules(behavior) for behavior in (policy.spec.get("failover") or {}).values()):
            preserved = write_preserved_state(previous.annotations, result.clusters, result.eviction_tasks)
            annotations |= {PRESERVED_STATE: preserved} if preserved else {}
        return annotations

    def find_wakeup(
        self, template: Document, policy: PropagationPolicy, result: ScheduleResult, time: datetime, now: datetime
    ) -> datetime | None:
        """Return the next deadline of tasks, tolerations and health timers; `time` itself when one has passed already.

        A workload that is not placed as it should be is scheduled again in each run, so that tolerations count in clusters without it.
        Of those that end before `now` the last one counts, with which all others have ended.
        """
        if self._statuses is None and not (self._no_execute or result.eviction_tasks):
            return None  # almost every workload
        ends: list[datetime | None] = []
        if result.eviction_tasks:
            ends.append(drop_expired_tasks(result.eviction_tasks, self._settings.graceful_eviction_timeout, time).wakeup)
        if any(target.name in self._no_execute for target in result.clusters):
            tolerations = read_applied_tolerations(result.applied_placement)
            ends += [self._find_toleration_end(target.name, tolerations, time) for target in result.clusters]
        if self._no_execute and result.reason not in ("Success", ""):
            others = [self._find_toleration_end(name, policy.placement.tolerations, time) for name in sorted(self._no_execute)]
            coming = [end for end in others if end is not None and end > time]
            ends.append(max((end for end in coming if end <= now), default=min(coming, default=None)))
        ends += [
            max(end, time)
            for _, _, end in self.list_health_timers(template, policy, result.annotations, [t.name for t in result.clusters])
        ]
        return min((end for end in ends if end is not None), default=None)

    def list_health_timers(
        self, template: Document, policy: PropagationPolicy, annotations: Mapping[str, str], clusters: Iterable[str]
    ) -> list[FailoverTimer]:
        """Return the timers of evictions by health, from the annotations of the binding."""
        status = self._find_status(template.key)
        seconds = _read_toleration_seconds(policy) if status is not None else None
        if status is None or seconds is None:
            return []
        since, unhealthy = read_unhealthy_since(annotations), frozenset(status.unhealthy_clusters)
        return [
            FailoverTimer(name, since[name], add_duration(since[name], seconds))
            for name in clusters
            if name in unhealthy and name in since
        ]

    def list_toleration_timers(
        self, annotations: Mapping[str, str], clusters: Iterable[str], time: datetime
    ) -> list[FailoverTimer]:
        """Return the timers of evictions by taints that are tolerated for a limited time, started at `time`."""
        tolerations = read_applied_tolerations(annotations.get(APPLIED_PLACEMENT_ANNOTATION))
        ends = ((name, self._find_toleration_end(name, tolerations, time)) for name in clusters)
        return [FailoverTimer(name, time, end) for name, end in ends if end is not None and end > time]

    def find_unpreserved_state(self, template: Document, policy: PropagationPolicy, tasks: Iterable[Body]) -> Iterator[Finding]:
        """Report evictions that preserved no state although the policy has statePreservation rules."""
        behaviors = {TAINT_UNTOLERATED: "cluster", APPLICATION_FAILURE: "application"}
        for task in tasks:
            rules = list_preservation_rules(get_field(policy.spec, "failover", behaviors.get(str(task.get("reason")), "")))
            if rules and not task.get("preservedLabelState"):
                cluster = str(task.get("fromCluster"))
                status = self._find_status(template.key)
                why = preserve_state(rules, status.statuses.get(cluster) if status else None, cluster).reason
                message = f"{template.key} was evicted from cluster {cluster} without the state that its policy preserves"
                message = f"{message}: {why}" if why else message
                yield Finding("warning", "state-not-preserved", message, locate_document(template), template.key.resource)

    def _read_unhealthy(self, template: Document, policy: PropagationPolicy, current: PreviousState) -> UnhealthyCluster | None:
        status = self._find_status(template.key)
        seconds = _read_toleration_seconds(policy) if status is not None and status.health else None
        if status is None or seconds is None:
            return None
        return UnhealthyCluster(status, read_unhealthy_since(current.annotations), seconds)

    def _find_status(self, workload: Key) -> AggregatedStatus | None:
        return self._statuses.get(binding_key(workload)) if self._statuses is not None else None

    def _has_recovered(self, status: AggregatedStatus, current: PreviousState) -> bool:
        caught_up = current.condition.get("reason") == "Success"
        changed = bool(status.digest) and status.digest != current.annotations.get(HEALTH_AT_EVICTION)
        return caught_up and changed and status.is_healthy_in_all([target.name for target in current.clusters])

    def _evict_tainted(self, template: Document, policy: PropagationPolicy, target: Assignment, time: datetime) -> Body:
        state = self._preserve_state(binding_key(template.key), get_field(policy.spec, "failover", "cluster"), target)
        return make_eviction_task(target, self.read_purge_mode(policy), time, preservedLabelState=state)

    def _evict_failed(
        self, template: Document, policy: PropagationPolicy, bound: Iterable[Assignment], target: Assignment, time: datetime
    ) -> Body:
        rules, key = policy.spec["failover"]["application"], binding_key(template.key)
        mode = str(rules.get("purgeMode") or "Gracefully")
        state = self._preserve_state(key, rules, target)
        return make_eviction_task(
            target,
            mode,
            time,
            APPLICATION_FAILURE,
            _FAILOVER_PRODUCER if key.kind == BINDING else f"cluster-{_FAILOVER_PRODUCER}",
            gracePeriodSeconds=rules.get("gracePeriodSeconds") if mode == "Gracefully" else None,
            suppressDeletion=mode == "Never",
            preservedLabelState=state,
            clustersBeforeFailover=[assignment.name for assignment in bound] if state else None,
        )

    def _preserve_state(self, binding: Key, rules: Body | None, target: Assignment) -> Body:
        aggregated = self._statuses.get(binding) if self._statuses is not None else None
        status = aggregated.statuses.get(target.name) if aggregated is not None else None
        return {**preserve_state(list_preservation_rules(rules), status, target.name).labels}

    def _list_expired_tolerations(self, tolerations: tuple[Toleration, ...], time: datetime) -> tuple[str, ...]:
        if self._expired_tolerations[0] != time:
            self._expired_tolerations = (time, {})
        known = self._expired_tolerations[1]
        if tolerations not in known:
            ends = ((name, self._find_toleration_end(name, tolerations, time)) for name in sorted(self._no_execute))
            known[tolerations] = tuple(name for name, end in ends if end is not None and end <= time)
        return known[tolerations]

    def _find_toleration_end(self, cluster: str, tolerations: tuple[Toleration, ...] | None, time: datetime) -> datetime | None:
        if cluster not in self._no_execute or tolerations is None:
            return None
        return find_eviction_time(self._fleet.candidates[self._fleet.index[cluster]].taints, tolerations, time)


def _read_toleration_seconds(policy: PropagationPolicy) -> int | None:
    """Return for how many seconds a workload may be unhealthy; None without application failover or without propagateDeps."""
    application = get_field(policy.spec, "failover", "application")
    if application is None or not policy.spec.get("propagateDeps"):
        return None
    seconds = get_field(application, "decisionConditions", "tolerationSeconds")
    return 300 if seconds is None else int(seconds)
