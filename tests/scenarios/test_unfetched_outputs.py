"""A clone that fetches only a part of its origin may lack the output branch: plan, status and a run say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.model.finding import OUTPUT_NOT_FETCHED
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.report.fleet_status import write_fleet_status
from gitsched.report.text import summarize_plan

from .conftest import Fleet, execute


def clone_single_branch(origin: str, path: Path) -> None:
    execute("clone", "-q", "--single-branch", "--branch=main", origin, str(path), at=path.parent)


def check_out_shallow(origin: str, path: Path) -> None:
    """Do what actions/checkout does."""
    execute("init", "-q", str(path), at=path.parent)
    execute("remote", "add", "origin", origin, at=path)
    execute("fetch", "-q", "--depth=1", "origin", "+refs/heads/main:refs/remotes/origin/main", at=path)
    execute("checkout", "-q", "-B", "main", "origin/main", at=path)


@pytest.mark.parametrize(
    ("clone", "why"), [(clone_single_branch, "fetches only main"), (check_out_shallow, "is shallow")], ids=["one branch", "shallow"]
)
def test_a_clone_without_the_output_branch_is_described(pair: Fleet, tmp_path: Path, clone: object, why: str) -> None:
    pair.reconcile()
    assert callable(clone)
    clone(f"file://{pair.path}", tmp_path / "clone")
    settings = Fleet(tmp_path / "clone", tmp_path / "other").settings()
    review = compare_plans(settings).review
    (finding,) = [finding for finding in review.findings if finding.code == OUTPUT_NOT_FETCHED]
    assert f"this clone of origin {why}" in finding.message
    assert "--fetch origin" in finding.message
    assert summarize_plan(review).startswith("The output branch was not fetched, so that everything counts as new: ")
    assert why in write_fleet_status(read_fleet_status(settings))
    fetched = compare_plans(settings._replace(push="origin")).review
    assert OUTPUT_NOT_FETCHED not in {finding.code for finding in fetched.findings}
    assert summarize_plan(fetched).startswith("No changes: ")


def test_a_whole_clone_of_a_source_without_output_makes_a_first_placement(pair: Fleet, tmp_path: Path) -> None:
    execute("clone", "-q", str(pair.path), str(tmp_path / "clone"), at=tmp_path)
    review = compare_plans(Fleet(tmp_path / "clone", tmp_path / "other").settings()).review
    assert OUTPUT_NOT_FETCHED not in {finding.code for finding in review.findings}
    assert summarize_plan(review).startswith("First placement: ")
