"""Filter plug-ins of the replica scheduler: ClusterAffinity, TaintToleration, APIEnablement, SpreadConstraint and ClusterEviction.

A filter is a class with a name, a mask (the candidates that pass) and a reason for a rejected candidate, and an entry in FILTERS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from gitsched.model.scheduling import AffinityGroup, Request
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE
from gitsched.schedule.fleet import Fleet


class FilterPlugin(Protocol):
    """The interface of a filter. `previous` are the candidates of the previous result."""

    name: str

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        """Return the candidates that pass."""
        ...

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        """Return why a rejected candidate did not pass."""
        ...


class ClusterAffinityFilter:
    """The candidate matches the affinity of the group, or one of its overflow affinities when replicas are divided."""

    name = "ClusterAffinity"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        if group.affinity is None:
            return fleet.all
        mask = fleet.matching(group.affinity)
        if request.division != "everywhere":
            for affinity in group.overflow:
                mask |= fleet.matching(affinity)
        return mask

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        return "cluster(s) did not match the placement cluster affinity constraint"


class TaintTolerationFilter:
    """The request tolerates every NoSchedule and NoExecute taint of the candidate, or the candidate is a previous one."""

    name = "TaintToleration"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        return previous | fleet.all & ~fleet.untolerated(request.tolerations)

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        for taint in fleet.candidates[index].taints:
            if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in request.tolerations):
                return f"cluster(s) had untolerated taint {{{taint}}}"
        return "cluster(s) had untolerated taint"


class APIEnablementFilter:
    """The candidate serves the API of the workload, or is a previous one."""

    name = "APIEnablement"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        return fleet.all if request.required_api is None else previous | fleet.serving(request.required_api)

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        return "cluster(s) did not have the API resource"


class SpreadConstraintFilter:
    """The candidate has every field that the spread constraints use, such as a region."""

    name = "SpreadConstraint"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        mask = fleet.all
        for field in request.required_fields:
            mask &= fleet.with_field(field)
        return mask

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        fields = fleet.candidates[index].fields
        missing = next((field for field in request.required_fields if not fields.get(field)), "spread")
        return f"cluster(s) did not have {missing} property"


class ClusterEvictionFilter:
    """The workload is not under graceful eviction from the candidate."""

    name = "ClusterEviction"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        return fleet.all & ~fleet.mask(request.evicted)

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        return "cluster(s) is in the process of eviction"


FILTERS: tuple[FilterPlugin, ...] = (
    ClusterAffinityFilter(),
    TaintTolerationFilter(),
    APIEnablementFilter(),
    SpreadConstraintFilter(),
    ClusterEvictionFilter(),
)


class Rejection(NamedTuple):
    """The candidates that a filter was the first to reject."""

    filter: FilterPlugin
    mask: int


def find_feasible(request: Request, group: AffinityGroup, fleet: Fleet) -> int:
    """Return the candidates that pass every filter. Deleting candidates are excluded; frozen ones keep their workloads and get no
    new ones."""
    previous = fleet.mask(target.name for target in request.previous)
    mask = fleet.all & ~fleet.deleting & ~fleet.frozen
    for rule in FILTERS:
        mask &= rule.mask(request, group, fleet, previous)
    return mask | previous & fleet.frozen & ~fleet.mask(request.evicted)


def list_rejections(request: Request, group: AffinityGroup, fleet: Fleet) -> Iterator[Rejection]:
    """Yield each filter with the candidates that it was the first to reject, in the order of filters."""
    previous = fleet.mask(target.name for target in request.previous)
    remaining = fleet.all & ~fleet.deleting & ~fleet.frozen
    for rule in FILTERS:
        passing = rule.mask(request, group, fleet, previous)
        yield Rejection(rule, remaining & ~passing)
        remaining &= passing
