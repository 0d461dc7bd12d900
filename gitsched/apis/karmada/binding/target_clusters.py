"""Target clusters of a binding, the manifest of each, and outcomes that keep the last valid placement.

A workload keeps its last valid placement while its policy or a prerequisite is missing or invalid, or when its overrides cannot be
applied in a cluster that is new to it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.karmada import names
from gitsched.apis.karmada.autoscalers import find_scaled_per_cluster
from gitsched.apis.karmada.binding.reported_status import add_reported_status
from gitsched.apis.karmada.binding.resource_binding import binding_key, read_claim, read_previous
from gitsched.apis.karmada.dependencies.attached_binding import (
    Attachment,
    find_conflicts,
    update_attached_binding,
    write_attached_binding,
)
from gitsched.apis.karmada.failover.state_preservation import PRESERVED_STATE, add_preserved_labels
from gitsched.apis.karmada.interpreter import ReplicaRequirements, read_uid, revise_copy, revise_replicas
from gitsched.apis.karmada.policy.policy_options import MissingPrerequisite
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.state import KarmadaState
from gitsched.model.document import Body, Document, get_field, list_objects
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.scheduling import Assignment, Outcome, TargetCluster
from gitsched.model.variants import BUNDLE_KIND
from gitsched.schedule.dispenser import prefers_descending

if TYPE_CHECKING:
    from gitsched.apis.karmada.variant_requirements import VariantRequirements

RenderedTargets = tuple[tuple[TargetCluster, ...], tuple[Finding, ...]]


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
    variants = state.read_variant_requirements(template)
    revised = divided and not state.autoscalers.retains_replicas(template)
    edits: Mapping[str, tuple[tuple[str, int], ...]] = {}
    if revised:
        descending = prefers_descending(read_uid(template))
        edits = (
            revise_replicas(template, requirements, assignments, descending)
            if variants is None
            else variants.revise_replicas(assignments, descending)
        )
    targets = [TargetCluster(a.name, a.replicas or None, False, edits.get(a.name, ())) for a in assignments if a.name in existing]
    assigned = {assignment.name for assignment in assignments}
    for task in tasks:
        source = str(task.get("fromCluster"))
        if source in existing and source not in assigned and task.get("purgeMode") != "Directly":
            replicas = task.get("replicas")
            kept: tuple[tuple[str, int], ...] = ()
            if revised and isinstance(replicas, int):
                kept = revise_copy(template, requirements, replicas) if variants is None else variants.revise_copy(source, replicas)
            targets.append(TargetCluster(source, replicas, True, kept))
    merged = merge_target_clusters(tuple(targets), attachment, existing)
    if variants is not None:
        merged = variants.name_workloads(template, merged)
    overridden, findings = _apply_overrides(state, template, merged, variants) if state.overrides.policies else (merged, ())
    missing = [assignment for assignment in assignments if assignment.name not in existing]
    if divided and not revised:
        findings = (
            *findings,
            *find_scaled_per_cluster(
                state.autoscalers, template, requirements.replicas_path, assignments, state.snapshot.templates
            ),
        )
    return overridden, (*_report_missing_clusters(template, missing, requirements if divided else None), *findings)


def _apply_overrides(
    state: KarmadaState, template: Document, targets: tuple[TargetCluster, ...], variants: VariantRequirements | None
) -> RenderedTargets:
    """Set the manifests that override policies change. Those of variants change the document of each cluster; Bundles have none."""
    if variants is None:
        return state.overrides.apply(template, targets)
    by_document: dict[int, tuple[Document, list[TargetCluster]]] = {}
    for target in targets:
        document = variants.find_document(template, target.cluster)
        by_document.setdefault(id(document), (document, []))[1].append(target)
    results: dict[str, TargetCluster] = {}
    findings: list[Finding] = []
    for document, group in by_document.values():
        overridden, found = state.overrides.apply(document, tuple(group))
        results |= {target.cluster: target for target in overridden}
        findings += found
    if template.key[:2] == BUNDLE_KIND and any(target.body is not None for target in results.values()):
        message = f"override policies do not change the objects of {template.key}: use a variant or a patch for these clusters"
        findings.append(Finding("warning", "bundle-override", message, locate_document(template), template.key.resource))
        results = {name: target._replace(body=None) for name, target in results.items()}
    return tuple(results[target.cluster] for target in targets), tuple(findings)


def _report_missing_clusters(
    template: Document, missing: list[Assignment], requirements: ReplicaRequirements | None
) -> tuple[Finding, ...]:
    """Report assignments to clusters without a Cluster document: per workload if replicas are divided, else per cluster."""
    replicas = sum(assignment.replicas for assignment in missing)
    if requirements is not None and replicas:
        where = format_names(sorted(assignment.name for assignment in missing))
        message = (
            f"{template.key} has {replicas} of its {requirements.replicas} replicas on {where}, without a Cluster document: "
            "no manifest is written there; a WorkloadRebalancer that names the workload reschedules them"
        )
        return (Finding("warning", "cluster-gone", message, locate_document(template), template.key.resource),)
    clusters = sorted(assignment.name for assignment in missing)
    text = "has no Cluster document, but workloads are bound to it"
    return tuple(Finding("warning", "cluster-gone", f"cluster {name} {text}", None, ("Cluster", "", name)) for name in clusters)


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
    """Return the clusters that had an object after the last run: its own, and those of its dependents (spec.requiredBy)."""
    targets = {a.name: TargetCluster(a.name, a.replicas or None) for a in assignments}
    for entry in list_objects(get_field(record, "spec", "requiredBy")) if record is not None else ():
        for cluster in list_objects(entry.get("clusters")):
            targets.setdefault(str(cluster.get("name")), TargetCluster(str(cluster.get("name"))))
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


def decide_attached(state: KarmadaState, template: Document, attachment: Attachment, record: Body | None) -> Outcome:
    """Return the outcome of an object that no policy selects and that other workloads depend on."""
    targets, findings = state.overrides.apply(template, merge_target_clusters((), attachment, state.fleet.index))
    binding = write_attached_binding(template, attachment)
    add_reported_status(binding, record, state.failover.list_reports(template.key), state.snapshot.at)
    return Outcome(
        key=template.key,
        api=names.API_NAME,
        state="placed" if attachment.clusters else "pending",
        policy="",
        group="",
        targets=targets,
        replicas=None,
        records=((binding_key(template.key), binding),),
        reason=attachment.reason,
        time=state.snapshot.at,
        findings=(*findings, *find_conflicts(template, attachment)),
        previous_targets=list_previous_targets((), record),
    )


def wait_for_prerequisite(
    state: KarmadaState,
    template: Document,
    policy: PropagationPolicy,
    attachment: Attachment | None,
    missing: MissingPrerequisite,
) -> Outcome:
    """Keep the previous decision while the policy waits for a prerequisite; a new workload stays unplaced."""
    kept = keep_previous(state, template, attachment, missing.reason)
    if kept is not None:
        return kept._replace(findings=(missing.finding, *kept.findings))
    return Outcome(
        key=template.key,
        api=names.API_NAME,
        state="pending",
        policy=policy.key.title,
        group="",
        targets=(),
        replicas=state.read_requirements(template).replicas,
        records=(),
        reason=missing.reason,
        time=state.snapshot.at,
        findings=(missing.finding,),
    )


def keep_previous(
    state: KarmadaState, template: Document, attachment: Attachment | None, why: str, record: Body | None = None
) -> Outcome | None:
    """Return the decision of the previous binding, or of `record`, marked stale; None when there is none.

    Only the workload's own decision is kept: `attachment`, what its dependents need, is the present one.
    """
    previous = state.find_record(template) if record is None else record
    previous = update_attached_binding(previous, attachment) if previous is not None else None
    if previous is None:
        return None
    current = read_previous(previous)
    claim = read_claim(dict(current.annotations))
    requirements = state.read_requirements(template)
    divided = bool(get_field(previous, "spec", "placement", "replicaScheduling")) and any(a.replicas for a in current.clusters)
    targets, findings = find_target_clusters(
        state, template, current.clusters, current.eviction_tasks, requirements, divided, attachment
    )
    if PRESERVED_STATE in current.annotations:
        targets = add_preserved_labels(template, targets, current.annotations)
    message = f"{template.key} keeps its previous placement: {why}"
    findings = (*findings, Finding("warning", "stale-decision", message, locate_document(template), template.key.resource))
    return Outcome(
        key=template.key,
        api=names.API_NAME,
        state="stale",
        policy=claim.title if claim else "",
        group=current.observed_group,
        targets=mark_suspended(targets, previous),
        replicas=get_field(previous, "spec", "replicas"),
        records=((binding_key(template.key), previous),),
        reason=why,
        time=current.last_scheduled or state.snapshot.at,
        findings=findings,
        previous_targets=targets,
    )


def keep_if_overrides_fail(
    state: KarmadaState,
    template: Document,
    attachment: Attachment | None,
    outcomes: Iterable[Outcome],
    previous: Body | None,
) -> Outcome | None:
    """Return the last decision before the one that adds a cluster whose manifest cannot be made; None to go ahead.

    A workload that moved there would be removed from one cluster without a copy in the other. A workload without any cluster is placed
    where it can be. `outcomes` are those of successive deadlines: the ones before such a move have taken effect.
    """
    record = previous
    for outcome in outcomes:
        unrendered = _list_unrendered_clusters(outcome, record)
        if unrendered:
            why = f"it would be new in {format_names(unrendered)}, and its overrides cannot be applied for there"
            kept = keep_previous(state, template, attachment, why, record)
            findings = tuple(dict.fromkeys((*outcome.findings, *kept.findings))) if kept else ()
            return kept and kept._replace(
                findings=findings, previous_targets=list_previous_targets(read_previous(previous).clusters, previous)
            )
        record = outcome.records[0][1]
    return None


def _list_unrendered_clusters(outcome: Outcome, record: Body | None) -> list[str]:
    """Return the clusters that would be new to a placed workload and for which it has no manifest."""
    if not any(target.keeps_manifest for target in outcome.targets):
        return []
    current = read_previous(record)
    previous = list_previous_targets(current.clusters, record)
    known = {*(target.cluster for target in previous), *(str(task.get("fromCluster")) for task in current.eviction_tasks)}
    unrendered = [target.cluster for target in outcome.targets if target.keeps_manifest and target.cluster not in known]
    return unrendered if current.clusters else []
