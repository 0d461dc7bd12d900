"""What a first run places, and why it places nothing, or not everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.model.finding import OUTPUT_NOT_FETCHED, UNSCHEDULABLE, format_count, format_part
from gitsched.model.mistakes import MISTAKES, choose_mistake, find_mistakes, format_sentence

if TYPE_CHECKING:
    from collections.abc import Container

    from gitsched.model.finding import Finding
    from gitsched.report.review import Review


def describe_unfetched(review: Review) -> str:
    """Return that the clone may lack the output branch; "" if it does not."""
    lacks_branch = any(finding.code == OUTPUT_NOT_FETCHED for finding in review.findings)
    return "The output branch was not fetched, so that everything counts as new" if lacks_branch else ""


def describe_first_placement(review: Review) -> tuple[str, str]:
    """Return how many workloads a first run places, and a sentence, after a blank, that says why no more; "" if it places all
    that has pods."""
    placed = review.states["placed"]
    if placed and placed == sum(review.states.values()):
        left = sum(not one.selected for one in review.comparison.unplaced)
        return format_count(placed, "workload"), f" No policy selects {format_count(left, 'object')} with pods." if left else ""
    why = _explain_unplaced(review)
    return _count_placed(review), f" {why}" if why else ""


def _count_placed(review: Review) -> str:
    """Return how many workloads a first run places that does not place all: "0 of 3 workloads"; "no workload" where no policy selects an
    object."""
    total = sum(review.states.values())
    return f"{review.states['placed']:,} of {format_count(total, 'workload')}" if total else "no workload"


def _explain_unplaced(review: Review) -> str:
    """Return why a first run does not place every workload, or none, as a sentence; "" where it places all."""
    states = review.states
    if states["placed"] and not states["pending"]:
        return ""
    found = find_reason(review) if states["pending"] else None
    if found is None:
        unused = (
            finding for finding in review.findings if finding.code.endswith("-selects-nothing") and finding.severity != "info"
        )
        found = next(unused, None)
    if found is not None:
        return f"{format_sentence(found)}."
    if not sum(states.values()) and review.unclaimed:
        return f"No policy selects an object of the source: gitsched status --unclaimed lists {format_count(review.unclaimed, 'object')}."
    return ""


def describe_unplaced(review: Review) -> str:
    """Return how many workloads are unplaced, and why the first of them is, as a sentence after a blank; only why, if they lose their
    clusters by the change. "" for a first placement, and where a workload is unplaced only because it has 0 replicas."""
    pending = review.states["pending"]
    if not review.cluster_count or (review.before is None and not review.base.commit):
        return ""
    found = find_reason(review)
    if found is None:
        return ""
    if sum(move.becomes_unplaced for move in review.moves) + sum(one.selected for one in review.comparison.unplaced) >= pending:
        return f" {format_sentence(found)}."
    part = format_part(pending, sum(review.states.values()), "workload", "is unplaced", "are unplaced")
    return f" {part}: {format_sentence(found)}."


def describe_withheld_cause(review: Review) -> str:
    """Return what is wrong where the guard withholds that workloads become unplaced: what these or their policies want and does not exist,
    with the place; "" if that is not known."""
    lost = {move.key.resource for move in review.withheld.moves if move.becomes_unplaced}
    found = find_reason(review, lost) if lost else None
    return format_sentence(found) if found is not None and found.code in MISTAKES else ""


def find_reason(review: Review, among: Container[tuple[str, str, str]] | None = None) -> Finding | None:
    """Return why the first workload that no cluster gets is unplaced, a new one first: what it or its policy wants and does not exist if
    that is known; None if nothing is known. `among` are the workloads that count, by default all."""
    unscheduled = [*filter(_is_unscheduled, (*review.new_findings, *review.findings))]
    if among is None and unscheduled:  # such a finding is also about a workload that keeps fewer replicas than it should have
        among = {outcome.key.resource for outcome in review.outcomes if outcome.state == "pending"}
    found = next((one for one in unscheduled if one.resource in (among or ())), None)
    mistakes = find_mistakes(review.findings) if found is not None else {}
    if found is None or found.resource is None or not mistakes:
        return found
    outcome = next((one for one in review.outcomes if one.key.resource == found.resource), None)
    policies = outcome.policy if outcome is not None else ""
    return choose_mistake(mistakes, "/".join(filter(None, found.resource)), policies) or found


def _is_unscheduled(finding: Finding) -> bool:
    return finding.code == UNSCHEDULABLE and finding.severity != "info"
