"""Tests of builds run their programs each time: a chart with random values prints something else each time."""

from __future__ import annotations

import pytest

from gitsched.build import process, scratch


@pytest.fixture(autouse=True)
def _remembers_no_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "run_isolated", process.run_isolated)
