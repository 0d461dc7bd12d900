"""Explain a Placement's decision per cluster, also in the format of OCM's /debug/placements/ endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from gitsched.apis.ocm.availability import AvailabilityTaint
from gitsched.apis.ocm.decisions import list_decision_clusters
from gitsched.apis.ocm.placement import Misconfiguration
from gitsched.apis.ocm.placement_findings import describe_skipped
from gitsched.apis.ocm.scheduling import PlacementResult, SkippedPlacement, describe_missing_sets
from gitsched.apis.ocm.workloads import OcmWorkload, read_placement_annotation
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import ExplainedCandidate, Explanation, ExplanationTable, ReplicaShare
from gitsched.model.finding import FieldOrigin, Finding
from gitsched.model.preferred_clusters import PREFERRED_CLUSTERS
from gitsched.model.scheduling import CandidateResult, Outcome
from gitsched.model.time import NEVER, format_time
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.preferences import add_preference
from gitsched.schedule.selection import (
    SelectionResult,
    WeightedScore,
    explain_selection,
    find_toleration_end,
    is_ignored,
    list_stages,
)

NOT_ELIGIBLE = "it is not in a cluster set that the Placement may choose from, or it is being deleted"
_MAX_TIME_LIMITS = 20
"""Times that one explanation lists; it counts the others."""
_MAX_NAMES = 5

TaintedClusters = Mapping[str, tuple[Document, AvailabilityTaint]]


def evaluate_clusters(result: PlacementResult, fleet: Fleet, tainted: TaintedClusters) -> list[CandidateResult]:
    """Return the result for every cluster, in name order, with a reason for each cluster that is not selected."""
    if result.request is None or result.choice is None:
        return []
    selection = result.choice
    selected = set(selection.selected)
    ranks = selection.totals
    if result.request.preferred:
        ranks = add_preference(selection.members, selection.totals, result.request.preferred)
    rank_of = dict(zip(selection.members, ranks, strict=True))
    last = _find_last_selected(selection, rank_of)
    results = []
    for index, candidate in enumerate(explain_selection(result.request, selection, fleet, NOT_ELIGIBLE)):
        if candidate.eligible and index not in selected and last is not None and candidate.total is not None:
            total, name = last[0], fleet.names[last[1]]
            reason = (
                f"{name} comes first, as the annotation {PREFERRED_CLUSTERS} says"
                if candidate.total >= total and rank_of[index] < rank_of[last[1]]
                else f"its total score is below {total}, the score of {name}"
                if candidate.total < total
                else "it would violate a spread constraint"
                if result.request.spreads
                else f"it has the same total score as {name}, which is first by name"
            )
            candidate = candidate._replace(reason=reason if result.request.limit else "numberOfClusters is 0")
        if not candidate.eligible and _is_rejected_by_added_taint(candidate, tainted):
            candidate = candidate._replace(reason=f"{candidate.reason} ({tainted[candidate.name][1].reason})")
        results.append(candidate)
    return results


def _is_rejected_by_added_taint(candidate: CandidateResult, tainted: TaintedClusters) -> bool:
    return candidate.name in tainted and candidate.reason.startswith(f"its taint {tainted[candidate.name][1].taint} ")


def _list_candidates(result: PlacementResult, fleet: Fleet, tainted: TaintedClusters) -> Iterator[ExplainedCandidate]:
    """Yield the result for every cluster, with the condition that adds the taint by which it is rejected."""
    terms = result.request.scores if result.request is not None else ()
    for candidate in evaluate_clusters(result, fleet, tainted):
        score = _describe_score(candidate, terms)
        document, added = tainted.get(candidate.name, (None, None))
        if document is None or added is None or document.origin is None or not _is_rejected_by_added_taint(candidate, tainted):
            yield ExplainedCandidate(candidate, score_details=score)
        else:
            yield ExplainedCandidate(candidate, _format_location(document), field=FieldOrigin(document.origin, added.pointer))


def _describe_score(candidate: CandidateResult, terms: Sequence[WeightedScore]) -> str:
    """Return the weighted scores of a cluster in the order of the prioritizers; "" for a rejected cluster."""
    scores = zip(terms, candidate.scores.items(), strict=False)
    return " + ".join(f"{term.weight} × {name} {score:g}" for term, (name, score) in scores)


def _find_last_selected(selection: SelectionResult, ranks: Mapping[int, int]) -> tuple[int, int] | None:
    """Return total score and index of the selected candidate that ranks last."""
    totals = dict(zip(selection.members, selection.totals, strict=True))
    last = min(selection.selected, key=lambda index: (ranks[index], -index), default=None)
    return None if last is None else (totals[last], last)


def explain_placement(
    document: Document, result: PlacementResult, fleet: Fleet, tainted: TaintedClusters, findings: tuple[Finding, ...]
) -> Explanation:
    """Explain a Placement: cluster sets, filters, scores and selection."""
    clusters = [name for _, decision in result.decisions for name in list_decision_clusters(decision)]
    return Explanation(
        workload=str(document.key),
        location=_format_location(document),
        policy=str(document.key),
        policy_reason=_describe_cluster_sets(result),
        candidates=tuple(_list_candidates(result, fleet, tainted)),
        selection=tuple(_describe_filters(result)),
        division_rule=(_describe_scores(result),) if result.request is not None else (),
        trigger=""
        if result.misconfiguration is None
        else f"Not scheduled again: {str(result.misconfiguration).removeprefix(':')}.",
        result=tuple(ReplicaShare(name) for name in clusters),
        findings=tuple(finding for finding in findings if finding.resource == document.key.resource),
        tables=tuple(_list_time_limits(result, fleet)),
        native=build_debug_response(result, fleet),
    )


def explain_skipped_placement(
    skipped: SkippedPlacement, decisions: Sequence[tuple[Key, Body]], findings: tuple[Finding, ...]
) -> Explanation:
    """Explain a Placement that keeps its decisions without scheduling."""
    document = skipped.placement.document
    return Explanation(
        workload=str(document.key),
        location=_format_location(document),
        policy=str(document.key),
        trigger=f"Not scheduled: {describe_skipped(skipped)}.",
        result=tuple(ReplicaShare(name) for _, decision in decisions for name in list_decision_clusters(decision)),
        findings=tuple(finding for finding in findings if finding.resource == document.key.resource),
    )


def explain_workload(workload: OcmWorkload, outcome: Outcome, placement_explanation: Explanation | None) -> Explanation:
    """Explain a workload: the explanation of its Placement with the clusters of the workload."""
    document = workload.document
    base = placement_explanation or Explanation("")
    return base._replace(
        workload=str(document.key),
        location=_format_location(document),
        policy=outcome.policy,
        policy_reason=_describe_reference(workload),
        trigger=base.trigger or (outcome.reason if outcome.reason != outcome.policy else ""),
        result=tuple(ReplicaShare(target.cluster) for target in outcome.targets),
        findings=(*outcome.findings, *base.findings),
    )


def _describe_reference(workload: OcmWorkload) -> str:
    """Return where a workload names its Placement."""
    if workload.manifests is not None:
        return "named in its placementRefs"
    if read_placement_annotation(workload.document) is None:
        return "named by the workloads that it follows"
    return "named in its annotation" + (" or by the workloads that it follows" if len(workload.references) > 1 else "")


def build_debug_response(result: PlacementResult, fleet: Fleet) -> dict[str, Any]:
    """Return the response of upstream's /debug/placements/ endpoint for a Placement."""
    request, selection = result.request, result.choice
    if request is None or selection is None:
        return {"error": str(result.misconfiguration)} if result.misconfiguration is not None else {}
    names = [fleet.names[index] for index in selection.members]
    stages = list_stages(request, selection)
    steps = [
        {
            "name": ",".join(stage.filter.name for stage in stages[: at + 1]),
            "filteredClusters": [fleet.names[index] for index in fleet.members(remaining)],
        }
        for at, (_, _, remaining) in enumerate(stages)
    ]
    ranking = sorted(zip(selection.totals, names, strict=True), key=lambda entry: (-entry[0], entry[1]))
    return {
        "filteredPipelineResults": steps,
        "prioritizeResults": [
            {"name": term.score.name, "weight": term.weight, "scores": dict(zip(names, column, strict=True))}
            for term, column in zip(request.scores, selection.score_columns, strict=True)
        ],
        "aggregatedScores": [{"clusterName": name, "score": total} for total, name in ranking],
    }


