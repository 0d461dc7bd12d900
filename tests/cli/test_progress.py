"""Progress on a terminal: stages and counts on stderr, throttled, and nothing elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitsched.cli import output
from gitsched.reconcile.review.comparison import compare_plans
from gitsched.report.serialization import serialize_review
from tests.scenarios.conftest import Fleet
from tests.simulate.conftest import SHOP


def test_a_plan_reports_its_stages_and_counts_without_an_effect_on_the_result(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path / "fleet", tmp_path / "cache")
    fleet.commit(SHOP)
    fleet.reconcile()
    fleet.commit({"policies/cart.yaml": SHOP["policies/cart.yaml"].replace("[w1, w2, e1]", "[e1]")}, hour=1)
    seen: list[tuple[str, int, int]] = []

    def note(*entry: str | int) -> None:
        seen.append(entry)  # type: ignore[arg-type]

    silent, noted = (
        serialize_review(compare_plans(fleet.settings(2, cache=tmp_path / name, progress=progress)).review)
        for name, progress in (("one", None), ("other", note))
    )
    assert noted == silent
    assert list(dict.fromkeys(stage for stage, _, _ in seen)) == [
        "fetching",
        "reading files",
        "observing",
        "deciding workloads",
        "searching causes, decisions",
    ]
    assert [entry for entry in seen if entry[0] == "deciding workloads"] == [("deciding workloads", done, 3) for done in range(3)]
    assert all(0 <= done <= total for _, done, total in seen)


def test_a_line_is_written_when_the_stage_changes_and_else_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(output.time, "monotonic", lambda: now[0])
    lines: list[str] = []
    line = output._ProgressLine("Planning", lines.append, 0.1, timed=False)
    line("fetching", 0, 0)
    for done in range(3_000):
        now[0] += 0.03
        line("reading files", done, 3_000)
    line("deciding workloads", 0, 3_000)
    assert lines[:3] == ["Planning: fetching", "Planning: reading files 0 of 3,000", "Planning: reading files 4 of 3,000"]
    assert lines[-1] == "Planning: deciding workloads 0 of 3,000"
    assert 740 <= len(lines) <= 760


def test_nothing_is_shown_unless_stderr_is_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with output.show_progress("Planning") as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")
