"""Why a Placement chose what it chose, for people, and in the shape of upstream's debug endpoint."""

from __future__ import annotations

from typing import Any

from gitsched.apis.ocm.decisions import list_clusters
from gitsched.apis.ocm.evaluation import Evaluation
from gitsched.apis.ocm.placement import Mistake
from gitsched.apis.ocm.workloads import Workload, named_placement
from gitsched.model.decision import Verdict
from gitsched.model.document import Document
from gitsched.model.explanation import Candidate, Explanation, Share
from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome
from gitsched.schedule.choose import FILTERS, Choice
from gitsched.schedule.choose import explain as judge
from gitsched.schedule.fleet import Fleet

OUTSIDE = "it is in none of the cluster sets that the Placement may choose from, or being deleted"


def judge_clusters(found: Evaluation, fleet: Fleet) -> list[Verdict]:
    """How every cluster fares, in name order; for one that passed and was not chosen the reason says what it lacks."""
    if found.request is None or found.choice is None:
        return []
    choice = found.choice
    chosen = set(choice.chosen)
    edge = _edge(choice)
    verdicts = []
    for index, verdict in enumerate(judge(found.request, choice, fleet, OUTSIDE)):
        if verdict.eligible and index not in chosen and edge is not None and verdict.total is not None:
            total, name = edge[0], fleet.names[edge[1]]
            why = (
                f"its total is below the {total} of {name}"
                if verdict.total < total
                else "with it the clusters would not be spread evenly"
                if found.request.spreads
                else f"as good as {name}, which comes first by name"
            )
            verdict = verdict._replace(reason=why if found.request.number else "no cluster is wanted")
        verdicts.append(verdict)
    return verdicts


def _edge(choice: Choice) -> tuple[int, int] | None:
    """The total and the candidate that was chosen last."""
    totals = dict(zip(choice.members, choice.totals, strict=True))
    last = min(choice.chosen, key=lambda index: (totals[index], -index), default=None)
    return None if last is None else (totals[last], last)


def explain_placement(document: Document, found: Evaluation, fleet: Fleet, findings: tuple[Finding, ...]) -> Explanation:
    """The whole way of a Placement through its sets, filters and scores."""
    chosen = [name for _, decision in found.decisions for name in list_clusters(decision)]
    return Explanation(
        workload=str(document.key),
        location=_place(document),
        policy=str(document.key),
        policy_reason=_tell_offer(found),
        candidates=tuple(Candidate(verdict) for verdict in judge_clusters(found, fleet)),
        selection=tuple(_tell_stages(found)),
        division_rule=(_tell_scores(found),) if found.request is not None else (),
        trigger="" if found.mistake is None else f"Not decided anew: {str(found.mistake).removeprefix(':')}.",
        result=tuple(Share(name) for name in chosen),
        findings=tuple(finding for finding in findings if finding.resource == document.key.resource),
        native=debug(found, fleet),
    )


def explain_workload(workload: Workload, outcome: Outcome, told: Explanation | None) -> Explanation:
    """A workload follows its Placement: what is to be told of that, and where the workload is."""
    document = workload.document
    base = told or Explanation("")
    annotated = named_placement(document) is not None
    return base._replace(
        workload=str(document.key),
        location=_place(document),
        policy=outcome.policy,
        policy_reason="its annotation names it" if annotated else "its placementRefs name it",
        trigger=outcome.reason if outcome.reason != outcome.policy else "",
        result=tuple(Share(place.cluster) for place in outcome.placed),
        findings=outcome.findings,
    )


def debug(found: Evaluation, fleet: Fleet) -> dict[str, Any]:
    """What upstream's /debug/placements/ answers for this Placement."""
    request, choice = found.request, found.choice
    if request is None or choice is None:
        return {"error": str(found.mistake)} if found.mistake is not None else {}
    names = [fleet.names[index] for index in choice.members]
    steps = [
        {
            "name": ",".join(rule.name for rule in FILTERS[: at + 1]),
            "filteredClusters": [fleet.names[index] for index in fleet.members(left)],
        }
        for at, left in enumerate(choice.left)
    ]
    ranking = sorted(zip(choice.totals, names, strict=True), key=lambda entry: (-entry[0], entry[1]))
    return {
        "filteredPipelineResults": steps,
        "prioritizeResults": [
            {"name": term.score.name, "weight": term.weight, "scores": dict(zip(names, column, strict=True))}
            for term, column in zip(request.terms, choice.columns, strict=True)
        ],
        "aggregatedScores": [{"clusterName": name, "score": total} for total, name in ranking],
    }


def _tell_offer(found: Evaluation) -> str:
    offer = found.offer
    if not offer.bound:
        return "its namespace is bound to no cluster set: a ManagedClusterSetBinding is missing"
    if not offer.eligible:
        return f"it wants {', '.join(found.placement.sets)}, and its namespace is bound to {', '.join(offer.bound)}"
    return f"chooses from {', '.join(offer.eligible)}"


def _tell_stages(found: Evaluation) -> list[str]:
    if found.choice is None or found.request is None:
        return []
    before = found.offer.available.bit_count()
    lines = [f"{before} clusters may be chosen from."]
    for rule, left in zip(FILTERS, found.choice.left, strict=True):
        after = left.bit_count()
        lines.append(f"{rule.name}: {after} of {before} are left.")
        before = after
    wanted = found.request.number
    return [*lines, _tell_number(wanted, len(found.choice.chosen))]


def _tell_number(wanted: int | None, chosen: int) -> str:
    if wanted is None:
        return f"All {chosen} are chosen: numberOfClusters does not limit them."
    if chosen < wanted:
        return f"{chosen} are chosen, {wanted} are wanted."
    return f"The best {chosen} are chosen, of equal ones the first by name."


def _tell_scores(found: Evaluation) -> str:
    weights = found.placement.weights
    terms = () if found.request is None else found.request.terms
    if isinstance(weights, Mistake) or not terms:
        return "Nothing is scored: names decide."
    return f"The total is {' + '.join(f'{term.weight} × {term.score.name}' for term in terms)}."


def _place(document: Document) -> str:
    origin = document.origin
    return f"{origin.path}:{origin.line}" if origin else ""
