"""One pass over a workload: evict, look for a schedule trigger, call the scheduler, write the binding, and make the manifest of each
target cluster."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from gitsched.apis.karmada import names
from gitsched.apis.karmada.autoscalers import find_scaled_per_cluster
from gitsched.apis.karmada.available_replicas import keep_available
from gitsched.apis.karmada.binding.binding_findings import (
    describe_quota,
    describe_shortage,
    describe_unplaced_replicas,
    make_binding_finding,
)
from gitsched.apis.karmada.binding.exceeded_capacity import annotate_exceeded_capacity, list_uncertain_fits
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
from gitsched.apis.karmada.binding_queue import add_affinity_groups
from gitsched.apis.karmada.components import place_one_set
from gitsched.apis.karmada.dependencies.attached_binding import Attachment
from gitsched.apis.karmada.dependencies.dependencies_distributor import DependenciesDistributor
from gitsched.apis.karmada.failover import failback
from gitsched.apis.karmada.failover.failover import Failover
from gitsched.apis.karmada.failover.graceful_eviction import UNLIMITED_EVICTION_END, find_task_end
from gitsched.apis.karmada.failover.state_preservation import PRESERVED_STATE, add_preserved_labels
from gitsched.apis.karmada.interpreter import ReplicaRequirements, read_uid, revise_copy, revise_replicas
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.state import KarmadaState
from gitsched.kinds.run_once_kinds import RUN_ONCE_KINDS
from gitsched.model.document import Body, Document, get_field, list_objects
from gitsched.model.finding import NO_REPLICAS, UNSCHEDULABLE, Finding, format_count, format_names, locate_document
from gitsched.model.mistakes import CLUSTER_GONE, RESCHEDULE_DISPLACED
from gitsched.model.scheduling import Assignment, Decision, Outcome, Request, TargetCluster, make_full_targets
from gitsched.model.time import parse_time
from gitsched.schedule import pipeline

if TYPE_CHECKING:
    from gitsched.apis.karmada.variant_requirements import VariantRequirements

_NO_CLUSTERS: frozenset[str] = frozenset()  # one for all workloads: each call of frozenset makes another
RenderedTargets = tuple[tuple[TargetCluster, ...], tuple[Finding, ...]]


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
    required_by = attachment.required_by if attachment else None
    previous = state.read_previous(template, record)
    if previous.required_by != required_by:
        previous = previous._replace(required_by=required_by)
    current, failover = previous, state.find_failover(previous)
    snapshot = state.snapshot
    is_fixed = (snapshot.fixed or snapshot.has_adopted) and state.keeps_placement(template, previous)
    if failover is not None and not is_fixed:
        current = failover.evict(template, policy, failover.drop_finished_tasks(template, previous, time), time)
    trigger = find_schedule_trigger(policy, requirements, current, current.clusters, state.leaving_clusters)
    request = state.build_request(template, policy, requirements, current, time)
    if request.fresh:
        request = keep_available(state, template, policy, current, request)
    attempt = failback.SchedulingAttempt(request, trigger, None)
    if not (is_fixed or is_scheduling_skipped(policy, suspended=current.scheduling_suspended)):
        attempt = _schedule(state, request, trigger, current, time)
    current = _add_failback_tasks(state, policy, attempt, current, time)
    if failover is None and current.eviction_tasks:
        failover = state.failover
    result = make_schedule_result(attempt.decision, policy, previous, current, time)
    result = _add_components(result, attempt.decision, policy, requirements)
    if timers := find_failback_timers(state, template, policy, requirements, current, result, time):
        result = result._replace(failback_timers=timers)
    annotations = failover.write_annotations(template, policy, previous, result, time) if failover is not None else {}
    result, may_exceed = _add_annotations(state, request, previous, result, annotations)
    if state.queue is not None:
        result = state.queue.limit(template, requirements, result)
    body = write_binding(template, policy, requirements, current, result, state.parts)
    if state.queue is not None:
        add_affinity_groups(state.queue, template, body)
    if dependencies is not None:
        dependencies.annotate_binding(body, template, policy, attachment)
    if failover is not None and (reports := failover.list_reports(template.key)):
        add_reported_status(body, record, reports, time)
    settled = attempt.trigger is None and attempt.decision is None
    shortage = describe_shortage(attempt.request, attempt.decision, state.fleet)
    outcome = build_outcome(
        state, failover, template, policy, requirements, result, body, time, attachment, is_settled=settled, shortage=shortage
    )
    return SchedulingPass(time, previous, current, *attempt, outcome, may_exceed)


def _add_annotations(
    state: KarmadaState, request: Request, previous: PreviousState, result: ScheduleResult, annotations: Mapping[str, str]
) -> tuple[ScheduleResult, bool]:
    """Return a result with annotations, those about exceeded capacity as well, and whether its clusters may exceed theirs."""
    fleet, allocatable = state.fleet, state.inventory.allocatable
    uncertain = list_uncertain_fits(fleet, request, previous, result.clusters, allocatable) if fleet.has_capacity else []
    if uncertain:
        annotations = {**annotations, **annotate_exceeded_capacity(fleet, request, previous, uncertain, allocatable)}
    return (result._replace(annotations=annotations) if annotations else result), bool(uncertain)


def _add_failback_tasks(
    state: KarmadaState, policy: PropagationPolicy, attempt: failback.SchedulingAttempt, current: PreviousState, time: datetime
) -> PreviousState:
    """Return the state of a binding with tasks for the clusters that it leaves because it returns to an earlier group."""
    if state.settings.failback.mode == "Never" or state.failover.read_purge_mode(policy) == "Directly":
        return current
    tasks = failback.make_failback_tasks(attempt, current.observed_group, current.clusters, state.fleet.index, time)
    return current._replace(eviction_tasks=(*current.eviction_tasks, *tasks))


def _add_components(
    result: ScheduleResult, decision: Decision | None, policy: PropagationPolicy, requirements: ReplicaRequirements
) -> ScheduleResult:
    """Return a result with the components that clusters get of a workload of which one cluster gets a whole set."""
    if decision is None or decision.status not in ("scheduled", "no-fit") or not requirements.components:
        return result
    if len(requirements.components) < 2 or not place_one_set(policy.placement.spreads):
        return result._replace(components={})
    numbers = [{"name": one.name, "replicas": one.replicas} for one in requirements.components]
    return result._replace(components={target.name: numbers for target in result.clusters})


def find_decisive_pass(passes: Sequence[SchedulingPass]) -> SchedulingPass:
    """Return the last pass that called the scheduler, else the last one."""
    return next((step for step in reversed(passes) if step.decision is not None), passes[-1])


def _schedule(
    state: KarmadaState, request: Request, trigger: str | None, current: PreviousState, time: datetime
) -> failback.SchedulingAttempt:
    """Call the scheduler if there is a trigger, or a failback timer has ended."""
    settings = state.settings.failback
    if settings.mode != "Never":
        timers = failback.read_failback_timers(current.annotations)
        return failback.schedule_with_failback(settings, request, trigger, timers, state.fleet, time)
    decision = pipeline.schedule(request, state.fleet) if trigger is not None else None
    return failback.SchedulingAttempt(request, trigger, decision)


def is_scheduling_skipped(policy: PropagationPolicy, *, suspended: bool) -> bool:
    """Return whether this scheduler ignores a binding: its scheduling is suspended, or its policy names another scheduler."""
    return suspended or (policy.spec.get("schedulerName") or names.DEFAULT_SCHEDULER) != names.DEFAULT_SCHEDULER


def find_failback_timers(
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
    if settings.mode != "AfterStabilization" or is_scheduling_skipped(policy, suspended=current.scheduling_suspended):
        return ()
    if not policy.placement.find_group_index(result.observed_group):
        return ()  # no group is before the first one
    after = current._replace(clusters=result.clusters, observed_group=result.observed_group, last_scheduled=result.last_scheduled)
    request = state.build_request(template, policy, requirements, after, time)
    timers = failback.read_failback_timers(current.annotations)
    return failback.update_failback_timers(settings, request, timers, state.fleet, time)


def _has_place(targets: Iterable[TargetCluster]) -> bool:
    """Return whether a workload is in a cluster that does not evict it."""
    return any(not target.evicting for target in targets)


def build_outcome(
    state: KarmadaState,
    failover: Failover | None,
    template: Document,
    policy: PropagationPolicy,
    requirements: ReplicaRequirements,
    result: ScheduleResult,
    body: Body,
    time: datetime,
    attachment: Attachment | None,
    *,
    is_settled: bool = False,
    shortage: str = "",
) -> Outcome:
    """Return the outcome of a workload whose binding is `body`. It `is_settled` if it has what it should have, and was not scheduled again:
    as in Karmada, a binding keeps the condition of an earlier attempt that failed, even where an edit was taken back since then. `shortage`
    says which resource clusters lack for it."""
    tasks = result.eviction_tasks
    divided = requirements.is_workload and policy.placement.is_divided
    targets, findings = find_target_clusters(state, template, result.clusters, tasks, requirements, divided, attachment)
    if PRESERVED_STATE in result.annotations:
        targets = add_preserved_labels(template, targets, result.annotations)
    if result.reason not in ("Success", "") and not (is_settled or state.other_clusters):
        unplaced = describe_unplaced_replicas(requirements, divided, result.clusters)
        message = (
            f"{template.key} could not be scheduled: {result.message}{shortage}{unplaced}{describe_quota(state, template, result)}"
        )
        findings = (*findings, make_binding_finding(template, "warning", UNSCHEDULABLE, message))
    elif requirements.replicas == 0 and not result.clusters and not state.other_clusters:
        message = (
            f"{template.key} has 0 replicas and goes to no cluster, as in Karmada; to place it with 0 replicas, set "
            "spec.karmada.enableEmptyWorkloadPropagation in gitsched.yaml"
        )
        findings = (*findings, make_binding_finding(template, "info", NO_REPLICAS, message))
    if requirements.invalid_replicas and policy.placement.is_divided:
        message = f"{template.key}: {requirements.replicas_path} is not a number, so its replicas are not divided"
        findings = (*findings, make_binding_finding(template, "warning", "opaque-replicas", message))
    if failover is not None and tasks:
        findings = (*findings, *failover.find_unpreserved_state(template, policy, tasks))
    title = policy.key.title
    reason = _describe_result(title, result, has_clusters=bool(targets))
    return Outcome(
        key=template.key,
        api=names.API_NAME,
        state="placed" if _has_place(targets) or (attachment and attachment.clusters) else "pending",
        policy=title,
        group=result.observed_group,
        targets=targets,
        replicas=requirements.replicas,
        records=((binding_key(template.key), body),),
        reason=f"{reason}, {attachment.reason}" if attachment else reason,
        time=time,
        wakeup=_find_wakeup(state, failover, template, policy, result, time),
        findings=findings,
        absent=frozenset(str(task.get("fromCluster")) for task in tasks) - state.fleet.index.keys() if tasks else _NO_CLUSTERS,
        suspended=is_scheduling_skipped(policy, suspended=(body["spec"].get("suspension") or {}).get("scheduling") is True),
    )


def _describe_result(title: str, result: ScheduleResult, *, has_clusters: bool) -> str:
    """Return the policy of a workload with the group of clusters that it has, or with the reason why it has none."""
    if result.reason not in ("Success", "") and not has_clusters:
        return f"{title}: {result.message}"
    return f"{title} in group {result.observed_group}" if result.observed_group else title


def _find_wakeup(
    state: KarmadaState,
    failover: Failover | None,
    template: Document,
    policy: PropagationPolicy,
    result: ScheduleResult,
    time: datetime,
) -> datetime | None:
    """Return the next deadline; `time` itself where one has passed already."""
    end = failover.find_wakeup(template, policy, result, time, state.snapshot.now) if failover is not None else None
    if not result.failback_timers:
        return end
    ends = (end, failback.find_failback_time(state.settings.failback, result.failback_timers))
    return min((end for end in ends if end is not None), default=None)


def find_target_clusters(
    state: KarmadaState,
    template: Document,
    assignments: tuple[Assignment, ...],
    tasks: tuple[Body, ...],
    requirements: ReplicaRequirements,
    divided: bool,
    attachment: Attachment | None,
) -> RenderedTargets:
    """Return the target clusters of a binding with their manifests, and findings about them.

    Targets are the existing clusters among `assignments`, those that graceful eviction `tasks` still keep, and those of the workloads
    that depend on this one. The manifests of a workload that autoscalers scale keep its replicas.
    """
    existing = state.fleet.index
    variants = state.read_variant_requirements(template) if state.snapshot.variants else None
    revised = divided and not state.autoscalers.retains_replicas(template)
    present = [pair for pair in assignments if pair[0] in existing]
    edits = _revise_assigned(template, requirements, variants, assignments) if revised else {}
    targets = (
        [TargetCluster(a.name, a.replicas or None, False, edits.get(a.name, ())) for a in present]
        if edits
        else make_full_targets(present)
    )
    if tasks:
        timeout = state.settings.graceful_eviction_timeout
        kept = _list_kept_copies(template, tasks, requirements, variants, timeout, revised=revised, replaced=bool(present))
        taken = {assignment.name for assignment in assignments}
        targets += [target for target in kept if target.cluster in existing and target.cluster not in taken]
    merged = merge_target_clusters(tuple(targets), attachment, existing)
    overridden, findings = _complete_manifests(state, template, merged, variants)
    if len(present) < len(assignments):
        missing = [a for a in assignments if a.name not in existing]
        gone = _report_missing_clusters(template, missing, requirements if divided else None, state.snapshot.tenant)
        findings = (*gone, *findings)
    if divided and not revised:
        path, templates = requirements.replicas_path, state.snapshot.templates
        found = find_scaled_per_cluster(state.autoscalers, template, path, assignments, templates, partial(_may_be_placed, state))
        findings = (*findings, *found)
    return overridden, findings


def _may_be_placed(state: KarmadaState, template: Document) -> bool:
    """Return whether a policy selects an object, or it may follow its target."""
    return state.has_followers or bool(state.policies.list_matching_rules(template, most=1))


def _complete_manifests(
    state: KarmadaState, template: Document, targets: tuple[TargetCluster, ...], variants: VariantRequirements | None
) -> RenderedTargets:
    """Name the workload of each variant, and set what override policies change."""
    if variants is not None:
        targets = variants.name_workloads(template, targets)
    return apply_overrides(state, template, targets, variants) if state.overrides.policies else (targets, ())


def _revise_assigned(
    template: Document,
    requirements: ReplicaRequirements,
    variants: VariantRequirements | None,
    assignments: tuple[Assignment, ...],
) -> Mapping[str, tuple[tuple[str, int], ...]]:
    """Return the changes to the manifest of each cluster that give it its part of the replicas."""
    if variants is None:
        return revise_replicas(template, requirements, assignments)
    return variants.revise_replicas(assignments, read_uid(template))


def _list_kept_copies(
    template: Document,
    tasks: tuple[Body, ...],
    requirements: ReplicaRequirements,
    variants: VariantRequirements | None,
    timeout: timedelta,
    *,
    revised: bool,
    replaced: bool,
) -> Iterator[TargetCluster]:
    """Yield the clusters where graceful eviction tasks keep a copy; with its part of the replicas where these are `revised`."""
    runs_once = replaced and template.key[:2] in RUN_ONCE_KINDS
    for task in tasks:
        source, mode, replicas = str(task.get("fromCluster")), task.get("purgeMode"), task.get("replicas")
        part = replicas if revised and isinstance(replicas, int) else None
        is_whole = part is None or part >= (requirements.replicas or 0)
        # A replacement that runs once does all of the work again.
        is_repeated = runs_once and is_whole and mode == "Gracefully" and task.get("suppressDeletion") is not True
        if mode == "Directly" or is_repeated:
            continue
        edits: tuple[tuple[str, int], ...] = ()
        if part is not None:
            edits = revise_copy(template, requirements, part) if variants is None else variants.revise_copy(source, part)
        created = parse_time(task.get("creationTimestamp"))
        is_unlimited = task.get("suppressDeletion") is True
        end = None if is_unlimited or created is None else find_task_end(task, timeout, created)
        release = UNLIMITED_EVICTION_END if is_unlimited else ""
        yield TargetCluster(source, replicas, True, edits, keeps_manifest=True, until=end, release=release)


def apply_overrides(
    state: KarmadaState, template: Document, targets: tuple[TargetCluster, ...], variants: VariantRequirements | None
) -> RenderedTargets:
    """Set what override policies change."""
    if variants is None:
        return state.overrides.apply(template, targets, state.find_definition)
    from gitsched.apis.karmada.overrides.variant_overrides import apply_to_variants  # few sources have variants

    return apply_to_variants(state.overrides, template, targets, variants.variants, state.find_definition)


def _report_missing_clusters(
    template: Document, missing: list[Assignment], requirements: ReplicaRequirements | None, tenant: str
) -> tuple[Finding, ...]:
    """Report assignments to clusters without a Cluster document, or that the `tenant` may not use: per workload if replicas are divided,
    else per cluster."""
    replicas = sum(assignment.replicas for assignment in missing)
    if requirements is not None and replicas:
        where = format_names(sorted(assignment.name for assignment in missing))
        all_replicas = format_count(requirements.replicas or 0, "replica")
        without = f"without a Cluster document or not allowed by Tenant {tenant}" if tenant else "without a Cluster document"
        message = (
            f"{template.key} has {replicas} of its {all_replicas} on {where}, {without}: "
            "what it has there is not changed any more, and stays until it is rescheduled, which no run does by itself: "
            f"{RESCHEDULE_DISPLACED} requests it"
        )
        return (Finding("warning", CLUSTER_GONE, message, locate_document(template), template.key.resource),)
    clusters = sorted(assignment.name for assignment in missing)
    reason = f"has no Cluster document, or Tenant {tenant} does not allow it" if tenant else "has no Cluster document"
    text = f"{reason}, but workloads are bound to it"
    return tuple(Finding("warning", CLUSTER_GONE, f"cluster {name} {text}", None, ("Cluster", "", name)) for name in clusters)


def merge_target_clusters(
    targets: tuple[TargetCluster, ...], attachment: Attachment | None, existing: Container[str]
) -> tuple[TargetCluster, ...]:
    """Add the clusters of the dependents to the targets; a copy that a dependent needs is not evicted."""
    if attachment is None:
        return targets
    merged = {target.cluster: target for target in targets}
    for name in attachment.clusters:
        if name in existing and (name not in merged or merged[name].evicting):
            merged[name] = TargetCluster(name)
    for name in attachment.evicting:
        if name in existing:
            merged.setdefault(name, TargetCluster(name, evicting=True))
    return tuple(merged.values())


def list_previous_targets(assignments: Iterable[Assignment], record: Body | None) -> tuple[TargetCluster, ...]:
    """Return the clusters that had an object after the last run: its own, those of its dependents (spec.requiredBy), and those where a
    graceful eviction task kept its copy."""
    targets = {a.name: TargetCluster(a.name, a.replicas or None) for a in assignments}
    for entry in list_objects(get_field(record, "spec", "requiredBy")) if record is not None else ():
        for cluster in list_objects(entry.get("clusters")):
            targets.setdefault(str(cluster.get("name")), TargetCluster(str(cluster.get("name"))))
    for task in list_objects(get_field(record, "spec", "gracefulEvictionTasks")) if record is not None else ():
        name, replicas = str(task.get("fromCluster")), task.get("replicas")
        if task.get("purgeMode") != "Directly":
            targets.setdefault(name, TargetCluster(name, replicas if isinstance(replicas, int) else None, evicting=True))
    return tuple(targets.values())


def mark_suspended(targets: tuple[TargetCluster, ...], binding: Body) -> tuple[TargetCluster, ...]:
    """Mark the targets to which dispatching is suspended; copies under graceful eviction are not affected."""
    everywhere, clusters = read_suspension(binding.get("spec") or {})
    if not everywhere and not clusters:
        return targets
    return tuple(
        t._replace(keeps_manifest=True) if not t.evicting and (everywhere or t.cluster in clusters) else t for t in targets
    )


def read_suspension(spec: Body) -> tuple[bool, frozenset[str]]:
    """Read spec.suspension: whether dispatching is suspended everywhere, else to which clusters."""
    suspension = spec.get("suspension")
    if not suspension:
        return False, frozenset()
    everywhere = get_field(suspension, "dispatching") is True
    clusters = get_field(suspension, "dispatchingOnClusters", "clusterNames") or ()
    return everywhere, frozenset(map(str, clusters))
