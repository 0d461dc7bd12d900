"""Assignment: how many replicas each chosen candidate gets.

A strategy is one function and one line in STRATEGIES.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.model.request import Request, Target
from gitsched.schedule.dispenser import dispense, prefers_descending
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.survey import Survey
from gitsched.schedule.unstable import sort_descending

Seats = dict[int, int]
"""Replicas by candidate."""


class Unschedulable(Exception):
    """The candidates have too little room; the message says how much."""


def assign(request: Request, fleet: Fleet, survey: Survey, chosen: list[int]) -> tuple[Target, ...]:
    """Targets for the chosen candidates (in candidate order). Raises Unschedulable."""
    match request.division:
        case "everywhere":
            return tuple(Target(fleet.names[i]) for i in chosen)
        case "duplicated":
            return _without_idle(request, [Target(fleet.names[i], request.replicas) for i in chosen])
        case "static":
            return _static(request, fleet, chosen)
    seats = (
        _overflow(request, fleet, survey, chosen)
        if len(survey.tiers) > 1
        else _divide(request, fleet, survey, chosen, request.replicas)
    )
    seats |= {i: 0 for i in sorted(chosen) if i not in seats}
    return _without_idle(request, [Target(fleet.names[i], count) for i, count in seats.items()])


def _overflow(request: Request, fleet: Fleet, survey: Survey, chosen: list[int]) -> Seats:
    """Tier by tier as much as fits; a later tier gets what the earlier ones have no room for."""
    seats: Seats = {}
    left = request.replicas
    for tier in survey.tiers:
        members = [i for i in chosen if tier >> i & 1]
        goal = min(left, sum(map(survey.available, members)))
        if goal > 0:
            seats |= _divide(request, fleet, survey, members, goal)
            left -= goal
    if left:
        raise Unschedulable("Clusters available replicas are not enough to schedule.")
    return seats


def _divide(request: Request, fleet: Fleet, survey: Survey, chosen: list[int], replicas: int) -> Seats:
    """Division by room: only the difference to the last result, unless that is to be forgotten."""
    among = set(chosen)
    kept = {fleet.index[t.name]: t.replicas for t in request.held if fleet.index.get(t.name) in among}
    assigned = sum(kept.values())
    if request.fresh:
        return _share(request, replicas, [(i, survey.available(i)) for i in chosen])
    if assigned == replicas:
        return kept
    if assigned > replicas:
        return _share(request, replicas, list(kept.items()))
    added = _share(request, replicas - assigned, [(i, survey.allocatable[i]) for i in chosen], {i for i in kept if kept[i]})
    return {i: kept.get(i, 0) + added.get(i, 0) for i in (*added, *sorted(kept.keys() - added.keys()))}


def _share(request: Request, replicas: int, weights: list[tuple[int, int]], first: Iterable[int] = ()) -> Seats:
    """Replicas in proportion to weights; aggregated, over as few candidates as have the weight, those in `first` before others."""
    total = sum(weight for _, weight in weights)
    if total < replicas:
        raise Unschedulable(f"Clusters available replicas {total} are not enough to schedule.")
    if request.division == "aggregated":
        front = set(first)
        weights = [weights[position] for position in sort_descending([weight for _, weight in weights])]
        weights = _shortest(
            [entry for entry in weights if entry[0] in front] + [entry for entry in weights if entry[0] not in front], replicas
        )
    parties = sorted(weights)
    seats = dispense(replicas, [weight for _, weight in parties], prefers_descending(request.identity))
    return {i: count for (i, _), count in zip(parties, seats, strict=True)}


def _shortest(weights: list[tuple[int, int]], replicas: int) -> list[tuple[int, int]]:
    total = 0
    for count, (_, weight) in enumerate(weights, 1):
        total += weight
        if total >= replicas:
            return weights[:count]
    return weights


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
