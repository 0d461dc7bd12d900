"""Filters of the replica scheduler: which candidates a request may use, and the reason for each rejected one.

A filter is one class with a name, a mask and a reason, and one line in FILTERS. Masks are sets of candidates (see fleet); reasons are
computed only when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from gitsched.model.scheduling import AffinityGroup, Request
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE
from gitsched.schedule.fleet import Fleet


class FilterPlugin(Protocol):
    """The whole contract. `held` candidates are those of the last result."""

    name: str

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, held: int) -> int:
        """The candidates that pass."""
        ...

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        """Why this candidate, which did not pass, did not."""
        ...


class ClusterAffinityFilter:
    name = "ClusterAffinity"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, held: int) -> int:
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
    name = "TaintToleration"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, held: int) -> int:
        return held | fleet.all & ~fleet.untolerated(request.tolerations)

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        for taint in fleet.candidates[index].taints:
            if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in request.tolerations):
                return f"cluster(s) had untolerated taint {{{taint}}}"
        return "cluster(s) had untolerated taint"


class APIEnablementFilter:
    name = "APIEnablement"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, held: int) -> int:
        return fleet.all if request.required_api is None else held | fleet.serving(request.required_api)

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        return "cluster(s) did not have the API resource"


class SpreadConstraintFilter:
    name = "SpreadConstraint"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, held: int) -> int:
        mask = fleet.all
        for field in request.required_fields:
            mask &= fleet.with_field(field)
        return mask

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        fields = fleet.candidates[index].fields
        missing = next((field for field in request.required_fields if not fields.get(field)), "spread")
        return f"cluster(s) did not have {missing} property"


class ClusterEvictionFilter:
    name = "ClusterEviction"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, held: int) -> int:
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
    """The candidates that a filter was the first to refuse."""

    filter: FilterPlugin
    mask: int


def find_feasible(request: Request, group: AffinityGroup, fleet: Fleet) -> int:
    """The candidates that pass every filter. Leaving ones are dropped; frozen ones keep what they hold and get nothing new."""
    held = fleet.mask(target.name for target in request.previous)
    mask = fleet.all & ~fleet.deleting & ~fleet.frozen
    for rule in FILTERS:
        mask &= rule.mask(request, group, fleet, held)
    return mask | held & fleet.frozen & ~fleet.mask(request.evicted)


def list_rejections(request: Request, group: AffinityGroup, fleet: Fleet) -> Iterator[Rejection]:
    """Each filter with what it was the first to refuse, in the order in which they are asked."""
    held = fleet.mask(target.name for target in request.previous)
    left = fleet.all & ~fleet.deleting & ~fleet.frozen
    for rule in FILTERS:
        passing = rule.mask(request, group, fleet, held)
        yield Rejection(rule, left & ~passing)
        left &= passing
