"""Clusters that cannot run workloads, so that leaving them is failover."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.model.taints import NO_EXECUTE, is_controller_taint

if TYPE_CHECKING:
    from gitsched.apis.karmada.state import KarmadaState


def list_unavailable(state: KarmadaState) -> dict[str, str]:
    """Return the clusters that evict, are not ready or are being deleted, with the reason."""
    found = {}
    for candidate in state.fleet.candidates:
        taint = next((taint for taint in candidate.taints if taint.effect == NO_EXECUTE), None)
        if candidate.deleting:
            found[candidate.name] = "it is being deleted"
        elif taint is not None:
            found[candidate.name] = f"it has the taint {taint.key}:{taint.effect}"
        elif candidate.name in state.unready_clusters:
            found[candidate.name] = "it is not ready"
    return found


def list_reported_unready(state: KarmadaState) -> frozenset[str]:
    """Return the clusters of which only reported facts say that they are not available."""
    found = set[str]()
    for candidate in state.fleet.candidates:
        evicting = [taint for taint in candidate.taints if taint.effect == NO_EXECUTE]
        added = {entry.taint for entry in state.added_taints.get(candidate.name, ())}
        is_reported = candidate.name in state.unready_clusters or bool(evicting)
        if is_reported and not candidate.deleting and all(t in added or is_controller_taint(t) for t in evicting):
            found.add(candidate.name)
    return frozenset(found)
