"""What the requests of the scheduler have in common for the workloads of a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.model.scheduling import ReplicaDivision
from gitsched.schedule.request_classes import RequestClass

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState


def build_request_class(
    state: KarmadaState,
    policy: PropagationPolicy,
    api: tuple[str, str],
    division: ReplicaDivision,
    first_group: int,
    *,
    fresh: bool = False,
) -> RequestClass:
    """Return what the requests for the workloads of an API (apiVersion, kind) have in common which a policy places, of those with a
    division and without variants. They start at a group, and with `fresh` ignore where a workload is."""
    placement = policy.placement
    return RequestClass(
        identity="",
        replicas=0,
        division=division,
        groups=placement.groups,
        divides=placement.is_divided,
        first_group=first_group,
        tolerations=placement.tolerations,
        required_api=api,
        required_fields=placement.spread_fields,
        weights=placement.weights,
        spread_constraints=() if placement.division == "static" else placement.spreads,
        fresh=fresh,
        keep_empty=state.settings.enable_empty_workload_propagation,
    )
