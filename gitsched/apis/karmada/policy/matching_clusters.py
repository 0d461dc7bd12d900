"""The clusters that the affinity groups of a policy match, whatever else filters say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
    from gitsched.schedule.fleet import Fleet


def find_matching_mask(fleet: Fleet, policy: PropagationPolicy) -> int:
    """Return the clusters that an affinity group of a policy matches, as a set of candidates of the fleet."""
    mask = 0
    for group in policy.placement.groups:
        mask |= fleet.all if group.affinity is None else fleet.matching(group.affinity)
        for affinity in group.overflow:
            mask |= fleet.matching(affinity)
    return mask


def list_matching_clusters(fleet: Fleet, policy: PropagationPolicy) -> frozenset[str]:
    """Return the names of these clusters."""
    mask = find_matching_mask(fleet, policy)
    return fleet.get_or_compute(("names", mask), lambda: frozenset(fleet.names[i] for i in fleet.members(mask)))