def _list_time_limits(result: PlacementResult, fleet: Fleet) -> Iterator[ExplanationTable]:
    """Yield a table of the times at which tolerations end and scores expire, if there are any."""
    request, selection = result.request, result.choice
    if request is None or selection is None:
        return
    limits: dict[tuple[datetime, str], list[str]] = {}
    for index in selection.members:
        for taint in fleet.candidates[index].taints:
            if not is_ignored(request, taint, index):
                end = find_toleration_end(taint, request.tolerations, request.now)
                if end is not None and end != NEVER:
                    limits.setdefault((end, f"the taint {taint} is no longer tolerated"), []).append(fleet.names[index])
    members = set(selection.members)
    for (resource, score), add_on in result.add_ons.items():
        for index, valid_until in add_on.expiring:
            if index in members:
                limits.setdefault((valid_until, f"the score {resource}/{score} expires"), []).append(fleet.names[index])
    rows = [(format_time(time), _join_names(clusters), text) for (time, text), clusters in sorted(limits.items())]
    if rows:
        more = [("later", "", f"{len(rows) - _MAX_TIME_LIMITS} more")] if len(rows) > _MAX_TIME_LIMITS else []
        yield ExplanationTable("Changes without a commit", ("Time", "Clusters", "Change"), (*rows[:_MAX_TIME_LIMITS], *more))


