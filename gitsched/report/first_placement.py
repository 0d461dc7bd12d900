"""What a first run places, and why it places nothing, or not everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.model.finding import OUTPUT_NOT_FETCHED, SELECTOR_CODES, UNSCHEDULABLE, format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitsched.model.finding import Finding
    from gitsched.report.review import Review


def describe_unfetched(review: Review) -> str:
    """Return that the clone may lack the output branch; "" if it does not."""
    lacks_branch = any(finding.code == OUTPUT_NOT_FETCHED for finding in review.findings)
    return "The output branch was not fetched, so that everything counts as new" if lacks_branch else ""


def describe_first_placement(review: Review) -> tuple[str, str]:
    """Return how many workloads a first run places, and a sentence, after a blank, that says why no more; "" if it places all."""
    placed = review.states["placed"]
    if placed and placed == sum(review.states.values()):
        return format_count(placed, "workload"), ""
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
    codes = ("-selects-nothing", UNSCHEDULABLE) if states["pending"] else ("-selects-nothing",)
    others = (finding for code in codes for finding in review.findings if finding.code.endswith(code))
    mistakes = _list_mistakes(review) if states["pending"] else ()
    found = next((finding for finding in (*mistakes, *others) if finding.severity != "info"), None)
    if found is not None:
        return _locate(found)
    if not sum(states.values()) and review.unclaimed:
        return f"No policy selects an object of the source: gitsched status --unclaimed lists {format_count(review.unclaimed, 'object')}."
    return ""


def describe_nothing_placed(review: Review) -> list[str]:
    """Return that every workload is unplaced, with what a policy names and no cluster has if that is known; a first run says so at the
    start."""
    states = review.states
    if review.before is None or not states["pending"] or states["placed"] or states["stale"] or not review.cluster_count:
        return []
    found = next(_list_mistakes(review), None)
    if found is None:
        return ["No workload is placed: the warnings say why."]
    return [f"No workload is placed: {_locate(found)}"]


def _list_mistakes(review: Review) -> Iterator[Finding]:
    """Yield the findings about labels that no cluster has, then those about clusters that do not exist, by which the policies of unplaced
    workloads explain that nothing is placed."""
    label, cluster = SELECTOR_CODES
    yield from (finding for finding in review.findings if finding.code.endswith(label))
    if not review.states["placed"]:
        policies = {outcome.policy for outcome in review.outcomes if outcome.state == "pending"}
        for finding in review.findings:
            if finding.code.endswith(cluster) and "/".join(filter(None, finding.resource or ())) in policies:
                yield finding


def _locate(finding: Finding) -> str:
    """Return a finding as a sentence, with its place."""
    where = f" ({finding.location.text})" if finding.location is not None else ""
    return f"{finding.message}{where}."
