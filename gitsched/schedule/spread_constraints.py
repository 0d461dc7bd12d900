"""Select the candidates that the cluster and region spread constraints allow, as Karmada does."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice

from gitsched.model.scheduling import CLUSTER_FIELD, REGION_FIELD, Request, SpreadConstraint
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.assignment import RankedCandidates
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.preferences import rate_preference

GROUPING_FIELDS = ("provider", REGION_FIELD, "zone")
"""Fields by which candidates are grouped to spread over the groups, in the order in which groups are chosen."""
_WEIGHT_UNIT = 1000
"""The weight of one unit of the target compared with the scores of the members."""
_PREFERENCE_UNIT = 1 << 64
"""More than the scores of all regions together."""


class Region(NamedTuple):
    """A region with its feasible candidates; `members` are in candidate order. `preference` comes before the score."""

    name: str
    score: int
    members: list[int]
    preference: int = 0

    @property
    def total(self) -> int:
        return self.preference * _PREFERENCE_UNIT + self.score


_Combination = tuple[int, int, tuple[int, ...]]
"""A combination of regions: its score, its number of members, and its positions, ascending. More is better, and earlier positions are."""


def score_regions(
    request: Request, fleet: Fleet, ranked: RankedCandidates, region: SpreadConstraint, cluster: SpreadConstraint
) -> list[Region]:
    """Return the regions of the feasible candidates with their scores, or for a constraint by another field the groups with its values."""
    if ranked.ranking is None:
        members = _group_by_field(fleet, ranked.order, region.field)
    else:
        members = fleet.get_or_compute(("by", region.field, ranked.ranking), lambda: _sort_by_field(fleet, ranked, region.field))
    score = _score_divided_region if request.divides else _score_duplicated_region
    regions = [Region(name, score(request, ranked, found, region, cluster), found) for name, found in members.items()]
    if not ranked.positions:
        return regions
    return [one._replace(preference=rate_preference(one.members, ranked.positions, len(fleet))) for one in regions]


def _group_by_field(fleet: Fleet, order: list[int], field: str) -> dict[str, list[int]]:
    """Return the candidates with each value of a field in their order, such as those of each region. One without a value is in no group."""
    names = fleet.get_or_compute(
        ("values", field), lambda: [next(iter(one.fields.get(field, ())), None) for one in fleet.candidates]
    )
    members: defaultdict[str | None, list[int]] = defaultdict(list)
    for index in order:
        members[names[index]].append(index)
    return {name: found for name, found in members.items() if name is not None}


def _sort_by_field(fleet: Fleet, ranked: RankedCandidates, field: str) -> dict[str, list[int]]:
    """Return what `_group_by_field` does for candidates that are ordered by capacity and name: it takes less to sort each group."""
    (mask,), capacities = ranked.tiers, ranked.allocatable_replicas
    unsorted = fleet.get_or_compute((field, mask), lambda: _group_by_field(fleet, fleet.members(mask), field))
    members = {name: sorted(found, key=capacities.__getitem__, reverse=True) for name, found in unsorted.items()}
    return dict(sorted(members.items(), key=lambda region: (-capacities[region[1][0]], region[1][0])))


def _score_duplicated_region(
    request: Request, ranked: RankedCandidates, members: list[int], _region: SpreadConstraint, _cluster: SpreadConstraint
) -> int:
    """Score by the number of members with capacity for the complete workload."""
    valid = [index for index in members if ranked.available_replicas(index) >= request.replicas]
    return _WEIGHT_UNIT * len(valid) + sum(map(ranked.score, valid)) // len(valid) if valid else 0


def _score_divided_region(
    request: Request, ranked: RankedCandidates, members: list[int], region: SpreadConstraint, cluster: SpreadConstraint
) -> int:
    """Score by how much of the region's share of the replicas fits on its first members."""
    target = -(-request.replicas // region.minimum)
    enough = max(region.minimum, cluster.minimum)
    if not ranked.assigned:  # no member has a score, and its capacity is what is allocatable
        capacity = 0
        for count, allocatable in enumerate(map(ranked.allocatable_replicas.__getitem__, members), 1):
            capacity += allocatable
            if count >= enough and capacity >= target:
                return _WEIGHT_UNIT * target
        return _WEIGHT_UNIT * min(capacity, target)
    capacity = scores = 0
    for count, index in enumerate(members, 1):
        capacity += ranked.available_replicas(index)
        scores += ranked.score(index)
        if count >= enough and capacity >= target:
            return _WEIGHT_UNIT * target + scores // count
    return _WEIGHT_UNIT * min(capacity, target) + scores // len(members)


def select_regions(regions: list[Region], minimum: int, maximum: int, members: int) -> list[Region] | None:
    """Select regions, best first: at least `minimum`, at most `maximum`, with at least `members` candidates in total. None:
    impossible."""
    ranked = sorted(regions, key=lambda region: (len(region.members), -region.total, region.name))
    counts, scores = [len(region.members) for region in ranked], [region.total for region in ranked]
    if len(ranked) == minimum:
        return _sort_by_score(ranked) if sum(counts) >= members and minimum <= maximum else None
    found = _search_combinations(counts, scores, minimum, maximum, members) if sum(counts) >= members else None
    if found is None:
        return None
    best = _sort_by_score([ranked[position] for position in found[2]])
    positions = {region.name: position for position, region in enumerate(ranked)}
    for length in range(minimum, len(best)):
        if _is_valid_path(sorted(positions[region.name] for region in best[:length]), counts, minimum, members):
            return best[:length]
    return best


def _sort_by_score(regions: list[Region]) -> list[Region]:
    return sorted(regions, key=lambda region: (-region.total, region.name))


def _is_valid_path(path: list[int], counts: list[int], minimum: int, members: int) -> bool:
    total = sum(counts[position] for position in path)
    return total >= members and (len(path) == minimum or total - counts[path[-1]] < members)


def _search_combinations(counts: list[int], scores: list[int], minimum: int, maximum: int, members: int) -> _Combination | None:
    """Return the best valid combination of positions.

    `open_ends` are the best incomplete combinations so far, by length and members (capped at the required number).
    """
    best: _Combination | None = None
    open_ends: dict[tuple[int, int], _Combination] = {(0, 0): (0, 0, ())}
    for position, count in enumerate(counts):
        for (length, total), (score, size, path) in list(open_ends.items()):
            longer = score + scores[position], size + count, (*path, position)
            length, reached = length + 1, min(total + count, members)
            if length >= minimum and reached == members:
                best = longer if _is_better(longer, best) else best
            elif length < maximum and _is_better(longer, open_ends.get((length, reached))):
                open_ends[length, reached] = longer
    return best if minimum <= maximum else None


def _is_better(one: _Combination, other: _Combination | None) -> bool:
    if other is None or one[0] != other[0]:
        return other is None or one[0] > other[0]
    return one[1] > other[1] if one[1] != other[1] else one[2] < other[2]


LACKS_RESOURCE = "no enough resource"
"""Stands in the message about a selection without capacity for all replicas."""


class SelectionError(Exception):
    """No selection meets the constraints; the message says why."""


def select_candidates(request: Request, fleet: Fleet, ranked: RankedCandidates) -> list[int]:
    """Return the candidates of a request with spread constraints, in the order in which Karmada lists them. Raises SelectionError."""
    spreads = {spread.field: spread for spread in request.spread_constraints}
    if REGION_FIELD not in spreads and CLUSTER_FIELD not in spreads:
        raise SelectionError("just support cluster and region spread constraint")
    grouping = [spreads[field] for field in GROUPING_FIELDS if field in spreads]
    if not grouping:
        return _select_by_cluster(request, ranked, spreads[CLUSTER_FIELD])
    cluster = spreads.get(CLUSTER_FIELD) or SpreadConstraint(CLUSTER_FIELD, 0, 0)
    for spread in grouping[:-1]:
        groups = _select_groups(request, fleet, ranked, spread, cluster)
        chosen = {index for group in groups for index in group.members}
        ranked = ranked._replace(order=[index for index in ranked.order if index in chosen], ranking=None)
    selected = _fill_regions(_select_groups(request, fleet, ranked, grouping[-1], cluster), ranked, cluster.maximum)
    for spread in grouping[:-1]:
        count = len(_group_by_field(fleet, selected, spread.field))
        if count < spread.minimum:
            raise SelectionError(f"the selected clusters are in {count} {spread.field}s, fewer than spreadConstraint.MinGroups")
    return selected


def _select_by_cluster(request: Request, ranked: RankedCandidates, spread: SpreadConstraint) -> list[int]:
    order = ranked.order
    if len(order) < spread.minimum:
        raise SelectionError("the number of feasible clusters is less than spreadConstraint.MinGroups")
    count = min(len(order), spread.maximum)
    picked, rest = order[:count], order[count:]
    if not request.divides:
        return picked
    total = sum(map(ranked.available_replicas, picked))
    for position in range(count - 1, -1, -1):
        if total >= request.replicas:
            break
        best = max(rest, key=ranked.available_replicas, default=None)  # max() returns the first of equal candidates
        if best is None or ranked.available_replicas(best) <= ranked.available_replicas(picked[position]):
            continue
        total += ranked.available_replicas(best) - ranked.available_replicas(picked[position])
        rest[rest.index(best)], picked[position] = picked[position], best
    if total < request.replicas or not picked:
        raise SelectionError(f"{LACKS_RESOURCE} when selecting {count} clusters")
    return picked


def _select_groups(
    request: Request, fleet: Fleet, ranked: RankedCandidates, spread: SpreadConstraint, cluster: SpreadConstraint
) -> list[Region]:
    """Return the regions, zones or providers that are selected."""
    groups = score_regions(request, fleet, ranked, spread, cluster)
    if len(groups) < spread.minimum:
        raise SelectionError(f"the number of feasible {spread.field} is less than spreadConstraint.MinGroups")
    path = select_regions(groups, spread.minimum, spread.maximum, cluster.minimum)
    if path is None:
        raise SelectionError("the number of clusters is less than the cluster spreadConstraint.MinGroups")
    return path


def _fill_regions(path: list[Region], ranked: RankedCandidates, maximum: int) -> list[int]:
    """Select the best candidate of each region, then the best of all others up to the maximum."""
    first_of_each = [region.members[0] for region in path]
    extra = max(min(sum(len(region.members) for region in path), maximum) - len(first_of_each), 0)
    # The members of a region are in the order of all candidates, so that none after the first ones can be among the best.
    remaining_members = {index for region in path for index in region.members[1 : 1 + extra]}
    other_members = (index for index in ranked.order if index in remaining_members)
    return first_of_each + list(islice(other_members, extra))
