"""What explain says about workloads that are set aside, stand elsewhere, or are named with their group."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import WORKLOAD, Run


@pytest.mark.parametrize("words", ["deployment.apps/shop/web", "deployments.apps/shop/web", "Deployment.v1.apps/shop/web"])
def test_a_kind_may_have_its_group(gitsched: Run, words: str) -> None:
    found = gitsched("explain", words)
    assert (found.returncode, found.stdout.partition(" ")[0]) == (0, "Deployment.apps/shop/web"), found.stderr


def test_another_group_is_another_workload(gitsched: Run) -> None:
    found = gitsched("explain", "deployment.example.org/shop/web")
    assert found.returncode == 1
    assert "there is no Deployment.example.org shop/web" in found.stderr


def test_a_missing_namespace_is_suggested(gitsched: Run) -> None:
    found = gitsched("explain", "deploy/web")
    assert found.returncode == 1
    assert "there is one of that name in: shop" in found.stderr


def test_an_object_that_stands_twice_is_explained_by_its_places(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, copy=WORKLOAD)
    found = gitsched("explain", "deploy/shop/web")
    assert found.returncode == 0, found.stderr
    assert "stands in several places" in found.stdout
    assert "copy.yaml:1, web.yaml:1" in found.stdout


def test_a_broken_object_is_explained_by_its_finding(gitsched: Run, fleet: Path, commit: Callable[..., None]) -> None:
    commit(fleet, sick=WORKLOAD.replace("name: web", "name: sick\n  labels: {a: 1}"))
    found = gitsched("explain", "deploy/shop/sick")
    assert found.returncode == 0, found.stderr
    assert "its document is broken" in found.stdout
    assert "[invalid-labels]" in found.stdout
