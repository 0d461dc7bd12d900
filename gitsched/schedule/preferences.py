"""Preferred candidates: those that a request names come first among the candidates that its filters allow.

A preference orders candidates and allows none. It comes before every score, and after every filter, affinity group and constraint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from gitsched.schedule.fleet import Fleet

Positions = Mapping[int, int]
"""The position of each preferred candidate by index: the least one is the most preferred."""


def list_preferred(names: Iterable[str], fleet: Fleet) -> list[int]:
    """Return the indices of the named candidates in their order; unknown names are left out."""
    return [fleet.index[name] for name in names if name in fleet.index]


def find_positions(preferred: Iterable[int], before: Iterable[int] = ()) -> dict[int, int]:
    """Return positions from 1 for preferred candidates in their order, and 0 for the candidates that stay `before` them."""
    return {index: number for number, index in enumerate(preferred, 1)} | dict.fromkeys(before, 0)


def sort_preferred(order: Iterable[int], positions: Positions) -> list[int]:
    """Return candidates with the preferred ones first; the others keep their order."""
    last = max(positions.values(), default=0) + 1
    return sorted(order, key=lambda index: positions.get(index, last))


def rate_preference(members: Iterable[int], positions: Positions, size: int) -> int:
    """Return how much a set of candidates is preferred: a set with a more preferred candidate is above all sets without it. `size` is the
    number of candidates of the fleet."""
    last = max(positions.values(), default=0)
    return sum((size + 1) ** (last - positions[index]) for index in members if index in positions)


def add_preference(members: Sequence[int], totals: Sequence[int], preferred: Collection[int]) -> Sequence[int]:
    """Return the totals of the members with which the preferred ones come before all others, in their order."""
    found = [index for index in preferred if index in members]
    if not found:
        return totals
    unit = max(totals) - min(totals) + 1
    rank = {index: len(found) - number for number, index in enumerate(found)}
    return [total + unit * rank.get(index, 0) for index, total in zip(members, totals, strict=True)]
