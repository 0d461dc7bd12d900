"""Bindings of stateful workloads that keep their clusters: the scheduler divides replicas among these alone.

A hold is like spec.suspension.scheduling of Karmada: the binding follows its policy and the workload, and the scheduler has not handled the
change of the placement yet. So the change remains due, and it happens in the run that releases the workload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.exceeded_capacity import annotate_exceeded_capacity
from gitsched.apis.karmada.binding.reported_status import add_reported_status
from gitsched.apis.karmada.binding.resource_binding import (
    EVALUATED_ALWAYS,
    PreviousState,
    ScheduleResult,
    SchedulingPass,
    binding_key,
    is_rebalance_pending,
    read_previous,
    write_binding,
)
from gitsched.apis.karmada.binding.scheduling_pass import (
    build_outcome,
    find_decisive_pass,
    find_failback_timers,
    list_previous_targets,
)
from gitsched.apis.karmada.binding.unscheduled_outcomes import keep_previous
from gitsched.apis.karmada.binding_queue import add_affinity_groups
from gitsched.apis.karmada.dependencies.attached_binding import Attachment
from gitsched.apis.karmada.dependencies.dependencies_distributor import DependenciesDistributor
from gitsched.apis.karmada.failover.graceful_eviction import APPLICATION_FAILURE, TAINT_UNTOLERATED
from gitsched.apis.karmada.interpreter import ReplicaRequirements
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy, read_applied_division
from gitsched.apis.karmada.state import KarmadaState
from gitsched.apis.stateful_holds import hold_outcome
from gitsched.model.document import Body, Document, Key, get_field, list_objects
from gitsched.model.finding import format_names
from gitsched.model.holds import HeldPlacement
from gitsched.model.scheduling import Affinity, AffinityGroup, Assignment, Outcome, Request
from gitsched.model.time import parse_time
from gitsched.schedule import pipeline

UNSELECTED = "no policy selects it any more"


def drop_lost_clusters(state: KarmadaState, template: Document, record: Body | None) -> Body | None:
    """Return the previous binding without clusters that have no document and that the workload may leave, so that its replicas are
    scheduled again."""
    if state.snapshot.load_holds is None or record is None:
        return record
    holds = state.snapshot.load_holds()
    clusters = list_objects(get_field(record, "spec", "clusters"))
    lost = [entry for entry in clusters if entry.get("name") not in state.fleet.index]
    released = [entry for entry in lost if holds.is_released(template, [str(entry.get("name"))], _find_rebalanced(state))]
    if not released:
        return record
    return {**record, "spec": {**record["spec"], "clusters": [entry for entry in clusters if entry not in released]}}


def find_hold(
    state: KarmadaState, template: Document, record: Body | None, after: Sequence[Assignment], passes: Sequence[SchedulingPass]
) -> HeldPlacement | None:
    """Return why a workload keeps the clusters of its previous binding; None if it may have those of `after`.

    Without `passes` no policy selects it.
    """
    before = read_previous(record).clusters
    if state.snapshot.load_holds is None or not before:
        return None
    chosen = {assignment.name: assignment.replicas or None for assignment in after if assignment.name in state.fleet.index}
    kept = {assignment.name: assignment.replicas or None for assignment in before}
    is_resized = state.snapshot.has_adopted and chosen != kept
    if chosen.keys() == kept.keys() and not is_resized:
        return None
    reason, evicted = _describe_cause(state, before, passes) if passes else (UNSELECTED, False)
    divided = bool(passes) and passes[-1].request.division not in ("duplicated", "everywhere")
    return state.snapshot.load_holds().find_hold(
        template,
        kept,
        chosen,
        reason=reason,
        clusters=state.fleet.index,
        divided=divided,
        resized=is_resized,
        evicted=evicted,
        is_rebalanced=_find_rebalanced(state),
    )


def hold_unselected(state: KarmadaState, template: Document, attachment: Attachment | None, record: Body) -> Outcome | None:
    """Return the outcome of a held workload that no policy selects any more: its previous binding, with its present manifest.

    None if it is not held.
    """
    after = [Assignment(name) for name in attachment.clusters] if attachment else []
    held = find_hold(state, template, record, after, ())
    kept = keep_previous(state, template, attachment, held.reason, record) if held is not None else None
    if held is None or kept is None:
        return None
    findings = tuple(finding for finding in kept.findings if finding.code != "stale-decision")
    outcome = kept._replace(findings=findings, previous_targets=list_previous_targets(read_previous(record).clusters, record))
    return hold_outcome(template, outcome, held)


def hold_binding(
    state: KarmadaState,
    dependencies: DependenciesDistributor | None,
    template: Document,
    policy: PropagationPolicy,
    requirements: ReplicaRequirements,
    record: Body | None,
    attachment: Attachment | None,
    held: HeldPlacement,
) -> Outcome:
    """Return the outcome of a workload that keeps its clusters: its manifest and number of replicas are the present ones.

    Earlier evictions go on, and no new one starts.
    """
    previous = state.read_previous(template, record)._replace(required_by=attachment.required_by if attachment else None)
    time, now, overdue = state.snapshot.at, state.snapshot.now, False
    for _ in range(names.MAX_DEADLINES):
        outcome, current = _run_held_pass(state, template, policy, requirements, record, previous, attachment, time, held)
        if outcome.wakeup is None or not time < outcome.wakeup <= now:
            break
        previous, time = current, outcome.wakeup
    else:
        overdue = True
    body = outcome.records[0][1]
    if dependencies is not None:
        dependencies.annotate_binding(body, template, policy, attachment)
    wakeup = outcome.wakeup if outcome.wakeup is not None and (outcome.wakeup > now or overdue) else None
    shares = {assignment.name: assignment.replicas or None for assignment in read_previous(body).clusters}
    outcome = outcome._replace(wakeup=wakeup)
    return hold_outcome(template, outcome, held._replace(clusters=shares))


def _run_held_pass(
    state: KarmadaState,
    template: Document,
    policy: PropagationPolicy,
    requirements: ReplicaRequirements,
    record: Body | None,
    previous: PreviousState,
    attachment: Attachment | None,
    time: datetime,
    held: HeldPlacement,
) -> tuple[Outcome, PreviousState]:
    """Return the outcome of a pass at a time that keeps the clusters, and the state of the binding after it."""
    current, failover = previous, state.find_failover(previous)
    if failover is not None:
        current = failover.drop_finished_tasks(template, previous, time)
    request, placed = state.build_request(template, policy, requirements, current, time), policy
    if request.division == "duplicated" and current.applied_placement is not None:
        # Divided replicas stay divided, also if the policy now wants all of them in each of its clusters.
        request = request._replace(division=read_applied_division(current.applied_placement))
        placed = policy._replace(placement=policy.placement._replace(division=request.division))
    # Some of the clusters of an adopted workload may not be known, and with them the replicas that are missing here.
    is_exact = bool(held.adopted) and get_field(record or {}, "spec", "replicas") == requirements.replicas
    clusters = current.clusters if is_exact else _divide(state, request, current)
    condition = current.condition
    result = ScheduleResult(
        clusters,
        current.eviction_tasks,
        current.applied_placement,
        current.observed_group,
        str(condition.get("reason") or ""),
        str(condition.get("message") or ""),
        current.last_scheduled,
        parse_time(condition.get("lastTransitionTime")) or time,
        components=current.components,
    )
    timers = find_failback_timers(state, template, policy, requirements, current, result, time)
    annotations = failover.write_annotations(template, policy, previous, result, time) if failover is not None else {}
    if state.fleet.has_capacity:
        annotations |= annotate_exceeded_capacity(state.fleet, request, previous, clusters, state.inventory.allocatable)
    result = result._replace(failback_timers=timers, annotations=annotations)
    body = write_binding(template, policy, requirements, current, result, state.parts)
    if state.queue is not None:
        add_affinity_groups(state.queue, template, body)
    if failover is not None and (reports := failover.list_reports(template.key)):
        add_reported_status(body, record, reports, time)
    outcome = build_outcome(state, failover, template, placed, requirements, result, body, time, attachment)
    return outcome, current._replace(annotations=body["metadata"]["annotations"])


def _divide(state: KarmadaState, request: Request, current: PreviousState) -> tuple[Assignment, ...]:
    """Return the replicas of each cluster that is kept. Where they do not fit, and in clusters without a document, they stay as they
    are."""
    known = tuple(assignment for assignment in current.clusters if assignment.name in state.fleet.index)
    if request.division == "everywhere" or not known:
        return current.clusters
    others = 0 if request.division == "duplicated" else sum(each.replicas for each in current.clusters if each not in known)
    wanted = max(0, request.replicas - others)
    if request.division != "duplicated" and sum(assignment.replicas for assignment in known) == wanted:
        return current.clusters
    if len(known) == 1 and wanted <= known[0].replicas:  # fewer replicas fit on any cluster, also on one that is being deleted
        shares = {known[0].name: wanted}
    else:
        names = tuple(assignment.name for assignment in known)
        decision = pipeline.schedule(
            request._replace(
                replicas=wanted,
                groups=(AffinityGroup("", Affinity(names)),),
                first_group=0,
                required_fields=(),
                evicted=(),
                previous=known,
                spread_constraints=(),
                fresh=False,
                keep_empty=True,
            ),
            state.fleet,
        )
        if decision.status != "scheduled":
            return current.clusters
        shares = {assignment.name: assignment.replicas for assignment in decision.assignments}
    return tuple(Assignment(each.name, shares.get(each.name, 0)) if each in known else each for each in current.clusters)


def _describe_cause(state: KarmadaState, before: Sequence[Assignment], passes: Sequence[SchedulingPass]) -> tuple[str, bool]:
    """Return why a workload would move, and whether it is evicted."""
    known = {(task.get("fromCluster"), task.get("creationTimestamp")) for task in passes[0].previous.eviction_tasks}
    new = [
        task
        for step in passes
        for task in step.current.eviction_tasks
        if (task.get("fromCluster"), task.get("creationTimestamp")) not in known
    ]
    for code, text in ((TAINT_UNTOLERATED, "a taint evicts it from"), (APPLICATION_FAILURE, "it is unhealthy in")):
        names = sorted({str(task.get("fromCluster")) for task in new if task.get("reason") == code})
        if names:
            return f"{text} {format_names(names)}", True
    lost = [assignment.name for assignment in before if assignment.name not in state.fleet.index]
    if lost:
        return f"{format_names(lost)} has no Cluster document", False
    trigger = find_decisive_pass(passes).trigger
    return (trigger if trigger and trigger != EVALUATED_ALWAYS else "its policy chooses other clusters now"), False


def _find_rebalanced(state: KarmadaState) -> Callable[[Key], bool]:
    """Return a function that says whether a WorkloadRebalancer names a workload and has not been handled yet."""

    def is_rebalanced(key: Key) -> bool:
        binding = binding_key(key)
        record = state.snapshot.previous.get(binding)
        return record is not None and is_rebalance_pending(state.reschedule_triggers.apply_trigger(binding, read_previous(record)))

    return is_rebalanced
