"""Simulations as `-o json` and `-o yaml` show them: plain data, members in reading order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gitsched.model.simulation import Effect, Resilience, ResilienceChange, Scope, Shift, Simulation
from gitsched.report.data import API_VERSION


def describe_simulation(value: Simulation) -> dict[str, Any]:
    """`kind: Simulation` of docs/cli.md."""
    return {"apiVersion": API_VERSION, "kind": "Simulation", **_event(value)}


def describe_resilience(value: Resilience) -> dict[str, Any]:
    """`kind: Resilience` of docs/cli.md."""
    return {"apiVersion": API_VERSION, "kind": "Resilience", **_table(value)}


def describe_resilience_change(value: ResilienceChange) -> dict[str, Any]:
    """`kind: ResilienceChange` of docs/cli.md."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ResilienceChange",
        **describe_losses(value),
    }


def describe_losses(value: Resilience | ResilienceChange) -> dict[str, Any]:
    """The member `resilience` of a Plan: the table, or two of them with their difference."""
    if isinstance(value, ResilienceChange):
        return {"shifts": [_shift(shift) for shift in value.shifts], "base": _table(value.base), "head": _table(value.head)}
    return _table(value)


def _table(value: Resilience) -> dict[str, Any]:
    return {
        "by": value.by,
        "clusters": value.clusters,
        "workloads": value.workloads,
        "roomUnknown": list(value.unknown),
        "losses": [_event(row) for row in value.rows],
    }


def _event(value: Simulation) -> dict[str, Any]:
    return {
        "event": value.event,
        "scope": _scope(value.scope) if value.scope else None,
        "lost": list(value.lost),
        "drained": list(value.drained),
        "added": list(value.added),
        "partlyLost": list(value.partial),
        "workloads": value.workloads,
        "moved": value.moved,
        "starting": value.moving,
        "homeless": len(value.homeless),
        "short": value.short,
        "waiting": value.waiting,
        "effects": [_effect(effect) for effect in value.effects],
        "full": [crowd._asdict() for crowd in value.crowds],
        "roomAssumed": list(value.assumed),
    }


def _effect(effect: Effect) -> dict[str, Any]:
    return {
        "workload": effect.key._asdict(),
        "policy": effect.policy,
        "before": _places(effect.before),
        "after": _places(effect.after),
        "replicas": effect.replicas,
        "short": effect.short,
        "shortBefore": effect.short_before,
        "waiting": effect.waiting,
        "homeless": effect.homeless,
        "why": effect.why,
    }


def _shift(shift: Shift) -> dict[str, Any]:
    return {
        "loss": _scope(shift.scope),
        "workload": shift.key._asdict(),
        "before": shift.before,
        "after": shift.after,
        "homeless": shift.homeless,
        "worse": shift.worse,
        "cause": shift.cause,
    }


def _scope(scope: Scope) -> dict[str, str]:
    return {"by": scope.by, "name": scope.name}


def _places(places: Mapping[str, int | None]) -> list[dict[str, Any]]:
    return [{"cluster": cluster, "replicas": places[cluster]} for cluster in sorted(places)]
