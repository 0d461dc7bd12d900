"""Keep the replicas that clusters report as available when a rebalance asks for that: only the others are divided again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gitsched.apis.karmada.binding.resource_binding import PreviousState, binding_key
from gitsched.model.document import Body, Document, as_object
from gitsched.model.scheduling import Assignment, Request

if TYPE_CHECKING:
    from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
    from gitsched.apis.karmada.state import KarmadaState

_COUNTS: Final = ("availableReplicas", "readyReplicas", "ready")
"""Members of the status of a workload that say how many of its replicas are available; the first one counts."""


def keep_available(
    state: KarmadaState, template: Document, policy: PropagationPolicy, current: PreviousState, request: Request
) -> Request:
    """Return the request for a rebalance that moves only what is not available, if a rebalancer asks for that.

    A cluster that reports nothing keeps its replicas. So does a workload whose replicas do not follow capacity.
    """
    if not request.fresh or not state.reschedule_triggers.keeps_available(binding_key(template.key), current):
        return request
    kept: tuple[Assignment, ...] = request.previous
    if request.division in ("dynamic", "aggregated"):
        reports = state.failover.list_reports(template.key)
        counts = (one._replace(replicas=_count_available(reports.get(one.name), one.replicas)) for one in request.previous)
        kept = tuple(one for one in counts if one.replicas)
    return request._replace(fresh=False, first_group=policy.placement.find_group_index(current.observed_group), previous=kept)


def _count_available(report: Body | None, replicas: int) -> int:
    """Return how many replicas of a cluster are available, at most those that it has; all of them if it does not report any number."""
    status = as_object((report or {}).get("status"))
    if not status:
        return replicas
    known = [value for name in _COUNTS if isinstance(value := status.get(name), int) and not isinstance(value, bool)]
    # A controller leaves a number out that is 0.
    count = known[0] if known else 0 if isinstance(status.get("replicas"), int) else replicas
    return max(0, min(count, replicas))
