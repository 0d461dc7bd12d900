"""The numbers behind a decision, told for people: room, regions, and who got which replica."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.model.explanation import Share
from gitsched.model.quantity import write_count
from gitsched.model.request import Request, Spread
from gitsched.schedule.assign import Division, Unschedulable, plan_divisions, static_weights
from gitsched.schedule.dispenser import dispense, prefers_descending, replay
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.regions import score_regions
from gitsched.schedule.room import PODS, Room, estimate
from gitsched.schedule.select import CLUSTER, REGION
from gitsched.schedule.survey import Survey

_ROUNDS = 5
"""The last rounds of the dispenser are shown: they decide who gets what is left over."""

_MODES = {
    "fresh": "Fresh: what is there now counts as room, and is otherwise forgotten",
    "scale up": "Scale up: what is there stays, and the rest is divided by room",
    "scale down": "Scale down: by what each cluster has now",
    "kept": "Nothing to divide: all replicas are placed already, and stay where they are whatever room there is",
}


def tell_room(request: Request, room: Room | None) -> str:
    """How many replicas fit on a cluster and by what arithmetic; "" where it does not matter."""
    if request.division == "everywhere" or not request.replicas:
        return ""
    if room is None:
        return "room unknown, taken to be enough"
    fits = estimate(room, request.demand)
    pods = f"{max(room.free.get(PODS, 0), 0)} pods"
    if room.grades and request.demand is not None:
        return f"room for {fits}: {pods}, {sum(grade.nodes for grade in room.grades)} modelled nodes"
    limits = [_limit(room, resource, amount) for resource, amount in request.demand or ()]
    return f"room for {fits}: {', '.join([pods, *limits])}"


def _limit(room: Room, resource: str, amount: int) -> str:
    free = room.free.get(resource)
    if free is None:
        return f"no {resource}"
    return f"{resource} {write_amount(resource, max(free, 0))} / {write_amount(resource, amount)} = {max(free, 0) // amount}"


def write_amount(resource: str, count: int) -> str:
    """An amount of a resource (cpu in thousandths) as Kubernetes writes it."""
    return write_count(resource, count, binary=resource != "cpu")


def tell_selection(request: Request, fleet: Fleet, survey: Survey, chosen: list[int]) -> list[str]:
    """What spread constraints made of the clusters that fit, in the order of preference; nothing where there are none."""
    if not request.spreads:
        return []
    spreads = {spread.field: spread for spread in request.spreads}
    names = ", ".join(fleet.names[i] for i in chosen)
    lines = [f"Spread over {_count(spreads[field])}: {names}" for field in (CLUSTER,) if field in spreads]
    if REGION in spreads:
        cluster = spreads.get(CLUSTER) or Spread(CLUSTER, 0, 0)
        taken = {name for i in chosen for name in fleet.candidates[i].fields.get(REGION, ())[:1]}
        regions = score_regions(request, fleet, survey, spreads[REGION], cluster)
        lines += [
            f"{'taken' if region.name in taken else 'not taken'}: region {region.name}, score {region.score}, "
            f"clusters {', '.join(fleet.names[i] for i in region.members)}"
            for region in sorted(regions, key=lambda region: (-region.score, region.name))
        ]
    return lines


def _count(spread: Spread) -> str:
    return f"{spread.minimum} to {spread.maximum} {spread.field}s"


def tell_division(
    request: Request, fleet: Fleet, survey: Survey, chosen: list[int], seats: Mapping[str, int]
) -> tuple[list[str], tuple[Share, ...]]:
    """By which rule replicas were divided, with the rounds that decided who got the last ones; and each cluster's weight and share."""
    match request.division:
        case "everywhere":
            rule = "It has no replicas to divide: every cluster that passes gets the manifest."
            return [rule], tuple(Share(name) for name in seats)
        case "duplicated":
            rule = f"Duplicated: every cluster that passes gets all {request.replicas} replicas."
            return [rule], tuple(Share(name, None, count) for name, count in seats.items())
        case "static":
            weights = static_weights(request, fleet, sorted(chosen))
            lines = [f"Divided by static weight: {_dispensed(request, request.replicas)}"]
            lines += _tell_rounds(request, fleet, request.replicas, [(i, weight) for i, weight in weights.items() if weight])
            return lines, tuple(Share(fleet.names[i], weight, seats.get(fleet.names[i], 0)) for i, weight in weights.items())
    try:
        divisions = plan_divisions(request, fleet, survey, chosen)
    except Unschedulable:
        return [], ()
    lines = []
    weighed: dict[int, int] = {}
    for number, division in enumerate(divisions):
        lines += _tell(request, fleet, division, number, len(survey.tiers) > 1)
        weighed |= dict(division.weights)
    shares = (Share(fleet.names[i], weighed.get(i), seats.get(fleet.names[i], 0)) for i in sorted({*weighed, *chosen}))
    return lines, tuple(share for share in shares if share.replicas or share.weight is not None)


def _tell(request: Request, fleet: Fleet, division: Division, number: int, tiers: bool) -> list[str]:
    where = "" if not tiers else "In the group itself: " if not number else f"In overflow set {number}: "
    if division.mode == "kept":
        return [f"{where}{_MODES['kept']}."]
    kind = "Aggregated, over as few clusters as have room" if request.division == "aggregated" else "Divided by available replicas"
    kept = ", ".join(f"{fleet.names[i]} {count}" for i, count in sorted(division.kept.items()))
    stays = f" (stays: {kept})" if kept else ""
    text = f"{where}{kind}. {_MODES[division.mode]}{stays}. {_dispensed(request, division.goal)}"
    return [text, *_tell_rounds(request, fleet, division.goal, division.weights)]


def _dispensed(request: Request, goal: int) -> str:
    if prefers_descending(request.identity):
        tie = "to the last name, because the hash of the workload's uid is odd"
    else:
        tie = f"to the first name, because {'the hash of its uid is even' if request.identity else 'it has no uid'}"
    how = "each goes to the largest weight / (2 × replicas so far + 1)"
    return f"{goal} replicas, {how}; a tie goes to fewer replicas, then {tie}."


def _tell_rounds(request: Request, fleet: Fleet, goal: int, weights: list[tuple[int, int]]) -> list[str]:
    """The last rounds, and whom rounding favoured."""
    parties = sorted(weights)
    names, votes = [fleet.names[i] for i, _ in parties], [weight for _, weight in parties]
    total = sum(votes)
    if len(parties) < 2 or not total:
        return []
    descending = prefers_descending(request.identity)
    lines = []
    for seat in replay(goal, votes, _ROUNDS, descending):
        lines.append(
            f"replica {seat.number}: {names[seat.party]}, {votes[seat.party]} / {2 * seat.before + 1} = {seat.quotient:.4g}"
        )
    seats = dispense(goal, votes, descending)
    favoured = [name for name, vote, count in zip(names, votes, seats, strict=True) if count * total > goal * vote]
    if favoured:
        lines.append(f"More than the exact proportion: {', '.join(favoured)}")
    return lines
