"""An upgrade of gitsched moves nothing: branches of earlier versions are read, and go on as the version that wrote them would have.

Each branch was recorded in the middle of something, with what that version did next (`python -m tests.upgrades.record`). If a version is
meant to do something else, change what is expected here, and say so in CHANGELOG.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.upgrades.recorded import RecordedBranch, describe_run, list_manifests, list_recorded

pytestmark = pytest.mark.long

NEEDS_KUBECTL = ("bundles",)


def list_parameters() -> Iterator[Any]:
    for name, recorded in list_recorded():
        yield pytest.param(recorded, id=name, marks=[pytest.mark.needs("kubectl")] if name.endswith(NEEDS_KUBECTL) else [])


@pytest.mark.parametrize("recorded", list(list_parameters()))
def test_a_branch_of_an_earlier_version_goes_on_without_a_move(recorded: RecordedBranch, tmp_path: Path) -> None:
    fleet = recorded.open(tmp_path / "fleet", tmp_path / "cache")
    before, manifests = fleet.head, list_manifests(fleet, "placements")
    run = fleet.reconcile(recorded.hour, observations="recorded", **recorded.options)
    assert describe_run(fleet, run).keys() <= {"withheld"}
    assert list_manifests(fleet, "placements") == manifests
    new = fleet.git("rev-list", f"{before}..placements").splitlines()
    # What a branch with rollouts records besides is in another commit.
    most = 2 if run.plan.rollout_records else 1
    assert len(new) <= most, "one commit, which rewrites what is recorded"
    for later in recorded.later:
        if later.files is not None:
            fleet.commit(later.files, hour=later.hour, message=later.message)
        run = fleet.reconcile(later.hour, observations="recorded", **recorded.options)
        assert describe_run(fleet, run) == later.expected, f"at hour {later.hour}"
