"""Explain why an Application runs where it runs, what another cluster would need to win, and which document change to propose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from gitsched.apis.capabilities import ChangeProposal
from gitsched.apis.krake.applications import PREFERRED_REASON, ApplicationAttempt
from gitsched.apis.krake.candidates import ScoredCandidates, is_deleted
from gitsched.apis.krake.clusters import read_constraints
from gitsched.apis.krake.constraints import (
    CUSTOM_RESOURCES,
    ConstraintSet,
    LabelConstraint,
    format_constraint,
    format_constraints,
    parse_label_constraint,
)
from gitsched.apis.krake.exclusive_constraints import find_exclusive_constraints
from gitsched.apis.krake.metrics import MetricRef, MetricValue
from gitsched.apis.krake.names import CLUSTER, cluster_directory, describe_backend
from gitsched.apis.krake.scheduler import ApplicationDecision, KrakeScheduler, evaluate_application
from gitsched.apis.krake.status import report_application, report_resources
from gitsched.apis.proposals import describe_change, find_misspelling, propose_edit, propose_labels
from gitsched.model.document import Document, get_field
from gitsched.model.explanation import ExplainedCandidate, Explanation, ExplanationTable, ReplicaShare
from gitsched.model.finding import locate_document
from gitsched.model.labels import Requirement
from gitsched.model.scheduling import CandidateResult
from gitsched.model.time import add_duration, format_time
from gitsched.named_tuples import NamedTuple

_MAX_THRESHOLDS = 3
"""Maximum number of metric thresholds listed for one competitor."""


class MetricThreshold(NamedTuple):
    """The raw value of a metric at which a competitor wins: above or below `limit`."""

    ref: MetricRef
    value: MetricValue
    limit: float
    above: bool

    def __str__(self) -> str:
        side = "above" if self.above else "below"
        return f"{self.ref.name} {side} {self.limit:.6g} instead of {self.value.raw:.6g}"


def describe_required_score(scored: ScoredCandidates, competitor: int, current: int, target_score: float) -> str:
    """Describe what a competitor needs to exceed `target_score`, the score of the current cluster."""
    thresholds = list(find_metric_thresholds(scored, competitor, current))
    if not scored.candidates[competitor].metrics.values:
        return f"to win it needs a score above {target_score:.6g}, but it has no metrics"
    if not thresholds:
        return f"to win it needs a score above {target_score:.6g}, which no single metric can provide"
    options = " or ".join(map(str, thresholds[:_MAX_THRESHOLDS])) + (
        ", or another metric" if len(thresholds) > _MAX_THRESHOLDS else ""
    )
    return f"to win it needs a score above {target_score:.6g}, for example with {options}"


def find_metric_thresholds(scored: ScoredCandidates, competitor: int, current: int) -> Iterator[MetricThreshold]:
    """Yield for each metric of a competitor the value at which it wins against the current cluster, if nothing else changes.

    Scores are linear in a metric, even if both clusters have it. Metrics whose allowed range does not contain such a value are skipped.
    """
    current_score, competitor_score = scored.ranking.score(current, current=True), scored.ranking.score(competitor, current=False)
    if current_score is None or competitor_score is None:
        return
    values = scored.candidates[competitor].metrics.values
    # A cluster may refer to a metric more than once, with different weights.
    for ref, value in {(ref.name, ref.namespaced): (ref, value) for ref, value in values}.values():
        competitor_slope, current_slope = (
            _score_slope(scored, competitor, ref, current=False),
            _score_slope(scored, current, ref, current=True),
        )
        if competitor_slope == current_slope:
            continue
        normalized = value.normalized + (current_score - competitor_score) / (competitor_slope - current_slope)
        limit, above = value.minimum + normalized * (value.maximum - value.minimum), competitor_slope > current_slope
        if any((raw > limit) if above else (raw < limit) for raw in value.allowed_values or (value.minimum, value.maximum)):
            yield MetricThreshold(ref, value, limit, above)


def _score_slope(scored: ScoredCandidates, index: int, ref: MetricRef, *, current: bool) -> float:
    """Return the change of a cluster's score per unit of a normalised metric."""
    values = scored.candidates[index].metrics.values
    weight = sum(other.weight for other, _ in values if (other.name, other.namespaced) == (ref.name, ref.namespaced))
    return weight / scored.ranking.total_weight(index, current=current)


DocumentsByKind = Mapping[tuple[str, str], tuple[Document, ...]]


