"""The clusters that a workload has left because its Tenant does not allow them, although its record still names them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.tenancy import PLATFORM
from gitsched.decide.overlap.delivered_copies import DeliveredCopies
from gitsched.decide.tenants.tenant_views import TenantClusters

if TYPE_CHECKING:
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.apis.policy_api import GroupKind
    from gitsched.model.changes import RetainedCopy
    from gitsched.model.document import Body, Document, Key
    from gitsched.model.scheduling import Outcome


def drop_left_clusters(
    outcomes: Mapping[Key, Outcome],
    tenancy: Tenancy,
    documents: Mapping[GroupKind, tuple[Document, ...]],
    records: Mapping[Key, Body],
    find_blob: Callable[[str], str | None],
    retained: Collection[RetainedCopy],
) -> dict[Key, Outcome]:
    """Return the outcomes without previous targets that no move is about: clusters that the Tenant does not allow, where the previous
    output has nothing of the workload, or only a `retained` copy.

    `documents` are those of policy APIs, `records` and `find_blob` those of the previous output.
    """
    clusters = TenantClusters(documents, tenancy)
    delivered = DeliveredCopies(records, find_blob, lambda _: True)
    copies = {(copy.workload, copy.cluster) for copy in retained}
    found = dict(outcomes)
    for key, outcome in outcomes.items():
        owner, targets = tenancy.find_owner(key), {target.cluster for target in outcome.targets}
        if owner == PLATFORM:
            continue
        left = {
            target.cluster
            for target in outcome.previous_targets
            if target.cluster not in targets
            and clusters.find_forbidding(owner, target.cluster) is not None
            and ((key, target.cluster) in copies or not delivered.has_any(outcome, target.cluster))
        }
        if left:
            kept = tuple(target for target in outcome.previous_targets if target.cluster not in left)
            found[key] = outcome._replace(previous_targets=kept)
    return found
