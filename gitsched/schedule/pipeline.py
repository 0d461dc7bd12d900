"""Filter, score, select, assign: the whole algorithm on one page.

1. The ordered groups are tried from `request.start`; the first that succeeds is the decision.
2. In a group the filters leave the feasible candidates; none at all is "no-fit", with a histogram of reasons.
3. The feasible ones are ordered: those that hold the workload already come first, then by name.
4. Selection narrows them, assignment divides the replicas.
5. When every group fails, the decision is what the first one said.
"""

from __future__ import annotations

from collections import Counter

from gitsched.model.decision import Decision, Verdict
from gitsched.model.request import Group, Request
from gitsched.schedule.assign import Unsupported, assign
from gitsched.schedule.filters import feasible, rejections
from gitsched.schedule.fleet import Fleet

LOCALITY = 100
"""The score of a candidate that holds the workload already."""


def schedule(request: Request, fleet: Fleet) -> Decision:
    """Decide one request."""
    first: tuple[Decision, Group] | None = None
    for group in request.groups[request.start :]:
        decision = attempt(request, group, fleet)
        if decision.outcome == "scheduled":
            return decision
        first = first or (decision, group)
    if first is None:
        return Decision("error", (), "", "no cluster group to try")
    # Reasons only now: a group that is passed over on the way to a better one owes nobody any.
    return with_reasons(*first, request, fleet)


def with_reasons(decision: Decision, group: Group, request: Request, fleet: Fleet) -> Decision:
    """A decision that says why nothing fits, where nothing does."""
    return decision._replace(message=why_nothing_fits(request, group, fleet)) if decision.outcome == "no-fit" else decision


def attempt(request: Request, group: Group, fleet: Fleet) -> Decision:
    """Decide one request within one group; "no-fit" comes without its reasons, which cost more than the decision."""
    mask = feasible(request, group, fleet)
    if not mask:
        return Decision("no-fit", (), group.name, "")
    chosen = order(mask, request, fleet)
    if request.spreads:
        return Decision("error", (), group.name, "spread constraints are not supported yet")
    try:
        return Decision("scheduled", assign(request, fleet, chosen), group.name, "")
    except Unsupported as error:
        return Decision("error", (), group.name, str(error))


def order(mask: int, request: Request, fleet: Fleet) -> list[int]:
    """The indices of the feasible candidates: score descending, then name ascending."""
    held = fleet.mask(target.name for target in request.held)
    return fleet.members(mask & held) + fleet.members(mask & ~held)


def why_nothing_fits(request: Request, group: Group, fleet: Fleet) -> str:
    """The histogram of reasons in Karmada's words, most common reason of each candidate counted once, sorted as text."""
    reasons: Counter[str] = Counter()
    for rejection in rejections(request, group, fleet):
        reasons.update(rejection.filter.reason(request, fleet, index) for index in fleet.members(rejection.mask))
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items())) or "no cluster exists"
    return f"0/{len(fleet)} clusters are available: {told}."


def explain(request: Request, group: Group, fleet: Fleet) -> list[Verdict]:
    """How every candidate fares in a group, in name order."""
    reasons = dict.fromkeys(fleet.members(fleet.leaving), "cluster(s) is being deleted")
    reasons |= dict.fromkeys(fleet.members(fleet.frozen), "cluster(s) document is broken")
    for rejection in rejections(request, group, fleet):
        for index in fleet.members(rejection.mask):
            reasons[index] = rejection.filter.reason(request, fleet, index)
    mask = feasible(request, group, fleet)
    held = {target.name for target in request.held}
    verdicts = []
    for index, name in enumerate(fleet.names):
        eligible = bool(mask >> index & 1)
        score = float(LOCALITY) if name in held else 0.0
        scores = {"ClusterLocality": score} if eligible else {}
        verdicts.append(Verdict(name, eligible, "" if eligible else reasons.get(index, ""), scores, score if eligible else None))
    return verdicts
