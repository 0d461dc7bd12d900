"""The state of the last plan beside the output branch counts only where whoever can push it is trusted."""

from __future__ import annotations

import logging

import pytest

from gitsched.reconcile import pipeline

from .conftest import Fleet

PLAN = "refs/gitsched/state/placements/plan"


def test_a_state_without_signature_counts_only_where_the_operator_says_so(
    pair: Fleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Everybody who can push a branch for a pull request can push this ref as well."""
    monkeypatch.setattr(pipeline, "MIN_SHARED_ROWS", 0)
    pair.reconcile()
    assert pair.git("for-each-ref", "refs/gitsched") == ""
    pair.git("update-ref", PLAN, "main")
    for mode, warnings in (("auto", 0), ("off", 0), ("on", 1)):
        caplog.clear()
        pair.commit({f"{mode}.txt": "x"}, hour=1)
        with caplog.at_level(logging.WARNING):
            pair.reconcile(1, cache=pair.cache / mode, state=mode)
        assert len([record for record in caplog.records if PLAN in record.message]) == warnings
