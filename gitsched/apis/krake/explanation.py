"""Why an application is where it is, and what another cluster would need to win."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from gitsched.apis.krake.applications import Step
from gitsched.apis.krake.arena import Arena
from gitsched.apis.krake.backends import wanted_of
from gitsched.apis.krake.constraint_sets import tell_constraints
from gitsched.apis.krake.decisions import Decided, Decisions
from gitsched.apis.krake.reporting import report, report_application
from gitsched.apis.krake.rivals import tell_need
from gitsched.apis.krake.session import judge
from gitsched.model.decision import Verdict
from gitsched.model.document import Document
from gitsched.model.explanation import Candidate, Explanation, Share
from gitsched.model.finding import locate
from gitsched.model.time import format_time

_RIVALS = 5
"""Rivals whose distance is told."""


def explain(decided: Decided, observed: datetime | None) -> Explanation:
    """The whole way of an application through its handler; `observed` is when metrics were."""
    app, step = decided.app, decided.step
    place = locate(app.document)
    target = decided.steps[-1].memory.target
    verdicts = judge(decided)
    return Explanation(
        workload=str(app.key),
        location=f"{place.path}:{place.line}" if place else "",
        policy="spec.constraints",
        policy_reason=tell_constraints(app.constraints) or f"none, so any cluster in {app.key.namespace} will do",
        candidates=tuple(_candidates(decided, verdicts)),
        selection=tuple(_tell_needs(decided, verdicts)),
        trigger=_tell_trigger(decided, step) + _tell_observed(decided, observed),
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
    ranked = (verdict for verdict in verdicts if verdict.total is not None and verdict.name in arena.fleet.index)
    rivals = [(-verdict.total, verdict.name) for verdict in ranked if verdict.total is not None and verdict.name != name]
    if held is None:
        return []
    needs = [f"{name} has {held:.6g}, its stickiness of {sticky:g} included"]
    needs += [_tell_rival(arena, rival, -total, step.held, held) for total, rival in sorted(rivals)[:_RIVALS]]
    if not rivals:
        return [*needs, "no other cluster is compared with it"]
    return [*needs, f"and {len(rivals) - _RIVALS} more"] if len(rivals) > _RIVALS else needs


def _tell_rival(arena: Arena, name: str, score: float, held: int, goal: float) -> str:
    if score > goal:
        return f"{name} has {score:.6g}, {score - goal:.6g} more: it would win"
    if score == goal:
        return f"{name} has as much: the lot decides"
    return f"{name} has {score:.6g}: {tell_need(arena, arena.fleet.index[name], held, goal)}"


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
            return f"Tried at {when}: {step.why}.{_tell_retry(decided)}"
        case "create":
            return f"A cluster is to be made for it on {step.cloud.name if step.cloud else 'a cloud'}, which is better than every cluster."
        case _ if step.memory.target is None:
            return f"Without a cluster: {step.why}.{_tell_retry(decided)}"
        case _:
            return f"Stays: {step.why or 'its cluster is still the best'}.{_tell_hold(decided, step)}"


def _tell_hold(decided: Decided, step: Step) -> str:
    """Until when a recent decision keeps an application from a better cluster."""
    since, held = decided.before.scheduled, step.held
    if step.action == "hold" or since is None or held is None or step.compared or not step.mask >> held & 1:
        return ""
    return f" From {format_time(since + decided.around.reschedule_after)} on a better cluster may win."


def _tell_retry(decided: Decided) -> str:
    last = decided.steps[-1]
    due = last.memory.retry if last.memory.state == "DEGRADED" else None
    return f" It is tried again from {format_time(due)} on." if due and due > last.moment else ""


def _tell_observed(decided: Decided, observed: datetime | None) -> str:
    """When the values were observed that scores are made of."""
    return f" Metrics are those of {format_time(observed)}." if observed and decided.around.clusters.live else ""


def _candidates(decided: Decided, verdicts: list[Verdict]) -> Iterator[Candidate]:
    """Every cluster and cloud, those with a score with how it came about."""
    for verdict in verdicts:
        arena, clouds = decided.around.clusters, decided.around.clouds
        if clouds is not None and verdict.name in clouds.fleet.index:
            arena = clouds
        at = arena.fleet.index[verdict.name]
        sticky = verdict.scores.get("stickiness", 0.0)
        told = verdict.total is not None and arena.ranking.score(at, held=bool(sticky)) is not None
        yield Candidate(verdict, arithmetic=_write_mean(arena, at, sticky) if told else "")


def _write_mean(arena: Arena, index: int, sticky: float) -> str:
    """The mean of a site's metrics by their weights, as its numbers."""
    values = arena.sites[index].readings.values
    parts = [f"{ref.name} {value.share:.6g}{f' * {ref.weight:g}' if ref.weight != 1 else ''}" for ref, value in values]
    below = arena.ranking.weight(index, held=bool(sticky))
    return f"({' + '.join([*parts, *([f'stickiness {sticky:g}'] if sticky else [])])}) / {below:g}"
