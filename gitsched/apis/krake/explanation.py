"""Why an application is where it is, and what another cluster would need to win."""

from __future__ import annotations

from gitsched.apis.krake.applications import Step
from gitsched.apis.krake.backends import wanted_of
from gitsched.apis.krake.constraint_sets import tell_constraints
from gitsched.apis.krake.decisions import Decided, Decisions
from gitsched.apis.krake.reporting import locate, report, report_application
from gitsched.apis.krake.session import judge
from gitsched.model.decision import Verdict
from gitsched.model.document import Document
from gitsched.model.explanation import Attempt, Candidate, Explanation, Share
from gitsched.model.time import format_time

_RIVALS = 5
"""Rivals whose distance is told."""
_VERDICTS = {"bind": "scheduled", "touch": "scheduled", "none": "scheduled", "create": "scheduled", "fail": "no-fit"}


def explain(decided: Decided) -> Explanation:
    """The whole way of an application through its handler."""
    app, step = decided.app, decided.step
    place = locate(app.document)
    target = decided.steps[-1].memory.target
    verdicts = judge(decided)
    attempt = Attempt("", _VERDICTS.get(step.action, "not tried"), step.why)
    return Explanation(
        workload=str(app.key),
        location=f"{place.path}:{place.line}" if place else "",
        policy="spec.constraints",
        policy_reason=tell_constraints(app.constraints) or f"none, so any cluster in {app.key.namespace} will do",
        attempts=(attempt,) if attempt.verdict != "scheduled" else (),
        candidates=tuple(map(Candidate, verdicts)),
        selection=tuple(_tell_needs(decided, verdicts)),
        trigger=_tell_trigger(decided, step),
        result=(Share(f"{target.namespace}.{target.name}"),) if target else (),
        findings=tuple(report_application(decided, None, target is not None)),
    )


def explain_binding(decisions: Decisions, document: Document) -> Explanation | None:
    """Why a Cluster has its cloud, or a MagnumCluster its project; None for anything else."""
    key = document.key
    verdicts = decisions.judge(key)
    if verdicts is None:
        return None
    binding = (decisions.bindings.get(key) or decisions.magnum[key])[1]
    target = binding.memory.target
    among = "project" if key in decisions.magnum else "cloud"
    unwanted = target is None and binding.action == "ignored"
    told = f"Bound to {target.kind} {target.name}" if target else "Not bound"
    place = locate(document)
    return Explanation(
        workload=str(key),
        location=f"{place.path}:{place.line}" if place else "",
        policy="spec.constraints",
        policy_reason=tell_constraints(wanted_of(document)) or f"none, so any {among} will do",
        candidates=() if unwanted else tuple(map(Candidate, verdicts)),
        trigger=told + (f": {binding.why}." if binding.why else ", by the best score."),
        result=(Share(f"{target.kind} {target.name}"),) if target else (),
        findings=tuple(finding for finding in report(decisions) if finding.resource == key.resource),
        among=among,
    )


def _tell_needs(decided: Decided, verdicts: list[Verdict]) -> list[str]:
    """What its cluster has ahead of the best others: how far their scores are from the one that counts."""
    step, arena = decided.step, decided.around.clusters
    if step.held is None or not step.mask >> step.held & 1:
        return []
    held = arena.ranking.total(step.held, step.mask, step.held)
    name, sticky = arena.fleet.names[step.held], arena.rules.stickiness
    rivals = [(-verdict.total, verdict.name) for verdict in verdicts if verdict.total is not None and verdict.name != name]
    if held is None:
        return []
    needs = [f"{name} has {held:.6g}, its stickiness of {sticky:g} included"]
    needs += [_tell_need(rival, -total, held) for total, rival in sorted(rivals)[:_RIVALS]]
    if not rivals:
        return [*needs, "no other cluster is compared with it"]
    return [*needs, f"and {len(rivals) - _RIVALS} more"] if len(rivals) > _RIVALS else needs


def _tell_need(name: str, score: float, held: float) -> str:
    if score > held:
        return f"{name} has {score:.6g}, {score - held:.6g} more: it would win"
    if score == held:
        return f"{name} has as much: the lot decides"
    return f"{name} has {score:.6g}: to win it needs more than {held - score:.6g} in addition"


def _tell_trigger(decided: Decided, step: Step) -> str:
    memory = decided.before
    when = format_time(step.moment)
    match step.action:
        case "bind" if memory.target is None:
            return f"Scheduled at {when}: it had no cluster."
        case "bind":
            return f"Moved at {when} from {memory.target.name if memory.target else 'nowhere'}: {step.why or 'another cluster is better'}."
        case "touch":
            return f"Looked at again at {when} because it changed: {step.why or 'its cluster is still the best'}."
        case "fail":
            return f"Tried at {when}: {step.why}."
        case "create":
            return f"A cluster is to be made for it on {step.cloud.name if step.cloud else 'a cloud'}, which is better than every cluster."
        case "hold":
            return f"Not scheduled: {step.why}."
        case _:
            return f"Stays: {step.why or 'its cluster is still the best'}."
