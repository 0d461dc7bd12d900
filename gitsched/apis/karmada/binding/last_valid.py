"""Keep the last valid placement of a workload while something that it needs is missing, broken or cannot be applied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.resource_binding import read_previous
from gitsched.apis.karmada.binding.target_clusters import find_target_clusters, mark_suspended
from gitsched.apis.karmada.dependencies.dependencies_distributor import list_previous_targets, update_attached_binding
from gitsched.apis.karmada.failover.graceful_eviction import add_preserved_labels
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy, read_priority_class_name, read_priority_value
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Outcome

if TYPE_CHECKING:  # the session calls this module
    from gitsched.apis.karmada.engine import KarmadaEngine


class MissingPrerequisite(NamedTuple):
    """What a policy waits for: `why` for the one workload, `finding` for all that the policy selects."""

    reason: str
    finding: Finding


def find_missing_prerequisite(session: KarmadaEngine, template: Document, policy: PropagationPolicy) -> MissingPrerequisite | None:
    """What has to exist before the policy acts on a workload, and does not: override policies, or a PriorityClass."""
    absent = list_missing_overrides(session, policy)
    if absent:
        awaited = ", ".join(key.title for key in absent)
        message = f"{policy.key.title} depends on {awaited}, not there yet: what it selects waits"
        finding = Finding("warning", "override-awaited", message, locate_document(policy.document), policy.key.resource)
        return MissingPrerequisite(f"its policy waits for {awaited}", finding)
    name = read_priority_class_name(policy) if template.key.namespace else ""
    if name and read_priority_value(name, session.snapshot.templates) is None:
        message = f"{policy.key.title} asks for PriorityClass {name}, which is not there: what it selects waits"
        finding = Finding(
            "warning", "karmada-priority-class-missing", message, locate_document(policy.document), policy.key.resource
        )
        return MissingPrerequisite(f"its policy waits for PriorityClass {name}", finding)
    return None


def list_missing_overrides(session: KarmadaEngine, policy: PropagationPolicy) -> list[Key]:
    """The policies of spec.dependentOverrides that do not exist: a PropagationPolicy names OverridePolicies of its own namespace, a
    ClusterPropagationPolicy names ClusterOverridePolicies."""
    kind = names.OVERRIDE if policy.is_namespaced else names.CLUSTER_OVERRIDE
    wanted = (Key(names.POLICY_GROUP, kind, policy.key.namespace, name) for name in policy.spec.get("dependentOverrides") or ())
    return [key for key in wanted if key not in session.overrides]


def wait_for_prerequisite(
    session: KarmadaEngine, template: Document, policy: PropagationPolicy, missing: MissingPrerequisite
) -> Outcome:
    """The previous decision as long as something is awaited; nowhere when there is none."""
    kept = session.keep_previous(template, missing.reason)
    if kept is not None:
        return kept._replace(findings=(missing.finding, *kept.findings))
    return Outcome(
        key=template.key,
        api=session.name,
        state="pending",
        policy=policy.key.title,
        group="",
        targets=(),
        replicas=session.read_requirements(template).replicas,
        records=(),
        reason=missing.reason,
        time=session.snapshot.at,
        findings=(missing.finding,),
    )


def keep_previous(session: KarmadaEngine, template: Document, why: str, record: Body | None = None) -> Outcome | None:
    """The previous decision, or that of a `record`, marked stale. What brings the workload along is no part of it: that counts as it is
    now."""
    key = names.binding_key(template.key)
    attachment = session.dependencies.find_attachment(template)
    previous = session.snapshot.previous.get(key) if record is None else record
    previous = update_attached_binding(previous, attachment) if previous is not None else None
    if previous is None:
        return None
    memory = read_previous(previous)
    claim = names.read_claim(dict(memory.annotations))
    demand = session.read_requirements(template)
    divided = bool(get_field(previous, "spec", "placement", "replicaScheduling")) and any(t.replicas for t in memory.clusters)
    placed, findings = find_target_clusters(session, template, memory.clusters, memory.eviction_tasks, demand, divided, attachment)
    placed = add_preserved_labels(template, placed, memory.annotations)
    message = f"{template.key} keeps its previous placement: {why}"
    findings = (*findings, Finding("warning", "stale-decision", message, locate_document(template), template.key.resource))
    return Outcome(
        key=template.key,
        api=session.name,
        state="stale",
        policy=claim.title if claim else "",
        group=memory.observed_group,
        targets=mark_suspended(placed, previous),
        replicas=get_field(previous, "spec", "replicas"),
        records=((key, previous),),
        reason=why,
        time=memory.last_scheduled or session.snapshot.at,
        findings=findings,
        previous_targets=placed,
    )


def keep_if_overrides_fail(
    session: KarmadaEngine, template: Document, outcomes: Iterable[Outcome], previous: Body | None
) -> Outcome | None:
    """The last decision before the one that leads to a cluster for which no manifest can be made; None to go ahead.

    A workload that moves would be taken away here and not arrive there. One that was nowhere before goes where it can. `outcomes` are
    those of successive deadlines: what came before such a move was carried out, had somebody looked in time.
    """
    record = previous
    for outcome in outcomes:
        strange = _list_unrendered_clusters(outcome, record)
        if strange:
            why = f"it would be new in {names.format_clusters(strange)}, and its overrides cannot be applied for there"
            kept = keep_previous(session, template, why, record)
            findings = tuple(dict.fromkeys((*outcome.findings, *kept.findings))) if kept else ()
            return kept and kept._replace(
                findings=findings, previous_targets=list_previous_targets(read_previous(previous).clusters, previous)
            )
        record = outcome.records[0][1]
    return None


def _list_unrendered_clusters(outcome: Outcome, record: Body | None) -> list[str]:
    """The clusters that a workload with a place would come to without a manifest."""
    if not any(place.keeps_manifest for place in outcome.targets):
        return []
    memory = read_previous(record)
    held = list_previous_targets(memory.clusters, record)
    known = {*(place.cluster for place in held), *(str(task.get("fromCluster")) for task in memory.eviction_tasks)}
    strange = [place.cluster for place in outcome.targets if place.keeps_manifest and place.cluster not in known]
    return strange if memory.clusters else []
