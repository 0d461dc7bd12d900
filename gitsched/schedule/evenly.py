"""The best that are spread evenly: topology spread constraints over candidates."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from typing import NamedTuple


class Spread(NamedTuple):
    """`domains` has the domain of each candidate of the fleet, "" for one without. In no domain may there be more than `skew` chosen ones
    beyond the domain with the fewest; what is not `hard` gives way where nothing else is left."""

    domains: Sequence[str]
    skew: int
    hard: bool


def pick_evenly(members: Sequence[int], totals: Sequence[int], count: int | None, spreads: Sequence[Spread]) -> Sequence[int]:
    """Up to `count` members one after another, each the best that keeps all constraints, else the best that keeps the hard ones.

    Ascending. A candidate without a domain breaks the constraint; every domain of a member counts, be it a full one.
    """
    wanted = len(members) if count is None else max(0, count)
    counts = [dict.fromkeys((spread.domains[index] for index in members if spread.domains[index]), 0) for spread in spreads]
    queues: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for index, total in sorted(zip(members, totals, strict=True), key=lambda entry: (entry[1], -entry[0])):
        queues.setdefault(tuple(spread.domains[index] for spread in spreads), []).append((-total, index))
    # The best of each combination of domains: all others of it fare alike and are worse.
    heads = sorted((*queue.pop(), place) for place, queue in queues.items())
    chosen: list[int] = []
    while len(chosen) < wanted:
        at = _find(heads, spreads, counts, soft=True)
        at = _find(heads, spreads, counts, soft=False) if at is None else at
        if at is None:
            break
        _, index, place = heads.pop(at)
        chosen.append(index)
        for domain, known in zip(place, counts, strict=True):
            if domain:
                known[domain] += 1
        if queues[place]:
            insort(heads, (*queues[place].pop(), place))
    return sorted(chosen)


def _find(
    heads: Sequence[tuple[int, int, tuple[str, ...]]], spreads: Sequence[Spread], counts: Sequence[dict[str, int]], *, soft: bool
) -> int | None:
    """The first of the heads that keeps the hard constraints, and the others too if `soft`."""
    least = [min(known.values(), default=0) for known in counts]
    for at, (_, _, place) in enumerate(heads):
        if all(
            (known[domain] + 1 - fewest <= spread.skew if domain else not (spread.hard or soft))
            for spread, domain, known, fewest in zip(spreads, place, counts, least, strict=True)
            if spread.hard or soft
        ):
            return at
    return None
