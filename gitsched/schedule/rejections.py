"""Which filter rejects which candidates, for findings and explanations."""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.model.scheduling import AffinityGroup, Request
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import FilterPlugin, Fleet, list_filters


class Rejection(NamedTuple):
    """The candidates that a filter was the first to reject."""

    filter: FilterPlugin
    mask: int


def list_rejections(request: Request, group: AffinityGroup, fleet: Fleet) -> Iterator[Rejection]:
    """Yield each filter with the candidates that it was the first to reject, in the order of filters."""
    previous = fleet.mask(target.name for target in request.previous)
    remaining = fleet.all & ~fleet.deleting & ~fleet.frozen
    for rule in list_filters():
        passing = rule.mask(request, group, fleet, previous)
        yield Rejection(rule, remaining & ~passing)
        remaining &= passing
