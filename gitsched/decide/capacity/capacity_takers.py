"""Who has taken the capacity that a workload would need. Of other tenants it is said how much, not who."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from gitsched.model.finding import format_names

if TYPE_CHECKING:
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.model.document import Key
    from gitsched.schedule.shared_capacity import CapacityShare

OTHER_TENANTS = "workloads of other tenants"


def describe_takers(workload: Key, share: CapacityShare, clusters: Collection[str], tenancy: Tenancy | None) -> str:
    """Say what was placed before a workload on clusters on which it would have been placed alone."""
    where = f"alone it would be placed on {format_names(sorted(clusters))}"
    before = [entry for entry in share.shared.taken[: share.position] if entry.candidate in clusters]
    if not before:
        return f"{where}, but the workloads that earlier runs placed there need the capacity"
    names = dict.fromkeys(name_taker(entry.workload, workload, tenancy) for entry in before)
    return f"{where}, but this run places {format_names(list(names))} there before it"


def name_taker(taker: Key, workload: Key, tenancy: Tenancy | None) -> str:
    """Return the name of a workload for another one, or that it belongs to another tenant."""
    is_known = tenancy is None or tenancy.find_owner(taker) == tenancy.find_owner(workload)
    return str(taker) if is_known else OTHER_TENANTS
