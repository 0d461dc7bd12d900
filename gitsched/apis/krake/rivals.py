"""What another cluster would need to win: a score, and the metric that would give it that score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gitsched.apis.krake.arena import Arena
from gitsched.apis.krake.metrics import MetricRef, Value

_METRICS = 3
"""Metrics of a rival that are told."""


class Turn(NamedTuple):
    """A value of a metric, as its provider says it, beyond which a rival wins; `above` says on which side of it."""

    ref: MetricRef
    value: Value
    limit: float
    above: bool

    def __str__(self) -> str:
        side = "above" if self.above else "below"
        return f"{self.ref.name} {side} {self.limit:.6g} instead of {self.value.raw:.6g}"


def tell_need(arena: Arena, rival: int, held: int, goal: float) -> str:
    """What a rival needs for more than `goal`, the score of the cluster `held`."""
    turns = list(find_turns(arena, rival, held))
    if not arena.sites[rival].readings.values:
        return f"to win it needs a score above {goal:.6g}, and it has no metrics"
    if not turns:
        return f"to win it needs a score above {goal:.6g}, which no metric alone can give it"
    ways = " or ".join(map(str, turns[:_METRICS])) + (", or another" if len(turns) > _METRICS else "")
    return f"to win it needs a score above {goal:.6g}, as with {ways}"


def find_turns(arena: Arena, rival: int, held: int) -> Iterator[Turn]:
    """For each metric of a rival the value from which on it wins against the cluster `held`, everything else staying as it is.

    Scores are linear in a metric, also where both clusters have it. A metric that cannot go that far is left out.
    """
    ahead, behind = arena.ranking.score(held, held=True), arena.ranking.score(rival, held=False)
    if ahead is None or behind is None:
        return
    values = arena.sites[rival].readings.values
    # A cluster may refer to a metric more than once, with different weights.
    for ref, value in {(ref.name, ref.namespaced): (ref, value) for ref, value in values}.values():
        fall, lead = _slope(arena, rival, ref, held=False), _slope(arena, held, ref, held=True)
        if fall == lead:
            continue
        share = value.share + (ahead - behind) / (fall - lead)
        limit, above = value.least + share * (value.most - value.least), fall > lead
        if any((raw > limit) if above else (raw < limit) for raw in value.allowed or (value.least, value.most)):
            yield Turn(ref, value, limit, above)


def _slope(arena: Arena, index: int, ref: MetricRef, *, held: bool) -> float:
    """By how much the score of a cluster that has one rises with the share of a metric."""
    values = arena.sites[index].readings.values
    weight = sum(other.weight for other, _ in values if (other.name, other.namespaced) == (ref.name, ref.namespaced))
    return weight / arena.ranking.weight(index, held=held)
