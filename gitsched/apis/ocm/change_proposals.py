"""Propose the smallest change of the documents that brings a workload of a Placement closer to a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gitsched.apis.capabilities import ChangeProposal
from gitsched.apis.ocm import names
from gitsched.apis.ocm.availability import AVAILABLE_CONDITION
from gitsched.apis.ocm.managed_clusters import ClusterSets
from gitsched.apis.ocm.placement import ADD_ON, Misconfiguration
from gitsched.apis.ocm.scheduling import PlacementResult
from gitsched.apis.ocm.topology import TOPOLOGY
from gitsched.apis.proposals import propose_taint_end
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.explanation import ProposedChange
from gitsched.model.finding import Pointer, locate_field
from gitsched.model.scheduling import Affinity
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Candidate, Fleet
from gitsched.schedule.selection import (
    PredicateFilter,
    SelectionRequest,
    SelectionResult,
    TimedTaintTolerationFilter,
    find_toleration_end,
    list_stages,
)

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
    rejecting = next(
        (one.filter for one in list_stages(result.request, result.choice) if (one.before & ~one.remaining) >> index & 1), None
    )
    if isinstance(rejecting, PredicateFilter):
        return _match_predicate(inputs, result, document)
    if isinstance(rejecting, TimedTaintTolerationFilter):
        return _add_toleration(inputs, result, result.request, index, document)
    if rejecting is not None:
        return _describe_change(f"the filter {rejecting.name} let it pass", document, ())
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
    inputs: ProposalInputs, result: PlacementResult, request: SelectionRequest, index: int, document: Document
) -> ChangeProposal | None:
    for taint in inputs.fleet.candidates[index].taints:
        deadline = find_toleration_end(taint, request.tolerations, request.now)
        if taint.effect not in request.taint_effects.ignored and (deadline is None or deadline <= request.now):
            ended = propose_taint_end(document, taint, TOPOLOGY.taints, AVAILABLE_CONDITION)
            if ended is not None:
                return ended
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
    field = locate_field(document.origin, pointer)
    return ChangeProposal(ProposedChange(text, f"{field.origin.path}:{field.origin.line}" if field is not None else "", field))


def _edit_document(document: Document, text: str, pointer: tuple[str, str], value: Any) -> ChangeProposal:
    """Return the change with the changed document."""
    section, name = pointer
    body = {**document.body, section: {**(document.body.get(section) or {}), name: value}}
    return _describe_change(text, document, pointer)._replace(document=document._replace(body=body))
