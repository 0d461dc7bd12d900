"""`gitsched rebalance --only-unavailable`: what clusters report as available stays, and only the rest is divided again."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gitsched.cli import main

from .conftest import Fleet
from .test_rebalancer import deployment, make_cluster, prefer, shares

REPORT = """\
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: web-deployment, namespace: default}
spec: {resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}}
status:
  aggregatedStatus:
    - {clusterName: member1, health: Unhealthy, status: {replicas: 3, availableReplicas: 1}}
"""


@pytest.fixture
def waiting(fleet: Fleet) -> Fleet:
    """Three replicas are in each of two clusters, one of which is full now and has two that do not run."""
    fleet.commit(
        {
            "web.yaml": deployment("web", 6),
            "policy.yaml": prefer("dynamic"),
            "1.yaml": make_cluster("member1", 10),
            "2.yaml": make_cluster("member2", 10),
        }
    )
    fleet.reconcile()
    assert shares(fleet) == {"member1": 3, "member2": 3}
    full = {"1.yaml": make_cluster("member1", 0, used=3), "2.yaml": make_cluster("member2", 20, used=3)}
    fleet.commit({**full, "report.yaml": REPORT}, hour=1)
    fleet.reconcile(1)
    assert shares(fleet) == {"member1": 3, "member2": 3}, "a report alone moves nothing"
    return fleet


def test_what_is_available_stays_and_the_rest_moves(waiting: Fleet, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["-C", str(waiting.path), "rebalance", "deployment/web", "--only-unavailable"]) == 0
    printed = capsys.readouterr()
    document = yaml.safe_load(printed.out)
    assert document["metadata"]["annotations"] == {"gitsched.io/only-unavailable": "true"}
    assert "member1 3, member2 3 -> member1 1, member2 5" in printed.err
    waiting.commit({"request.yaml": printed.out}, hour=2)
    empty = waiting.preview(2, cache=tmp_path).tree
    run = waiting.reconcile(2)
    assert run.tree == empty
    assert shares(waiting) == {"member1": 1, "member2": 5}
    assert "a rebalance was requested" in run.plan.moves[0].reason
    head = waiting.head
    waiting.reconcile(4)
    waiting.reconcile(4.1)
    assert shares(waiting) == {"member1": 1, "member2": 5}
    assert head is not None


def test_without_the_option_all_replicas_are_divided_again(waiting: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-C", str(waiting.path), "rebalance", "deployment/web"]) == 0
    assert "member1 1, member2 5" in capsys.readouterr().err


def test_a_cluster_that_reports_nothing_keeps_its_replicas(waiting: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    waiting.commit(
        {"report.yaml": REPORT.replace("member1", "member2").replace("availableReplicas: 1", "availableReplicas: 3")}, hour=1.5
    )
    assert main(["-C", str(waiting.path), "rebalance", "deployment/web", "--only-unavailable"]) == 0
    assert "moves nothing" in capsys.readouterr().err


def test_what_fits_nowhere_else_stays(waiting: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    waiting.commit({"2.yaml": make_cluster("member2", 1, used=3)}, hour=1.5)
    assert main(["-C", str(waiting.path), "rebalance", "deployment/web", "--only-unavailable"]) == 0
    assert "moves nothing" in capsys.readouterr().err


@pytest.mark.parametrize("selection", [("--all-displaced",), ("--to", "HEAD")])
def test_the_option_is_for_chosen_workloads(waiting: Fleet, selection: tuple[str, ...]) -> None:
    assert main(["-C", str(waiting.path), "rebalance", "--only-unavailable", *selection]) == 2