def _join_names(clusters: list[str]) -> str:
    more = f" and {len(clusters) - _MAX_NAMES} more" if len(clusters) > _MAX_NAMES else ""
    return f"{', '.join(clusters[:_MAX_NAMES])}{more}"


def _describe_cluster_sets(result: PlacementResult) -> str:
    cluster_sets = result.eligible.eligible_sets
    return f"chooses from {', '.join(cluster_sets)}" if cluster_sets else describe_missing_sets(result)


def _describe_filters(result: PlacementResult) -> list[str]:
    if result.choice is None or result.request is None:
        return []
    eligible = result.eligible.clusters.bit_count()
    lines = [f"{eligible} eligible clusters." if eligible != 1 else "1 eligible cluster."]
    for rule, before, remaining in list_stages(result.request, result.choice):
        lines.append(f"{rule.name}: {remaining.bit_count()} of {before.bit_count()} remain.")
    limit = result.request.limit
    return [*lines, _describe_number(limit, len(result.choice.selected))]


def _describe_number(limit: int | None, chosen: int) -> str:
    if limit is None:
        return f"All remaining clusters ({chosen}) are selected: numberOfClusters is not set."
    if chosen < limit:
        return f"Selected clusters: {chosen}, fewer than the numberOfClusters of {limit}."
    best = "cluster with the highest total score is" if chosen == 1 else f"{chosen} clusters with the highest total scores are"
    return f"The {best} selected, with equal scores the first by name."


def _describe_scores(result: PlacementResult) -> str:
    prioritizers = result.placement.prioritizers
    scores = () if result.request is None else result.request.scores
    if isinstance(prioritizers, Misconfiguration) or not scores:
        return "No scores apply: clusters are selected by name."
    return f"The total score is {' + '.join(f'{score.weight} × {score.score.name}' for score in scores)}."


def _format_location(document: Document) -> str:
    origin = document.origin
    return f"{origin.path}:{origin.line}" if origin else ""
