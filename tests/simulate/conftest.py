"""A fleet of four clusters in two regions with the workloads of a shop."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gitsched.cli import main
from tests.scenarios.conftest import Fleet, at_hour, deployment, fleet, make_fleet

__all__ = [
    "OFF",
    "SHOP",
    "Explain",
    "Fleet",
    "Simulate",
    "cluster",
    "deployment",
    "divide",
    "effects",
    "explain",
    "fleet",
    "make_fleet",
    "plan",
    "replicas_by_cluster",
    "shop",
    "simulate",
]

Simulate = Explain = Callable[..., Any]
OFF = "apiVersion: gitsched.io/v1alpha1\nkind: Config\nmetadata: {name: gitsched}\nspec: {karmada: {overcommitProtection: false}}\n"
"""Settings with which each workload is placed alone."""


def cluster(
    name: str, *, region: str = "west", zone: str = "", pods: int | None = None, cpu: int = 100, provider: str = "own"
) -> str:
    """Return a Cluster, with its capacity if `pods` is given."""
    status = (
        f"status:\n  resourceSummary:\n    allocatable: {{cpu: '{cpu}', memory: 1Ti, pods: '{pods}'}}\n" if pods is not None else ""
    )
    spec = f"  syncMode: Push\n  region: {region}\n  provider: {provider}\n" + (f"  zones: [{zone}]\n" if zone else "")
    return f"apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata:\n  name: {name}\nspec:\n{spec}{status}"


def divide(name: str, where: str, how: str = "{replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}") -> str:
    """Return a policy in `default` for the Deployment of the same name."""
    return (
        f"apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {{name: {name}, namespace: default}}\nspec:\n"
        f"  resourceSelectors:\n  - {{apiVersion: apps/v1, kind: Deployment, name: {name}}}\n  placement:\n"
        f"    clusterAffinity:\n      {where}\n    replicaScheduling: {how}\n"
    )


WEIGHTED = "{replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}"
SHOP: dict[str, str] = {
    "clusters/w1.yaml": cluster("w1", zone="wa", pods=50),
    "clusters/w2.yaml": cluster("w2", zone="wb", pods=50),
    "clusters/e1.yaml": cluster("e1", region="east", zone="ea", pods=50),
    "clusters/e2.yaml": cluster("e2", region="east", zone="ea, eb", pods=50),
    "apps/cart.yaml": deployment("cart", 4),
    "apps/pay.yaml": deployment("pay", 3),
    "apps/site.yaml": deployment("site", 2),
    "policies/cart.yaml": divide("cart", "clusterNames: [w1, w2, e1]", WEIGHTED),
    "policies/pay.yaml": divide("pay", "clusterNames: [w1, w2]", WEIGHTED),
    "policies/site.yaml": divide("site", "labelSelector: {}", "{replicaSchedulingType: Duplicated}"),
}


@pytest.fixture
def shop(fleet: Fleet) -> Fleet:
    """The fleet with the workloads of the shop, reconciled."""
    fleet.commit(SHOP)
    fleet.reconcile()
    return fleet


@pytest.fixture
def simulate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fleet: Fleet) -> Simulate:
    """Run `gitsched simulate`; return its output, parsed if it is JSON. `code` is the expected exit code."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, code: int = 0) -> Any:
        capsys.readouterr()
        found = main(["simulate", "-C", str(fleet.path), "--now", "2026-03-02T10:00:00Z", *arguments])
        printed = capsys.readouterr()
        assert found == code, printed.err
        return json.loads(printed.out) if "json" in arguments else printed.out + printed.err

    return run


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fleet: Fleet) -> Explain:
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert main(["explain", "-C", str(fleet.path), "--now", at_hour(2).isoformat(), *arguments]) == code
        printed = capsys.readouterr()
        return json.loads(printed.out) if "json" in arguments else printed.out + printed.err

    return run


@pytest.fixture
def plan(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fleet: Fleet) -> Simulate:
    """Run `gitsched plan`; return its output, parsed if it is JSON."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Any:
        capsys.readouterr()
        assert main(["plan", "-C", str(fleet.path), "--now", at_hour(2).isoformat(), *arguments]) == 0
        printed = capsys.readouterr()
        return json.loads(printed.out) if "json" in arguments else printed.out

    return run


def effects(found: Any) -> dict[str, Any]:
    """Return the effects of a simulation by the name of the workload."""
    return {effect["workload"]["name"]: effect for effect in found["effects"]}


def replicas_by_cluster(entries: list[dict[str, Any]]) -> dict[str, int | None]:
    return {entry["cluster"]: entry["replicas"] for entry in entries}
