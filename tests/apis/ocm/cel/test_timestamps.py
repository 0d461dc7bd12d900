"""Durations of CEL."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gitsched.apis.ocm.cel.timestamps import format_duration, parse_go_duration
from gitsched.apis.ocm.cel.types import EvaluationError


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("-1h30m", -5400), ("0.5s", 0.5), ("1.5h", 5400), (".5m", 30), ("+2ms", 0.002), ("3us", 3e-6)]
)
def test_a_duration_has_the_format_of_go(text: str, seconds: float) -> None:
    assert parse_go_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "1", "1d", "h", "1h 2m", "3000000h", "--1s"])
def test_an_invalid_duration_is_an_error(text: str) -> None:
    with pytest.raises(EvaluationError, match="not a duration"):
        parse_go_duration(text)


def test_a_duration_is_formatted_in_seconds() -> None:
    assert [format_duration(timedelta(seconds=s)) for s in (0, 90, -1.5)] == ["0s", "90s", "-1.5s"]


@pytest.mark.parametrize("text", ["1" * 100_000, "1" * 100_000 + "h", "." * 100_000, "1." * 50_000, "1h" * 50_000])
def test_an_invalid_duration_of_any_length_is_rejected_in_linear_time(text: str) -> None:
    with pytest.raises(EvaluationError):
        parse_go_duration(text)
