"""Explain a Placement's decision per cluster, also in the format of OCM's /debug/placements/ endpoint, and propose the smallest
change that brings a workload closer to a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.capabilities import ChangeProposal
from gitsched.apis.ocm import names
from gitsched.apis.ocm.availability import AvailabilityTaint
from gitsched.apis.ocm.decisions import list_decision_clusters
from gitsched.apis.ocm.managed_clusters import ClusterSets
from gitsched.apis.ocm.manifestworkreplicaset import OcmWorkload, read_placement_annotation
from gitsched.apis.ocm.placement import ADD_ON, Misconfiguration
from gitsched.apis.ocm.placement_findings import describe_skipped
from gitsched.apis.ocm.scheduling import PlacementResult, SkippedPlacement, describe_missing_sets
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.explanation import ExplainedCandidate, Explanation, ExplanationTable, ProposedChange, ReplicaShare
from gitsched.model.finding import FieldOrigin, Finding, Pointer
from gitsched.model.scheduling import Affinity, CandidateResult, Outcome
from gitsched.model.time import NEVER, format_time
from gitsched.schedule.fleet import Candidate, Fleet
from gitsched.schedule.selection import (
    SELECTION_FILTERS,
    SelectionRequest,
    SelectionResult,
    WeightedScore,
    explain_selection,
    find_toleration_end,
    is_ignored,
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
    last = _find_last_selected(selection)
    results = []
    for index, candidate in enumerate(explain_selection(result.request, selection, fleet, NOT_ELIGIBLE)):
        if candidate.eligible and index not in selected and last is not None and candidate.total is not None:
            total, name = last[0], fleet.names[last[1]]
            reason = (
                f"its total score is below {total}, the score of {name}"
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


def _find_last_selected(selection: SelectionResult) -> tuple[int, int] | None:
    """Return total score and index of the selected candidate that ranks last."""
    totals = dict(zip(selection.members, selection.totals, strict=True))
    last = min(selection.selected, key=lambda index: (totals[index], -index), default=None)
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
    annotated = read_placement_annotation(document) is not None
    return base._replace(
        workload=str(document.key),
        location=_format_location(document),
        policy=outcome.policy,
        policy_reason="named in its annotation" if annotated else "named in its placementRefs",
        trigger=base.trigger or (outcome.reason if outcome.reason != outcome.policy else ""),
        result=tuple(ReplicaShare(target.cluster) for target in outcome.targets),
        findings=(*outcome.findings, *base.findings),
    )


def build_debug_response(result: PlacementResult, fleet: Fleet) -> dict[str, Any]:
    """Return the response of upstream's /debug/placements/ endpoint for a Placement."""
    request, selection = result.request, result.choice
    if request is None or selection is None:
        return {"error": str(result.misconfiguration)} if result.misconfiguration is not None else {}
    names = [fleet.names[index] for index in selection.members]
    steps = [
        {
            "name": ",".join(selection_filter.name for selection_filter in SELECTION_FILTERS[: at + 1]),
            "filteredClusters": [fleet.names[index] for index in fleet.members(remaining)],
        }
        for at, remaining in enumerate(selection.remaining)
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
    before = result.eligible.clusters.bit_count()
    lines = [f"{before} eligible clusters." if before != 1 else "1 eligible cluster."]
    for selection_filter, remaining in zip(SELECTION_FILTERS, result.choice.remaining, strict=True):
        after = remaining.bit_count()
        lines.append(f"{selection_filter.name}: {after} of {before} remain.")
        before = after
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


_MAX_ADDON_SCORE = 100
"""The maximum of an AddOnPlacementScore."""


class ProposalInputs(NamedTuple):
    """The clusters, their cluster sets, and the documents by (group, kind)."""

    fleet: Fleet
    cluster_sets: ClusterSets
    documents: Mapping[tuple[str, str], tuple[Document, ...]]


def propose_change(inputs: ProposalInputs, result: PlacementResult, cluster: str) -> ChangeProposal | None:
    """Return the next change needed for a Placement to select a cluster; None if none is known."""
    index = inputs.fleet.index.get(cluster)
    document = next((d for d in inputs.documents.get((names.GROUP, names.MANAGED_CLUSTER), ()) if d.key.name == cluster), None)
    if index is None or document is None:
        return None
    if inputs.fleet.candidates[index].deleting:
        return _describe_change("it were not being deleted", document, ("metadata", "deletionTimestamp"))
    if not result.eligible.clusters >> index & 1:
        return _join_cluster_set(inputs, result, index)
    if result.request is None or result.choice is None:
        return _describe_change("the Placement were valid", result.placement.document, ("spec",))
    if not result.choice.remaining[0] >> index & 1:
        return _match_predicate(inputs, result, document)
    if not result.choice.remaining[1] >> index & 1:
        return _add_toleration(inputs, result, result.request, index)
    if index in result.choice.selected:
        return _describe_change("the clusters before it had reported success", result.placement.document, ())
    return _raise_addon_score(inputs, result.request, result.choice, index) or _raise_number_of_clusters(
        result, result.request, result.choice, index
    )


def _join_cluster_set(inputs: ProposalInputs, result: PlacementResult, index: int) -> ChangeProposal | None:
    """Make a cluster eligible: list its set in clusterSets, bind the set, or add the cluster to a bound set."""
    set_names = inputs.cluster_sets.list_sets_of(index)
    placement = result.placement
    bound = [name for name in set_names if name in result.eligible.bound_sets]
    if bound:
        cluster_sets = [*placement.cluster_sets, bound[0]]
        return _edit_document(placement.document, f"clusterSets listed {bound[0]}", ("spec", "clusterSets"), cluster_sets)
    if not set_names and result.eligible.eligible_sets:
        candidate = inputs.fleet.candidates[index]
        document = next(d for d in inputs.documents[names.GROUP, names.MANAGED_CLUSTER] if d.key.name == candidate.name)
        set_name = result.eligible.eligible_sets[0]
        return _edit_document(
            document,
            f"it were in the cluster set {set_name}",
            ("metadata", "labels"),
            {**candidate.labels, names.SET_LABEL: set_name},
        )
    if not set_names:
        return None
    name, namespace = set_names[0], placement.key.namespace
    body: Body = {
        "apiVersion": f"{names.GROUP}/{names.VERSIONS[names.GROUP, names.CLUSTER_SET_BINDING]}",
        "kind": names.CLUSTER_SET_BINDING,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterSet": name},
    }
    key = placement.key._replace(kind=names.CLUSTER_SET_BINDING, name=name)
    text = f"a ManagedClusterSetBinding bound the namespace {namespace} to {name}"
    return ChangeProposal(ProposedChange(text), Document(key, str(body["apiVersion"]), body))


def _match_predicate(inputs: ProposalInputs, result: PlacementResult, document: Document) -> ChangeProposal | None:
    """Change a label or claim to match the first predicate; no change is known for CEL expressions."""
    predicates = result.placement.predicates
    affinity = None if isinstance(predicates, Misconfiguration) or not predicates else predicates[0].affinity
    labels = dict(inputs.fleet.candidates[inputs.fleet.index[document.key.name]].labels)
    for requirement in affinity.labels.requirements if affinity is not None and affinity.labels else ():
        if not requirement.matches(labels):
            pointer = ("metadata", "labels")
            if requirement.operator in ("NotIn", "DoesNotExist"):
                rest = {key: value for key, value in labels.items() if key != requirement.key}
                return _edit_document(document, f"it had no label {requirement.key}={labels[requirement.key]}", pointer, rest)
            value = requirement.values[0] if requirement.values else "true"
            return _edit_document(
                document, f"its label {requirement.key} were {value}", pointer, {**labels, requirement.key: value}
            )
    claim_change = (
        _change_claim(document, inputs.fleet.candidates[inputs.fleet.index[document.key.name]], affinity) if affinity else None
    )
    return claim_change or _describe_change(
        "it met the expressions of the predicate", result.placement.document, ("spec", "predicates")
    )


def _change_claim(document: Document, candidate: Candidate, affinity: Affinity) -> ChangeProposal | None:
    """Change a claim to match the predicate."""
    claims = {name: values[0] for name, values in candidate.fields.items() if values}
    requirement = next((requirement for requirement in affinity.fields if not requirement.matches(claims)), None)
    if requirement is None:
        return None
    rest = {name: value for name, value in claims.items() if name != requirement.key}
    if requirement.operator in ("NotIn", "DoesNotExist"):
        text = f"it did not claim {requirement.key}={claims[requirement.key]}"
    else:
        rest[requirement.key] = requirement.values[0] if requirement.values else "true"
        text = f"it claimed {requirement.key}={rest[requirement.key]}"
    return _edit_document(
        document, text, ("status", "clusterClaims"), [{"name": name, "value": value} for name, value in rest.items()]
    )


def _raise_addon_score(
    inputs: ProposalInputs, request: SelectionRequest, selection: SelectionResult, index: int
) -> ChangeProposal | None:
    """Raise an add-on score to the lowest value with which the cluster is selected."""
    if request.spreads or not request.limit:
        return None
    ranking = sorted(zip(selection.totals, selection.members, strict=True), key=lambda entry: (-entry[0], entry[1]))
    lowest, last_member = ranking[min(request.limit, len(ranking)) - 1]
    at = selection.members.index(index)
    missing = lowest - selection.totals[at] + (index > last_member)
    for term, column in zip(request.scores, selection.score_columns, strict=True):
        api, _, rest = term.score.name.partition("/")
        if api != ADD_ON or term.weight <= 0:
            continue
        resource, _, score = rest.partition("/")
        value = column[at] - (-missing // term.weight)
        key = Key(names.GROUP, names.ADDON_SCORE, inputs.fleet.names[index], resource)
        entry = next((d for d in inputs.documents.get((names.GROUP, names.ADDON_SCORE), ()) if d.key == key), None)
        if value <= _MAX_ADDON_SCORE and entry is not None:
            current_scores = get_field(entry.body, "status", "scores") or ()
            scores = [{**s, "value": value} if s.get("name") == score else s for s in current_scores]
            return _edit_document(
                entry, f"its score {resource}/{score} were {value} instead of {column[at]}", ("status", "scores"), scores
            )
    return None


def _add_toleration(
    inputs: ProposalInputs, result: PlacementResult, request: SelectionRequest, index: int
) -> ChangeProposal | None:
    for taint in inputs.fleet.candidates[index].taints:
        deadline = find_toleration_end(taint, request.tolerations, request.now)
        if taint.effect not in request.taint_effects.ignored and (deadline is None or deadline <= request.now):
            entry = {"key": taint.key, "effect": taint.effect}
            entry |= {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
            pointer = ("spec", "tolerations")
            tolerations = result.placement.spec.get("tolerations") or ()
            return _edit_document(result.placement.document, f"its Placement tolerated {taint}", pointer, [*tolerations, entry])
    return None


def _raise_number_of_clusters(
    result: PlacementResult, request: SelectionRequest, selection: SelectionResult, index: int
) -> ChangeProposal | None:
    """Raise numberOfClusters to the rank of the cluster."""
    if request.spreads or request.limit is None:
        return None
    ranking = sorted(zip(selection.totals, selection.members, strict=True), key=lambda entry: (-entry[0], entry[1]))
    rank = next(at for at, (_, member) in enumerate(ranking, 1) if member == index)
    text = f"numberOfClusters were {rank} instead of {request.limit}"
    return _edit_document(result.placement.document, text, ("spec", "numberOfClusters"), rank)


def _describe_change(text: str, document: Document, pointer: Pointer) -> ChangeProposal:
    field = FieldOrigin(document.origin, pointer) if document.origin else None
    return ChangeProposal(ProposedChange(text, f"{field.origin.path}:{field.origin.line}" if field is not None else "", field))


def _edit_document(document: Document, text: str, pointer: tuple[str, str], value: Any) -> ChangeProposal:
    """Return the change with the changed document."""
    section, name = pointer
    body = {**document.body, section: {**(document.body.get(section) or {}), name: value}}
    return _describe_change(text, document, pointer)._replace(document=document._replace(body=body))
