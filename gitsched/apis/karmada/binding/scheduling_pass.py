"""One pass over a workload: evict, look for a schedule trigger, call the scheduler, and write the binding."""

from __future__ import annotations

from datetime import datetime

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.exceeded_capacity import annotate_exceeded_capacity
from gitsched.apis.karmada.binding.reported_status import add_reported_status
from gitsched.apis.karmada.binding.resource_binding import (
    PreviousState,
    ScheduleResult,
    SchedulingPass,
    binding_key,
    find_schedule_trigger,
    make_schedule_result,
    write_binding,
)
from gitsched.apis.karmada.binding.target_clusters import (
    find_target_clusters,
)
from gitsched.apis.karmada.dependencies.attached_binding import Attachment
from gitsched.apis.karmada.dependencies.dependencies_distributor import DependenciesDistributor
from gitsched.apis.karmada.failover import failback
from gitsched.apis.karmada.failover.state_preservation import PRESERVED_STATE, add_preserved_labels
from gitsched.apis.karmada.interpreter import ReplicaRequirements
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.state import KarmadaState
from gitsched.model.document import Body, Document
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Assignment, Outcome
from gitsched.schedule import pipeline


def run_pass(
    state: KarmadaState,
    dependencies: DependenciesDistributor | None,
    template: Document,
    policy: PropagationPolicy,
    requirements: ReplicaRequirements,
    record: Body | None,
    attachment: Attachment | None,
    time: datetime,
) -> SchedulingPass:
    """Run one pass over a workload at a time, and return its decision with the binding that it writes."""
    settings = state.settings.failback
    required_by = attachment.required_by if attachment else None
    previous = state.read_previous(template, record)._replace(required_by=required_by)
    current = state.failover.evict(template, policy, state.failover.drop_finished_tasks(template, previous, time), time)
    trigger = find_schedule_trigger(policy, requirements, current, current.clusters, state.leaving_clusters)
    request = state.build_request(template, policy, requirements, current, time)
    if state.is_scheduling_skipped(policy, current):
        attempt = failback.SchedulingAttempt(request, trigger, None)
    elif settings.mode == "Never":
        decision = pipeline.schedule(request, state.fleet) if trigger is not None else None
        attempt = failback.SchedulingAttempt(request, trigger, decision)
    else:
        timers = failback.read_failback_timers(current.annotations)
        attempt = failback.schedule_with_failback(settings, request, trigger, timers, state.fleet, time)
    if settings.mode != "Never" and state.failover.read_purge_mode(policy) != "Directly":
        tasks = failback.make_failback_tasks(attempt, current.observed_group, current.clusters, state.fleet.index, time)
        current = current._replace(eviction_tasks=(*current.eviction_tasks, *tasks))
    result = make_schedule_result(attempt.decision, policy, previous, current, time)
    result = result._replace(failback_timers=_update_failback_timers(state, template, policy, requirements, current, result, time))
    annotations = state.failover.write_annotations(template, policy, previous, result, time)
    if state.fleet.has_capacity:
        annotations |= annotate_exceeded_capacity(state.fleet, request, previous, result.clusters)
    result = result._replace(annotations=annotations)
    body = write_binding(template, policy, requirements, current, result)
    if dependencies is not None:
        dependencies.annotate_binding(body, template, policy, attachment)
    if reports := state.failover.list_reports(template.key):
        add_reported_status(body, record, reports, time)
    outcome = _build_outcome(state, template, policy, requirements, result, body, time, attachment)
    return SchedulingPass(time, previous, current, *attempt, outcome)


def _update_failback_timers(
    state: KarmadaState,
    template: Document,
    policy: PropagationPolicy,
    requirements: ReplicaRequirements,
    current: PreviousState,
    result: ScheduleResult,
    time: datetime,
) -> failback.FailbackTimers:
    """Return the failback timers that the binding has after this pass."""
    settings = state.settings.failback
    if settings.mode != "AfterStabilization" or state.is_scheduling_skipped(policy, current):
        return ()
    after = current._replace(clusters=result.clusters, observed_group=result.observed_group, last_scheduled=result.last_scheduled)
    request = state.build_request(template, policy, requirements, after, time)
    timers = failback.read_failback_timers(current.annotations)
    return failback.update_failback_timers(settings, request, timers, state.fleet, time)


def _build_outcome(
    state: KarmadaState,
    template: Document,
    policy: PropagationPolicy,
    requirements: ReplicaRequirements,
    result: ScheduleResult,
    body: Body,
    time: datetime,
    attachment: Attachment | None,
) -> Outcome:
    tasks = result.eviction_tasks
    divided = requirements.is_workload and policy.placement.is_divided
    targets, findings = find_target_clusters(state, template, result.clusters, tasks, requirements, divided, attachment)
    if PRESERVED_STATE in result.annotations:
        targets = add_preserved_labels(template, targets, result.annotations)
    location, resource = locate_document(template), template.key.resource
    if result.reason not in ("Success", "") and not state.other_clusters:
        unplaced = _describe_unplaced_replicas(requirements, divided, result.clusters)
        message = f"{template.key} could not be scheduled: {result.message}{unplaced}"
        findings = (*findings, Finding("warning", "unschedulable", message, location, resource))
    elif requirements.replicas == 0 and not result.clusters and not state.other_clusters:
        message = (
            f"{template.key} has 0 replicas and goes to no cluster, as in Karmada; to place it with 0 replicas, set "
            "karmada.enableEmptyWorkloadPropagation in gitsched.yaml"
        )
        findings = (*findings, Finding("info", "no-replicas", message, location, resource))
    if requirements.invalid_replicas and policy.placement.is_divided:
        message = f"{template.key}: {requirements.replicas_path} is not a number, so its replicas are not divided"
        findings = (*findings, Finding("warning", "opaque-replicas", message, location, resource))
    findings = (*findings, *state.failover.find_unpreserved_state(template, policy, tasks))
    group = f" in group {result.observed_group}" if result.observed_group else ""
    return Outcome(
        key=template.key,
        api=names.API_NAME,
        state="placed" if result.clusters or (attachment and attachment.clusters) else "pending",
        policy=policy.key.title,
        group=result.observed_group,
        targets=targets,
        replicas=requirements.replicas,
        records=((binding_key(template.key), body),),
        reason=f"{policy.key.title}{group}" + (f", {attachment.reason}" if attachment else ""),
        time=time,
        wakeup=_find_wakeup(state, template, policy, result, time),
        findings=findings,
    )


def _find_wakeup(
    state: KarmadaState, template: Document, policy: PropagationPolicy, result: ScheduleResult, time: datetime
) -> datetime | None:
    """Return the next deadline; `time` itself where one has passed already."""
    end = state.failover.find_wakeup(template, policy, result, time)
    if not result.failback_timers:
        return end
    ends = (end, failback.find_failback_time(state.settings.failback, result.failback_timers))
    return min((end for end in ends if end is not None), default=None)


def _describe_unplaced_replicas(requirements: ReplicaRequirements, divided: bool, clusters: tuple[Assignment, ...]) -> str:
    """Return how many replicas are not assigned to a cluster; of a workload that is not divided all or none."""
    replicas = requirements.replicas or 0
    missing = replicas - sum(target.replicas for target in clusters) if divided or not clusters else 0
    return f" ({missing} of {replicas} replicas are unplaced)" if missing > 0 else ""
