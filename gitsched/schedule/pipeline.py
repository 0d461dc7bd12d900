"""The replica scheduler: filter, score, select and assign, group by group.

1. The ordered groups are tried from `request.first_group`; the first that succeeds is the decision.
2. In a group the filters return the feasible candidates; none is "no-fit", with a histogram of reasons.
3. The feasible candidates are ranked: the group's own before overflow, previous candidates before others, then by capacity, then by
   name.
4. Selection reduces them to what the spread constraints allow; no valid selection is an "error".
5. Assignment divides the replicas; insufficient capacity is "unschedulable".
6. When every group fails, the decision is that of the first group.
"""

from __future__ import annotations

from collections import Counter

from gitsched.model.scheduling import AffinityGroup, CandidateResult, Decision, Request
from gitsched.schedule.assignment import (
    LOCALITY_SCORE,
    AssignmentError,
    Unschedulable,
    assign_by_static_weight,
    assign_replicas,
    rank_candidates,
)
from gitsched.schedule.fleet import Fleet, find_feasible
from gitsched.schedule.rejections import list_rejections
from gitsched.schedule.spread_constraints import SelectionError, select_candidates


def schedule(request: Request, fleet: Fleet) -> Decision:
    """Schedule one request."""
    first: tuple[Decision, AffinityGroup] | None = None
    for group in request.groups[request.first_group :]:
        decision = schedule_in_group(request, group, fleet)
        if decision.status == "scheduled":
            return decision
        first = first or (decision, group)
    if first is None:
        return Decision("error", (), "", "no cluster group to try")
    # Compute reasons only now: a group that failed before a successful one needs none.
    return add_reasons(*first, request, fleet)


def add_reasons(decision: Decision, group: AffinityGroup, request: Request, fleet: Fleet) -> Decision:
    """Add the reasons to a "no-fit" decision."""
    return decision._replace(message=describe_no_fit(request, group, fleet)) if decision.status == "no-fit" else decision


def schedule_in_group(request: Request, group: AffinityGroup, fleet: Fleet) -> Decision:
    """Schedule one request within one group; "no-fit" comes without its reasons, which cost more than the decision."""
    return schedule_among(request, group, fleet, find_feasible(request, group, fleet))


def schedule_among(request: Request, group: AffinityGroup, fleet: Fleet, mask: int) -> Decision:
    """Schedule one request within one group among the candidates that pass the filters.

    Other candidates have no effect on the decision, so a fleet without them gives the same one.
    """
    if not mask:
        return Decision("no-fit", (), group.name, "")
    if request.division == "static":
        # Static weights ignore capacity and spread constraints, so the candidates are not ranked.
        return Decision("scheduled", assign_by_static_weight(request, fleet, mask), group.name, "")
    ranked = rank_candidates(request, group, fleet, mask)
    try:
        selected = select_candidates(request, fleet, ranked) if request.spread_constraints else ranked.order
        targets = assign_replicas(request, fleet, ranked, selected)
    except SelectionError as error:
        return Decision("error", (), group.name, f"failed to select clusters: {error}")
    except AssignmentError as error:
        return Decision("error", (), group.name, f"failed to assign replicas: {error}")
    except Unschedulable as error:
        return Decision("unschedulable", (), group.name, f"failed to assign replicas: {error}")
    return Decision("scheduled", targets, group.name, "")


def describe_no_fit(request: Request, group: AffinityGroup, fleet: Fleet) -> str:
    """Return the histogram of reasons in Karmada's words, one reason per candidate, sorted as text."""
    reasons: Counter[str] = Counter()
    for rejection in list_rejections(request, group, fleet):
        reasons.update(rejection.filter.reason(request, fleet, index) for index in fleet.members(rejection.mask))
    if fleet.frozen and not reasons:
        reasons["cluster(s) document is broken"] = len(fleet.members(fleet.frozen))
    reasons_text = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items())) or "no cluster exists"
    return f"0/{len(fleet)} clusters are available: {reasons_text}."


def explain_group(request: Request, group: AffinityGroup, fleet: Fleet) -> list[CandidateResult]:
    """Return the result for every candidate of a group, in name order."""
    reasons = dict.fromkeys(fleet.members(fleet.deleting), "cluster(s) is being deleted")
    reasons |= dict.fromkeys(fleet.members(fleet.frozen), "cluster(s) document is broken")
    for rejection in list_rejections(request, group, fleet):
        for index in fleet.members(rejection.mask):
            reasons[index] = rejection.filter.reason(request, fleet, index)
    mask = find_feasible(request, group, fleet)
    previous = {target.name for target in request.previous}
    return [
        _make_result(name, reasons.get(index, ""), eligible=bool(mask >> index & 1), is_previous=name in previous)
        for index, name in enumerate(fleet.names)
    ]


def explain_candidate(request: Request, group: AffinityGroup, fleet: Fleet, index: int) -> CandidateResult:
    """Return the result for one candidate of a group, the same as `explain_group`."""
    name, bit = fleet.names[index], 1 << index
    is_previous = any(target.name == name for target in request.previous)
    if find_feasible(request, group, fleet) & bit:
        return _make_result(name, "", eligible=True, is_previous=is_previous)
    reason = (
        "cluster(s) document is broken" if fleet.frozen & bit else "cluster(s) is being deleted" if fleet.deleting & bit else ""
    )
    for rejection in list_rejections(request, group, fleet):
        if rejection.mask & bit:
            reason = rejection.filter.reason(request, fleet, index)
    return _make_result(name, reason, eligible=False, is_previous=is_previous)


def _make_result(name: str, reason: str, *, eligible: bool, is_previous: bool) -> CandidateResult:
    score = float(LOCALITY_SCORE) if is_previous else 0.0
    return CandidateResult(
        name, eligible, "" if eligible else reason, {"ClusterLocality": score} if eligible else {}, score if eligible else None
    )
