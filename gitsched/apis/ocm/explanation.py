"""Explain a Placement's decision per cluster, also in the format of OCM's /debug/placements/ endpoint, and propose the smallest
change that brings a workload closer to a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gitsched.apis.engine import ChangeProposal
from gitsched.apis.ocm import names
from gitsched.apis.ocm.decisions import list_decision_clusters
from gitsched.apis.ocm.managed_clusters import ClusterSets
from gitsched.apis.ocm.manifestworkreplicaset import OcmWorkload, read_placement_annotation
from gitsched.apis.ocm.placement import ADD_ON, Misconfiguration
from gitsched.apis.ocm.scheduling import PlacementResult
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.explanation import ExplainedCandidate, Explanation, ProposedChange, ReplicaShare
from gitsched.model.finding import FieldOrigin, Finding, Pointer
from gitsched.model.scheduling import Affinity, CandidateResult, Outcome
from gitsched.schedule.fleet import Candidate, Fleet
from gitsched.schedule.selection import SELECTION_FILTERS, SelectionRequest, SelectionResult, explain_selection, find_toleration_end

NOT_ELIGIBLE = "it is in none of the cluster sets that the Placement may choose from, or being deleted"


def evaluate_clusters(found: PlacementResult, fleet: Fleet) -> list[CandidateResult]:
    """How every cluster fares, in name order; for one that passed and was not chosen the reason says what it lacks."""
    if found.request is None or found.choice is None:
        return []
    choice = found.choice
    chosen = set(choice.selected)
    edge = _find_last_selected(choice)
    verdicts = []
    for index, verdict in enumerate(explain_selection(found.request, choice, fleet, NOT_ELIGIBLE)):
        if verdict.eligible and index not in chosen and edge is not None and verdict.total is not None:
            total, name = edge[0], fleet.names[edge[1]]
            why = (
                f"its total is below the {total} of {name}"
                if verdict.total < total
                else "with it the clusters would not be spread evenly"
                if found.request.spreads
                else f"as good as {name}, which comes first by name"
            )
            verdict = verdict._replace(reason=why if found.request.limit else "no cluster is wanted")
        verdicts.append(verdict)
    return verdicts


def _find_last_selected(choice: SelectionResult) -> tuple[int, int] | None:
    """The total and the candidate that was chosen last."""
    totals = dict(zip(choice.members, choice.totals, strict=True))
    last = min(choice.selected, key=lambda index: (totals[index], -index), default=None)
    return None if last is None else (totals[last], last)


def explain_placement(document: Document, found: PlacementResult, fleet: Fleet, findings: tuple[Finding, ...]) -> Explanation:
    """The whole way of a Placement through its sets, filters and scores."""
    chosen = [name for _, decision in found.decisions for name in list_decision_clusters(decision)]
    return Explanation(
        workload=str(document.key),
        location=_format_location(document),
        policy=str(document.key),
        policy_reason=_describe_cluster_sets(found),
        candidates=tuple(ExplainedCandidate(verdict) for verdict in evaluate_clusters(found, fleet)),
        selection=tuple(_describe_filters(found)),
        division_rule=(_describe_scores(found),) if found.request is not None else (),
        trigger="" if found.misconfiguration is None else f"Not decided anew: {str(found.misconfiguration).removeprefix(':')}.",
        result=tuple(ReplicaShare(name) for name in chosen),
        findings=tuple(finding for finding in findings if finding.resource == document.key.resource),
        native=build_debug_response(found, fleet),
    )


def explain_workload(workload: OcmWorkload, outcome: Outcome, told: Explanation | None) -> Explanation:
    """A workload follows its Placement: what is to be told of that, and where the workload is."""
    document = workload.document
    base = told or Explanation("")
    annotated = read_placement_annotation(document) is not None
    return base._replace(
        workload=str(document.key),
        location=_format_location(document),
        policy=outcome.policy,
        policy_reason="its annotation names it" if annotated else "its placementRefs name it",
        trigger=outcome.reason if outcome.reason != outcome.policy else "",
        result=tuple(ReplicaShare(place.cluster) for place in outcome.targets),
        findings=outcome.findings,
    )


def build_debug_response(found: PlacementResult, fleet: Fleet) -> dict[str, Any]:
    """What upstream's /debug/placements/ answers for this Placement."""
    request, choice = found.request, found.choice
    if request is None or choice is None:
        return {"error": str(found.misconfiguration)} if found.misconfiguration is not None else {}
    names = [fleet.names[index] for index in choice.members]
    steps = [
        {
            "name": ",".join(rule.name for rule in SELECTION_FILTERS[: at + 1]),
            "filteredClusters": [fleet.names[index] for index in fleet.members(left)],
        }
        for at, left in enumerate(choice.remaining)
    ]
    ranking = sorted(zip(choice.totals, names, strict=True), key=lambda entry: (-entry[0], entry[1]))
    return {
        "filteredPipelineResults": steps,
        "prioritizeResults": [
            {"name": term.score.name, "weight": term.weight, "scores": dict(zip(names, column, strict=True))}
            for term, column in zip(request.scores, choice.score_columns, strict=True)
        ],
        "aggregatedScores": [{"clusterName": name, "score": total} for total, name in ranking],
    }


