"""Ranking by a weighted mean of measurements, with a threshold against moving.

    score = (sticky * weight + Σ value * weight) / (weight + Σ weight)

where sticky is 1 for the candidate that holds the request, else 0. Candidates with measurements go before those without, whose score is
the stickiness alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from gitsched.schedule.fleet import Fleet, pack


class Standing(NamedTuple):
    """What a candidate's measurements add up to: Σ value * weight and Σ weight, each summed in the order of the measurements."""

    total: float
    weight: float


class Best(NamedTuple):
    """The candidates that are equally good, as a set, and their score."""

    mask: int
    score: float


class Ranking:
    """The candidates of a fleet by score. `standings` are by index, None where nothing is measured.

    `stickiness` is the weight of staying; `everywhere` says that it stands in every candidate's denominator and not only in the
    holder's.
    """

    __slots__ = ("_everywhere", "_fleet", "_levels", "_standings", "_stickiness", "measured")

    def __init__(self, fleet: Fleet, standings: Sequence[Standing | None], stickiness: float, everywhere: bool) -> None:
        self._fleet, self._standings, self._stickiness, self._everywhere = fleet, standings, stickiness, everywhere
        scores = [self.score(i, held=False) for i in range(len(fleet))]
        self.measured = pack(score is not None for score in scores)
        """The candidates that have measurements and a score by them."""
        levels: dict[float, int] = {}
        for i, score in enumerate(scores):
            if score is not None:
                levels[score] = levels.get(score, 0) | 1 << i
        self._levels = sorted(((score, mask) for score, mask in levels.items()), reverse=True)

    def score(self, index: int, *, held: bool) -> float | None:
        """A candidate's score by its measurements; None where it has none, or weights that make no mean."""
        standing, weight = self._standings[index], self.weight(index, held=held)
        if standing is None or not weight:
            return None
        score = (standing.total + (self._stickiness if held else 0.0)) / weight
        return score if math.isfinite(score) else None

    def weight(self, index: int, *, held: bool) -> float:
        """What a candidate's score is divided by; 0 where nothing is measured."""
        standing = self._standings[index]
        return standing.weight + (self._stickiness if held or self._everywhere else 0.0) if standing is not None else 0.0

    def pool(self, mask: int, held: int | None) -> int:
        """Those of a set that are compared: the measured ones if there are any. `held` is the index of the holder."""
        measured = mask & self.measured
        if held is not None:
            measured &= ~(1 << held)
            if mask >> held & 1 and self.score(held, held=True) is not None:
                measured |= 1 << held
        return measured or mask

    def total(self, index: int, mask: int, held: int | None) -> float | None:
        """The score of a candidate among the set `mask`; None where it is not compared."""
        pool = self.pool(mask, held)
        if not pool >> index & 1:
            return None
        score = self.score(index, held=index == held)
        return score if score is not None else self._stickiness if index == held else 0.0

    def best(self, mask: int, held: int | None) -> Best:
        """The best of a set that is not empty."""
        pool = self.pool(mask, held)
        top = Best(0, -math.inf)
        if held is not None and pool >> held & 1:
            top = Best(1 << held, self.total(held, mask, held) or 0.0)
            pool &= ~(1 << held)
        rival = self._best_of_others(pool)
        if rival is None or rival.score < top.score:
            return top
        return rival if rival.score > top.score else Best(rival.mask | top.mask, top.score)

    def _best_of_others(self, pool: int) -> Best | None:
        if not pool:
            return None
        for score, mask in self._levels:
            if mask & pool:
                return Best(mask & pool, score)
        return Best(pool, 0.0)