def propose_change(decision: ApplicationDecision, documents: DocumentsByKind, cluster: str) -> ChangeProposal | None:
    """Return the next document change on the way to moving an application to a cluster; None if none is known."""
    app, attempt, scored = decision.app, decision.decisive_attempt, decision.context.clusters
    known = (d for d in documents.get(CLUSTER, ()) if cluster_directory(d.key.namespace, d.key.name) == cluster)
    document = next(known, None)
    if document is None:
        return None
    index = next(
        (i for i, candidate in enumerate(scored.candidates) if (candidate.ref.namespace, candidate.ref.name) == document.key[2:]),
        None,
    )
    if index is None:
        return ChangeProposal(describe_change(f"it were in the namespace {app.key.namespace}", document))
    candidate = scored.candidates[index]
    label_change = _propose_label_change(decision, document, index)
    if label_change is not None:
        return label_change
    missing = next((name for name in app.constraints.custom_resources if name not in candidate.custom_resources), None)
    if missing is not None:
        resources = [*(get_field(document.body, "spec", CUSTOM_RESOURCES) or ()), missing]
        return propose_edit(f"it had the custom resource {missing}", document, ("spec", CUSTOM_RESOURCES), resources)
    if not candidate.eligible:
        return ChangeProposal(describe_change(f"this were not so: {candidate.reason}", document))
    if not attempt.matching >> index & 1:
        return ChangeProposal(describe_change("its metrics satisfied the constraints", document, ("spec", "metrics")))
    if not app.migration:
        return propose_edit("migration were allowed", app.document, ("spec", "constraints", "migration"), True)
    if not attempt.scores_compared:
        return ChangeProposal(describe_change(f"this were not so: {attempt.reason}", app.document)) if attempt.reason else None
    return _propose_score(attempt, scored, index, document)


def _propose_label_change(decision: ApplicationDecision, document: Document, index: int) -> ChangeProposal | None:
    """Correct a label constraint, remove one that excludes another one, or set the labels of a cluster; None if it has them all."""
    constraints, candidates = decision.app.constraints, decision.context.clusters.candidates
    requirements = constraints.affinity.labels.requirements if constraints.affinity.labels else ()
    labels = candidates[index].labels
    corrected = _correct_label(decision.app.document, requirements, labels, [one.labels for one in candidates])
    return corrected or _remove_constraint(decision, index) or propose_labels(document, labels, requirements)


def _correct_label(
    document: Document, requirements: Iterable[Requirement], labels: Mapping[str, str], fleet: Iterable[Mapping[str, str]]
) -> ChangeProposal | None:
    """Correct a label constraint that no cluster satisfies, and that is similar to one that some do; None if there is none."""
    found = find_misspelling(requirements, labels, fleet)
    if found is None:
        return None
    place = "spec", "constraints", "cluster", "labels"
    parsed = [parse_label_constraint(text) for text in get_field(document.body, *place)]
    index = next(i for i, one in enumerate(parsed) if (one.key, one.operator in ("==", "in")) == (found[0].key, True))
    text = f"{found[1]} is {found[2]}"
    return propose_edit(f"its label constraint were {text}", document, (*place, index), text)


def _remove_constraint(decision: ApplicationDecision, index: int) -> ChangeProposal | None:
    """Remove a constraint that a cluster does not satisfy, of those on one label or metric that exclude each other; None without any."""
    document, scored = decision.app.document, decision.context.clusters
    for exclusive in find_exclusive_constraints(decision.app.constraints, (scored,)):
        for (member, number), constraint in exclusive.constraints:
            if isinstance(constraint, str) or not exclusive.key:
                continue
            if isinstance(constraint, LabelConstraint):
                is_satisfied = constraint.match(scored.candidates[index].labels)
            else:
                is_satisfied = constraint.match(scored.constraint_values[index])
            if is_satisfied:
                continue
            place = "spec", "constraints", "cluster", member
            written = get_field(document.body, *place)
            rest = [text for i, text in enumerate(written) if i != number]
            return propose_edit(f"its constraint {written[number]} were removed", document, place, rest, (*place, number))
    return None


def _propose_score(attempt: ApplicationAttempt, scored: ScoredCandidates, index: int, document: Document) -> ChangeProposal | None:
    """Propose that a cluster has a higher score than the current one; None if one of them has no score."""
    current = attempt.current
    if current is None:
        return None
    best_score = scored.ranking.score_among(current, attempt.matching, current)
    total = scored.ranking.score_among(index, attempt.matching, current)
    if best_score is None or total is None:
        return None
    example = next((f", for example with {threshold}" for threshold in find_metric_thresholds(scored, index, current)), "")
    return ChangeProposal(
        describe_change(f"its score were more than {best_score:.6g} instead of {total:.6g}{example}", document, ("spec", "metrics"))
    )


_MAX_COMPETITORS = 5
"""Maximum number of competitors that an explanation compares."""


