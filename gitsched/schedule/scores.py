"""Score functions: columns of whole numbers over candidates, and a weighted mean of metrics with stickiness."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from gitsched.schedule.fleet import Fleet, pack_mask

MAX_SCORE = 100
"""What the best candidate of a built-in score gets."""


class ScorePlugin(Protocol):
    """The whole contract. `members` are the indices in `mask`, ascending; the column has one number for each."""

    @property
    def name(self) -> str: ...

    @property
    def cacheable(self) -> bool: ...

    def score_candidates(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]: ...


class SteadyScore(NamedTuple):
    """Candidates that hold the request already get 100, others 0."""

    previous: int
    name: str = "Steady"

    @property
    def cacheable(self) -> bool:
        return False

    def score_candidates(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        held = set(fleet.members(mask & self.previous))
        return [MAX_SCORE if index in held else 0 for index in members] if held else [0] * len(members)


class BalanceScore(NamedTuple):
    """Candidates with few decisions of others: 100 for none, else 2 * trunc(100 * (0.5 - count / most)) in float64.

    `counts` are by index; `most` is the largest count, also of names that are no candidates.
    """

    counts: Sequence[int]
    maximum: int
    name: str = "Balance"

    @property
    def cacheable(self) -> bool:
        return False

    def score_candidates(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        if not self.maximum:
            return [MAX_SCORE] * len(members)
        score = {count: 2 * int(100 * (0.5 - count / self.maximum)) if count else MAX_SCORE for count in set(self.counts)}
        whole = list(map(score.__getitem__, self.counts))
        return whole if mask == fleet.all else [whole[index] for index in members]


class ScoreColumn:
    """Numbers by candidate, equal only to itself: a whole column is never compared."""

    def __init__(self, numbers: Iterable[float | None]) -> None:
        self.numbers = tuple(numbers)

    @cached_property
    def truncated(self) -> tuple[int, ...]:
        """The numbers without what follows the point, 0 for none."""
        return tuple(int(number or 0) for number in self.numbers)


class NormalizedScore(NamedTuple):
    """Where a candidate's number lies between the least (-100) and the greatest (100) of those asked.

    trunc(((v - min) / (max - min) - 0.5) * 2 * 100) in float64, in that order; 100 for all where they are the same. A candidate
    without a number gets 0.
    """

    name: str
    values: ScoreColumn

    @property
    def cacheable(self) -> bool:
        return True

    def score_candidates(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        numbers = self.values.numbers
        asked = [numbers[index] for index in members]
        known = {number for number in asked if number is not None}
        if not known:
            return [0] * len(asked)
        least, greatest = min(known), max(known)
        width = greatest - least
        score: dict[float | None, int] = {None: 0}
        for number in known:
            score[number] = int((((number - least) / width) - 0.5) * 2 * 100) if width else MAX_SCORE
        return list(map(score.__getitem__, asked))


class ExternalScore(NamedTuple):
    """Numbers that somebody else computed, whole and as they are; a candidate without one gets 0."""

    name: str
    values: ScoreColumn

    @property
    def cacheable(self) -> bool:
        return True

    def score_candidates(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        return list(map(self.values.truncated.__getitem__, members))


class WeightedSum(NamedTuple):
    """What a candidate's measurements add up to: Σ value * weight and Σ weight, each summed in the order of the measurements."""

    total: float
    weight: float


class BestCandidates(NamedTuple):
    """The candidates that are equally good, as a set, and their score."""

    mask: int
    score: float


class WeightedMeanScores:
    """The candidates of a fleet by score. `standings` are by index, None where nothing is measured.

    `stickiness` is the weight of staying; `everywhere` says that it stands in every candidate's denominator and not only in the
    holder's.
    """

    __slots__ = ("_always_in_denominator", "_fleet", "_masks_by_score", "_stickiness", "_sums", "measured")

    def __init__(self, fleet: Fleet, standings: Sequence[WeightedSum | None], stickiness: float, everywhere: bool) -> None:
        self._fleet, self._sums, self._stickiness, self._always_in_denominator = fleet, standings, stickiness, everywhere
        scores = [self.score(i, held=False) for i in range(len(fleet))]
        self.measured = pack_mask(score is not None for score in scores)
        """The candidates that have measurements and a score by them."""
        levels: dict[float, int] = {}
        for i, score in enumerate(scores):
            if score is not None:
                levels[score] = levels.get(score, 0) | 1 << i
        self._masks_by_score = sorted(((score, mask) for score, mask in levels.items()), reverse=True)

    def score(self, index: int, *, held: bool) -> float | None:
        """A candidate's score by its measurements; None where it has none, or weights that make no mean."""
        standing, weight = self._sums[index], self.total_weight(index, held=held)
        if standing is None or not weight:
            return None
        score = (standing.total + (self._stickiness if held else 0.0)) / weight
        return score if math.isfinite(score) else None

    def total_weight(self, index: int, *, held: bool) -> float:
        """What a candidate's score is divided by; 0 where nothing is measured."""
        standing = self._sums[index]
        return standing.weight + (self._stickiness if held or self._always_in_denominator else 0.0) if standing is not None else 0.0

    def comparable(self, mask: int, held: int | None) -> int:
        """Those of a set that are compared: the measured ones if there are any. `held` is the index of the holder."""
        measured = mask & self.measured
        if held is not None:
            measured &= ~(1 << held)
            if mask >> held & 1 and self.score(held, held=True) is not None:
                measured |= 1 << held
        return measured or mask

    def score_among(self, index: int, mask: int, held: int | None) -> float | None:
        """The score of a candidate among the set `mask`; None where it is not compared."""
        pool = self.comparable(mask, held)
        if not pool >> index & 1:
            return None
        score = self.score(index, held=index == held)
        return score if score is not None else self._stickiness if index == held else 0.0

    def find_best(self, mask: int, held: int | None) -> BestCandidates:
        """The best of a set that is not empty."""
        pool = self.comparable(mask, held)
        top = BestCandidates(0, -math.inf)
        if held is not None and pool >> held & 1:
            top = BestCandidates(1 << held, self.score_among(held, mask, held) or 0.0)
            pool &= ~(1 << held)
        rival = self._find_best_of_others(pool)
        if rival is None or rival.score < top.score:
            return top
        return rival if rival.score > top.score else BestCandidates(rival.mask | top.mask, top.score)

    def _find_best_of_others(self, pool: int) -> BestCandidates | None:
        if not pool:
            return None
        for score, mask in self._masks_by_score:
            if mask & pool:
                return BestCandidates(mask & pool, score)
        return BestCandidates(pool, 0.0)
