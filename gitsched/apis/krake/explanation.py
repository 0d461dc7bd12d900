"""Why an application is where it is, and what another cluster would need to win."""

from __future__ import annotations

from gitsched.apis.krake.applications import Application, Step
from gitsched.apis.krake.arena import Arena
from gitsched.apis.krake.decisions import Decided
from gitsched.apis.krake.reporting import locate, report_application
from gitsched.apis.krake.session import judge
from gitsched.model.decision import Verdict
from gitsched.model.explanation import Attempt, Candidate, Explanation, Share
from gitsched.model.time import format_time

_VERDICTS = {"bind": "scheduled", "touch": "scheduled", "none": "scheduled", "create": "scheduled", "fail": "no-fit"}


def explain(decided: Decided) -> Explanation:
    """The whole way of an application through its handler."""
    app, step = decided.app, decided.step
    place = locate(app.document)
    target = decided.steps[-1].memory.target
    attempt = Attempt("", _VERDICTS.get(step.action, "not tried"), step.why)
    return Explanation(
        workload=str(app.key),
        location=f"{place.path}:{place.line}" if place else "",
        policy="spec.constraints",
        policy_reason=_tell_constraints(app),
        attempts=(attempt,) if attempt.verdict != "scheduled" else (),
        candidates=tuple(_compare(decided, verdict) for verdict in judge(decided)),
        trigger=_tell_trigger(decided, step),
        result=(Share(f"{target.namespace}.{target.name}"),) if target else (),
        findings=tuple(report_application(decided, None, target is not None)),
    )


def _tell_constraints(app: Application) -> str:
    wanted = app.constraints
    count = len(wanted.labels) + len(wanted.resources) + len(wanted.metrics)
    return (
        f"an Application carries its own constraints: {count or 'none'}"
        if count != 1
        else "an Application carries its own constraint"
    )


def _compare(decided: Decided, verdict: Verdict) -> Candidate:
    """A candidate with what it would need: how far its score is from the one that counts."""
    step, arena = decided.step, decided.around.clusters
    if not step.compared or step.held is None or verdict.total is None or not verdict.eligible:
        return Candidate(verdict)
    held = arena.ranking.total(step.held, step.mask, step.held)
    if held is None or arena.fleet.names[step.held] == verdict.name:
        return Candidate(verdict)
    return Candidate(verdict._replace(reason=_tell_need(arena, step.held, held, verdict.total)))


def _tell_need(arena: Arena, held: int, score: float, rival: float) -> str:
    name, sticky = arena.fleet.names[held], arena.rules.stickiness
    if rival > score:
        return f"its score is above the {score:.6g} of {name}, stickiness {sticky:g} included"
    if rival == score:
        return f"as good as {name}, stickiness {sticky:g} included: the lot decides"
    return f"it needs a score above {score:.6g}, that of {name} with stickiness {sticky:g}: {score - rival:.6g} more than it has"


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
