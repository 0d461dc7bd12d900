"""Rank the feasible candidates by score and available replicas, and assign replicas to the selected ones: duplicated, static weight,
dynamic weight or aggregated."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import repeat
from operator import neg
from types import MappingProxyType

from gitsched.model.scheduling import (
    CLUSTER_FIELD,
    REGION_FIELD,
    AffinityGroup,
    Assignment,
    CapacityEstimates,
    Estimates,
    Request,
    make_assignments,
)
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.dispenser import dispense, prefers_descending
from gitsched.schedule.estimator import UNLIMITED
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.preferences import Positions, find_positions, list_preferred, sort_preferred
from gitsched.schedule.tie_breaking import go_sort_descending

LOCALITY_SCORE = 100
"""The ClusterLocality score of a candidate that already runs the workload."""


class RankedCandidates(NamedTuple):
    """`order` are the feasible candidates, best first. `allocatable_replicas` is, by candidate, how many more replicas fit;
    `assigned` how many it has in the previous result; `tiers` are the sets of `order` by overflow: the group's own
    candidates, then those of each overflow set. `ranking` identifies the order among those of a fleet; None if it is that of one workload
    only. `preferred` are the preferred candidates with capacity in their order; `positions` are theirs, from 1, and 0 for candidates that
    stay before them."""

    order: list[int]
    allocatable_replicas: Estimates
    assigned: dict[int, int]
    tiers: tuple[int, ...]
    ranking: Hashable = None
    preferred: tuple[int, ...] = ()
    positions: Positions = MappingProxyType({})

    def available_replicas(self, index: int) -> int:
        """Return how many replicas of this workload it can have, including those it has."""
        return self.allocatable_replicas[index] + self.assigned.get(index, 0)

    def score(self, index: int) -> int:
        return LOCALITY_SCORE if index in self.assigned else 0


def rank_candidates(request: Request, group: AffinityGroup, fleet: Fleet, mask: int) -> RankedCandidates:
    """Rank the feasible candidates: the group's own before overflow, then the preferred ones, then by score (ClusterLocality), available
    replicas and name."""
    ranked = _rank_by_score(request, group, fleet, mask)
    return _prefer(request, fleet, ranked) if request.preferred else ranked


def _prefer(request: Request, fleet: Fleet, ranked: RankedCandidates) -> RankedCandidates:
    """Put the preferred candidates first in each tier, after those that run the workload already unless the request is `fresh`.

    One without capacity is not preferred: it would have to run all replicas of a workload that is not divided, else at least one.
    """
    needed = 0 if request.division == "everywhere" else min(request.replicas, 1) if request.divides else request.replicas
    feasible, stays = set(ranked.order), set[int]() if request.fresh else set(ranked.assigned)
    named = (i for i in list_preferred(request.preferred or (), fleet) if i in feasible)
    preferred = tuple(i for i in named if ranked.available_replicas(i) >= needed)
    positions = find_positions(preferred, stays)
    order: list[int] = []
    for tier in ranked.tiers:
        order += sort_preferred((i for i in ranked.order if tier >> i & 1), positions)
    return ranked._replace(order=order, ranking=None, preferred=preferred, positions=positions)


def _rank_by_score(request: Request, group: AffinityGroup, fleet: Fleet, mask: int) -> RankedCandidates:
    index = fleet.index
    assigned = {index[target.name]: target.replicas for target in request.previous if target.name in index}
    allocatable: Estimates = (
        fleet.estimate_allocatable(request)
        if request.remaining is None
        else _list_remaining(request, request.remaining, fleet, mask)
    )
    tiers = _list_tiers(request, group, fleet, mask)
    previous = fleet.mask(target.name for target in request.previous) if request.previous else 0
    if len(tiers) == 1 and not mask & previous and request.remaining is None:
        ranking = _get_ranking(request, fleet, allocatable, mask)
        return RankedCandidates(fleet.sort_members(mask, allocatable, ranking), allocatable, assigned, tiers, ranking)
    order = []
    for tier in tiers:
        # The sort is stable, also in reverse, so equal candidates stay in name order.
        if tier & previous:
            order += sorted(fleet.members(tier & previous), key=lambda i: allocatable[i] + assigned[i], reverse=True)
        order += _sort_by_allocatable(request, fleet, allocatable, tier & ~previous)
    return RankedCandidates(order, allocatable, assigned, tiers)


def _sort_by_allocatable(request: Request, fleet: Fleet, allocatable: Estimates, mask: int) -> list[int]:
    if request.remaining is not None:
        return sorted(fleet.members(mask), key=allocatable.__getitem__, reverse=True)
    return fleet.sort_members(mask, allocatable, _get_ranking(request, fleet, allocatable, mask))


def _get_ranking(request: Request, fleet: Fleet, allocatable: Estimates, mask: int) -> Hashable:
    # Where every capacity is known, the order does not depend on the replicas: the estimates are those of all such requests.
    replicas = None if request.replicas and allocatable is fleet.estimate_for(request) else request.replicas
    return "by capacity", mask, request.resource_request, replicas, request.variants


def _list_remaining(request: Request, remaining: CapacityEstimates, fleet: Fleet, mask: int) -> Mapping[int, int]:
    """Return how many replicas fit in what is left on some candidates, by index."""
    members = fleet.members(mask)
    if not request.replicas and request.sets is None:
        return dict.fromkeys(members, UNLIMITED)
    estimates = fleet.estimate_remaining(request, remaining)
    found = {index: estimates[index] for index in members}
    return {index: request.replicas if capacity == UNLIMITED else capacity for index, capacity in found.items()}


def _list_tiers(request: Request, group: AffinityGroup, fleet: Fleet, mask: int) -> tuple[int, ...]:
    if not group.overflow or group.affinity is None or request.division == "everywhere":
        return (mask,)
    tiers, remaining = [], mask
    for affinity in (group.affinity, *group.overflow):
        tiers.append(remaining & fleet.matching(affinity))
        remaining &= ~tiers[-1]
    return (*tiers[:-1], tiers[-1] | remaining)


ReplicaCounts = dict[int, int]
"""Replicas by candidate index."""

_MODE_MESSAGES = {"fresh": "do fresh scale", "scale up": "scale up", "scale down": "scale down"}


class WeightedCandidates(NamedTuple):
    """Candidates with their weights, as two columns; `descending` marks those known to be ordered by weight, the largest first."""

    candidates: Sequence[int]
    weights: Sequence[int]
    descending: bool = False

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.candidates, self.weights, strict=True))


_NO_CANDIDATES = WeightedCandidates((), ())


class ReplicaDivision(NamedTuple):
    """One use of the dispenser: `replicas` by weight among `weighted` candidates, in addition to `assigned`.

    `mode` is "fresh", "kept" (nothing is dispensed), "scale up" or "scale down". `tier` is the position of its tier, and `is_preferred`
    marks what preferred candidates, or those with replicas before them, get ahead of the others.
    """

    mode: str
    assigned: ReplicaCounts
    replicas: int
    weighted: WeightedCandidates
    tier: int = 0
    is_preferred: bool = False


class Unschedulable(Exception):
    """The candidates have insufficient capacity; the message says how much."""


class AssignmentError(Exception):
    """There is no candidate to assign to."""


def assign_replicas(request: Request, fleet: Fleet, ranked: RankedCandidates, selected: list[int]) -> tuple[Assignment, ...]:
    """Return the assignments to the selected candidates (in candidate order) by the replica scheduling strategy of the request.

    Raises Unschedulable, and AssignmentError without candidates.
    """
    if not selected:
        raise AssignmentError("no clusters available to schedule")
    if request.sets is not None:
        return tuple(Assignment(fleet.names[i]) for i in selected)
    match request.division:
        case "everywhere":
            return tuple(Assignment(fleet.names[i]) for i in selected)
        case "duplicated":
            if not (request.replicas or request.keep_empty):
                return ()
            return make_assignments(zip(map(fleet.names.__getitem__, selected), repeat(request.replicas)))
    replica_counts: ReplicaCounts = {}
    for division in plan_divisions(request, fleet, ranked, selected):
        replica_counts |= _divide_replicas(request, division)
    if request.keep_empty:
        replica_counts |= {i: 0 for i in sorted(selected) if i not in replica_counts}
    return _build_targets(request, fleet, replica_counts.items())


def assign_by_static_weight(request: Request, fleet: Fleet, mask: int) -> tuple[Assignment, ...]:
    """Return the assignments to a set of candidates by static weight; capacity and the previous result are ignored. What is placed whole
    goes to all of them."""
    if request.sets is not None:
        return tuple(Assignment(fleet.names[i]) for i in fleet.members(mask))
    key = ("static", request.weights, mask, request.replicas, prefers_descending(request.identity), request.keep_empty)
    return fleet.get_or_compute(key, lambda: _divide_by_static_weight(request, fleet, mask))


def plan_divisions(request: Request, fleet: Fleet, ranked: RankedCandidates, selected: list[int]) -> list[ReplicaDivision]:
    """Return how replicas are divided by capacity (dynamic weight or aggregated): one division, or with overflow one for each
    tier that is needed, and with preferred candidates several for each. Raises Unschedulable.

    A later tier gets what does not fit on the earlier ones.
    """
    if len(ranked.tiers) == 1:
        return _plan_tier(request, fleet, ranked, selected, request.replicas)
    divisions: list[ReplicaDivision] = []
    remaining = request.replicas
    for number, tier in enumerate(ranked.tiers):
        members = [i for i in selected if tier >> i & 1]
        if not members:
            continue
        target = min(remaining, sum(map(ranked.available_replicas, members)))
        divisions += [part._replace(tier=number) for part in _plan_tier(request, fleet, ranked, members, target)]
        remaining -= target
        if not remaining:
            return divisions
    raise Unschedulable("Clusters available replicas are not enough to schedule.")


def _plan_tier(
    request: Request, fleet: Fleet, ranked: RankedCandidates, selected: list[int], replicas: int
) -> list[ReplicaDivision]:
    if not ranked.preferred:
        return [_plan_division(request, fleet, ranked, selected, replicas)]
    return _plan_preferred(request, fleet, ranked, selected, replicas)


def _plan_preferred(
    request: Request, fleet: Fleet, ranked: RankedCandidates, selected: list[int], replicas: int
) -> list[ReplicaDivision]:
    """Return the divisions with which the preferred candidates get what fits on them, and the others the rest.

    There is one division among all if the preferred ones alone are fewer than the spread constraints ask for.
    """
    whole = _plan_division(request, fleet, ranked, selected, replicas)
    chosen = set(selected)
    preferred = [i for i in ranked.preferred if i in chosen]
    if whole.mode not in ("fresh", "scale up") or not _meets_minimums(request, fleet, preferred):
        return [whole]
    first = [preferred]
    if request.division == "aggregated":  # as few as are sufficient; those that have replicas come first
        first = [[i for i in selected if whole.assigned.get(i)], *([i] for i in preferred if not whole.assigned.get(i))]
    taken = {i for members in first for i in members}
    divisions, remaining = [], whole.replicas
    for members in (*first, [i for i in selected if i not in taken]):
        free = map(ranked.available_replicas if request.fresh else ranked.allocatable_replicas.__getitem__, members)
        more, assigned = min(remaining, sum(free)), sum(whole.assigned.get(i, 0) for i in members)
        if more or assigned:
            part = _plan_division(request, fleet, ranked, members, assigned + more)
            divisions.append(part._replace(is_preferred=not taken.isdisjoint(members)))
        remaining -= more
    return divisions


def _meets_minimums(request: Request, fleet: Fleet, preferred: Sequence[int]) -> bool:
    minimums = {spread.field: spread.minimum for spread in request.spread_constraints}
    regions = {name for i in preferred for name in fleet.candidates[i].fields.get(REGION_FIELD, ())[:1]}
    return len(preferred) >= max(minimums.get(CLUSTER_FIELD, 0), 1) and len(regions) >= minimums.get(REGION_FIELD, 0)


def _plan_division(request: Request, fleet: Fleet, ranked: RankedCandidates, selected: list[int], replicas: int) -> ReplicaDivision:
    kept: ReplicaCounts = {}
    if request.previous:
        selected_set = set(selected)
        kept = {fleet.index[t.name]: t.replicas for t in request.previous if fleet.index.get(t.name) in selected_set}
    assigned = sum(kept.values())
    if request.fresh:
        weighted = WeightedCandidates(selected, list(map(ranked.available_replicas, selected)))
        return _select_weights(request, ReplicaDivision("fresh", {}, replicas, weighted))
    if assigned == replicas:
        return ReplicaDivision("kept", kept, 0, _NO_CANDIDATES)
    if assigned > replicas:
        weighted = WeightedCandidates(list(kept), list(kept.values()))
        return _select_weights(request, ReplicaDivision("scale down", {}, replicas, weighted))
    return _select_weights(
        request, ReplicaDivision("scale up", kept, replicas - assigned, _weigh_by_capacity(fleet, ranked, selected))
    )


def _weigh_by_capacity(fleet: Fleet, ranked: RankedCandidates, selected: list[int]) -> WeightedCandidates:
    """Return the selected candidates with their capacities. Workloads with the same ranking share the columns of all candidates."""
    shares = ranked.ranking is not None and selected is ranked.order

    def weigh() -> WeightedCandidates:
        return WeightedCandidates(selected, list(map(ranked.allocatable_replicas.__getitem__, selected)), shares)

    return fleet.get_or_compute(("weights", ranked.ranking), weigh) if shares else weigh()


def _select_weights(request: Request, division: ReplicaDivision) -> ReplicaDivision:
    """Return the division with the weights that apply: for aggregated, as few candidates as are sufficient, previous ones first."""
    # Karmada adds in 32 bits, and the capacity for a workload without replicas is unlimited: the sum can overflow and become
    # negative.
    candidates, weights, descending = division.weighted
    total = (sum(weights) + 2**31) % 2**32 - 2**31
    if total < division.replicas:
        raise Unschedulable(
            f"failed to {_MODE_MESSAGES[division.mode]}: Clusters available replicas {total} are not enough to schedule."
        )
    if request.division != "aggregated":
        return division
    order = range(len(weights)) if descending else go_sort_descending(weights)
    if division.assigned:
        order = sorted(order, key=lambda position: not division.assigned.get(candidates[position]))
    total = 0
    for count, position in enumerate(order, 1):
        total += weights[position]
        if total >= division.replicas:
            chosen = order[:count]
            sufficient = WeightedCandidates([candidates[i] for i in chosen], [weights[i] for i in chosen])
            return division._replace(weighted=sufficient)
    return division


def _divide_replicas(request: Request, division: ReplicaDivision) -> ReplicaCounts:
    kept = division.assigned
    candidates = division.weighted.candidates
    if not candidates:
        return kept
    added = _dispense_replicas(
        request, division.replicas, sorted(_list_eligible_parties(request, division.replicas, division.weighted))
    )
    if not kept:
        return added
    # A candidate with replicas keeps its place in the order, whether or not it gets more.
    order = sorted({*added, *(i for i in candidates if i in kept)})
    return {i: kept.get(i, 0) + added.get(i, 0) for i in (*order, *sorted(kept.keys() - set(order)))}


def _list_eligible_parties(request: Request, replicas: int, weighted: WeightedCandidates) -> list[tuple[int, int]]:
    """Return the parties that can get a seat: a party with less weight gets its first seat after all parties with more weight."""
    candidates, weights, descending = weighted
    if request.keep_empty or 2 * replicas > len(candidates):
        return weighted.pairs
    ordered = weights if descending else sorted(weights, reverse=True)
    least = ordered[replicas - 1] if replicas > 0 else 0
    if descending:
        count = bisect_right(weights, -least, key=neg)
        return list(zip(candidates[:count], weights[:count], strict=True))
    return [entry for entry in zip(candidates, weights, strict=True) if entry[1] >= least]


def _dispense_replicas(request: Request, target: int, parties: list[tuple[int, int]]) -> ReplicaCounts:
    """Return replicas by candidate, without those that get none unless `keep_empty` is set. `parties` are in candidate order."""
    replica_counts = dispense(target, [weight for _, weight in parties], prefers_descending(request.identity))
    return {i: count for (i, _), count in zip(parties, replica_counts, strict=True) if count or request.keep_empty}


def _divide_by_static_weight(request: Request, fleet: Fleet, mask: int) -> tuple[Assignment, ...]:
    selected = fleet.cached_members(mask)

    def list_parties() -> WeightedCandidates:
        weights = compute_static_weights(request, fleet, selected)
        parties = [i for i in selected if weights[i]]
        return WeightedCandidates(parties, [weights[i] for i in parties])

    parties = fleet.get_or_compute(("static weights", request.weights, mask), list_parties)
    added = _dispense_replicas(request, request.replicas, _list_eligible_parties(request, request.replicas, parties))
    return _build_targets(request, fleet, ((i, added.get(i, 0)) for i in selected) if request.keep_empty else added.items())


def compute_static_weights(request: Request, fleet: Fleet, selected: Sequence[int]) -> dict[int, int]:
    """Return the weight of each selected candidate by index: the largest of the matching rules; without any weight each weight is
    1."""
    weights = dict.fromkeys(selected, 0)
    remaining = sum(1 << i for i in selected)
    for rule in sorted(request.weights, key=lambda rule: -rule.weight):
        if rule.weight <= 0 or not remaining:
            break
        matched = remaining & fleet.matching(rule.affinity)
        weights.update(dict.fromkeys(fleet.members(matched), rule.weight))
        remaining &= ~matched
    return weights if any(weights.values()) else dict.fromkeys(selected, 1)


def _build_targets(request: Request, fleet: Fleet, replica_counts: Iterable[tuple[int, int]]) -> tuple[Assignment, ...]:
    """Build assignments; a candidate without replicas is left out, unless `keep_empty` is set (such candidates come last)."""
    names = fleet.names
    if not request.keep_empty:
        return make_assignments([(names[i], count) for i, count in replica_counts if count])
    targets = [Assignment(names[i], count) for i, count in replica_counts]
    return tuple(sorted(targets, key=lambda target: not target.replicas))