def explain_application(decision: ApplicationDecision, observed: datetime | None) -> Explanation:
    """Explain the decision about an application; `observed` is the time of the observed metrics."""
    app, attempt = decision.app, decision.decisive_attempt
    source_location = locate_document(app.document)
    target = None if is_deleted(app.document.body) else decision.attempts[-1].status.target
    results = evaluate_application(decision)
    in_namespace = "" if decision.context.shares_clusters else f" in {app.key.namespace}"
    return Explanation(
        workload=str(app.key),
        location=f"{source_location.path}:{source_location.line}" if source_location else "",
        policy="spec.constraints",
        policy_reason=format_constraints(app.constraints) or f"none, so any cluster{in_namespace} matches",
        tables=_tabulate_metric_constraints(app.constraints, (decision.context.clusters,), "cluster"),
        candidates=tuple(_list_candidates(decision, results)),
        selection=tuple(_describe_competitors(decision, results)),
        trigger=_describe_trigger(decision, attempt) + _describe_observation_time(decision, observed),
        result=(ReplicaShare(f"{target.namespace}.{target.name}"),) if target else (),
        findings=tuple(report_application(decision, None, target is not None)),
    )


def explain_binding(scheduler: KrakeScheduler, document: Document) -> Explanation | None:
    """Explain why a Cluster has its cloud, or a MagnumCluster its project; None for other documents."""
    key = document.key
    results = scheduler.evaluate_backends(key)
    if results is None:
        return None
    constraints = read_constraints(document)
    binding = (scheduler.bindings.get(key) or scheduler.magnum_bindings[key])[1]
    target = binding.status.target
    candidate_kind = "project" if key in scheduler.magnum_bindings else "cloud"
    needs_no_binding = target is None and binding.action == "ignored"
    chosen = describe_backend(target, key.namespace) if target else ""
    summary = f"Bound to {chosen}" if chosen else "Not bound"
    source_location = locate_document(document)
    return Explanation(
        workload=str(key),
        location=f"{source_location.path}:{source_location.line}" if source_location else "",
        policy="spec.constraints",
        policy_reason=format_constraints(constraints) or f"none, so any {candidate_kind} matches",
        candidates=() if needs_no_binding else tuple(_list_backends(scheduler.get_backend_sets(key), results)),
        trigger=summary + (f": {binding.reason}." if binding.reason else ": it has the best score."),
        result=(ReplicaShare(chosen),) if chosen else (),
        findings=tuple(finding for finding in report_resources(scheduler) if finding.resource == key.resource),
        candidate_kind=candidate_kind,
        tables=()
        if needs_no_binding
        else _tabulate_metric_constraints(constraints, scheduler.get_backend_sets(key), candidate_kind),
    )


def _list_backends(candidate_sets: Iterable[ScoredCandidates], results: list[CandidateResult]) -> Iterator[ExplainedCandidate]:
    """Yield every cloud or project, with the terms of its score."""
    details = {}
    for scored in candidate_sets:
        for index, candidate in enumerate(scored.candidates):
            if scored.ranking.score(index, current=False) is not None:
                details[candidate.display_name] = _format_weighted_mean(scored, index, 0.0)
    for result in results:
        yield ExplainedCandidate(result, score_details=details.get(result.name, "") if result.total is not None else "")


_COMPARED_VALUES = {
    "raw": "raw values of the provider",
    "normalised": "normalised values",
    "weighted": "normalised values times the weight",
}


def _tabulate_metric_constraints(
    constraints: ConstraintSet, candidate_sets: Iterable[ScoredCandidates], candidate_kind: str
) -> tuple[ExplanationTable, ...]:
    """Return a table of the values that metric constraints compare; none without metric constraints."""
    if not constraints.metrics:
        return ()
    rows, mode = [], ""
    for scored in candidate_sets:
        mode = scored.settings.constraint_mode
        for candidate, values in zip(scored.candidates, scored.constraint_values, strict=True):
            for constraint in constraints.metrics:
                value = candidate.metrics.describe_constraint_value(constraint.key, mode) or "none"
                row = (candidate.name, format_constraint(constraint), value, "yes" if constraint.match(values) else "no")
                rows.append(row)
    title = f"Metric constraints, which compare {_COMPARED_VALUES[mode]}" if rows else ""
    columns = (candidate_kind.upper(), "CONSTRAINT", "VALUE", "SATISFIED")
    return (ExplanationTable(title, columns, tuple(rows)),) if rows else ()


