"""Tests of builds run their programs each time: a chart with random values prints something else each time."""

from __future__ import annotations

import pytest

from gitsched.build import helm, kustomize, scratch


@pytest.fixture(autouse=True)
def _remembers_no_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kustomize, "run_on_files", scratch.run_on_files)
    monkeypatch.setattr(helm, "run_on_files", scratch.run_on_files)
