"""Assignment: how many replicas each chosen candidate gets.

A strategy is one function and one line in STRATEGIES.
"""

from __future__ import annotations

from collections.abc import Callable

from gitsched.model.request import Request, Target
from gitsched.schedule.dispenser import dispense, prefers_descending
from gitsched.schedule.fleet import Fleet

Strategy = Callable[[Request, Fleet, list[int]], tuple[Target, ...]]


class Unsupported(Exception):
    """A strategy that this version does not have."""


def everywhere(request: Request, fleet: Fleet, chosen: list[int]) -> tuple[Target, ...]:
    """Every chosen candidate, without replicas: for what has none."""
    return tuple(Target(fleet.names[i]) for i in chosen)


def duplicated(request: Request, fleet: Fleet, chosen: list[int]) -> tuple[Target, ...]:
    """All replicas on every chosen candidate."""
    return _without_idle(request, [Target(fleet.names[i], request.replicas) for i in chosen])


def static(request: Request, fleet: Fleet, chosen: list[int]) -> tuple[Target, ...]:
    """Replicas by static weight, from scratch each time: neither room nor the last result counts.

    A candidate's weight is the largest of the rules that match it; without any weight at all every candidate weighs 1.
    """
    question = (
        "static",
        request.weights,
        tuple(chosen),
        request.replicas,
        prefers_descending(request.identity),
        request.keep_empty,
    )
    return fleet.remember(question, lambda: _static(request, fleet, chosen))


STRATEGIES: dict[str, Strategy] = {"everywhere": everywhere, "duplicated": duplicated, "static": static}


def assign(request: Request, fleet: Fleet, chosen: list[int]) -> tuple[Target, ...]:
    """Targets for the chosen candidates (indices, in candidate order). Raises Unsupported for a strategy without a function."""
    strategy = STRATEGIES.get(request.division)
    if strategy is None:
        raise Unsupported(f"the replica division {request.division!r} is not supported yet")
    return strategy(request, fleet, chosen)


def _static(request: Request, fleet: Fleet, chosen: list[int]) -> tuple[Target, ...]:
    weights = static_weights(request, fleet, chosen)
    parties = sorted(i for i in chosen if weights[i])
    seats = dispense(request.replicas, [weights[i] for i in parties], prefers_descending(request.identity))
    shares = dict(zip(parties, seats, strict=True))
    return _without_idle(request, [Target(fleet.names[i], shares.get(i, 0)) for i in sorted(chosen)])


def static_weights(request: Request, fleet: Fleet, chosen: list[int]) -> dict[int, int]:
    """The weight of each chosen candidate by index."""
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
