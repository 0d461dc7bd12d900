"""Assign replicas to the selected candidates: duplicated, static weight, dynamic weight or aggregated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gitsched.model.scheduling import Assignment, Request
from gitsched.schedule.dispenser import dispense, prefers_descending
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.spread_constraints import RankedCandidates
from gitsched.schedule.tie_breaking import go_sort_descending

ReplicaCounts = dict[int, int]
"""Replicas by candidate."""

_MODE_MESSAGES = {"fresh": "do fresh scale", "scale up": "scale up", "scale down": "scale down"}


class ReplicaDivision(NamedTuple):
    """One use of the dispenser: `goal` replicas by `weights` (candidate, weight), on top of what is `kept`.

    `mode` is "fresh", "kept" (nothing is dispensed), "scale up" or "scale down".
    """

    mode: str
    assigned: ReplicaCounts
    replicas: int
    weights: list[tuple[int, int]]


class Unschedulable(Exception):
    """The candidates have too little room; the message says how much."""


class AssignmentError(Exception):
    """There is nothing to assign to."""


def assign_replicas(request: Request, fleet: Fleet, survey: RankedCandidates, chosen: list[int]) -> tuple[Assignment, ...]:
    """Targets for the chosen candidates (in candidate order). Raises Unschedulable, and Unassignable when there are none."""
    if not chosen:
        raise AssignmentError("no clusters available to schedule")
    match request.division:
        case "everywhere":
            return tuple(Assignment(fleet.names[i]) for i in chosen)
        case "duplicated":
            return _build_targets(request, fleet, ((i, request.replicas) for i in chosen))
    seats: ReplicaCounts = {}
    for division in plan_divisions(request, fleet, survey, chosen):
        seats |= _divide_replicas(request, division)
    if request.keep_empty:
        seats |= {i: 0 for i in sorted(chosen) if i not in seats}
    return _build_targets(request, fleet, seats.items())


def assign_by_static_weight(request: Request, fleet: Fleet, mask: int) -> tuple[Assignment, ...]:
    """Targets for a set of candidates by static weight, from scratch each time: neither room nor the last result counts."""
    question = ("static", request.weights, mask, request.replicas, prefers_descending(request.identity), request.keep_empty)
    return fleet.get_or_compute(question, lambda: _divide_by_static_weight(request, fleet, mask))


def plan_divisions(request: Request, fleet: Fleet, survey: RankedCandidates, chosen: list[int]) -> list[ReplicaDivision]:
    """How replicas are divided by room: one division, or with overflow one for each tier that is needed. Raises Unschedulable.

    A later tier gets what the earlier ones have no room for.
    """
    if len(survey.tiers) == 1:
        return [_plan_division(request, fleet, survey, chosen, request.replicas)]
    divisions = []
    left = request.replicas
    for tier in survey.tiers:
        members = [i for i in chosen if tier >> i & 1]
        if not members:
            continue
        goal = min(left, sum(map(survey.available_replicas, members)))
        divisions.append(_plan_division(request, fleet, survey, members, goal))
        left -= goal
        if not left:
            return divisions
    raise Unschedulable("Clusters available replicas are not enough to schedule.")


def _plan_division(request: Request, fleet: Fleet, survey: RankedCandidates, chosen: list[int], replicas: int) -> ReplicaDivision:
    among = set(chosen)
    kept = {fleet.index[t.name]: t.replicas for t in request.previous if fleet.index.get(t.name) in among}
    assigned = sum(kept.values())
    if request.fresh:
        room, held = survey.allocatable_replicas, survey.assigned
        return _select_weights(request, ReplicaDivision("fresh", {}, replicas, [(i, room[i] + held.get(i, 0)) for i in chosen]))
    if assigned == replicas:
        return ReplicaDivision("kept", kept, 0, [])
    if assigned > replicas:
        return _select_weights(request, ReplicaDivision("scale down", {}, replicas, list(kept.items())))
    room = survey.allocatable_replicas
    return _select_weights(request, ReplicaDivision("scale up", kept, replicas - assigned, [(i, room[i]) for i in chosen]))


def _select_weights(request: Request, division: ReplicaDivision) -> ReplicaDivision:
    """The division with the weights that count: aggregated, as few as are enough, those that hold some before others."""
    # Upstream adds in 32 bits, and the room of a workload without replicas is boundless: a sum that wraps is less than nothing.
    total = (sum(weight for _, weight in division.weights) + 2**31) % 2**32 - 2**31
    if total < division.replicas:
        raise Unschedulable(
            f"failed to {_MODE_MESSAGES[division.mode]}: Clusters available replicas {total} are not enough to schedule."
        )
    if request.division != "aggregated":
        return division
    order = [division.weights[position] for position in go_sort_descending([weight for _, weight in division.weights])]
    order.sort(key=lambda entry: not division.assigned.get(entry[0]))
    total = 0
    for count, (_, weight) in enumerate(order, 1):
        total += weight
        if total >= division.replicas:
            return division._replace(weights=order[:count])
    return division


def _divide_replicas(request: Request, division: ReplicaDivision) -> ReplicaCounts:
    kept = division.assigned
    if not division.weights:
        return kept
    added = _dispense_replicas(request, division.replicas, sorted(_list_eligible_parties(request, division)))
    if not kept:
        return added
    # Whoever has seats already keeps its place in the order, whether or not it gets more.
    order = sorted({*added, *(i for i, _ in division.weights if i in kept)})
    return {i: kept.get(i, 0) + added.get(i, 0) for i in (*order, *sorted(kept.keys() - set(order)))}


def _list_eligible_parties(request: Request, division: ReplicaDivision) -> list[tuple[int, int]]:
    """The parties that can get a seat at all: before somebody with less weight gets one, everybody with more has."""
    if request.keep_empty or 2 * division.replicas > len(division.weights):
        return division.weights
    least = sorted([weight for _, weight in division.weights], reverse=True)[division.replicas - 1] if division.replicas > 0 else 0
    return [entry for entry in division.weights if entry[1] >= least]


def _dispense_replicas(request: Request, goal: int, parties: list[tuple[int, int]]) -> ReplicaCounts:
    """Seats by candidate; those that get none are left out unless empty workloads are wanted. `parties` are in candidate order."""
    seats = dispense(goal, [weight for _, weight in parties], prefers_descending(request.identity))
    return {i: count for (i, _), count in zip(parties, seats, strict=True) if count or request.keep_empty}


def _divide_by_static_weight(request: Request, fleet: Fleet, mask: int) -> tuple[Assignment, ...]:
    chosen = fleet.members(mask)
    weights = compute_static_weights(request, fleet, chosen)
    added = _dispense_replicas(request, request.replicas, [(i, weights[i]) for i in chosen if weights[i]])
    return _build_targets(request, fleet, ((i, added.get(i, 0)) for i in chosen) if request.keep_empty else added.items())


def compute_static_weights(request: Request, fleet: Fleet, chosen: list[int]) -> dict[int, int]:
    """The weight of each chosen candidate by index: the largest of the rules that match it; without any weight everyone weighs 1."""
    weights = dict.fromkeys(chosen, 0)
    left = sum(1 << i for i in chosen)
    for rule in sorted(request.weights, key=lambda rule: -rule.weight):
        if rule.weight <= 0 or not left:
            break
        matched = left & fleet.matching(rule.affinity)
        weights.update(dict.fromkeys(fleet.members(matched), rule.weight))
        left &= ~matched
    return weights if any(weights.values()) else dict.fromkeys(chosen, 1)


def _build_targets(request: Request, fleet: Fleet, seats: Iterable[tuple[int, int]]) -> tuple[Assignment, ...]:
    """A candidate that ends with no replicas is no target, unless empty workloads are wanted (those come last)."""
    names = fleet.names
    if not request.keep_empty:
        return tuple([Assignment(names[i], count) for i, count in seats if count])
    targets = [Assignment(names[i], count) for i, count in seats]
    return tuple(sorted(targets, key=lambda target: not target.replicas))