def _describe_competitors(decision: ApplicationDecision, results: list[CandidateResult]) -> list[str]:
    """Compare the score of the current cluster with the best other scores."""
    attempt, scored = decision.decisive_attempt, decision.context.clusters
    if attempt.current is None or not attempt.matching >> attempt.current & 1:
        return []
    if attempt.reason == PREFERRED_REASON:
        return []  # no score is compared
    current_score = scored.ranking.score_among(attempt.current, attempt.matching, attempt.current)
    name, sticky = scored.fleet.names[attempt.current], scored.settings.stickiness
    ranked = (result for result in results if result.total is not None and result.name in scored.fleet.index)
    competitors = [(-result.total, result.name) for result in ranked if result.total is not None and result.name != name]
    if current_score is None:
        return []
    needs = [f"{name} has {current_score:.6g}, including its stickiness of {sticky:g}"]
    needs += [
        _describe_competitor(scored, competitor, -total, attempt.current, current_score)
        for total, competitor in sorted(competitors)[:_MAX_COMPETITORS]
    ]
    if not competitors:
        return [*needs, "no other cluster has a score"]
    return [*needs, f"and {len(competitors) - _MAX_COMPETITORS} more"] if len(competitors) > _MAX_COMPETITORS else needs


def _describe_competitor(scored: ScoredCandidates, name: str, score: float, current: int, target_score: float) -> str:
    if score > target_score:
        return f"{name} has {score:.6g}, {score - target_score:.6g} more: it would win"
    if score == target_score:
        return f"{name} has the same score: a hash of the names decides"
    return f"{name} has {score:.6g}: {describe_required_score(scored, scored.fleet.index[name], current, target_score)}"


def _describe_trigger(decision: ApplicationDecision, attempt: ApplicationAttempt) -> str:
    previous = decision.previous
    when = format_time(attempt.time)
    match attempt.action:
        case "bind" if previous.target is None:
            return f"Scheduled at {when}: it had no cluster."
        case "bind":
            former = previous.target.name if previous.target else "nowhere"
            return f"Moved at {when} from {former}: {attempt.reason or 'another cluster is better'}."
        case "touch" if previous.failed_before:
            return f"Recovered at {when}: its cluster matches its constraints again."
        case "touch":
            return f"Checked again at {when} because it changed: {attempt.reason or 'its cluster is still the best'}."
        case "fail":
            return f"Tried at {when}: {attempt.reason}.{_describe_retry(decision)}"
        case "create":
            cloud = attempt.cloud.name if attempt.cloud else "a cloud"
            return f"Requests a new cluster on {cloud}, which scores higher than every existing cluster."
        case "ignored" if is_deleted(decision.app.document.body):
            return f"Removed: {attempt.reason}."
        case _ if attempt.status.target is None:
            return f"No cluster: {attempt.reason}.{_describe_retry(decision)}"
        case _:
            return f"Stays: {attempt.reason or 'its cluster is still the best'}.{_describe_reschedule_time(decision, attempt)}"


def _describe_reschedule_time(decision: ApplicationDecision, attempt: ApplicationAttempt) -> str:
    """Describe from when a better cluster can replace the recently chosen one."""
    since, current = decision.previous.scheduled, attempt.current
    if (
        attempt.action == "hold"
        or since is None
        or current is None
        or attempt.scores_compared
        or not attempt.matching >> current & 1
    ):
        return ""
    return f" From {format_time(add_duration(since, decision.context.reschedule_after))} on a better cluster can replace it."


def _describe_retry(decision: ApplicationDecision) -> str:
    last = decision.attempts[-1]
    due = last.status.next_retry if last.status.state == "DEGRADED" else None
    return f" The next retry is at {format_time(due)}." if due and due > last.time else ""


def _describe_observation_time(decision: ApplicationDecision, observed: datetime | None) -> str:
    """Describe when the metrics in the scores were observed."""
    return f" Metrics were observed at {format_time(observed)}." if observed and decision.context.clusters.has_live_metrics else ""


def _list_candidates(decision: ApplicationDecision, results: list[CandidateResult]) -> Iterator[ExplainedCandidate]:
    """Yield every cluster and cloud, with the terms of its score."""
    for result in results:
        scored, clouds = decision.context.clusters, decision.context.clouds
        if clouds is not None and result.name in clouds.fleet.index:
            scored = clouds
        index = scored.fleet.index[result.name]
        sticky = result.scores.get("stickiness", 0.0)
        has_score = result.total is not None and scored.ranking.score(index, current=bool(sticky)) is not None
        yield ExplainedCandidate(result, score_details=_format_weighted_mean(scored, index, sticky) if has_score else "")


def _format_weighted_mean(scored: ScoredCandidates, index: int, sticky: float) -> str:
    """Return the weighted mean of a candidate's metrics as a formula."""
    values = scored.candidates[index].metrics.values
    parts = [f"{ref.name} {value.normalized:.6g}{f' * {ref.weight:g}' if ref.weight != 1 else ''}" for ref, value in values]
    denominator = scored.ranking.total_weight(index, current=bool(sticky))
    return f"({' + '.join([*parts, *([f'stickiness {sticky:g}'] if sticky else [])])}) / {denominator:g}"
