"""Assignment: how many replicas each chosen candidate gets."""

from __future__ import annotations

from typing import NamedTuple

from gitsched.model.request import Request, Target
from gitsched.schedule.dispenser import dispense, prefers_descending
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.survey import Survey
from gitsched.schedule.unstable import sort_descending

Seats = dict[int, int]
"""Replicas by candidate."""

_MODES = {"fresh": "do fresh scale", "scale up": "scale up", "scale down": "scale down"}


class Division(NamedTuple):
    """One use of the dispenser: `goal` replicas by `weights` (candidate, weight), on top of what is `kept`.

    `mode` is "fresh", "kept" (nothing is dispensed), "scale up" or "scale down".
    """

    mode: str
    kept: Seats
    goal: int
    weights: list[tuple[int, int]]


class Unschedulable(Exception):
    """The candidates have too little room; the message says how much."""


class Unassignable(Exception):
    """There is nothing to assign to."""


def assign(request: Request, fleet: Fleet, survey: Survey, chosen: list[int]) -> tuple[Target, ...]:
    """Targets for the chosen candidates (in candidate order). Raises Unschedulable, and Unassignable when there are none."""
    if not chosen:
        raise Unassignable("no clusters available to schedule")
    match request.division:
        case "everywhere":
            return tuple(Target(fleet.names[i]) for i in chosen)
        case "duplicated":
            return _without_idle(request, [Target(fleet.names[i], request.replicas) for i in chosen])
        case "static":
            return _static(request, fleet, chosen)
    seats: Seats = {}
    for division in plan_divisions(request, fleet, survey, chosen):
        seats |= _settle(request, division)
    seats |= {i: 0 for i in sorted(chosen) if i not in seats}
    return _without_idle(request, [Target(fleet.names[i], count) for i, count in seats.items()])


def plan_divisions(request: Request, fleet: Fleet, survey: Survey, chosen: list[int]) -> list[Division]:
    """How replicas are divided by room: one division, or with overflow one for each tier that is needed. Raises Unschedulable.

    A later tier gets what the earlier ones have no room for.
    """
    if len(survey.tiers) == 1:
        return [_plan(request, fleet, survey, chosen, request.replicas)]
    divisions = []
    left = request.replicas
    for tier in survey.tiers:
        members = [i for i in chosen if tier >> i & 1]
        if not members:
            continue
        goal = min(left, sum(map(survey.available, members)))
        divisions.append(_plan(request, fleet, survey, members, goal))
        left -= goal
        if not left:
            return divisions
    raise Unschedulable("Clusters available replicas are not enough to schedule.")


def _plan(request: Request, fleet: Fleet, survey: Survey, chosen: list[int], replicas: int) -> Division:
    among = set(chosen)
    kept = {fleet.index[t.name]: t.replicas for t in request.held if fleet.index.get(t.name) in among}
    assigned = sum(kept.values())
    if request.fresh:
        return _weigh(request, Division("fresh", {}, replicas, [(i, survey.available(i)) for i in chosen]))
    if assigned == replicas:
        return Division("kept", kept, 0, [])
    if assigned > replicas:
        return _weigh(request, Division("scale down", {}, replicas, list(kept.items())))
    return _weigh(request, Division("scale up", kept, replicas - assigned, [(i, survey.allocatable[i]) for i in chosen]))


def _weigh(request: Request, division: Division) -> Division:
    """The division with the weights that count: aggregated, as few as are enough, those that hold some before others."""
    # Upstream adds in 32 bits, and the room of a workload without replicas is boundless: a sum that wraps is less than nothing.
    total = (sum(weight for _, weight in division.weights) + 2**31) % 2**32 - 2**31
    if total < division.goal:
        raise Unschedulable(f"failed to {_MODES[division.mode]}: Clusters available replicas {total} are not enough to schedule.")
    if request.division != "aggregated":
        return division
    order = [division.weights[position] for position in sort_descending([weight for _, weight in division.weights])]
    order.sort(key=lambda entry: not division.kept.get(entry[0]))
    total = 0
    for count, (_, weight) in enumerate(order, 1):
        total += weight
        if total >= division.goal:
            return division._replace(weights=order[:count])
    return division


def _settle(request: Request, division: Division) -> Seats:
    kept, parties = division.kept, sorted(division.weights)
    if not parties:
        return kept
    seats = dispense(division.goal, [weight for _, weight in parties], prefers_descending(request.identity))
    added = {i: count for (i, _), count in zip(parties, seats, strict=True)}
    return {i: kept.get(i, 0) + added.get(i, 0) for i in (*added, *sorted(kept.keys() - added.keys()))}


def _static(request: Request, fleet: Fleet, chosen: list[int]) -> tuple[Target, ...]:
    """By static weight, from scratch each time: neither room nor the last result counts."""
    among = fleet.mask(fleet.names[i] for i in chosen)
    question = ("static", request.weights, among, request.replicas, prefers_descending(request.identity), request.keep_empty)
    return fleet.remember(question, lambda: _divide_by_weight(request, fleet, chosen))


def _divide_by_weight(request: Request, fleet: Fleet, chosen: list[int]) -> tuple[Target, ...]:
    weights = static_weights(request, fleet, chosen)
    parties = sorted(i for i in chosen if weights[i])
    seats = dispense(request.replicas, [weights[i] for i in parties], prefers_descending(request.identity))
    shares = dict(zip(parties, seats, strict=True))
    return _without_idle(request, [Target(fleet.names[i], shares.get(i, 0)) for i in sorted(chosen)])


def static_weights(request: Request, fleet: Fleet, chosen: list[int]) -> dict[int, int]:
    """The weight of each chosen candidate by index: the largest of the rules that match it; without any weight everyone weighs 1."""
    weights = dict.fromkeys(chosen, 0)
    for rule in request.weights:
        mask = fleet.matching(rule.affinity)
        for i in chosen:
            if mask >> i & 1:
                weights[i] = max(weights[i], rule.weight)
    return weights if any(weights.values()) else dict.fromkeys(chosen, 1)


def _without_idle(request: Request, targets: list[Target]) -> tuple[Target, ...]:
    """A candidate that ends with no replicas is no target, unless empty workloads are wanted (those come last)."""
    busy = tuple(target for target in targets if target.replicas)
    return busy + tuple(target for target in targets if not target.replicas) if request.keep_empty else busy
