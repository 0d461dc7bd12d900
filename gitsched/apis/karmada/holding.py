"""When a decision is not carried out: what it needs of override policies is not there, or cannot be applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding import recall
from gitsched.apis.karmada.fleet import locate
from gitsched.apis.karmada.policy import Policy
from gitsched.model.document import Body, Document, Key
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome

if TYPE_CHECKING:  # the session calls this module
    from gitsched.apis.karmada.session import KarmadaSession


def list_missing(session: KarmadaSession, policy: Policy) -> list[Key]:
    """The policies of spec.dependentOverrides that do not exist: a PropagationPolicy names OverridePolicies of its own namespace, a
    ClusterPropagationPolicy names ClusterOverridePolicies."""
    kind = names.OVERRIDE if policy.namespaced else names.CLUSTER_OVERRIDE
    wanted = (Key(names.POLICY_GROUP, kind, policy.key.namespace, name) for name in policy.spec.get("dependentOverrides") or ())
    return [key for key in wanted if key not in session.overrides]


def wait(session: KarmadaSession, template: Document, policy: Policy, missing: list[Key]) -> Outcome:
    """The previous decision as long as overrides are awaited; nowhere when there is none."""
    awaited = ", ".join(map(names.policy_text, missing))
    message = f"{names.policy_text(policy.key)} depends on {awaited}, not there yet: what it selects waits"
    finding = Finding("warning", "override-awaited", message, locate(policy.document), policy.key.resource)
    why = f"its policy waits for {awaited}"
    kept = session.keep(template, why)
    if kept is not None:
        return kept._replace(findings=(finding, *kept.findings))
    return Outcome(
        key=template.key,
        api=session.name,
        state="pending",
        policy=names.policy_text(policy.key),
        group="",
        placed=(),
        replicas=session.demand(template).replicas,
        documents=(),
        reason=why,
        time=session.world.at,
        findings=(finding,),
    )


def hold_back(session: KarmadaSession, template: Document, outcome: Outcome, previous: Body | None) -> Outcome | None:
    """The previous decision when the new one leads to a cluster for which no manifest can be made; None to go ahead.

    A workload that moves would be taken away here and not arrive there. One that was nowhere before goes where it can.
    """
    memory = recall(previous)
    known = {*(target.name for target in memory.clusters), *(str(task.get("fromCluster")) for task in memory.tasks)}
    strange = [place.cluster for place in outcome.placed if place.kept and place.cluster not in known]
    if not memory.clusters or not strange:
        return None
    kept = session.keep(template, f"it would be new in {names.shorten(strange)}, and its overrides cannot be applied for there")
    return kept and kept._replace(findings=tuple(dict.fromkeys((*outcome.findings, *kept.findings))))