def _describe_cluster_sets(found: PlacementResult) -> str:
    offer = found.eligible
    if not offer.bound_sets:
        return "its namespace is bound to no cluster set: a ManagedClusterSetBinding is missing"
    if not offer.eligible_sets:
        return f"it wants {', '.join(found.placement.cluster_sets)}, and its namespace is bound to {', '.join(offer.bound_sets)}"
    return f"chooses from {', '.join(offer.eligible_sets)}"


def _describe_filters(found: PlacementResult) -> list[str]:
    if found.choice is None or found.request is None:
        return []
    before = found.eligible.clusters.bit_count()
    lines = [f"{before} clusters may be chosen from."]
    for rule, left in zip(SELECTION_FILTERS, found.choice.remaining, strict=True):
        after = left.bit_count()
        lines.append(f"{rule.name}: {after} of {before} are left.")
        before = after
    wanted = found.request.limit
    return [*lines, _describe_number(wanted, len(found.choice.selected))]


def _describe_number(wanted: int | None, chosen: int) -> str:
    if wanted is None:
        return f"All {chosen} are chosen: numberOfClusters does not limit them."
    if chosen < wanted:
        return f"{chosen} are chosen, {wanted} are wanted."
    return f"The best {chosen} are chosen, of equal ones the first by name."


def _describe_scores(found: PlacementResult) -> str:
    weights = found.placement.prioritizers
    terms = () if found.request is None else found.request.scores
    if isinstance(weights, Misconfiguration) or not terms:
        return "Nothing is scored: names decide."
    return f"The total is {' + '.join(f'{term.weight} × {term.score.name}' for term in terms)}."


def _format_location(document: Document) -> str:
    origin = document.origin
    return f"{origin.path}:{origin.line}" if origin else ""


_MAX_ADDON_SCORE = 100
"""The most that an AddOnPlacementScore may say."""


class ProposalInputs(NamedTuple):
    """What a proposal is made from: the clusters, the sets they are in, and the documents by (group, kind)."""

    fleet: Fleet
    cluster_sets: ClusterSets
    documents: Mapping[tuple[str, str], tuple[Document, ...]]


def propose_change(inputs: ProposalInputs, found: PlacementResult, cluster: str) -> ChangeProposal | None:
    """The next change that would bring a Placement nearer to a cluster; None where nobody knows one."""
    index = inputs.fleet.index.get(cluster)
    document = next((d for d in inputs.documents.get((names.GROUP, names.MANAGED_CLUSTER), ()) if d.key.name == cluster), None)
    if index is None or document is None:
        return None
    if inputs.fleet.candidates[index].deleting:
        return _describe_change("it were not being deleted", document, ("metadata", "deletionTimestamp"))
    if not found.eligible.clusters >> index & 1:
        return _join_cluster_set(inputs, found, index)
    if found.request is None or found.choice is None:
        return _describe_change("the Placement were mended", found.placement.document, ("spec",))
    if not found.choice.remaining[0] >> index & 1:
        return _match_predicate(inputs, found, document)
    if not found.choice.remaining[1] >> index & 1:
        return _add_toleration(inputs, found, found.request, index)
    if index in found.choice.selected:
        return _describe_change("the clusters before it had reported success", found.placement.document, ())
    return _raise_addon_score(inputs, found.request, found.choice, index) or _raise_number_of_clusters(
        found, found.request, found.choice, index
    )


def _join_cluster_set(inputs: ProposalInputs, found: PlacementResult, index: int) -> ChangeProposal | None:
    """Into what the Placement may choose from: by its list of sets, a binding, or a set that has the cluster."""
    holding = inputs.cluster_sets.list_sets_of(index)
    placement = found.placement
    bound = [name for name in holding if name in found.eligible.bound_sets]
    if bound:
        sets = [*placement.cluster_sets, bound[0]]
        return _edit_document(placement.document, f"clusterSets named {bound[0]}", ("spec", "clusterSets"), sets)
    if not holding and found.eligible.eligible_sets:
        candidate = inputs.fleet.candidates[index]
        document = next(d for d in inputs.documents[names.GROUP, names.MANAGED_CLUSTER] if d.key.name == candidate.name)
        group = found.eligible.eligible_sets[0]
        return _edit_document(
            document, f"it were in the cluster set {group}", ("metadata", "labels"), {**candidate.labels, names.SET_LABEL: group}
        )
    if not holding:
        return None
    name, namespace = holding[0], placement.key.namespace
    body: Body = {
        "apiVersion": f"{names.GROUP}/{names.VERSIONS[names.GROUP, names.CLUSTER_SET_BINDING]}",
        "kind": names.CLUSTER_SET_BINDING,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterSet": name},
    }
    key = placement.key._replace(kind=names.CLUSTER_SET_BINDING, name=name)
    text = f"a ManagedClusterSetBinding bound the namespace {namespace} to {name}"
    return ChangeProposal(ProposedChange(text), Document(key, str(body["apiVersion"]), body))


