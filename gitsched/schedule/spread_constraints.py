"""Rank the feasible candidates by score and available replicas, and select those that the cluster and region spread constraints
allow, as Karmada does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gitsched.model.scheduling import AffinityGroup, Request, SpreadConstraint
from gitsched.schedule.estimator import UNLIMITED, Estimator
from gitsched.schedule.fleet import Fleet

LOCALITY_SCORE = 100
"""The score of a candidate that holds the workload already."""


class RankedCandidates(NamedTuple):
    """`order` are the feasible candidates, best first. `allocatable` is, by candidate, how many more replicas fit; `held` how many it has
    of the last result; `tiers` are the sets of `order` by overflow: the group's own candidates, then those of each overflow set.
    """

    order: list[int]
    allocatable_replicas: Sequence[int]
    assigned: dict[int, int]
    tiers: tuple[int, ...]

    def available_replicas(self, index: int) -> int:
        """How many replicas it could have of this workload, those that it has included."""
        return self.allocatable_replicas[index] + self.assigned.get(index, 0)

    def score(self, index: int) -> int:
        return LOCALITY_SCORE if index in self.assigned else 0


def rank_candidates(request: Request, group: AffinityGroup, fleet: Fleet, mask: int) -> RankedCandidates:
    """Order the feasible candidates: the group's own before overflow, then score, then available replicas, then name."""
    index = fleet.index
    held = {index[target.name]: target.replicas for target in request.previous if target.name in index}
    allocatable = _cached_allocatable(request, fleet)
    tiers = _list_tiers(request, group, fleet, mask)
    order: list[int] = []
    here = fleet.mask(target.name for target in request.previous)
    for tier in tiers:
        # What the sort is stable in is the name.
        order += sorted(fleet.members(tier & here), key=lambda i: -(allocatable[i] + held[i]))
        order += _sort_by_allocatable(request, fleet, allocatable, tier & ~here)
    return RankedCandidates(order, allocatable, held, tiers)


def _sort_by_allocatable(request: Request, fleet: Fleet, allocatable: Sequence[int], mask: int) -> list[int]:
    question = ("by room", mask, request.resource_request, request.replicas)
    return fleet.get_or_compute(question, lambda: sorted(fleet.members(mask), key=lambda i: -allocatable[i]))


def _cached_allocatable(request: Request, fleet: Fleet) -> Sequence[int]:
    question = ("allocatable", request.resource_request, request.replicas)
    return fleet.get_or_compute(question, lambda: _estimate_allocatable(request, fleet))


def _estimate_allocatable(request: Request, fleet: Fleet) -> Sequence[int]:
    if not request.replicas:
        return [UNLIMITED] * len(fleet)
    demand = request.resource_request
    rooms = fleet.get_or_compute("rooms", lambda: Estimator([candidate.capacity for candidate in fleet.candidates]))
    estimates = fleet.get_or_compute(("estimates", demand), lambda: rooms.estimate_replicas(demand))
    return [request.replicas if room == UNLIMITED else room for room in estimates]


def _list_tiers(request: Request, group: AffinityGroup, fleet: Fleet, mask: int) -> tuple[int, ...]:
    if not group.overflow or group.affinity is None or request.division == "everywhere":
        return (mask,)
    tiers, left = [], mask
    for affinity in (group.affinity, *group.overflow):
        tiers.append(left & fleet.matching(affinity))
        left &= ~tiers[-1]
    return (*tiers[:-1], tiers[-1] | left)


_WEIGHT_UNIT = 1000
"""What one unit of the goal counts, beside the scores of the members."""


class Region(NamedTuple):
    """`members` in candidate order."""

    name: str
    score: int
    members: list[int]


class _Combination(NamedTuple):
    """Ordered by what makes a combination better; `path` are positions, ascending."""

    score: int
    members: int
    path: tuple[int, ...]

    def is_better_than(self, other: _Combination | None) -> bool:
        if other is None or self[:2] != other[:2]:
            return other is None or self[:2] > other[:2]
        return self.path < other.path


def score_regions(
    request: Request, fleet: Fleet, survey: RankedCandidates, region: SpreadConstraint, cluster: SpreadConstraint
) -> list[Region]:
    """The regions of the feasible candidates with their scores."""
    names = fleet.get_or_compute("regions", lambda: [next(iter(c.fields.get("region", ())), None) for c in fleet.candidates])
    members: dict[str, list[int]] = {}
    for index in survey.order:
        name = names[index]
        if name is not None:
            members.setdefault(name, []).append(index)
    score = _score_divided_region if request.divides else _score_duplicated_region
    return [Region(name, score(request, survey, found, region, cluster), found) for name, found in members.items()]


def _score_duplicated_region(
    request: Request, survey: RankedCandidates, members: list[int], _region: SpreadConstraint, _cluster: SpreadConstraint
) -> int:
    """By how many members have room for the whole workload."""
    valid = [index for index in members if survey.available_replicas(index) >= request.replicas]
    return _WEIGHT_UNIT * len(valid) + sum(map(survey.score, valid)) // len(valid) if valid else 0


