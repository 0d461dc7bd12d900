"""One sync of one Placement, in upstream's order: sets, filters, scores, the best, groups, decisions, status."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import NamedTuple

from gitsched.apis.ocm.cel.clusters import Expression
from gitsched.apis.ocm.cel.syntax import Refused
from gitsched.apis.ocm.decisions import group_clusters, write_decisions
from gitsched.apis.ocm.history import Past
from gitsched.apis.ocm.placement import ADD_ON, Constraint, Mistake, Placement, Weighted, judge_tolerations
from gitsched.apis.ocm.scores import AddOn, Scores
from gitsched.apis.ocm.status import Offer, judge, write_mistake, write_record, write_status
from gitsched.model.document import Body, Key
from gitsched.schedule.choose import Alternative, Choice, Choosing, Effects, Term, choose
from gitsched.schedule.evenly import Spread
from gitsched.schedule.fleet import Candidate, Fleet
from gitsched.schedule.score import Balance, Given, Held, Relative

EFFECTS = Effects(frozenset({"PreferNoSelect"}), frozenset({"NoSelectIfNew"}))
_RESOURCES = {"ResourceAllocatableCPU": "cpu", "ResourceAllocatableMemory": "memory"}

Compile = Callable[[tuple[str, ...]], tuple[Expression, ...] | Refused]
"""Expressions as tests of candidates, or what is wrong with the first that cannot be used."""


class Scene(NamedTuple):
    """What all Placements of a run have in common."""

    fleet: Fleet
    scores: Scores
    compile: Compile
    moment: datetime


class Evaluation(NamedTuple):
    """What came of a Placement. `decisions` are its PlacementDecisions and `record` itself, with its status.

    `request` and `choice` are what the scheduler was asked and said, None where it was not asked. `expired` are clusters whose scores
    are too old. `wakeup` is when time alone may change something.
    """

    placement: Placement
    offer: Offer
    request: Choosing | None
    choice: Choice | None
    mistake: Mistake | None
    decisions: tuple[tuple[Key, Body], ...]
    record: Body
    expired: tuple[tuple[str, str], ...]
    wakeup: datetime | None


def evaluate(
    placement: Placement, offer: Offer, past: Past, load: Mapping[str, int], previous: Body | None, scene: Scene
) -> Evaluation:
    """Decide one Placement. A misconfigured one keeps what it had decided: upstream empties it, and workloads would go."""
    alternatives = _alternatives(placement, offer, scene)
    if isinstance(alternatives, Mistake):
        return _refuse(placement, offer, alternatives, past, previous, scene)
    terms, add_ons = _terms(placement, past, load, scene)
    request = Choosing(
        offer.available,
        alternatives,
        placement.tolerations,
        EFFECTS,
        scene.fleet.mask(past.clusters),
        scene.moment,
        terms,
        placement.number,
        tuple(_spread(constraint, scene.fleet) for constraint in placement.spread),
    )
    choice = choose(request, scene.fleet)
    mistake = judge_tolerations(placement) if choice.left[0] else None
    if mistake is None and isinstance(placement.weights, Mistake):
        mistake = placement.weights
    groups = group_clusters(placement, choice.chosen, scene.fleet)
    if mistake is None and isinstance(groups, Mistake):
        mistake = groups
    if mistake is not None or isinstance(groups, Mistake):
        return _refuse(placement, offer, mistake or Mistake("", ""), past, previous, scene)
    totals = dict(zip(choice.members, choice.totals, strict=True))
    uid = str(placement.document.body["metadata"].get("uid") or "")
    decisions, objects = write_decisions(placement.key, uid, groups, scene.fleet, totals, past.decisions)
    satisfaction = judge(offer, placement.sets, len(choice.chosen), placement.number)
    status = write_status(satisfaction, None, groups, objects, previous, scene.moment)
    names = scene.fleet.names
    eligible = {names[index] for index in choice.members} if any(add_on.expired for _, add_on in add_ons) else frozenset()
    ends = (add_on.expires for _, add_on in add_ons)
    expired = {(name, resource) for resource, add_on in add_ons for name in add_on.expired if name in eligible}
    return Evaluation(
        placement,
        offer,
        request,
        choice,
        None,
        tuple(decisions),
        write_record(placement.key, status),
        tuple(sorted(expired)),
        min((end for end in (choice.deadline, *ends) if end is not None and end > scene.moment), default=None),
    )


def _refuse(placement: Placement, offer: Offer, mistake: Mistake, past: Past, previous: Body | None, scene: Scene) -> Evaluation:
    record = write_record(placement.key, write_mistake(mistake, previous, scene.moment))
    return Evaluation(placement, offer, None, None, mistake, past.documents(placement.key.namespace), record, (), None)


def _alternatives(placement: Placement, offer: Offer, scene: Scene) -> tuple[Alternative, ...] | Mistake:
    """The predicates; nothing is looked at where there is nothing to choose from."""
    predicates = placement.predicates
    if not offer.available:
        return ()
    if isinstance(predicates, Mistake):
        return predicates
    alternatives = []
    for predicate in predicates:
        tests = scene.compile(predicate.expressions)
        if isinstance(tests, Refused):
            return Mistake("Predicate", str(tests), tests.code)
        alternatives.append(Alternative(predicate.affinity, tests))
    return tuple(alternatives)


def _terms(
    placement: Placement, past: Past, load: Mapping[str, int], scene: Scene
) -> tuple[tuple[Term, ...], list[tuple[str, AddOn]]]:
    """The scores that count with their weights, and what add-ons said, with the name of their AddOnPlacementScores."""
    weights: Sequence[Weighted] = () if isinstance(placement.weights, Mistake) else placement.weights
    terms: list[Term] = []
    add_ons: list[tuple[str, AddOn]] = []
    for coordinate, weight in weights:
        if coordinate.type == ADD_ON:
            add_on = scene.scores.add_on(coordinate.resource, coordinate.score, scene.moment)
            add_ons.append((coordinate.resource, add_on))
            terms.append(Term(Given(f"AddOn/{coordinate.resource}/{coordinate.score}", add_on.column), weight))
        elif coordinate.built_in == "Steady":
            terms.append(Term(Held(scene.fleet.mask(past.clusters)), weight))
        elif coordinate.built_in == "Balance":
            terms.append(Term(Balance(_count(load, scene.fleet), max(load.values(), default=0)), weight))
        else:
            values = scene.scores.allocatable(_RESOURCES[coordinate.built_in])
            terms.append(Term(Relative(coordinate.built_in, values), weight))
    return tuple(terms), add_ons


def _spread(constraint: Constraint, fleet: Fleet) -> Spread:
    """A constraint with the domain of every cluster."""
    of: Callable[[Candidate], str] = (
        (lambda candidate: candidate.labels.get(constraint.key, ""))
        if constraint.kind == "Label"
        else (lambda candidate: next(iter(candidate.fields.get(constraint.key, ())), ""))
    )
    return Spread([of(candidate) for candidate in fleet.candidates], constraint.skew, constraint.hard)


def _count(load: Mapping[str, int], fleet: Fleet) -> list[int]:
    return list(map(load.get, fleet.names, repeat(0)))
