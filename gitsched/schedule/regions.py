"""Which regions to spread over: Karmada's search over all combinations of regions, without enumerating them.

Upstream walks every combination of regions, by (members ascending, score descending, name ascending), depth first, records a
combination as soon as it has enough regions and members, and does not extend it further. It takes the recorded combination with the
highest score; among equals the one with the most members, then the one found first. Then it falls back to the shortest recorded
combination that is a prefix of the best one in order of score. The walk is exponential; the same answer comes from dynamic programming,
because a combination is recorded exactly if it has enough members and either is of the least length or lacks members without its last
region.
"""

from __future__ import annotations

from typing import NamedTuple

from gitsched.model.request import Request, Spread
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.survey import Survey

_SCALE = 1000
"""What one unit of the goal counts, beside the scores of the members."""


class Region(NamedTuple):
    """`members` in candidate order."""

    name: str
    score: int
    members: list[int]


class _Found(NamedTuple):
    """Ordered by what makes a combination better; `path` are positions, ascending."""

    score: int
    members: int
    path: tuple[int, ...]

    def beats(self, other: _Found | None) -> bool:
        if other is None or self[:2] != other[:2]:
            return other is None or self[:2] > other[:2]
        return self.path < other.path


def score_regions(request: Request, fleet: Fleet, survey: Survey, region: Spread, cluster: Spread) -> list[Region]:
    """The regions of the feasible candidates with their scores."""
    names = fleet.remember("regions", lambda: [next(iter(c.fields.get("region", ())), None) for c in fleet.candidates])
    members: dict[str, list[int]] = {}
    for index in survey.order:
        name = names[index]
        if name is not None:
            members.setdefault(name, []).append(index)
    score = _score_divided if request.divides else _score_duplicated
    return [Region(name, score(request, survey, found, region, cluster), found) for name, found in members.items()]


def _score_duplicated(request: Request, survey: Survey, members: list[int], _region: Spread, _cluster: Spread) -> int:
    """By how many members have room for the whole workload."""
    valid = [index for index in members if survey.available(index) >= request.replicas]
    return _SCALE * len(valid) + sum(map(survey.score, valid)) // len(valid) if valid else 0


def _score_divided(request: Request, survey: Survey, members: list[int], region: Spread, cluster: Spread) -> int:
    """By how much of the region's part of the replicas the first members have room for."""
    goal = -(-request.replicas // region.minimum)
    enough = max(region.minimum, cluster.minimum)
    room = scores = 0
    for count, index in enumerate(members, 1):
        room += survey.available(index)
        scores += survey.score(index)
        if count >= enough and room >= goal:
            return _SCALE * goal + scores // count
    return _SCALE * min(room, goal) + scores // len(members)


def choose_regions(regions: list[Region], least: int, most: int, members: int) -> list[Region] | None:
    """The regions to use, best first: at least `least`, at most `most`, with at least `members` candidates in all. None: impossible."""
    ranked = sorted(regions, key=lambda region: (len(region.members), -region.score, region.name))
    counts, scores = [len(region.members) for region in ranked], [region.score for region in ranked]
    if len(ranked) == least:
        return _by_score(ranked) if sum(counts) >= members and least <= most else None
    found = _search(counts, scores, least, most, members) if sum(counts) >= members else None
    if found is None:
        return None
    best = _by_score([ranked[place] for place in found.path])
    places = {region.name: place for place, region in enumerate(ranked)}
    for length in range(least, len(best)):
        if _is_recorded(sorted(places[region.name] for region in best[:length]), counts, least, members):
            return best[:length]
    return best


def _by_score(regions: list[Region]) -> list[Region]:
    return sorted(regions, key=lambda region: (-region.score, region.name))


def _is_recorded(path: list[int], counts: list[int], least: int, members: int) -> bool:
    total = sum(counts[place] for place in path)
    return total >= members and (len(path) == least or total - counts[path[-1]] < members)


def _search(counts: list[int], scores: list[int], least: int, most: int, members: int) -> _Found | None:
    """The best recorded combination of positions.

    `open_ends` are the best combinations of the positions so far that are not recorded yet, by length and members (no more than wanted).
    """
    best: _Found | None = None
    open_ends = {(0, 0): _Found(0, 0, ())}
    for place, count in enumerate(counts):
        for (length, total), found in list(open_ends.items()):
            longer = _Found(found.score + scores[place], found.members + count, (*found.path, place))
            reached = min(total + count, members)
            if length + 1 >= least and reached == members:
                best = longer if longer.beats(best) else best
            elif length + 1 < most and longer.beats(open_ends.get((length + 1, reached))):
                open_ends[length + 1, reached] = longer
    return best if least <= most else None
