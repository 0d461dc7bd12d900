"""The feasible candidates of a group in order, with what they have room for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gitsched.model.request import Group, Request
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.room import BOUNDLESS, Rooms

LOCALITY = 100
"""The score of a candidate that holds the workload already."""


class Survey(NamedTuple):
    """`order` are the feasible candidates, best first. `allocatable` is, by candidate, how many more replicas fit; `held` how many it has
    of the last result; `tiers` are the sets of `order` by overflow: the group's own candidates, then those of each overflow set.
    """

    order: list[int]
    allocatable: Sequence[int]
    held: dict[int, int]
    tiers: tuple[int, ...]

    def available(self, index: int) -> int:
        """How many replicas it could have of this workload, those that it has included."""
        return self.allocatable[index] + self.held.get(index, 0)

    def score(self, index: int) -> int:
        return LOCALITY if index in self.held else 0


def survey(request: Request, group: Group, fleet: Fleet, mask: int) -> Survey:
    """Order the feasible candidates: the group's own before overflow, then score, then available replicas, then name."""
    index = fleet.index
    held = {index[target.name]: target.replicas for target in request.held if target.name in index}
    allocatable = _allocatable(request, fleet)
    tiers = _tiers(request, group, fleet, mask)
    order: list[int] = []
    here = fleet.mask(target.name for target in request.held)
    for tier in tiers:
        # What the sort is stable in is the name.
        order += sorted(fleet.members(tier & here), key=lambda i: -(allocatable[i] + held[i]))
        order += _by_room(request, fleet, allocatable, tier & ~here)
    return Survey(order, allocatable, held, tiers)


def _by_room(request: Request, fleet: Fleet, allocatable: Sequence[int], mask: int) -> list[int]:
    question = ("by room", mask, request.demand, request.replicas)
    return fleet.remember(question, lambda: sorted(fleet.members(mask), key=lambda i: -allocatable[i]))


def _allocatable(request: Request, fleet: Fleet) -> Sequence[int]:
    question = ("allocatable", request.demand, request.replicas)
    return fleet.remember(question, lambda: _estimate(request, fleet))


def _estimate(request: Request, fleet: Fleet) -> Sequence[int]:
    if not request.replicas:
        return [BOUNDLESS] * len(fleet)
    demand = request.demand
    rooms = fleet.remember("rooms", lambda: Rooms([candidate.room for candidate in fleet.candidates]))
    estimates = fleet.remember(("estimates", demand), lambda: rooms.estimate(demand))
    return [request.replicas if room == BOUNDLESS else room for room in estimates]


def _tiers(request: Request, group: Group, fleet: Fleet, mask: int) -> tuple[int, ...]:
    if not group.overflow or group.affinity is None or request.division == "everywhere":
        return (mask,)
    tiers, left = [], mask
    for affinity in (group.affinity, *group.overflow):
        tiers.append(left & fleet.matching(affinity))
        left &= ~tiers[-1]
    return (*tiers[:-1], tiers[-1] | left)
