"""Find constraints that exclude each other: candidates satisfy each of them, and no candidate satisfies all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise

from gitsched.apis.krake.candidates import ResourceCandidate, ScoredCandidates
from gitsched.apis.krake.constraints import CUSTOM_RESOURCES, ConstraintSet, LabelConstraint, MetricConstraint
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import pack_mask

_MAX_CONSTRAINTS = 100
"""Constraints of one resource that are compared with each other."""

ConstraintPlace = tuple[str, int]
"""The list of a constraint, labels, custom_resources or metrics, and its index there."""

_Constraint = LabelConstraint | MetricConstraint | str


class ExclusiveConstraints(NamedTuple):
    """Constraints that exclude each other, without one more than that needs; `key` is the label or metric that all are about, else ""."""

    constraints: tuple[tuple[ConstraintPlace, _Constraint], ...]
    key: str


def find_exclusive_constraints(
    constraints: ConstraintSet, candidate_sets: Sequence[ScoredCandidates]
) -> list[ExclusiveConstraints]:
    """Return the constraints on one label or metric that exclude each other; without any, those of all that do.

    Constraints that no candidate satisfies alone are left out, and those on metrics while metrics cannot be read.
    """
    known: list[tuple[ConstraintPlace, _Constraint]] = [
        *((("labels", index), label) for index, label in enumerate(constraints.labels)),
        *(((CUSTOM_RESOURCES, index), name) for index, name in enumerate(constraints.custom_resources)),
    ]
    sets = [candidates for candidates in candidate_sets if candidates.candidates]
    if not any(candidates.has_unread_metrics for candidates in sets):
        known += [(("metrics", index), metric) for index, metric in enumerate(constraints.metrics) if metric.bound is not None]
    possible = partial(_can_be_satisfied, sets)
    if not sets or len(known) < 2 or possible(known):
        return []
    known = [entry for entry in known[:_MAX_CONSTRAINTS] if possible([entry])]
    if possible(known):
        return []
    found = [(key, entries) for key, entries in _group_by_key(known) if not possible(entries)] or [("", known)]
    return [ExclusiveConstraints(tuple(_reduce(sets, entries)), key) for key, entries in found]


def _group_by_key(
    known: Iterable[tuple[ConstraintPlace, _Constraint]],
) -> Iterator[tuple[str, list[tuple[ConstraintPlace, _Constraint]]]]:
    """Yield each label and each metric with the constraints on it."""
    found: dict[tuple[str, str], list[tuple[ConstraintPlace, _Constraint]]] = {}
    for place, constraint in known:
        if not isinstance(constraint, str):
            found.setdefault((place[0], constraint.key), []).append((place, constraint))
    for (_, key), entries in found.items():
        yield key, entries


def _reduce(
    sets: Sequence[ScoredCandidates], entries: list[tuple[ConstraintPlace, _Constraint]]
) -> list[tuple[ConstraintPlace, _Constraint]]:
    """Leave out the constraints, the last ones first, without which the others still exclude each other."""
    for entry in reversed(entries):
        others = [other for other in entries if other is not entry]
        if not _can_be_satisfied(sets, others):
            entries = others
    return entries


def _can_be_satisfied(sets: Sequence[ScoredCandidates], entries: Iterable[tuple[ConstraintPlace, _Constraint]]) -> bool:
    """Return whether a candidate can satisfy all of the constraints, with any values of its metrics."""
    rules: list[LabelConstraint | str] = []
    metrics: dict[str, tuple[MetricConstraint, ...]] = {}
    for _, constraint in entries:
        if isinstance(constraint, MetricConstraint):
            metrics[constraint.key] = (*metrics.get(constraint.key, ()), constraint)
        else:
            rules.append(constraint)
    for candidates in sets:
        mask = (1 << len(candidates.candidates)) - 1
        for rule in rules:
            mask &= candidates.fleet.get_or_compute(("satisfies", rule), partial(_match_rule, candidates.candidates, rule))
        for group in metrics.values():
            mask &= candidates.fleet.get_or_compute(("can satisfy", group), partial(_match_metrics, candidates, group))
        if mask:
            return True
    return False


def _match_rule(candidates: Iterable[ResourceCandidate], rule: LabelConstraint | str) -> int:
    if isinstance(rule, str):
        return pack_mask(rule in candidate.custom_resources for candidate in candidates)
    return pack_mask(rule.match(candidate.labels) for candidate in candidates)


def _match_metrics(candidates: ScoredCandidates, constraints: tuple[MetricConstraint, ...]) -> int:
    """Return the candidates of which a metric can have a value that satisfies all constraints on it."""
    key, mode = constraints[0].key, candidates.settings.constraint_mode
    return pack_mask(_can_have(candidate, key, mode, constraints) for candidate in candidates.candidates)


def _can_have(candidate: ResourceCandidate, key: str, mode: str, constraints: tuple[MetricConstraint, ...]) -> bool:
    possible = candidate.metrics.find_possible_values(key, mode)
    if possible is None:
        return False
    values: Iterable[float] = possible.values
    if possible.is_range:  # between two neighbouring bounds all values satisfy the same constraints
        first, last = possible.values[0], possible.values[-1]
        bounds = (bound for one in constraints if (bound := one.bound) is not None and first <= bound <= last)
        ends = sorted({first, last, *bounds})
        values = chain(ends, ((low + high) / 2 for low, high in pairwise(ends)))
    return any(all(one.match({key: value}) for one in constraints) for value in values)
