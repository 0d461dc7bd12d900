"""Who must leave a cluster and who must not come: by NoExecute taints, and by the health that the repository reports (§9).

Eviction moves a cluster from a binding's targets into a graceful eviction task. The task keeps the old copy, and the scheduler away from
that cluster, until its time is over or the new copies are reported healthy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal, NamedTuple

from gitsched.apis.gitsched.config import Karmada
from gitsched.apis.karmada import eviction, health
from gitsched.apis.karmada.binding import Memory, Result
from gitsched.apis.karmada.health import Report, Reports
from gitsched.apis.karmada.names import APPLIED_PLACEMENT, BINDING, binding_key
from gitsched.apis.karmada.policy import Policy
from gitsched.apis.karmada.preservation import STATE, note_state, preserve_state
from gitsched.model.document import Body, Document, Key, member
from gitsched.model.finding import Finding, locate
from gitsched.model.request import Target
from gitsched.model.taints import NO_EXECUTE, Toleration
from gitsched.model.time import later
from gitsched.schedule.fleet import Fleet

_PRODUCER = "resource-binding-application-failover-controller"


class Ill(NamedTuple):
    """What a report and the failover rules of a policy make of a workload: since when it is unhealthy, and for how many seconds it may be.
    Without both there is nothing to tell, and no timer runs."""

    report: Report
    since: health.Since
    seconds: int

    def overdue(self, moment: datetime) -> list[str]:
        """The clusters where it is unhealthy for too long."""
        return [name for name in self.report.unhealthy if name in self.since and later(self.since[name], self.seconds) <= moment]


class Timer(NamedTuple):
    """Since when a workload is unhealthy in a cluster, and when it leaves it."""

    cluster: str
    since: datetime
    end: datetime


class Exile(NamedTuple):
    """Why a workload is kept out of a cluster: an eviction from there still goes on, it is ill there, or its toleration has run out.
    `end` is when an eviction is over by time, None where only a person ends it."""

    why: Literal["evicted", "ill", "intolerant"]
    end: datetime | None = None


class Failover:
    """Evictions from one fleet."""

    __slots__ = ("_fleet", "_hot", "_reports", "_run_out", "_settings")

    def __init__(self, fleet: Fleet, settings: Karmada, reports: Iterable[Document]) -> None:
        self._fleet, self._settings, self._reports = fleet, settings, Reports(reports)
        hot = (c.name for c in fleet.candidates if any(t.effect == NO_EXECUTE for t in c.taints))
        self._hot = frozenset(hot) if settings.taint_eviction else frozenset[str]()
        self._run_out: tuple[datetime | None, dict[tuple[Toleration, ...], tuple[str, ...]]] = (None, {})

    def purge_mode(self, policy: Policy) -> str:
        """What becomes of the copy in a cluster that a workload leaves for the cluster's sake."""
        cluster = member(policy.spec, "failover", "cluster")
        return self._settings.eviction_purge_mode if cluster is None else str(cluster.get("purgeMode") or "Gracefully")

    def sweep(self, template: Document, memory: Memory, moment: datetime) -> Memory:
        """The memory without the tasks that are over: their time is, a person let them go, or every target is reported healthy.

        The report must be another one than the one known at the eviction, for that cannot speak of what came after it.
        """
        report = self._reports.get(binding_key(template.key)) if memory.tasks else None
        tasks = memory.tasks if report is None else health.confirm_tasks(memory.tasks, report)
        live = eviction.sweep_tasks(tasks, self._settings.graceful_eviction_timeout, moment).live
        if report is not None and self._has_recovered(report, memory):
            live = tuple(task for task in live if task.get("suppressDeletion") is True)
        return memory._replace(tasks=live)

    def evict(self, template: Document, policy: Policy, memory: Memory, moment: datetime) -> Memory:
        """Move the clusters that the workload must leave at this moment from its targets into tasks."""
        cold = not any(target.name in self._hot for target in memory.clusters)
        ill = self._diagnose(template, policy, memory)
        failed = ill.overdue(moment) if ill else []
        if cold and not failed:
            return memory
        tolerations = eviction.applied_tolerations(memory.applied)
        evicting = {task.get("fromCluster") for task in memory.tasks}
        stay: list[Target] = []
        tasks = list(memory.tasks)
        for target in memory.clusters:
            end = self._taint_end(target.name, tolerations, moment)
            tainted = end is not None and end <= moment
            if not tainted and (target.name not in failed or target.name in evicting):
                stay.append(target)
            elif target.name not in evicting:
                flight = self._flee(template, policy, target, moment) if tainted else None
                tasks.append(flight or self._fail_over(template, policy, memory.clusters, target, moment))
        return memory._replace(clusters=tuple(stay), tasks=tuple(tasks))

    def doomed(self, template: Document, policy: Policy, memory: Memory, moment: datetime) -> tuple[str, ...]:
        """The clusters that would evict the workload as soon as it came: its toleration has run out there, or it failed there and nobody
        says that it would do better now. Upstream places it there nevertheless and evicts it again, for ever; here that would be a
        commit each time. What it holds is left to eviction."""
        ill = self._diagnose(template, policy, memory)
        failed = ill.overdue(moment) if ill else []
        if not self._hot and not failed:
            return ()
        held = {target.name for target in memory.clusters}
        return tuple(name for name in (*self._list_run_out(policy.placement.tolerations, moment), *failed) if name not in held)

    def find_exile(self, template: Document, policy: Policy, memory: Memory, cluster: str, moment: datetime) -> Exile | None:
        """What keeps a workload out of a cluster, where an eviction that was, or would be, does; None where none does."""
        for task in memory.tasks:
            if task.get("fromCluster") == cluster:
                return Exile("evicted", eviction.sweep_tasks((task,), self._settings.graceful_eviction_timeout, moment).wakeup)
        ill = self._diagnose(template, policy, memory)
        if ill is not None and cluster in ill.overdue(moment):
            return Exile("ill")
        return Exile("intolerant") if cluster in self._list_run_out(policy.placement.tolerations, moment) else None

    def note(self, template: Document, policy: Policy, before: Memory, result: Result, moment: datetime) -> Mapping[str, str]:
        """What the binding has to remember about health, and about the state that went along, as annotations."""
        notes: dict[str, str] = {}
        ill = self._diagnose(template, policy, before)
        if ill is not None:
            held = [target.name for target in result.clusters]
            since = health.follow_health(ill.report, ill.since, held, ill.overdue(moment), moment)
            if since:
                notes[health.UNHEALTHY_SINCE] = health.note_since(since)
        known = {(task.get("fromCluster"), task.get("creationTimestamp")) for task in before.tasks}
        report = self._reports.get(binding_key(template.key)) if result.tasks else None
        seen = before.annotations.get(health.SEEN_AT_EVICTION, "")
        if any((task.get("fromCluster"), task.get("creationTimestamp")) not in known for task in result.tasks):
            seen = report.digest if report else ""
        if seen and result.tasks:
            notes[health.SEEN_AT_EVICTION] = seen
        if any(list_rules(behavior) for behavior in (policy.spec.get("failover") or {}).values()):
            state = note_state(before.annotations, result.clusters, result.tasks)
            notes |= {STATE: state} if state else {}
        return notes

    def wakeup(self, template: Document, policy: Policy, result: Result, moment: datetime) -> datetime | None:
        """The next deadline; `moment` itself where the tolerations just applied, or those of ill health, have run out already."""
        ends = [eviction.sweep_tasks(result.tasks, self._settings.graceful_eviction_timeout, moment).wakeup]
        if any(target.name in self._hot for target in result.clusters):
            tolerations = eviction.applied_tolerations(result.applied)
            ends += [self._taint_end(target.name, tolerations, moment) for target in result.clusters]
        ends += [max(end, moment) for _, _, end in self.timers(template, policy, result.notes, [t.name for t in result.clusters])]
        return min((end for end in ends if end is not None), default=None)

    def timers(self, template: Document, policy: Policy, notes: Mapping[str, str], clusters: Iterable[str]) -> list[Timer]:
        """Which of its clusters a workload is going to leave because of its health, by the annotations of its binding."""
        report, seconds = self._reports.get(binding_key(template.key)), _tolerated(policy)
        if report is None or seconds is None:
            return []
        since, ill = health.recall_since(notes), frozenset(report.unhealthy)
        return [Timer(name, since[name], later(since[name], seconds)) for name in clusters if name in ill and name in since]

    def tolerances(self, notes: Mapping[str, str], clusters: Iterable[str], moment: datetime) -> list[Timer]:
        """Which of its clusters a workload is going to leave because it tolerates a taint for a time only, by the annotations of its
        binding; `since` is the moment asked about."""
        tolerations = eviction.applied_tolerations(notes.get(APPLIED_PLACEMENT))
        ends = ((name, self._taint_end(name, tolerations, moment)) for name in clusters)
        return [Timer(name, moment, end) for name, end in ends if end is not None and end > moment]

    def complain(self, template: Document, policy: Policy, tasks: Iterable[Body]) -> Iterator[Finding]:
        """Evictions that took no state along, although the policy wants it preserved."""
        behaviors = {eviction.TAINT: "cluster", eviction.FAILURE: "application"}
        for task in tasks:
            rules = list_rules(member(policy.spec, "failover", behaviors.get(str(task.get("reason")), "")))
            if rules and not task.get("preservedLabelState"):
                cluster = str(task.get("fromCluster"))
                report = self._reports.get(binding_key(template.key))
                why = preserve_state(rules, report.statuses.get(cluster) if report else None, cluster).why
                message = f"{template.key} left cluster {cluster} without the state that its policy wants preserved"
                message = f"{message}: {why}" if why else message
                yield Finding("warning", "state-not-preserved", message, locate(template), template.key.resource)

    def _diagnose(self, template: Document, policy: Policy, memory: Memory) -> Ill | None:
        report = self._reports.get(binding_key(template.key))
        seconds = _tolerated(policy) if report is not None and report.health else None
        if report is None or seconds is None:
            return None
        return Ill(report, health.recall_since(memory.annotations), seconds)

    def _has_recovered(self, report: Report, memory: Memory) -> bool:
        caught_up = memory.condition.get("reason") == "Success"
        news = bool(report.digest) and report.digest != memory.annotations.get(health.SEEN_AT_EVICTION)
        return caught_up and news and report.all_healthy([target.name for target in memory.clusters])

    def _flee(self, template: Document, policy: Policy, target: Target, moment: datetime) -> Body:
        state = self._preserve(binding_key(template.key), member(policy.spec, "failover", "cluster"), target)
        return eviction.make_task(target, self.purge_mode(policy), moment, preservedLabelState=state)

    def _fail_over(self, template: Document, policy: Policy, held: Iterable[Target], target: Target, moment: datetime) -> Body:
        rules, key = policy.spec["failover"]["application"], binding_key(template.key)
        mode = str(rules.get("purgeMode") or "Gracefully")
        state = self._preserve(key, rules, target)
        return eviction.make_task(
            target,
            mode,
            moment,
            eviction.FAILURE,
            _PRODUCER if key.kind == BINDING else f"cluster-{_PRODUCER}",
            gracePeriodSeconds=rules.get("gracePeriodSeconds") if mode == "Gracefully" else None,
            suppressDeletion=mode == "Never",
            preservedLabelState=state,
            clustersBeforeFailover=[one.name for one in held] if state else None,
        )

    def _preserve(self, binding: Key, rules: Body | None, target: Target) -> Body:
        report = self._reports.get(binding)
        status = report.statuses.get(target.name) if report is not None else None
        return {**preserve_state(list_rules(rules), status, target.name).labels}

    def _list_run_out(self, tolerations: tuple[Toleration, ...], moment: datetime) -> tuple[str, ...]:
        if self._run_out[0] != moment:
            self._run_out = (moment, {})
        known = self._run_out[1]
        if tolerations not in known:
            ends = ((name, self._taint_end(name, tolerations, moment)) for name in sorted(self._hot))
            known[tolerations] = tuple(name for name, end in ends if end is not None and end <= moment)
        return known[tolerations]

    def _taint_end(self, cluster: str, tolerations: tuple[Toleration, ...] | None, moment: datetime) -> datetime | None:
        if cluster not in self._hot or tolerations is None:
            return None
        return eviction.evict_at(self._fleet.candidates[self._fleet.index[cluster]].taints, tolerations, moment)


def list_rules(behavior: Body | None) -> list[Body]:
    """The rules of statePreservation in one of the two parts of a policy's failover."""
    return list(member(behavior or {}, "statePreservation", "rules") or ())


def _tolerated(policy: Policy) -> int | None:
    """For how many seconds a workload may be unhealthy; None for ever, which is also so without its dependencies."""
    application = member(policy.spec, "failover", "application")
    if application is None or not policy.spec.get("propagateDeps"):
        return None
    seconds = member(application, "decisionConditions", "tolerationSeconds")
    return 300 if seconds is None else int(seconds)
