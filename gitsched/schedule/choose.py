"""Filter, score, choose the best: the profile that picks candidates and divides no replicas.

1. Each filter leaves some of the candidates that are offered.
2. Every score gives those that are left a column of whole numbers; a total is the sum of weight * score.
3. The best by total are chosen, ties by name ascending; without a count all that are left. Where they have to be spread, the best that
   are spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import add
from typing import NamedTuple, Protocol

from gitsched.model.decision import Verdict
from gitsched.model.request import Affinity
from gitsched.model.taints import Taint, Toleration
from gitsched.schedule.evenly import Spread, pick_evenly
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.score import Score

_SECOND = 10**9
_WRAP = 1 << 64


class Test(Protocol):
    """A condition that no index answers: it says which of the candidates that are left meet it. Hashable, equal by value."""

    def mask(self, fleet: Fleet, left: int) -> int: ...


class Alternative(NamedTuple):
    """All of it must hold."""

    affinity: Affinity
    tests: tuple[Test, ...] = ()


class Term(NamedTuple):
    """A score and what it is multiplied by."""

    score: Score
    weight: int


class Effects(NamedTuple):
    """What taints do: those of the `ignored` effects nothing, those of the `lenient` ones nothing to who holds the request."""

    ignored: frozenset[str]
    lenient: frozenset[str]


class Choosing(NamedTuple):
    """What is asked. A candidate must meet one of the `alternatives`, where there are any. `held` are the candidates of the last
    result, `moment` is what tolerations' seconds are compared with. `number` is how many are wanted, None means all, and `spreads`
    how evenly they have to be spread."""

    offered: int
    alternatives: tuple[Alternative, ...]
    tolerations: tuple[Toleration, ...]
    effects: Effects
    held: int
    moment: datetime
    terms: tuple[Term, ...]
    number: int | None
    spreads: tuple[Spread, ...] = ()


class Choice(NamedTuple):
    """`left` is what each filter left, in their order. `members` are the indices of the candidates that passed all of them, ascending;
    `columns` (one for each term) and `totals` are aligned with them. `chosen` are indices, ascending. `deadline` is when the first
    toleration of a candidate that is left runs out."""

    left: tuple[int, ...]
    members: Sequence[int]
    columns: tuple[Sequence[int], ...]
    totals: Sequence[int]
    chosen: Sequence[int]
    deadline: datetime | None


class Filter(Protocol):
    """The whole contract of a filter of this profile."""

    name: str

    def mask(self, request: Choosing, fleet: Fleet, left: int) -> int:
        """The candidates that pass, of those that are left."""
        ...

    def reason(self, request: Choosing, fleet: Fleet, index: int) -> str:
        """Why this candidate, which did not pass, did not."""
        ...


class Predicate:
    name = "Predicate"

    def mask(self, request: Choosing, fleet: Fleet, left: int) -> int:
        if not request.alternatives:
            return left
        found = 0
        for affinity, tests in request.alternatives:
            mask = left & ~found & fleet.matching(affinity)
            for test in tests:
                if mask:
                    mask = test.mask(fleet, mask)
            found |= mask
        return found

    def reason(self, request: Choosing, fleet: Fleet, index: int) -> str:
        return "it meets none of the predicates" if len(request.alternatives) > 1 else "it does not meet the predicate"


class TimedTaints:
    name = "TaintToleration"

    def mask(self, request: Choosing, fleet: Fleet, left: int) -> int:
        firm, lenient, _ = _tolerance(request, fleet)
        return left & ~firm & ~(lenient & ~request.held)

    def reason(self, request: Choosing, fleet: Fleet, index: int) -> str:
        for taint in fleet.candidates[index].taints:
            kept = taint.effect in request.effects.lenient and request.held >> index & 1
            if taint.effect not in request.effects.ignored and not kept:
                end = tolerated_until(taint, request.tolerations, request.moment)
                if end is None or end <= request.moment:
                    why = "is not tolerated" if end is None else f"was tolerated until {end:%Y-%m-%dT%H:%M:%SZ}"
                    return f"its taint {taint} {why}"
        return "it has a taint that is not tolerated"


FILTERS: tuple[Filter, ...] = (Predicate(), TimedTaints())


def choose(request: Choosing, fleet: Fleet) -> Choice:
    """Decide one request."""
    left, stages = request.offered, []
    for rule in FILTERS:
        if left:
            left = rule.mask(request, fleet, left)
        stages.append(left)
    members = fleet.members(left)
    columns = tuple(_column(term.score, fleet, left, members) for term in request.terms)
    totals = _total(request.terms, columns, fleet, left, len(members))
    if request.spreads:
        chosen = pick_evenly(members, totals, request.number, request.spreads)
    else:
        chosen = pick_best(members, totals, request.number)
    return Choice(tuple(stages), members, columns, totals, chosen, _deadline(request, fleet, left))


def _total(terms: Sequence[Term], columns: Sequence[Sequence[int]], fleet: Fleet, left: int, size: int) -> Sequence[int]:
    """The sum of weight * column, place by place; that of lasting scores is summed once for all requests that ask the same."""
    lasting = tuple(term for term in terms if term.score.lasting)
    parts = [(term.weight, column) for term, column in zip(terms, columns, strict=True) if not term.score.lasting]
    totals: Sequence[int] = [0] * size
    if lasting:
        known = [(term.weight, column) for term, column in zip(terms, columns, strict=True) if term.score.lasting]
        totals = fleet.remember(("sum", lasting, left), lambda: add_up([0] * size, known))
    return add_up(totals, parts)


def add_up(totals: Sequence[int], parts: Iterable[tuple[int, Sequence[int]]]) -> Sequence[int]:
    """Add weight * column for each part, place by place."""
    for weight, column in parts:
        if weight == 1:
            totals = list(map(add, totals, column))
        else:
            totals = [total + weight * score for total, score in zip(totals, column, strict=True)]
    return totals


def pick_best(members: Sequence[int], totals: Sequence[int], count: int | None) -> Sequence[int]:
    """The `count` members with the highest totals, ties by index ascending; in the order of the members."""
    if count is None or count >= len(members):
        return members
    if count <= 0:
        return ()
    ordered = sorted(totals, reverse=True)
    edge = ordered[count - 1]
    ties = count - ordered.index(edge)
    chosen = []
    for member, total in zip(members, totals, strict=True):
        if total > edge:
            chosen.append(member)
        elif total == edge and ties:
            ties -= 1
            chosen.append(member)
    return chosen


def explain(request: Choosing, choice: Choice, fleet: Fleet, outside: str) -> list[Verdict]:
    """How every candidate fares, in name order; `outside` is why one was not offered."""
    reasons: dict[int, str] = dict.fromkeys(fleet.members(fleet.all & ~request.offered), outside)
    before = request.offered
    for rule, left in zip(FILTERS, choice.left, strict=True):
        for index in fleet.members(before & ~left):
            reasons[index] = rule.reason(request, fleet, index)
        before = left
    place = {index: at for at, index in enumerate(choice.members)}
    verdicts = []
    for index, name in enumerate(fleet.names):
        at = place.get(index)
        if at is None:
            verdicts.append(Verdict(name, False, reasons.get(index, ""), {}, None))
            continue
        scores: dict[str, float] = {}
        for term, column in zip(request.terms, choice.columns, strict=True):
            label = term.score.name
            while label in scores:  # the same score may be asked for more than once
                label += "'"
            scores[label] = column[at]
        verdicts.append(Verdict(name, True, "", scores, choice.totals[at]))
    return verdicts


def tolerated_until(taint: Taint, tolerations: Sequence[Toleration], moment: datetime) -> datetime | None:
    """When the tolerations of a taint run out: the first that lasts beyond `moment` counts, as in a list that is asked in order.

    datetime.max means never; a moment that has passed means that all of them have; None that there is none. Seconds count from when the
    taint was added, which without a date is the year 1.
    """
    ends = [_end(taint, toleration) for toleration in tolerations if toleration.tolerates(taint)]
    return next((end for end in ends if end > moment), max(ends, default=None))


def _end(taint: Taint, toleration: Toleration) -> datetime:
    if toleration.seconds is None:
        return _NEVER
    # A Go duration is 64 bits of nanoseconds, and wraps around.
    wait = (toleration.seconds * _SECOND + _WRAP // 2) % _WRAP - _WRAP // 2
    try:
        return (taint.since or _YEAR_ONE) + timedelta(microseconds=wait // 1000)
    except OverflowError:
        return _NEVER if wait > 0 else _YEAR_ONE


_NEVER = datetime.max.replace(tzinfo=UTC)
_YEAR_ONE = datetime.min.replace(tzinfo=UTC)


class _Tolerance(NamedTuple):
    """Candidates with an intolerable taint, with one that only keeps newcomers away, and when what tolerates which ones runs out."""

    firm: int
    lenient: int
    ends: tuple[tuple[datetime, int, bool], ...]


def _tolerance(request: Choosing, fleet: Fleet) -> _Tolerance:
    tolerations, effects, moment = request.tolerations, request.effects, request.moment
    # Seconds aside, time does not matter.
    timed = moment if any(toleration.seconds is not None for toleration in tolerations) else None
    return fleet.remember(("tolerance", tolerations, effects, timed), lambda: _judge_taints(tolerations, effects, moment, fleet))


def _judge_taints(tolerations: tuple[Toleration, ...], effects: Effects, moment: datetime, fleet: Fleet) -> _Tolerance:
    firm = lenient = 0
    ends = []
    for taint, mask in _taints(fleet).items():
        if taint.effect in effects.ignored:
            continue
        end = tolerated_until(taint, tolerations, moment)
        soft = taint.effect in effects.lenient
        if end is not None and end > moment:
            if end != _NEVER:
                ends.append((end, mask, soft))
        elif soft:
            lenient |= mask
        else:
            firm |= mask
    return _Tolerance(firm, lenient, tuple(sorted(ends)))


def _taints(fleet: Fleet) -> dict[Taint, int]:
    def collect() -> dict[Taint, int]:
        taints: dict[Taint, int] = {}
        for index, candidate in enumerate(fleet.candidates):
            for taint in candidate.taints:
                taints[taint] = taints.get(taint, 0) | 1 << index
        return taints

    return fleet.remember("taints with their time", collect)


def _deadline(request: Choosing, fleet: Fleet, left: int) -> datetime | None:
    return min(_deadlines(request, fleet, left), default=None)


def _deadlines(request: Choosing, fleet: Fleet, left: int) -> Iterator[datetime]:
    for end, mask, lenient in _tolerance(request, fleet).ends:
        if mask & (left & ~request.held if lenient else left):
            yield end


def _column(score: Score, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
    if not score.lasting:
        return score.column(fleet, mask, members)
    return fleet.remember((score, mask), lambda: score.column(fleet, mask, members))
