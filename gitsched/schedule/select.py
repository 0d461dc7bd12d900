"""Selection: which of the feasible candidates are used, where a policy wants them spread.

Clusters and regions can be spread over. Zones and providers only have to be known (see filters). Errors are Karmada's words.
"""

from __future__ import annotations

from gitsched.model.request import Request, Spread
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.regions import Region, choose_regions, score_regions
from gitsched.schedule.survey import Survey

CLUSTER, REGION = "cluster", "region"


class Unselectable(Exception):
    """No selection meets the constraints; the message says why."""


def select(request: Request, fleet: Fleet, survey: Survey) -> list[int]:
    """The chosen candidates, in the order in which upstream would list them. Raises Unselectable."""
    if not request.spreads:
        return survey.order
    spreads = {spread.field: spread for spread in request.spreads}
    if REGION in spreads:
        return _select_by_region(request, fleet, survey, spreads[REGION], spreads.get(CLUSTER) or Spread(CLUSTER, 0, 0))
    if CLUSTER in spreads:
        return _select_by_cluster(request, survey, spreads[CLUSTER])
    raise Unselectable("just support cluster and region spread constraint")


def _select_by_cluster(request: Request, survey: Survey, spread: Spread) -> list[int]:
    order = survey.order
    if len(order) < spread.minimum:
        raise Unselectable("the number of feasible clusters is less than spreadConstraint.MinGroups")
    count = min(len(order), spread.maximum)
    picked, rest = order[:count], order[count:]
    if not request.divides:
        return picked
    total = sum(map(survey.available, picked))
    for place in range(count - 1, -1, -1):
        if total >= request.replicas:
            break
        best = max(rest, key=survey.available, default=None)  # the first of several
        if best is None or survey.available(best) <= survey.available(picked[place]):
            continue
        total += survey.available(best) - survey.available(picked[place])
        rest[rest.index(best)], picked[place] = picked[place], best
    if total < request.replicas or not picked:
        raise Unselectable(f"no enough resource when selecting {count} clusters")
    return picked


def _select_by_region(request: Request, fleet: Fleet, survey: Survey, region: Spread, cluster: Spread) -> list[int]:
    regions = score_regions(request, fleet, survey, region, cluster)
    if len(regions) < region.minimum:
        raise Unselectable("the number of feasible region is less than spreadConstraint.MinGroups")
    path = choose_regions(regions, region.minimum, region.maximum, cluster.minimum)
    if path is None:
        raise Unselectable("the number of clusters is less than the cluster spreadConstraint.MinGroups")
    return _fill(path, survey, cluster.maximum)


def _fill(path: list[Region], survey: Survey, maximum: int) -> list[int]:
    """The best of each region, then the best of all others up to the maximum."""
    firsts = [region.members[0] for region in path]
    pool = {index for region in path for index in region.members[1:]}
    wanted = min(len(firsts) + len(pool), maximum) - len(firsts)
    others = [index for index in survey.order if index in pool]
    return firsts + others[: max(wanted, 0)]