def _match_predicate(inputs: ProposalInputs, found: PlacementResult, document: Document) -> ChangeProposal | None:
    """A label or a claim that the first predicate wants; expressions are beyond what can be changed for it."""
    predicates = found.placement.predicates
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
    claimed = (
        _change_claim(document, inputs.fleet.candidates[inputs.fleet.index[document.key.name]], affinity) if affinity else None
    )
    return claimed or _describe_change("it met the expressions of the predicate", found.placement.document, ("spec", "predicates"))


def _change_claim(document: Document, candidate: Candidate, affinity: Affinity) -> ChangeProposal | None:
    """A claim that the predicate wants."""
    claims = {name: values[0] for name, values in candidate.fields.items() if values}
    wanted = next((asked for asked in affinity.fields if not asked.matches(claims)), None)
    if wanted is None:
        return None
    rest = {name: value for name, value in claims.items() if name != wanted.key}
    if wanted.operator in ("NotIn", "DoesNotExist"):
        text = f"it did not claim {wanted.key}={claims[wanted.key]}"
    else:
        rest[wanted.key] = wanted.values[0] if wanted.values else "true"
        text = f"it claimed {wanted.key}={rest[wanted.key]}"
    return _edit_document(
        document, text, ("status", "clusterClaims"), [{"name": name, "value": value} for name, value in rest.items()]
    )


def _raise_addon_score(
    inputs: ProposalInputs, request: SelectionRequest, choice: SelectionResult, index: int
) -> ChangeProposal | None:
    """The least value of an add-on's score with which it is among the best."""
    if request.spreads or not request.limit:
        return None
    ranking = sorted(zip(choice.totals, choice.members, strict=True), key=lambda entry: (-entry[0], entry[1]))
    edge, rival = ranking[min(request.limit, len(ranking)) - 1]
    at = choice.members.index(index)
    need = edge - choice.totals[at] + (index > rival)
    for term, column in zip(request.scores, choice.score_columns, strict=True):
        api, _, rest = term.score.name.partition("/")
        if api != ADD_ON or term.weight <= 0:
            continue
        resource, _, score = rest.partition("/")
        value = column[at] - (-need // term.weight)
        key = Key(names.GROUP, names.ADDON_SCORE, inputs.fleet.names[index], resource)
        entry = next((d for d in inputs.documents.get((names.GROUP, names.ADDON_SCORE), ()) if d.key == key), None)
        if value <= _MAX_ADDON_SCORE and entry is not None:
            written = get_field(entry.body, "status", "scores") or ()
            scores = [{**s, "value": value} if s.get("name") == score else s for s in written]
            return _edit_document(
                entry, f"its score {resource}/{score} were {value} instead of {column[at]}", ("status", "scores"), scores
            )
    return None


def _add_toleration(inputs: ProposalInputs, found: PlacementResult, request: SelectionRequest, index: int) -> ChangeProposal | None:
    for taint in inputs.fleet.candidates[index].taints:
        end = find_toleration_end(taint, request.tolerations, request.now)
        if taint.effect not in request.taint_effects.ignored and (end is None or end <= request.now):
            entry = {"key": taint.key, "effect": taint.effect}
            entry |= {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
            pointer = ("spec", "tolerations")
            written = found.placement.spec.get("tolerations") or ()
            return _edit_document(found.placement.document, f"its Placement tolerated {taint}", pointer, [*written, entry])
    return None


def _raise_number_of_clusters(
    found: PlacementResult, request: SelectionRequest, choice: SelectionResult, index: int
) -> ChangeProposal | None:
    """So many clusters that this one is among the best."""
    if request.spreads or request.limit is None:
        return None
    ranking = sorted(zip(choice.totals, choice.members, strict=True), key=lambda entry: (-entry[0], entry[1]))
    place = next(at for at, (_, member) in enumerate(ranking, 1) if member == index)
    text = f"numberOfClusters were {place} instead of {request.limit}"
    return _edit_document(found.placement.document, text, ("spec", "numberOfClusters"), place)


def _describe_change(text: str, document: Document, pointer: Pointer) -> ChangeProposal:
    rule = FieldOrigin(document.origin, pointer) if document.origin else None
    return ChangeProposal(ProposedChange(text, f"{rule.origin.path}:{rule.origin.line}" if rule is not None else "", rule))


def _edit_document(document: Document, text: str, pointer: tuple[str, str], value: Any) -> ChangeProposal:
    """The change, and the document with it."""
    section, name = pointer
    body = {**document.body, section: {**(document.body.get(section) or {}), name: value}}
    return _describe_change(text, document, pointer)._replace(document=document._replace(body=body))