def _score_divided_region(
    request: Request, survey: RankedCandidates, members: list[int], region: SpreadConstraint, cluster: SpreadConstraint
) -> int:
    """By how much of the region's part of the replicas the first members have room for."""
    goal = -(-request.replicas // region.minimum)
    enough = max(region.minimum, cluster.minimum)
    room = scores = 0
    for count, index in enumerate(members, 1):
        room += survey.available_replicas(index)
        scores += survey.score(index)
        if count >= enough and room >= goal:
            return _WEIGHT_UNIT * goal + scores // count
    return _WEIGHT_UNIT * min(room, goal) + scores // len(members)


def select_regions(regions: list[Region], least: int, most: int, members: int) -> list[Region] | None:
    """The regions to use, best first: at least `least`, at most `most`, with at least `members` candidates in all. None: impossible."""
    ranked = sorted(regions, key=lambda region: (len(region.members), -region.score, region.name))
    counts, scores = [len(region.members) for region in ranked], [region.score for region in ranked]
    if len(ranked) == least:
        return _sort_by_score(ranked) if sum(counts) >= members and least <= most else None
    found = _search_combinations(counts, scores, least, most, members) if sum(counts) >= members else None
    if found is None:
        return None
    best = _sort_by_score([ranked[place] for place in found.path])
    places = {region.name: place for place, region in enumerate(ranked)}
    for length in range(least, len(best)):
        if _is_recorded(sorted(places[region.name] for region in best[:length]), counts, least, members):
            return best[:length]
    return best


def _sort_by_score(regions: list[Region]) -> list[Region]:
    return sorted(regions, key=lambda region: (-region.score, region.name))


def _is_recorded(path: list[int], counts: list[int], least: int, members: int) -> bool:
    total = sum(counts[place] for place in path)
    return total >= members and (len(path) == least or total - counts[path[-1]] < members)


def _search_combinations(counts: list[int], scores: list[int], least: int, most: int, members: int) -> _Combination | None:
    """The best recorded combination of positions.

    `open_ends` are the best combinations of the positions so far that are not recorded yet, by length and members (no more than wanted).
    """
    best: _Combination | None = None
    open_ends = {(0, 0): _Combination(0, 0, ())}
    for place, count in enumerate(counts):
        for (length, total), found in list(open_ends.items()):
            longer = _Combination(found.score + scores[place], found.members + count, (*found.path, place))
            reached = min(total + count, members)
            if length + 1 >= least and reached == members:
                best = longer if longer.is_better_than(best) else best
            elif length + 1 < most and longer.is_better_than(open_ends.get((length + 1, reached))):
                open_ends[length + 1, reached] = longer
    return best if least <= most else None


CLUSTER_FIELD, REGION_FIELD = "cluster", "region"


class SelectionError(Exception):
    """No selection meets the constraints; the message says why."""


def select_candidates(request: Request, fleet: Fleet, survey: RankedCandidates) -> list[int]:
    """The chosen candidates, in the order in which upstream would list them. Raises Unselectable."""
    if not request.spread_constraints:
        return survey.order
    spreads = {spread.field: spread for spread in request.spread_constraints}
    if REGION_FIELD in spreads:
        return _select_by_region(
            request, fleet, survey, spreads[REGION_FIELD], spreads.get(CLUSTER_FIELD) or SpreadConstraint(CLUSTER_FIELD, 0, 0)
        )
    if CLUSTER_FIELD in spreads:
        return _select_by_cluster(request, survey, spreads[CLUSTER_FIELD])
    raise SelectionError("just support cluster and region spread constraint")


def _select_by_cluster(request: Request, survey: RankedCandidates, spread: SpreadConstraint) -> list[int]:
    order = survey.order
    if len(order) < spread.minimum:
        raise SelectionError("the number of feasible clusters is less than spreadConstraint.MinGroups")
    count = min(len(order), spread.maximum)
    picked, rest = order[:count], order[count:]
    if not request.divides:
        return picked
    total = sum(map(survey.available_replicas, picked))
    for place in range(count - 1, -1, -1):
        if total >= request.replicas:
            break
        best = max(rest, key=survey.available_replicas, default=None)  # the first of several
        if best is None or survey.available_replicas(best) <= survey.available_replicas(picked[place]):
            continue
        total += survey.available_replicas(best) - survey.available_replicas(picked[place])
        rest[rest.index(best)], picked[place] = picked[place], best
    if total < request.replicas or not picked:
        raise SelectionError(f"no enough resource when selecting {count} clusters")
    return picked


def _select_by_region(
    request: Request, fleet: Fleet, survey: RankedCandidates, region: SpreadConstraint, cluster: SpreadConstraint
) -> list[int]:
    regions = score_regions(request, fleet, survey, region, cluster)
    if len(regions) < region.minimum:
        raise SelectionError("the number of feasible region is less than spreadConstraint.MinGroups")
    path = select_regions(regions, region.minimum, region.maximum, cluster.minimum)
    if path is None:
        raise SelectionError("the number of clusters is less than the cluster spreadConstraint.MinGroups")
    return _fill_regions(path, survey, cluster.maximum)


def _fill_regions(path: list[Region], survey: RankedCandidates, maximum: int) -> list[int]:
    """The best of each region, then the best of all others up to the maximum."""
    firsts = [region.members[0] for region in path]
    pool = {index for region in path for index in region.members[1:]}
    wanted = min(len(firsts) + len(pool), maximum) - len(firsts)
    others = [index for index in survey.order if index in pool]
    return firsts + others[: max(wanted, 0)]
