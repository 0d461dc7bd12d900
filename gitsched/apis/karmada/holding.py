"""When a decision is not carried out, and the previous one kept: something that it needs is not there, or cannot be read or applied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from gitsched.apis.karmada import names
from gitsched.apis.karmada.attachment import keep_attached, was_placed
from gitsched.apis.karmada.binding import recall
from gitsched.apis.karmada.places import find_places
from gitsched.apis.karmada.policy import Policy
from gitsched.apis.karmada.preservation import hand_over
from gitsched.apis.karmada.priority import asked_class, read_value
from gitsched.apis.karmada.suspension import hold
from gitsched.model.document import Body, Document, Key, member
from gitsched.model.finding import Finding, locate
from gitsched.model.outcome import Outcome

if TYPE_CHECKING:  # the session calls this module
    from gitsched.apis.karmada.session import KarmadaSession


class Missing(NamedTuple):
    """What a policy waits for: `why` for the one workload, `finding` for all that the policy selects."""

    why: str
    finding: Finding


def find_missing(session: KarmadaSession, template: Document, policy: Policy) -> Missing | None:
    """What has to exist before the policy acts on a workload, and does not: override policies, or a PriorityClass."""
    absent = list_missing(session, policy)
    if absent:
        awaited = ", ".join(key.title for key in absent)
        message = f"{policy.key.title} depends on {awaited}, not there yet: what it selects waits"
        finding = Finding("warning", "override-awaited", message, locate(policy.document), policy.key.resource)
        return Missing(f"its policy waits for {awaited}", finding)
    name = asked_class(policy) if template.key.namespace else ""
    if name and read_value(name, session.world.templates) is None:
        message = f"{policy.key.title} asks for PriorityClass {name}, which is not there: what it selects waits"
        finding = Finding("warning", "karmada-priority-class-missing", message, locate(policy.document), policy.key.resource)
        return Missing(f"its policy waits for PriorityClass {name}", finding)
    return None


def list_missing(session: KarmadaSession, policy: Policy) -> list[Key]:
    """The policies of spec.dependentOverrides that do not exist: a PropagationPolicy names OverridePolicies of its own namespace, a
    ClusterPropagationPolicy names ClusterOverridePolicies."""
    kind = names.OVERRIDE if policy.namespaced else names.CLUSTER_OVERRIDE
    wanted = (Key(names.POLICY_GROUP, kind, policy.key.namespace, name) for name in policy.spec.get("dependentOverrides") or ())
    return [key for key in wanted if key not in session.overrides]


def wait(session: KarmadaSession, template: Document, policy: Policy, missing: Missing) -> Outcome:
    """The previous decision as long as something is awaited; nowhere when there is none."""
    kept = session.keep(template, missing.why)
    if kept is not None:
        return kept._replace(findings=(missing.finding, *kept.findings))
    return Outcome(
        key=template.key,
        api=session.name,
        state="pending",
        policy=policy.key.title,
        group="",
        placed=(),
        replicas=session.demand(template).replicas,
        documents=(),
        reason=missing.why,
        time=session.world.at,
        findings=(missing.finding,),
    )


def keep(session: KarmadaSession, template: Document, why: str, record: Body | None = None) -> Outcome | None:
    """The previous decision, or that of a `record`, marked stale. What brings the workload along is no part of it: that counts as it is
    now."""
    key = names.binding_key(template.key)
    attachment = session.relations.attachment(template)
    previous = session.world.previous.get(key) if record is None else record
    previous = keep_attached(previous, attachment) if previous is not None else None
    if previous is None:
        return None
    memory = recall(previous)
    claim = names.claimed_policy(dict(memory.annotations))
    demand = session.demand(template)
    divided = bool(member(previous, "spec", "placement", "replicaScheduling")) and any(t.replicas for t in memory.clusters)
    placed, findings = find_places(session, template, memory.clusters, memory.tasks, demand, divided, attachment)
    placed = hand_over(template, placed, memory.annotations)
    message = f"{template.key} keeps its previous placement: {why}"
    findings = (*findings, Finding("warning", "stale-decision", message, locate(template), template.key.resource))
    return Outcome(
        key=template.key,
        api=session.name,
        state="stale",
        policy=claim.title if claim else "",
        group=memory.observed,
        placed=hold(placed, previous),
        replicas=member(previous, "spec", "replicas"),
        documents=((key, previous),),
        reason=why,
        time=memory.scheduled or session.world.at,
        findings=findings,
        before=placed,
    )


def hold_back(session: KarmadaSession, template: Document, outcomes: Iterable[Outcome], previous: Body | None) -> Outcome | None:
    """The last decision before the one that leads to a cluster for which no manifest can be made; None to go ahead.

    A workload that moves would be taken away here and not arrive there. One that was nowhere before goes where it can. `outcomes` are
    those of successive deadlines: what came before such a move was carried out, had somebody looked in time.
    """
    record = previous
    for outcome in outcomes:
        strange = _list_strange(outcome, record)
        if strange:
            why = f"it would be new in {names.shorten(strange)}, and its overrides cannot be applied for there"
            kept = keep(session, template, why, record)
            findings = tuple(dict.fromkeys((*outcome.findings, *kept.findings))) if kept else ()
            return kept and kept._replace(findings=findings, before=was_placed(recall(previous).clusters, previous))
        record = outcome.documents[0][1]
    return None


def _list_strange(outcome: Outcome, record: Body | None) -> list[str]:
    """The clusters that a workload with a place would come to without a manifest."""
    if not any(place.kept for place in outcome.placed):
        return []
    memory = recall(record)
    held = was_placed(memory.clusters, record)
    known = {*(place.cluster for place in held), *(str(task.get("fromCluster")) for task in memory.tasks)}
    strange = [place.cluster for place in outcome.placed if place.kept and place.cluster not in known]
    return strange if memory.clusters else []
