"""Find metric constraints that no candidate can satisfy, whatever the values of its metrics are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from gitsched.apis.krake.candidates import ScoredCandidates
from gitsched.apis.krake.constraints import ConstraintSet, MetricConstraint, format_constraint

_COMPARED = {"raw": "values", "normalised": "normalised values", "weighted": "normalised values times the weight"}


def describe_impossible_constraints(constraints: ConstraintSet, candidate_sets: Sequence[ScoredCandidates]) -> Iterator[str]:
    """Yield why a metric constraint cannot be satisfied: no candidate has the metric, or the constraint excludes its whole range.

    Constraints with a value that is not a number are left to validation, and nothing is reported while metrics cannot be read.
    """
    for constraint in constraints.metrics:
        if constraint.bound is None or any(candidates.has_unread_metrics for candidates in candidate_sets):
            continue
        found = [
            candidates.fleet.get_or_compute(("possible", constraint), partial(_describe_range, constraint, candidates))
            for candidates in candidate_sets
            if candidates.candidates
        ]
        if found and "" not in found:
            known = next((text for text in found if text is not None), None)
            text = f"no candidate has the metric {constraint.key}" if known is None else known
            yield f"the constraint {format_constraint(constraint)} can never be satisfied: {text}"


def _describe_range(constraint: MetricConstraint, candidates: ScoredCandidates) -> str | None:
    """Return the range of a metric that excludes all values of the constraint; "" if a value can satisfy it; None without the metric."""
    mode, excluded = candidates.settings.constraint_mode, None
    for candidate in candidates.candidates:
        possible = candidate.metrics.find_possible_values(constraint.key, mode)
        if possible is None:
            continue
        if constraint.can_match(possible.values, is_range=possible.is_range):
            return ""
        excluded = excluded or f"the {_COMPARED[mode]} of {constraint.key} are {possible}"
    return excluded
