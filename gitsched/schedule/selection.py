"""Select the best candidates without dividing replicas: filter by predicates and taints, sum weighted scores, pick the top N within
topology spread constraints."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import add
from typing import NamedTuple, Protocol

from gitsched.model.scheduling import Affinity, CandidateResult
from gitsched.model.taints import Taint, Toleration
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.scores import ScorePlugin


class TopologySpread(NamedTuple):
    """`domains` has the domain of each candidate of the fleet, "" for one without. In no domain may there be more than `skew` chosen ones
    beyond the domain with the fewest; what is not `hard` gives way where nothing else is left."""

    domains: Sequence[str]
    max_skew: int
    hard: bool


def pick_spread(
    members: Sequence[int], totals: Sequence[int], count: int | None, spreads: Sequence[TopologySpread]
) -> Sequence[int]:
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
        at = _find_allowed(heads, spreads, counts, soft=True)
        at = _find_allowed(heads, spreads, counts, soft=False) if at is None else at
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


def _find_allowed(
    heads: Sequence[tuple[int, int, tuple[str, ...]]],
    spreads: Sequence[TopologySpread],
    counts: Sequence[dict[str, int]],
    *,
    soft: bool,
) -> int | None:
    """The first of the heads that keeps the hard constraints, and the others too if `soft`."""
    least = [min(known.values(), default=0) for known in counts]
    for at, (_, _, place) in enumerate(heads):
        if all(
            (known[domain] + 1 - fewest <= spread.max_skew if domain else not (spread.hard or soft))
            for spread, domain, known, fewest in zip(spreads, place, counts, least, strict=True)
            if spread.hard or soft
        ):
            return at
    return None


_NANOSECONDS_PER_SECOND = 10**9
_UINT64_RANGE = 1 << 64


class CandidateTest(Protocol):
    """A condition that no index answers: it says which of the candidates that are left meet it. Hashable, equal by value."""

    def mask(self, fleet: Fleet, left: int) -> int: ...


class PredicateAlternative(NamedTuple):
    """All of it must hold."""

    affinity: Affinity
    tests: tuple[CandidateTest, ...] = ()


class WeightedScore(NamedTuple):
    """A score and what it is multiplied by."""

    score: ScorePlugin
    weight: int


class TaintEffects(NamedTuple):
    """What taints do: those of the `ignored` effects nothing, those of the `lenient` ones nothing to who holds the request."""

    ignored: frozenset[str]
    new_only: frozenset[str]


class SelectionRequest(NamedTuple):
    """What is asked. A candidate must meet one of the `alternatives`, where there are any. `held` are the candidates of the last
    result, `moment` is what tolerations' seconds are compared with. `number` is how many are wanted, None means all, and `spreads`
    how evenly they have to be spread."""

    candidates: int
    predicates: tuple[PredicateAlternative, ...]
    tolerations: tuple[Toleration, ...]
    taint_effects: TaintEffects
    previous: int
    now: datetime
    scores: tuple[WeightedScore, ...]
    limit: int | None
    spreads: tuple[TopologySpread, ...] = ()


class SelectionResult(NamedTuple):
    """`left` is what each filter left, in their order. `members` are the indices of the candidates that passed all of them, ascending;
    `columns` (one for each term) and `totals` are aligned with them. `chosen` are indices, ascending. `deadline` is when the first
    toleration of a candidate that is left runs out."""

    remaining: tuple[int, ...]
    members: Sequence[int]
    score_columns: tuple[Sequence[int], ...]
    totals: Sequence[int]
    selected: Sequence[int]
    deadline: datetime | None


class SelectionFilter(Protocol):
    """The whole contract of a filter of this profile."""

    name: str

    def mask(self, request: SelectionRequest, fleet: Fleet, left: int) -> int:
        """The candidates that pass, of those that are left."""
        ...

    def reason(self, request: SelectionRequest, fleet: Fleet, index: int) -> str:
        """Why this candidate, which did not pass, did not."""
        ...


class PredicateFilter:
    name = "Predicate"

    def mask(self, request: SelectionRequest, fleet: Fleet, left: int) -> int:
        if not request.predicates:
            return left
        found = 0
        for affinity, tests in request.predicates:
            mask = left & ~found & fleet.matching(affinity)
            for test in tests:
                if mask:
                    mask = test.mask(fleet, mask)
            found |= mask
        return found

    def reason(self, request: SelectionRequest, fleet: Fleet, index: int) -> str:
        return "it meets none of the predicates" if len(request.predicates) > 1 else "it does not meet the predicate"


class TimedTaintTolerationFilter:
    name = "TaintToleration"

    def mask(self, request: SelectionRequest, fleet: Fleet, left: int) -> int:
        firm, lenient, _ = _cached_tolerations(request, fleet)
        return left & ~firm & ~(lenient & ~request.previous)

    def reason(self, request: SelectionRequest, fleet: Fleet, index: int) -> str:
        for taint in fleet.candidates[index].taints:
            kept = taint.effect in request.taint_effects.new_only and request.previous >> index & 1
            if taint.effect not in request.taint_effects.ignored and not kept:
                end = find_toleration_end(taint, request.tolerations, request.now)
                if end is None or end <= request.now:
                    why = "is not tolerated" if end is None else f"was tolerated until {end:%Y-%m-%dT%H:%M:%SZ}"
                    return f"its taint {taint} {why}"
        return "it has a taint that is not tolerated"


SELECTION_FILTERS: tuple[SelectionFilter, ...] = (PredicateFilter(), TimedTaintTolerationFilter())


def select_best(request: SelectionRequest, fleet: Fleet) -> SelectionResult:
    """Decide one request."""
    left, stages = request.candidates, []
    for rule in SELECTION_FILTERS:
        if left:
            left = rule.mask(request, fleet, left)
        stages.append(left)
    members = fleet.members(left)
    columns = tuple(_compute_column(term.score, fleet, left, members) for term in request.scores)
    totals = _sum_scores(request.scores, columns, fleet, left, len(members))
    count, spreads = request.limit, request.spreads
    chosen = pick_spread(members, totals, count, spreads) if spreads else pick_best(members, totals, count)
    return SelectionResult(tuple(stages), members, columns, totals, chosen, _find_first_deadline(request, fleet, left))


def _sum_scores(
    terms: Sequence[WeightedScore], columns: Sequence[Sequence[int]], fleet: Fleet, left: int, size: int
) -> Sequence[int]:
    """The sum of weight * column, place by place; that of lasting scores is summed once for all requests that ask the same."""
    lasting = tuple(term for term in terms if term.score.cacheable)
    parts = [(term.weight, column) for term, column in zip(terms, columns, strict=True) if not term.score.cacheable]
    totals: Sequence[int] = [0] * size
    if lasting:
        known = [(term.weight, column) for term, column in zip(terms, columns, strict=True) if term.score.cacheable]
        totals = fleet.get_or_compute(("sum", lasting, left), lambda: add_weighted_columns([0] * size, known))
    return add_weighted_columns(totals, parts)


def add_weighted_columns(totals: Sequence[int], parts: Iterable[tuple[int, Sequence[int]]]) -> Sequence[int]:
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


def explain_selection(request: SelectionRequest, choice: SelectionResult, fleet: Fleet, outside: str) -> list[CandidateResult]:
    """How every candidate fares, in name order; `outside` is why one was not offered."""
    reasons: dict[int, str] = dict.fromkeys(fleet.members(fleet.all & ~request.candidates), outside)
    before = request.candidates
    for rule, left in zip(SELECTION_FILTERS, choice.remaining, strict=True):
        for index in fleet.members(before & ~left):
            reasons[index] = rule.reason(request, fleet, index)
        before = left
    place = {index: at for at, index in enumerate(choice.members)}
    verdicts = []
    for index, name in enumerate(fleet.names):
        at = place.get(index)
        if at is None:
            verdicts.append(CandidateResult(name, False, reasons.get(index, ""), {}, None))
            continue
        scores: dict[str, float] = {}
        for term, column in zip(request.scores, choice.score_columns, strict=True):
            label = term.score.name
            while label in scores:  # the same score may be asked for more than once
                label += "'"
            scores[label] = column[at]
        verdicts.append(CandidateResult(name, True, "", scores, choice.totals[at]))
    return verdicts


def find_toleration_end(taint: Taint, tolerations: Sequence[Toleration], moment: datetime) -> datetime | None:
    """When the tolerations of a taint run out: the first that lasts beyond `moment` counts, as in a list that is asked in order.

    datetime.max means never; a moment that has passed means that all of them have; None that there is none. Seconds count from when the
    taint was added, which without a date is the year 1.
    """
    ends = [_compute_toleration_end(taint, toleration) for toleration in tolerations if toleration.tolerates(taint)]
    return next((end for end in ends if end > moment), max(ends, default=None))


def _compute_toleration_end(taint: Taint, toleration: Toleration) -> datetime:
    if toleration.seconds is None:
        return _NEVER
    # A Go duration is 64 bits of nanoseconds, and wraps around.
    wait = (toleration.seconds * _NANOSECONDS_PER_SECOND + _UINT64_RANGE // 2) % _UINT64_RANGE - _UINT64_RANGE // 2
    try:
        return (taint.since or _YEAR_ONE) + timedelta(microseconds=wait // 1000)
    except OverflowError:
        return _NEVER if wait > 0 else _YEAR_ONE


_NEVER = datetime.max.replace(tzinfo=UTC)
_YEAR_ONE = datetime.min.replace(tzinfo=UTC)


class _TolerationResult(NamedTuple):
    """Candidates with an intolerable taint, with one that only keeps newcomers away, and when what tolerates which ones runs out."""

    blocked: int
    blocked_if_new: int
    expirations: tuple[tuple[datetime, int, bool], ...]


def _cached_tolerations(request: SelectionRequest, fleet: Fleet) -> _TolerationResult:
    tolerations, effects, moment = request.tolerations, request.taint_effects, request.now
    # Seconds aside, time does not matter.
    timed = moment if any(toleration.seconds is not None for toleration in tolerations) else None
    return fleet.get_or_compute(
        ("tolerance", tolerations, effects, timed), lambda: _evaluate_taints(tolerations, effects, moment, fleet)
    )


def _evaluate_taints(
    tolerations: tuple[Toleration, ...], effects: TaintEffects, moment: datetime, fleet: Fleet
) -> _TolerationResult:
    firm = lenient = 0
    ends = []
    for taint, mask in _index_taints(fleet).items():
        if taint.effect in effects.ignored:
            continue
        end = find_toleration_end(taint, tolerations, moment)
        soft = taint.effect in effects.new_only
        if end is not None and end > moment:
            if end != _NEVER:
                ends.append((end, mask, soft))
        elif soft:
            lenient |= mask
        else:
            firm |= mask
    return _TolerationResult(firm, lenient, tuple(sorted(ends)))


def _index_taints(fleet: Fleet) -> dict[Taint, int]:
    def collect() -> dict[Taint, int]:
        taints: dict[Taint, int] = {}
        for index, candidate in enumerate(fleet.candidates):
            for taint in candidate.taints:
                taints[taint] = taints.get(taint, 0) | 1 << index
        return taints

    return fleet.get_or_compute("taints with their time", collect)


def _find_first_deadline(request: SelectionRequest, fleet: Fleet, left: int) -> datetime | None:
    return min(_list_deadlines(request, fleet, left), default=None)


def _list_deadlines(request: SelectionRequest, fleet: Fleet, left: int) -> Iterator[datetime]:
    for end, mask, lenient in _cached_tolerations(request, fleet).expirations:
        if mask & (left & ~request.previous if lenient else left):
            yield end


def _compute_column(score: ScorePlugin, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
    if not score.cacheable:
        return score.score_candidates(fleet, mask, members)
    return fleet.get_or_compute((score, mask), lambda: score.score_candidates(fleet, mask, members))
