"""Score functions: columns of whole numbers over candidates, and a weighted mean of metrics with stickiness."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Protocol

from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Fleet, pack_mask

MAX_SCORE = 100
"""The score of the best candidate of a built-in score."""


class ScorePlugin(Protocol):
    """The interface of a score. `members` are the indices in `mask`, ascending; the column has one number for each."""

    @property
    def name(self) -> str: ...

    @property
    def cacheable(self) -> bool: ...

    def score_candidates(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]: ...


class SteadyScore(NamedTuple):
    """Previous candidates of the request get 100, others 0."""

    previous: int
    name: str = "Steady"

    @property
    def cacheable(self) -> bool:
        return False

    def score_candidates(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        current = set(fleet.members(mask & self.previous))
        return [MAX_SCORE if index in current else 0 for index in members] if current else [0] * len(members)


class BalanceScore(NamedTuple):
    """Candidates with few decisions of other requests: 100 for none, else 2 * trunc(100 * (0.5 - count / maximum)) in float64.

    `counts` are by index; `maximum` is the largest count, including names that are not candidates.
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
        scores_of_all = list(map(score.__getitem__, self.counts))
        return scores_of_all if mask == fleet.all else [scores_of_all[index] for index in members]


class ScoreColumn:
    """Numbers by candidate. A column is equal only to itself, so columns are never compared element by element."""

    def __init__(self, numbers: Iterable[float | None]) -> None:
        self.numbers = tuple(numbers)

    @cached_property
    def truncated(self) -> tuple[int, ...]:
        """The integer part of the numbers, 0 for None."""
        return tuple(int(number or 0) for number in self.numbers)


class NormalizedScore(NamedTuple):
    """A number scaled between the minimum (-100) and the maximum (100) of the candidates, such as ResourceAllocatableCPU.

    trunc(((v - min) / (max - min) - 0.5) * 2 * 100) in float64, in that order; 100 for all when min equals max. A candidate
    without a number gets 0.
    """

    name: str
    values: ScoreColumn

    @property
    def cacheable(self) -> bool:
        return True

    def score_candidates(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        numbers = self.values.numbers
        selected_numbers = [numbers[index] for index in members]
        known_numbers = {number for number in selected_numbers if number is not None}
        if not known_numbers:
            return [0] * len(selected_numbers)
        least, greatest = min(known_numbers), max(known_numbers)
        width = greatest - least
        score: dict[float | None, int] = {None: 0}
        for number in known_numbers:
            score[number] = int((((number - least) / width) - 0.5) * 2 * 100) if width else MAX_SCORE
        return list(map(score.__getitem__, selected_numbers))


class ExternalScore(NamedTuple):
    """Numbers from an external source, truncated; a candidate without a number gets 0."""

    name: str
    values: ScoreColumn

    @property
    def cacheable(self) -> bool:
        return True

    def score_candidates(self, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
        return list(map(self.values.truncated.__getitem__, members))


class WeightedSum(NamedTuple):
    """The sums of a candidate's metrics: Σ value * weight and Σ weight, each added in the order of the metrics."""

    total: float
    weight: float


class BestCandidates(NamedTuple):
    """The set of equally good candidates, and their score."""

    mask: int
    score: float


class WeightedMeanScores:
    """The candidates of a fleet by the weighted mean of their metrics, with Krake's stickiness. `sums` are by index, None without metrics.

    `stickiness` is the weight of the current candidate; `always_in_denominator` adds it to every candidate's denominator and not only
    to that of the current one.
    """

    __slots__ = ("_always_in_denominator", "_fleet", "_masks_by_score", "_stickiness", "_sums", "measured")

    def __init__(self, fleet: Fleet, sums: Sequence[WeightedSum | None], stickiness: float, always_in_denominator: bool) -> None:
        self._fleet, self._sums, self._stickiness, self._always_in_denominator = fleet, sums, stickiness, always_in_denominator
        scores = [self.score(i, current=False) for i in range(len(fleet))]
        self.measured = pack_mask(score is not None for score in scores)
        """The candidates that have metrics and a score."""
        masks_by_score: dict[float, int] = {}
        for i, score in enumerate(scores):
            if score is not None:
                masks_by_score[score] = masks_by_score.get(score, 0) | 1 << i
        self._masks_by_score = sorted(((score, mask) for score, mask in masks_by_score.items()), reverse=True)

    def score(self, index: int, *, current: bool) -> float | None:
        """Return a candidate's score; None without metrics, or with weights that sum to zero."""
        measured_sum, weight = self._sums[index], self.total_weight(index, current=current)
        if measured_sum is None or not weight:
            return None
        score = (measured_sum.total + (self._stickiness if current else 0.0)) / weight
        return score if math.isfinite(score) else None

    def total_weight(self, index: int, *, current: bool) -> float:
        """Return the denominator of a candidate's score; 0 without metrics."""
        measured_sum = self._sums[index]
        return (
            measured_sum.weight + (self._stickiness if current or self._always_in_denominator else 0.0)
            if measured_sum is not None
            else 0.0
        )

    def comparable(self, mask: int, current: int | None) -> int:
        """Return the candidates of a set that are compared: those with metrics if there are any. `current` is the index of the
        current candidate."""
        measured = mask & self.measured
        if current is not None:
            measured &= ~(1 << current)
            if mask >> current & 1 and self.score(current, current=True) is not None:
                measured |= 1 << current
        return measured or mask

    def score_among(self, index: int, mask: int, current: int | None) -> float | None:
        """Return the score of a candidate within the set `mask`; None when it is not compared."""
        pool = self.comparable(mask, current)
        if not pool >> index & 1:
            return None
        score = self.score(index, current=index == current)
        return score if score is not None else self._stickiness if index == current else 0.0

    def find_best(self, mask: int, current: int | None) -> BestCandidates:
        """Return the best candidates of a non-empty set."""
        pool = self.comparable(mask, current)
        top = BestCandidates(0, -math.inf)
        if current is not None and pool >> current & 1:
            top = BestCandidates(1 << current, self.score_among(current, mask, current) or 0.0)
            pool &= ~(1 << current)
        others_best = self._find_best_of_others(pool)
        if others_best is None or others_best.score < top.score:
            return top
        return others_best if others_best.score > top.score else BestCandidates(others_best.mask | top.mask, top.score)

    def _find_best_of_others(self, pool: int) -> BestCandidates | None:
        if not pool:
            return None
        for score, mask in self._masks_by_score:
            if mask & pool:
                return BestCandidates(mask & pool, score)
        return BestCandidates(pool, 0.0)
