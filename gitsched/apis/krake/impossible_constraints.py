"""Find constraints that no candidate can satisfy, alone or together: labels that none has, metrics whose values are always others, and
constraints of which each candidate violates one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from gitsched.apis.krake.candidates import ScoredCandidates
from gitsched.apis.krake.constraints import ConstraintSet, LabelConstraint, MetricConstraint, format_constraint
from gitsched.apis.krake.exclusive_constraints import ConstraintPlace, ExclusiveConstraints, find_exclusive_constraints
from gitsched.model.finding import join_all
from gitsched.model.known_values import describe_unknown_key, describe_unknown_value, find_near, list_values

_MAX_NAMED = 8
"""Constraints that one message names."""
_COMPARED = {"raw": "values", "normalised": "normalised values", "weighted": "normalised values times the weight"}


def describe_impossible_constraints(
    constraints: ConstraintSet, candidate_sets: Sequence[ScoredCandidates]
) -> Iterator[tuple[ConstraintPlace, str]]:
    """Yield which constraints cannot be satisfied, and why: no candidate has the label, its value or the metric, or the constraint excludes
    the whole range of the metric.

    Constraints with a value that is not a number are left to validation, and nothing is reported while metrics cannot be read.
    """
    for index, label in enumerate(constraints.labels):
        reasons = [
            candidates.fleet.get_or_compute(("possible", label), partial(_describe_labels, label, candidates))
            for candidates in candidate_sets
            if candidates.candidates
        ]
        if reasons and all(reasons):
            reason = max(reasons, key=lambda text: "the fleet has" in text)
            yield ("labels", index), f"the constraint {format_constraint(label)} cannot be satisfied: {reason}"
    for index, constraint in enumerate(constraints.metrics):
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
            yield ("metrics", index), f"the constraint {format_constraint(constraint)} can never be satisfied: {text}"
    for exclusive in find_exclusive_constraints(constraints, candidate_sets):
        yield exclusive.constraints[-1][0], _describe_exclusive(exclusive, candidate_sets)


def _describe_exclusive(exclusive: ExclusiveConstraints, candidate_sets: Iterable[ScoredCandidates]) -> str:
    """Return which constraints exclude each other, and why."""
    names = [f"custom resource {one}" if isinstance(one, str) else format_constraint(one) for _, one in exclusive.constraints]
    more = [f"{len(names) - _MAX_NAMED} more"] if len(names) > _MAX_NAMED else []
    text = f"the constraints {join_all([*names[:_MAX_NAMED], *more])} cannot be satisfied together: "
    if not exclusive.key:
        return f"{text}each is satisfied by a candidate, and none satisfies all; change or remove one"
    known = {value for one in candidate_sets for each in one.candidates if (value := each.labels.get(exclusive.key))}
    has = f"; the fleet has {list_values(known)}" if exclusive.constraints[0][0][0] == "labels" else ""
    return f"{text}no candidate has such a value of {exclusive.key}{has}; change or remove one"


def _describe_labels(constraint: LabelConstraint, candidates: ScoredCandidates) -> str:
    """Return why no candidate has the labels of a constraint; "" if one has."""
    labels = [candidate.labels for candidate in candidates.candidates]
    if any(map(constraint.match, labels)):
        return ""
    known = {value for entry in labels if (value := entry.get(constraint.key)) is not None}
    if not known:
        keys = {key for entry in labels for key in entry}
        return describe_unknown_key("candidate", "label", constraint.key, keys, find_near(constraint.key, keys))
    if constraint.operator not in ("==", "in"):
        return f"{constraint.key} is {list_values(known)} wherever it is set"
    near = next(filter(None, (find_near(value, known) for value in constraint.values)), "")
    return describe_unknown_value("candidate", constraint.key, constraint.values, known, near)


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
