"""Who has taken the capacity that a workload would need. Of other tenants it is said how much, not who."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from gitsched.model.finding import format_names

if TYPE_CHECKING:
    from gitsched.model.document import Key
    from gitsched.schedule.shared_capacity import CapacityShare

FindOwner = Callable[["Key"], str]
OTHER_TENANTS = "workloads of other tenants"


def describe_takers(workload: Key, share: CapacityShare, clusters: Collection[str], find_owner: FindOwner) -> str:
    """Say what was placed before a workload on clusters on which it would have been placed alone."""
    where = f"alone it would be placed on {format_names(sorted(clusters))}"
    before = [entry for entry in share.shared.taken[: share.position] if entry.candidate in clusters]
    if not before:
        return f"{where}, but the workloads that earlier runs placed there need the capacity"
    names = dict.fromkeys(name_taker(entry.workload, workload, find_owner) for entry in before)
    return f"{where}, but this run places {format_names(list(names))} there before it"


def name_taker(taker: Key, workload: Key, find_owner: FindOwner) -> str:
    """Return the name of a workload for another one, or that it belongs to another tenant."""
    return str(taker) if find_owner(taker) == find_owner(workload) else OTHER_TENANTS
