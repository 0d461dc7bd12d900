"""Explain why an Application runs where it runs, what another cluster would need to win, and which document change to propose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.engine import ChangeProposal
from gitsched.apis.krake import names
from gitsched.apis.krake.applications import ApplicationAttempt
from gitsched.apis.krake.candidates import ScoredCandidates
from gitsched.apis.krake.clusters import read_constraints
from gitsched.apis.krake.constraints import CUSTOM_RESOURCES, format_constraints
from gitsched.apis.krake.metrics import MetricRef, MetricValue
from gitsched.apis.krake.scheduler import ApplicationDecision, KrakeScheduler, evaluate_application
from gitsched.apis.krake.status import report_application, report_resources
from gitsched.apis.proposals import describe_change, propose_edit, propose_labels
from gitsched.model.document import Document, get_field
from gitsched.model.explanation import ExplainedCandidate, Explanation, ReplicaShare
from gitsched.model.finding import locate_document
from gitsched.model.scheduling import CandidateResult
from gitsched.model.time import format_time

_MAX_THRESHOLDS = 3
"""Metrics of a rival that are told."""


class MetricThreshold(NamedTuple):
    """A value of a metric, as its provider says it, beyond which a rival wins; `above` says on which side of it."""

    ref: MetricRef
    value: MetricValue
    limit: float
    above: bool

    def __str__(self) -> str:
        side = "above" if self.above else "below"
        return f"{self.ref.name} {side} {self.limit:.6g} instead of {self.value.raw:.6g}"


def describe_required_score(arena: ScoredCandidates, rival: int, held: int, goal: float) -> str:
    """What a rival needs for more than `goal`, the score of the cluster `held`."""
    turns = list(find_metric_thresholds(arena, rival, held))
    if not arena.candidates[rival].metrics.values:
        return f"to win it needs a score above {goal:.6g}, and it has no metrics"
    if not turns:
        return f"to win it needs a score above {goal:.6g}, which no metric alone can give it"
    ways = " or ".join(map(str, turns[:_MAX_THRESHOLDS])) + (", or another" if len(turns) > _MAX_THRESHOLDS else "")
    return f"to win it needs a score above {goal:.6g}, as with {ways}"


def find_metric_thresholds(arena: ScoredCandidates, rival: int, held: int) -> Iterator[MetricThreshold]:
    """For each metric of a rival the value from which on it wins against the cluster `held`, everything else staying as it is.

    Scores are linear in a metric, also where both clusters have it. A metric that cannot go that far is left out.
    """
    ahead, behind = arena.ranking.score(held, held=True), arena.ranking.score(rival, held=False)
    if ahead is None or behind is None:
        return
    values = arena.candidates[rival].metrics.values
    # A cluster may refer to a metric more than once, with different weights.
    for ref, value in {(ref.name, ref.namespaced): (ref, value) for ref, value in values}.values():
        fall, lead = _score_slope(arena, rival, ref, held=False), _score_slope(arena, held, ref, held=True)
        if fall == lead:
            continue
        share = value.normalized + (ahead - behind) / (fall - lead)
        limit, above = value.minimum + share * (value.maximum - value.minimum), fall > lead
        if any((raw > limit) if above else (raw < limit) for raw in value.allowed_values or (value.minimum, value.maximum)):
            yield MetricThreshold(ref, value, limit, above)


def _score_slope(arena: ScoredCandidates, index: int, ref: MetricRef, *, held: bool) -> float:
    """By how much the score of a cluster that has one rises with the share of a metric."""
    values = arena.candidates[index].metrics.values
    weight = sum(other.weight for other, _ in values if (other.name, other.namespaced) == (ref.name, ref.namespaced))
    return weight / arena.ranking.total_weight(index, held=held)


DocumentsByKind = Mapping[tuple[str, str], tuple[Document, ...]]


def propose_change(decided: ApplicationDecision, documents: DocumentsByKind, cluster: str) -> ChangeProposal | None:
    """The next change that would bring an application nearer to a cluster; None where nobody knows one."""
    app, step, arena = decided.app, decided.decisive_attempt, decided.context.clusters
    known = (d for d in documents.get(names.CLUSTER, ()) if names.cluster_directory(d.key.namespace, d.key.name) == cluster)
    document = next(known, None)
    if document is None:
        return None
    at = next((i for i, site in enumerate(arena.candidates) if (site.ref.namespace, site.ref.name) == document.key[2:]), None)
    if at is None:
        return ChangeProposal(describe_change(f"it were in the namespace {app.key.namespace}", document))
    site = arena.candidates[at]
    asked = app.constraints.affinity.labels.requirements if app.constraints.affinity.labels else ()
    lacking = propose_labels(document, site.labels, asked)
    if lacking is not None:
        return lacking
    missing = next((name for name in app.constraints.custom_resources if name not in site.custom_resources), None)
    if missing is not None:
        has = [*(get_field(document.body, "spec", CUSTOM_RESOURCES) or ()), missing]
        return propose_edit(f"it had the custom resource {missing}", document, ("spec", CUSTOM_RESOURCES), has)
    if not site.eligible:
        return ChangeProposal(describe_change(f"this were not so: {site.reason}", document))
    if not step.matching >> at & 1:
        return ChangeProposal(describe_change("its metrics satisfied the constraints", document, ("spec", "metrics")))
    if not app.migration:
        return propose_edit("migration were allowed", app.document, ("spec", "constraints", "migration"), True)
    if not step.scores_compared:
        return ChangeProposal(describe_change(f"this were not so: {step.reason}", app.document)) if step.reason else None
    best = arena.ranking.score_among(step.current, step.matching, step.current) if step.current is not None else None
    total = arena.ranking.score_among(at, step.matching, step.current)
    if best is None or total is None:
        return None
    turns = find_metric_thresholds(arena, at, step.current) if step.current is not None else ()
    way = next((f", as with {turn}" for turn in turns), "")
    return ChangeProposal(
        describe_change(f"its score were more than {best:.6g} instead of {total:.6g}{way}", document, ("spec", "metrics"))
    )


_MAX_COMPETITORS = 5
"""Rivals whose distance is told."""


def explain_application(decided: ApplicationDecision, observed: datetime | None) -> Explanation:
    """The whole way of an application through its handler; `observed` is when metrics were."""
    app, step = decided.app, decided.decisive_attempt
    place = locate_document(app.document)
    target = decided.attempts[-1].status.target
    verdicts = evaluate_application(decided)
    return Explanation(
        workload=str(app.key),
        location=f"{place.path}:{place.line}" if place else "",
        policy="spec.constraints",
        policy_reason=format_constraints(app.constraints) or f"none, so any cluster in {app.key.namespace} will do",
        candidates=tuple(_list_candidates(decided, verdicts)),
        selection=tuple(_describe_competitors(decided, verdicts)),
        trigger=_describe_trigger(decided, step) + _describe_observation_time(decided, observed),
        result=(ReplicaShare(f"{target.namespace}.{target.name}"),) if target else (),
        findings=tuple(report_application(decided, None, target is not None)),
    )


def explain_binding(decisions: KrakeScheduler, document: Document) -> Explanation | None:
    """Why a Cluster has its cloud, or a MagnumCluster its project; None for anything else."""
    key = document.key
    verdicts = decisions.evaluate_backends(key)
    if verdicts is None:
        return None
    binding = (decisions.bindings.get(key) or decisions.magnum_bindings[key])[1]
    target = binding.status.target
    among = "project" if key in decisions.magnum_bindings else "cloud"
    unwanted = target is None and binding.action == "ignored"
    told = f"Bound to {target.kind} {target.name}" if target else "Not bound"
    place = locate_document(document)
    return Explanation(
        workload=str(key),
        location=f"{place.path}:{place.line}" if place else "",
        policy="spec.constraints",
        policy_reason=format_constraints(read_constraints(document)) or f"none, so any {among} will do",
        candidates=() if unwanted else tuple(map(ExplainedCandidate, verdicts)),
        trigger=told + (f": {binding.reason}." if binding.reason else ", by the best score."),
        result=(ReplicaShare(f"{target.kind} {target.name}"),) if target else (),
        findings=tuple(finding for finding in report_resources(decisions) if finding.resource == key.resource),
        candidate_kind=among,
    )


def _describe_competitors(decided: ApplicationDecision, verdicts: list[CandidateResult]) -> list[str]:
    """What its cluster has ahead of the best others: how far their scores are from the one that counts."""
    step, arena = decided.decisive_attempt, decided.context.clusters
    if step.current is None or not step.matching >> step.current & 1:
        return []
    held = arena.ranking.score_among(step.current, step.matching, step.current)
    name, sticky = arena.fleet.names[step.current], arena.settings.stickiness
    ranked = (verdict for verdict in verdicts if verdict.total is not None and verdict.name in arena.fleet.index)
    rivals = [(-verdict.total, verdict.name) for verdict in ranked if verdict.total is not None and verdict.name != name]
    if held is None:
        return []
    needs = [f"{name} has {held:.6g}, its stickiness of {sticky:g} included"]
    needs += [_describe_competitor(arena, rival, -total, step.current, held) for total, rival in sorted(rivals)[:_MAX_COMPETITORS]]
    if not rivals:
        return [*needs, "no other cluster is compared with it"]
    return [*needs, f"and {len(rivals) - _MAX_COMPETITORS} more"] if len(rivals) > _MAX_COMPETITORS else needs


def _describe_competitor(arena: ScoredCandidates, name: str, score: float, held: int, goal: float) -> str:
    if score > goal:
        return f"{name} has {score:.6g}, {score - goal:.6g} more: it would win"
    if score == goal:
        return f"{name} has as much: the lot decides"
    return f"{name} has {score:.6g}: {describe_required_score(arena, arena.fleet.index[name], held, goal)}"


def _describe_trigger(decided: ApplicationDecision, step: ApplicationAttempt) -> str:
    memory = decided.previous
    when = format_time(step.time)
    match step.action:
        case "bind" if memory.target is None:
            return f"Scheduled at {when}: it had no cluster."
        case "bind":
            former = memory.target.name if memory.target else "nowhere"
            return f"Moved at {when} from {former}: {step.reason or 'another cluster is better'}."
        case "touch":
            return f"Looked at again at {when} because it changed: {step.reason or 'its cluster is still the best'}."
        case "fail":
            return f"Tried at {when}: {step.reason}.{_describe_retry(decided)}"
        case "create":
            return f"A cluster is to be made for it on {step.cloud.name if step.cloud else 'a cloud'}, which is better than every cluster."
        case _ if step.status.target is None:
            return f"Without a cluster: {step.reason}.{_describe_retry(decided)}"
        case _:
            return f"Stays: {step.reason or 'its cluster is still the best'}.{_describe_reschedule_time(decided, step)}"


def _describe_reschedule_time(decided: ApplicationDecision, step: ApplicationAttempt) -> str:
    """Until when a recent decision keeps an application from a better cluster."""
    since, held = decided.previous.scheduled, step.current
    if step.action == "hold" or since is None or held is None or step.scores_compared or not step.matching >> held & 1:
        return ""
    return f" From {format_time(since + decided.context.reschedule_after)} on a better cluster may win."


def _describe_retry(decided: ApplicationDecision) -> str:
    last = decided.attempts[-1]
    due = last.status.next_retry if last.status.state == "DEGRADED" else None
    return f" It is tried again from {format_time(due)} on." if due and due > last.time else ""


def _describe_observation_time(decided: ApplicationDecision, observed: datetime | None) -> str:
    """When the values were observed that scores are made of."""
    return f" Metrics are those of {format_time(observed)}." if observed and decided.context.clusters.has_live_metrics else ""


def _list_candidates(decided: ApplicationDecision, verdicts: list[CandidateResult]) -> Iterator[ExplainedCandidate]:
    """Every cluster and cloud, those with a score with how it came about."""
    for verdict in verdicts:
        arena, clouds = decided.context.clusters, decided.context.clouds
        if clouds is not None and verdict.name in clouds.fleet.index:
            arena = clouds
        at = arena.fleet.index[verdict.name]
        sticky = verdict.scores.get("stickiness", 0.0)
        told = verdict.total is not None and arena.ranking.score(at, held=bool(sticky)) is not None
        yield ExplainedCandidate(verdict, score_details=_format_weighted_mean(arena, at, sticky) if told else "")


def _format_weighted_mean(arena: ScoredCandidates, index: int, sticky: float) -> str:
    """The mean of a site's metrics by their weights, as its numbers."""
    values = arena.candidates[index].metrics.values
    parts = [f"{ref.name} {value.normalized:.6g}{f' * {ref.weight:g}' if ref.weight != 1 else ''}" for ref, value in values]
    below = arena.ranking.total_weight(index, held=bool(sticky))
    return f"({' + '.join([*parts, *([f'stickiness {sticky:g}'] if sticky else [])])}) / {below:g}"
