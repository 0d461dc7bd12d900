"""`validate --fail-on` has the same meaning as for plan and reconcile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import POLICY, Run


@pytest.mark.parametrize(("what", "code"), [("error", 0), ("unschedulable", 1), ("none", 0)])
def test_an_unplaced_workload_fails_validation_on_request(
    gitsched: Run, fleet: Path, commit: Callable[..., None], what: str, code: int
) -> None:
    commit(fleet, policy=POLICY.replace("ownership: private", "ownership: nobody").replace("ownership: cloud", "ownership: nobody"))
    assert gitsched("validate", "--fail-on", what).returncode == code
