"""Select the best candidates without dividing replicas: filter by predicates and taints, sum weighted scores, pick the top N within
topology spread constraints."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import add
from typing import Protocol

from gitsched.model.scheduling import Affinity, CandidateResult
from gitsched.model.taints import Taint, Toleration
from gitsched.model.time import NEVER
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.preferences import add_preference
from gitsched.schedule.scores import ScorePlugin


class TopologySpread(NamedTuple):
    """A topology spread constraint. `domains` has the domain of each candidate of the fleet, "" for a candidate without one. A
    domain may have at most `max_skew` selected candidates more than the domain with the fewest; a constraint that is not
    `hard` is ignored when no other candidate remains."""

    domains: Sequence[str]
    max_skew: int
    hard: bool


def pick_spread(
    members: Sequence[int], totals: Sequence[int], limit: int | None, spreads: Sequence[TopologySpread]
) -> Sequence[int]:
    """Select up to `limit` members one after another, each the best that meets all constraints, else the best that meets the hard
    ones.

    Ascending. A candidate without a domain violates the constraint; every domain of a member counts, even a full one.
    """
    maximum = len(members) if limit is None else max(0, limit)
    counts = [dict.fromkeys((spread.domains[index] for index in members if spread.domains[index]), 0) for spread in spreads]
    queues: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for index, total in sorted(zip(members, totals, strict=True), key=lambda entry: (entry[1], -entry[0])):
        queues.setdefault(tuple(spread.domains[index] for spread in spreads), []).append((-total, index))
    # The best member of each combination of domains: the other members of the combination are equivalent except for a lower
    # score.
    best_of_groups = sorted((*queue.pop(), domain_values) for domain_values, queue in queues.items())
    selected: list[int] = []
    while len(selected) < maximum:
        position = _find_allowed(best_of_groups, spreads, counts, soft=True)
        position = _find_allowed(best_of_groups, spreads, counts, soft=False) if position is None else position
        if position is None:
            break
        _, index, domain_values = best_of_groups.pop(position)
        selected.append(index)
        for domain, domain_counts in zip(domain_values, counts, strict=True):
            if domain:
                domain_counts[domain] += 1
        if queues[domain_values]:
            insort(best_of_groups, (*queues[domain_values].pop(), domain_values))
    return sorted(selected)


def _find_allowed(
    best_of_groups: Sequence[tuple[int, int, tuple[str, ...]]],
    spreads: Sequence[TopologySpread],
    counts: Sequence[dict[str, int]],
    *,
    soft: bool,
) -> int | None:
    """Return the position of the first member that meets the hard constraints, and the others too if `soft`."""
    minimums = [min(domain_counts.values(), default=0) for domain_counts in counts]
    for position, (_, _, domain_values) in enumerate(best_of_groups):
        if all(
            (domain_counts[domain] + 1 - minimum <= spread.max_skew if domain else not (spread.hard or soft))
            for spread, domain, domain_counts, minimum in zip(spreads, domain_values, counts, minimums, strict=True)
            if spread.hard or soft
        ):
            return position
    return None


_NANOSECONDS_PER_SECOND = 10**9
_UINT64_RANGE = 1 << 64


class CandidateTest(Protocol):
    """A condition without an index: it returns which of the remaining candidates meet it. Hashable, equal by value."""

    def mask(self, fleet: Fleet, remaining: int) -> int: ...


class PredicateAlternative(NamedTuple):
    """A conjunction of conditions."""

    affinity: Affinity
    tests: tuple[CandidateTest, ...] = ()


class WeightedScore(NamedTuple):
    """A score and its weight."""

    score: ScorePlugin
    weight: int


class TaintEffects(NamedTuple):
    """The effects of taints: `ignored` effects never reject a candidate, `new_only` effects only reject candidates without a
    previous decision."""

    ignored: frozenset[str]
    new_only: frozenset[str]


class SelectionRequest(NamedTuple):
    """A request to select candidates. A candidate must meet one of the `predicates`, if there are any. `previous` are the
    candidates of the previous result, `now` is the time for toleration seconds. `limit` is the maximum number to select, None means all,
    and `spreads` are the topology spread constraints. `preferred` are the indices of candidates that come before all others, whatever
    their scores are, in their order."""

    candidates: int
    predicates: tuple[PredicateAlternative, ...]
    tolerations: tuple[Toleration, ...]
    taint_effects: TaintEffects
    previous: int
    now: datetime
    scores: tuple[WeightedScore, ...]
    limit: int | None
    spreads: tuple[TopologySpread, ...] = ()
    preferred: tuple[int, ...] = ()


class SelectionResult(NamedTuple):
    """`remaining` are the candidates after each filter, in their order. `members` are the indices of the candidates that passed
    all filters, ascending; `score_columns` (one per score) and `totals` are aligned with them. `selected` are indices,
    ascending. `deadline` is the time at which the first toleration of a remaining candidate ends."""

    remaining: tuple[int, ...]
    members: Sequence[int]
    score_columns: tuple[Sequence[int], ...]
    totals: Sequence[int]
    selected: Sequence[int]
    deadline: datetime | None


class SelectionFilter(Protocol):
    """The interface of a filter of this profile."""

    name: str

    def mask(self, request: SelectionRequest, fleet: Fleet, remaining: int) -> int:
        """Return which of the remaining candidates pass."""
        ...

    def reason(self, request: SelectionRequest, fleet: Fleet, index: int) -> str:
        """Return why a rejected candidate did not pass."""
        ...


class PredicateFilter:
    name = "Predicate"

    def mask(self, request: SelectionRequest, fleet: Fleet, remaining: int) -> int:
        if not request.predicates:
            return remaining
        found = 0
        for affinity, tests in request.predicates:
            mask = remaining & ~found & fleet.matching(affinity)
            for test in tests:
                if mask:
                    mask = test.mask(fleet, mask)
            found |= mask
        return found

    def reason(self, request: SelectionRequest, fleet: Fleet, index: int) -> str:
        return "it meets none of the predicates" if len(request.predicates) > 1 else "it does not meet the predicate"


class TimedTaintTolerationFilter:
    """The request tolerates the taints of the candidate at its time (tolerationSeconds); some effects reject only new candidates."""

    name = "TaintToleration"

    def mask(self, request: SelectionRequest, fleet: Fleet, remaining: int) -> int:
        blocked, blocked_if_new, _ = _cached_tolerations(request, fleet)
        return remaining & ~blocked & ~(blocked_if_new & ~request.previous)

    def reason(self, request: SelectionRequest, fleet: Fleet, index: int) -> str:
        for taint in fleet.candidates[index].taints:
            if not is_ignored(request, taint, index):
                end = find_toleration_end(taint, request.tolerations, request.now)
                if end is None or end <= request.now:
                    why = "is not tolerated" if end is None else f"was tolerated until {end:%Y-%m-%dT%H:%M:%SZ}"
                    return f"its taint {taint} {why}"
        return "it has a taint that is not tolerated"


SELECTION_FILTERS: tuple[SelectionFilter, ...] = (PredicateFilter(), TimedTaintTolerationFilter())
BUILT_IN_SELECTION_FILTERS = SELECTION_FILTERS


def list_selection_filters() -> tuple[SelectionFilter, ...]:
    """Return the filters, with those that `gitsched.schedule.plugins` has added."""
    return SELECTION_FILTERS


class SelectionStage(NamedTuple):
    """A filter with the candidates before and after it."""

    filter: SelectionFilter
    before: int
    remaining: int


def list_stages(request: SelectionRequest, choice: SelectionResult) -> list[SelectionStage]:
    """Return what each filter left, in their order."""
    before = (request.candidates, *choice.remaining)
    return [SelectionStage(*stage) for stage in zip(SELECTION_FILTERS, before, choice.remaining, strict=False)]


def select_best(request: SelectionRequest, fleet: Fleet) -> SelectionResult:
    """Select the best candidates for one request: filter them, score them and pick up to the limit (numberOfClusters)."""
    remaining, stages = request.candidates, []
    for rule in SELECTION_FILTERS:
        if remaining:
            remaining &= rule.mask(request, fleet, remaining)
        stages.append(remaining)
    members = fleet.members(remaining)
    columns = tuple(_compute_column(term.score, fleet, remaining, members) for term in request.scores)
    totals = _sum_scores(request.scores, columns, fleet, remaining, len(members))
    limit, spreads = request.limit, request.spreads
    ranks = add_preference(members, totals, request.preferred) if request.preferred else totals
    selected = pick_spread(members, ranks, limit, spreads) if spreads else pick_best(members, ranks, limit)
    return SelectionResult(tuple(stages), members, columns, totals, selected, _find_first_deadline(request, fleet, remaining))


def _sum_scores(
    terms: Sequence[WeightedScore], columns: Sequence[Sequence[int]], fleet: Fleet, remaining: int, size: int
) -> Sequence[int]:
    """Return the sum of weight * column for each member; the sum of cacheable scores is shared by equal requests."""
    cacheable_terms = tuple(term for term in terms if term.score.cacheable)
    parts = [(term.weight, column) for term, column in zip(terms, columns, strict=True) if not term.score.cacheable]
    totals: Sequence[int] = [0] * size
    if cacheable_terms:
        columns_of_terms = [(term.weight, column) for term, column in zip(terms, columns, strict=True) if term.score.cacheable]
        totals = fleet.get_or_compute(
            ("sum", cacheable_terms, remaining), lambda: add_weighted_columns([0] * size, columns_of_terms)
        )
    return add_weighted_columns(totals, parts)


def add_weighted_columns(totals: Sequence[int], parts: Iterable[tuple[int, Sequence[int]]]) -> Sequence[int]:
    """Add weight * column for each part, element by element."""
    for weight, column in parts:
        if weight == 1:
            totals = list(map(add, totals, column))
        else:
            totals = [total + weight * score for total, score in zip(totals, column, strict=True)]
    return totals


def pick_best(members: Sequence[int], totals: Sequence[int], limit: int | None) -> Sequence[int]:
    """Return the `limit` members with the highest totals, ties by index ascending, in the order of the members."""
    if limit is None or limit >= len(members):
        return members
    if limit <= 0:
        return ()
    ordered = sorted(totals, reverse=True)
    threshold = ordered[limit - 1]
    ties = limit - ordered.index(threshold)
    selected = []
    for member, total in zip(members, totals, strict=True):
        if total > threshold:
            selected.append(member)
        elif total == threshold and ties:
            ties -= 1
            selected.append(member)
    return selected


def explain_selection(request: SelectionRequest, choice: SelectionResult, fleet: Fleet, outside: str) -> list[CandidateResult]:
    """Return the result for every candidate, in name order; `outside` is the reason of a candidate outside the request."""
    reasons: dict[int, str] = dict.fromkeys(fleet.members(fleet.all & ~request.candidates), outside)
    for rule, before, remaining in list_stages(request, choice):
        for index in fleet.members(before & ~remaining):
            reasons[index] = rule.reason(request, fleet, index)
    positions = {index: position for position, index in enumerate(choice.members)}
    results = []
    for index, name in enumerate(fleet.names):
        position = positions.get(index)
        if position is None:
            results.append(CandidateResult(name, False, reasons.get(index, ""), {}, None))
            continue
        scores: dict[str, float] = {}
        for term, column in zip(request.scores, choice.score_columns, strict=True):
            label = term.score.name
            while label in scores:  # the same score may be requested more than once
                label += "'"
            scores[label] = column[position]
        results.append(CandidateResult(name, True, "", scores, choice.totals[position]))
    return results


def is_ignored(request: SelectionRequest, taint: Taint, index: int) -> bool:
    """Return whether a taint of a candidate cannot reject it: by its effect, or as one that rejects only new candidates."""
    kept = taint.effect in request.taint_effects.new_only and request.previous >> index & 1
    return taint.effect in request.taint_effects.ignored or bool(kept)


def find_toleration_end(taint: Taint, tolerations: Sequence[Toleration], now: datetime) -> datetime | None:
    """Return when the tolerations of a taint end: the first that lasts beyond `now` counts, in the order of the list.

    datetime.max means never; a time in the past means that all of them have ended; None that there is none. Seconds count from
    the time when the taint was added, which without a date is the year 1.
    """
    ends = [_compute_toleration_end(taint, toleration) for toleration in tolerations if toleration.tolerates(taint)]
    return next((end for end in ends if end > now), max(ends, default=None))


def _compute_toleration_end(taint: Taint, toleration: Toleration) -> datetime:
    if toleration.seconds is None:
        return NEVER
    # A Go duration is a 64-bit number of nanoseconds, and overflows.
    nanoseconds = (toleration.seconds * _NANOSECONDS_PER_SECOND + _UINT64_RANGE // 2) % _UINT64_RANGE - _UINT64_RANGE // 2
    try:
        return (taint.since or _YEAR_ONE) + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return NEVER if nanoseconds > 0 else _YEAR_ONE


_YEAR_ONE = datetime.min.replace(tzinfo=UTC)


class _TolerationResult(NamedTuple):
    """Candidates with a taint that rejects them, with a taint that rejects them as new ones only, and the times at which
    tolerations end."""

    blocked: int
    blocked_if_new: int
    expirations: tuple[tuple[datetime, int, bool], ...]


def _cached_tolerations(request: SelectionRequest, fleet: Fleet) -> _TolerationResult:
    tolerations, effects, now = request.tolerations, request.taint_effects, request.now
    # Time only matters for tolerations with seconds.
    timed = now if any(toleration.seconds is not None for toleration in tolerations) else None
    return fleet.get_or_compute(
        ("tolerance", tolerations, effects, timed), lambda: _evaluate_taints(tolerations, effects, now, fleet)
    )


def _evaluate_taints(tolerations: tuple[Toleration, ...], effects: TaintEffects, now: datetime, fleet: Fleet) -> _TolerationResult:
    blocked = blocked_if_new = 0
    ends = []
    for taint, mask in _index_taints(fleet).items():
        if taint.effect in effects.ignored:
            continue
        end = find_toleration_end(taint, tolerations, now)
        soft = taint.effect in effects.new_only
        if end is not None and end > now:
            if end != NEVER:
                ends.append((end, mask, soft))
        elif soft:
            blocked_if_new |= mask
        else:
            blocked |= mask
    return _TolerationResult(blocked, blocked_if_new, tuple(sorted(ends)))


def _index_taints(fleet: Fleet) -> dict[Taint, int]:
    def collect() -> dict[Taint, int]:
        taints: dict[Taint, int] = {}
        for index, candidate in enumerate(fleet.candidates):
            for taint in candidate.taints:
                taints[taint] = taints.get(taint, 0) | 1 << index
        return taints

    return fleet.get_or_compute("taints with time", collect)


def _find_first_deadline(request: SelectionRequest, fleet: Fleet, remaining: int) -> datetime | None:
    return min(_list_deadlines(request, fleet, remaining), default=None)


def _list_deadlines(request: SelectionRequest, fleet: Fleet, remaining: int) -> Iterator[datetime]:
    for end, mask, blocked_if_new in _cached_tolerations(request, fleet).expirations:
        if mask & (remaining & ~request.previous if blocked_if_new else remaining):
            yield end


def _compute_column(score: ScorePlugin, fleet: Fleet, mask: int, members: Sequence[int]) -> Sequence[int]:
    if not score.cacheable:
        return score.score_candidates(fleet, mask, members)
    return fleet.get_or_compute((score, mask), lambda: score.score_candidates(fleet, mask, members))
