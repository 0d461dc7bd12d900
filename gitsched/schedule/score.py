"""Scores: how much a candidate is preferred.

A score is one class with a name and a column of whole numbers over the candidates that passed the filters; what it needs beyond the
fleet are its members. A score whose `lasting` is true depends on nothing else, so that its column is computed once for all requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from gitsched.schedule.fleet import Fleet

FULL = 100
"""What the best candidate of a built-in score gets."""


class Score(Protocol):
    """The whole contract. `members` are the indices in `mask`, ascending; the column has one number for each."""

    @property
    def name(self) -> str: ...

    @property
    def lasting(self) -> bool: ...

    def column(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]: ...


class Held(NamedTuple):
    """Candidates that hold the request already get 100, others 0."""

    held: int
    name: str = "Steady"

    @property
    def lasting(self) -> bool:
        return False

    def column(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        held = set(fleet.members(mask & self.held))
        return [FULL if index in held else 0 for index in members] if held else [0] * len(members)


class Balance(NamedTuple):
    """Candidates with few decisions of others: 100 for none, else 2 * trunc(100 * (0.5 - count / most)) in float64.

    `counts` are by index; `most` is the largest count, also of names that are no candidates.
    """

    counts: Sequence[int]
    most: int
    name: str = "Balance"

    @property
    def lasting(self) -> bool:
        return False

    def column(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        if not self.most:
            return [FULL] * len(members)
        score = {count: 2 * int(100 * (0.5 - count / self.most)) if count else FULL for count in set(self.counts)}
        whole = list(map(score.__getitem__, self.counts))
        return whole if mask == fleet.all else [whole[index] for index in members]


class Column:
    """Numbers by candidate, equal only to itself: a whole column is never compared."""

    def __init__(self, numbers: Iterable[float | None]) -> None:
        self.numbers = tuple(numbers)

    @cached_property
    def whole(self) -> tuple[int, ...]:
        """The numbers without what follows the point, 0 for none."""
        return tuple(int(number or 0) for number in self.numbers)


class Relative(NamedTuple):
    """Where a candidate's number lies between the least (-100) and the greatest (100) of those asked.

    trunc(((v - min) / (max - min) - 0.5) * 2 * 100) in float64, in that order; 100 for all where they are the same. A candidate
    without a number gets 0.
    """

    name: str
    values: Column

    @property
    def lasting(self) -> bool:
        return True

    def column(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        numbers = self.values.numbers
        asked = [numbers[index] for index in members]
        known = {number for number in asked if number is not None}
        if not known:
            return [0] * len(asked)
        least, greatest = min(known), max(known)
        width = greatest - least
        score: dict[float | None, int] = {None: 0}
        for number in known:
            score[number] = int((((number - least) / width) - 0.5) * 2 * 100) if width else FULL
        return list(map(score.__getitem__, asked))


class Given(NamedTuple):
    """Numbers that somebody else computed, whole and as they are; a candidate without one gets 0."""

    name: str
    values: Column

    @property
    def lasting(self) -> bool:
        return True

    def column(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        return list(map(self.values.whole.__getitem__, members))
