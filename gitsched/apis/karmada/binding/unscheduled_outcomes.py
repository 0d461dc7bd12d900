"""Outcomes without a pass of the scheduler: the last valid placement, and objects that only go where their dependents go.

A workload keeps its last valid placement while its policy or a prerequisite is missing or invalid, or when its overrides cannot be
applied in a cluster that is new to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.reported_status import add_reported_status
from gitsched.apis.karmada.binding.resource_binding import binding_key, read_claim, read_previous
from gitsched.apis.karmada.binding.scheduling_pass import (
    find_target_clusters,
    list_previous_targets,
    mark_suspended,
    merge_target_clusters,
)
from gitsched.apis.karmada.dependencies.attached_binding import (
    Attachment,
    find_conflicts,
    update_attached_binding,
    write_attached_binding,
)
from gitsched.apis.karmada.failover.state_preservation import PRESERVED_STATE, add_preserved_labels
from gitsched.apis.karmada.policy.policy_options import MissingPrerequisite
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.state import KarmadaState
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.scheduling import Outcome
from gitsched.model.variants import BUNDLE_KIND


def decide_attached(state: KarmadaState, template: Document, attachment: Attachment, record: Body | None) -> Outcome:
    """Return the outcome of an object that no policy selects and that other workloads depend on."""
    attached = merge_target_clusters((), attachment, state.fleet.index)
    targets, findings = state.overrides.apply(template, attached, state.find_definition)
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
    policy: PropagationPolicy | None,
    attachment: Attachment | None,
    missing: MissingPrerequisite,
) -> Outcome:
    """Keep the previous decision while a prerequisite is missing; a new workload, or one that others need, stays unplaced."""
    kept = keep_previous(state, template, None if missing.holds_attached else attachment, missing.reason)
    if kept is not None:
        return kept._replace(findings=(missing.finding, *kept.findings))
    return _wait(state, template, policy.key if policy is not None else None, missing.reason, missing.finding)


def find_broken_override(state: KarmadaState, template: Document, record: Body | None) -> MissingPrerequisite | None:
    """Return the override policy that would change a workload without clusters, has errors and was never valid; None if there is none."""
    if state.broken_overrides is None or (record is not None and list_previous_targets(read_previous(record).clusters, record)):
        return None
    variants = state.snapshot.variants.get(template.key)
    objects = [one for variant in variants.variants for one in variant.objects] if variants is not None else []
    if template.key[:2] != BUNDLE_KIND:
        objects = [template, *(one for one in objects if one.key == template.key)]
    policy = state.broken_overrides.find_override(objects)
    if policy is None:
        return None
    reason = f"{policy.key.title} has errors and was never valid"
    message = f"{reason}: new workloads that it selects wait for it; correct or remove it"
    finding = Finding("warning", "override-awaited", message, policy.location, policy.key.resource)
    return MissingPrerequisite(f"its override policy {reason}", finding, holds_attached=True)


def wait_for_policy(state: KarmadaState, template: Document, policy: Key) -> Outcome:
    """Leave a new workload unplaced while a policy that selects it has errors and was never valid."""
    message = f"{template.key} waits for {policy.title}, which selects it, has errors and was never valid"
    finding = Finding("warning", "policy-awaited", message, locate_document(template), template.key.resource)
    return _wait(state, template, policy, f"its policy {policy.title} has errors and was never valid", finding)


def _wait(state: KarmadaState, template: Document, policy: Key | None, reason: str, finding: Finding) -> Outcome:
    return Outcome(
        key=template.key,
        api=names.API_NAME,
        state="pending",
        policy=policy.title if policy is not None else "",
        group="",
        targets=(),
        replicas=state.read_requirements(template).replicas,
        records=(),
        reason=reason,
        time=state.snapshot.at,
        findings=(finding,),
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
