"""The documented JSON and YAML of simulations and of tables of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gitsched.model.simulation import ResilienceChange
from gitsched.report.lines import serialize_clusters
from gitsched.report.many_losses import is_many, serialize_many_losses
from gitsched.report.serialization import (
    API_VERSION,
    serialize_causes,
    serialize_record_change,
    serialize_source,
)

if TYPE_CHECKING:
    from gitsched.model.simulation import FailureDomain, ImpactChange, Resilience, SimulatedSource, Simulation, WorkloadEffect


def serialize_simulated_source(value: SimulatedSource) -> dict[str, Any]:
    """Return the members `source` and `against` of a simulation; null stands for a worktree."""
    commits = {"source": value.commit, **({"against": value.against} if value.against is not None else {})}
    return {name: serialize_source(one) if one.commit else None for name, one in commits.items()}


def serialize_simulation(value: Simulation) -> dict[str, Any]:
    """Return a simulation as `kind: Simulation` of docs/development/json.md."""
    return {"apiVersion": API_VERSION, "kind": "Simulation", **_serialize_event(value)}


def serialize_resilience(value: Resilience) -> dict[str, Any]:
    """Return a table of losses as `kind: Resilience` of docs/development/json.md."""
    return {"apiVersion": API_VERSION, "kind": "Resilience", **_serialize_loss_table(value)}


def serialize_resilience_change(value: ResilienceChange) -> dict[str, Any]:
    """Return a comparison of two tables of losses as `kind: ResilienceChange` of docs/development/json.md."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ResilienceChange",
        **serialize_losses(value),
    }


def serialize_losses(value: Resilience | ResilienceChange) -> dict[str, Any]:
    """Return the member `resilience` of a Plan: a table of losses, or two tables and their differences."""
    if isinstance(value, ResilienceChange):
        return {
            "shifts": [_serialize_shift(change) for change in value.impact_changes],
            "base": _serialize_loss_table(value.base),
            "head": _serialize_loss_table(value.head),
        }
    return _serialize_loss_table(value)


def _serialize_loss_table(value: Resilience) -> dict[str, Any]:
    return {
        "by": value.domain_kind,
        "clusters": value.clusters,
        "workloads": value.workloads,
        "roomUnknown": list(value.unknown_capacity),
        "losses": [_serialize_event(row) for row in value.rows],
        **(serialize_many_losses(value) if is_many(value) else {}),
    }


def _serialize_event(value: Simulation) -> dict[str, Any]:
    return {
        "event": value.event,
        "scope": _serialize_scope(value.domain) if value.domain else None,
        "lost": list(value.lost),
        "drained": list(value.drained),
        "added": list(value.added),
        "partlyLost": list(value.partly_lost),
        "workloads": value.workloads,
        "moved": value.moved,
        "starting": value.started_replicas,
        "homeless": len(value.unplaced),
        "short": value.shortfall,
        "waiting": value.waiting,
        "reduced": value.reduced_workloads,
        "effects": [_serialize_effect(effect) for effect in value.effects],
        "recordChanges": list(map(serialize_record_change, value.record_changes)),
        "full": [cluster._asdict() for cluster in value.overloaded],
        "roomAssumed": list(value.unknown_capacity),
    }


def _serialize_effect(effect: WorkloadEffect) -> dict[str, Any]:
    return {
        "workload": effect.key._asdict(),
        "policy": effect.policy,
        "before": serialize_clusters(effect.before),
        "after": serialize_clusters(effect.after),
        "replicas": effect.replicas,
        "short": effect.shortfall,
        "shortBefore": effect.shortfall_before,
        "waiting": effect.waiting,
        "reduced": {"running": int(effect.running), "of": int(effect.expected)} if effect.is_reduced else None,
        "homeless": effect.becomes_unplaced,
        "why": effect.reason,
        "reserve": effect.reserved,
    }


def _serialize_shift(change: ImpactChange) -> dict[str, Any]:
    return {
        "loss": _serialize_scope(change.domain),
        "workload": change.key._asdict(),
        "before": change.before,
        "after": change.after,
        "homeless": change.becomes_unplaced,
        "homelessBefore": change.was_unplaced,
        "worse": change.is_worse,
        "cause": change.cause,
        "causes": serialize_causes(change.causes),
    }


def _serialize_scope(scope: FailureDomain) -> dict[str, str]:
    return {"by": scope.kind, "name": scope.name}
