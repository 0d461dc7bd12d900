"""What workloads use of clusters: what they request together, and what was placed since the facts about a cluster were observed.

Amounts are whole numbers as in `gitsched.schedule.estimator`: cpu in thousandths, pods by their number, others in units, by resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.changes import RetainedCopy
    from gitsched.model.document import Key
    from gitsched.model.scheduling import EqualPods

Requests = Mapping[str, int]
"""Amounts by resource."""


class PlacedRequests(NamedTuple):
    """What one run has placed on a cluster: the time of the run, and what is requested."""

    at: datetime
    requests: Requests


class CapacityUse(NamedTuple):
    """`requested` is what all workloads of a cluster request there, by cluster; `placed` are the requests of runs after the facts about a
    cluster were observed, oldest first. `limited` are the workloads that got another placement, or none, because of what others use: each
    run decides them again."""

    requested: Mapping[str, Requests] = {}
    placed: Mapping[str, tuple[PlacedRequests, ...]] = {}
    limited: frozenset[Key] = frozenset()


NO_CAPACITY_USE = CapacityUse()


class EarlierPlacements(NamedTuple):
    """What the output branch says about placements: what was `placed` since the facts about clusters were observed, the copies that it
    has only for an overlap, and the pods by cluster of workloads whose removal is `withheld`."""

    placed: Mapping[str, tuple[PlacedRequests, ...]] = {}
    retained: tuple[RetainedCopy, ...] = ()
    withheld: Mapping[Key, Mapping[str, tuple[EqualPods, ...]]] = {}


NO_PLACEMENTS = EarlierPlacements()


def add_requests(parts: Iterable[Requests]) -> dict[str, int]:
    """Return the sum of requests, without resources of which it is 0."""
    total: dict[str, int] = {}
    for part in parts:
        add_amounts(total, part)
    return {name: amount for name, amount in total.items() if amount}


def add_amounts(total: dict[str, int], part: Requests) -> None:
    """Add the amounts of `part` to `total`, resource by resource."""
    for name, amount in part.items():
        total[name] = total.get(name, 0) + amount
