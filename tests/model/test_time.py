"""Timestamps and durations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.time import EPOCH, format_time, parse_duration, parse_time
from tests.tables import each_row


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02t03:04:05z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
        ("2026-01-01T23:30:00-01:30", "2026-01-02T01:00:00Z"),
        ("2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.500000Z"),
        ("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123456Z"),
        ("2026-01-02T03:04:05.000Z", "2026-01-02T03:04:05Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_a_timestamp_is_parsed_as_utc(text: str, written: str) -> None:
    time = parse_time(text)
    assert time is not None
    assert format_time(time) == written


@each_row(
    "text",
    [
        *("", "2026-01-02", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05", "2026-01-02T03:04Z", "2026-1-2T03:04:05Z"),
        *("2026-13-01T00:00:00Z", "2025-02-29T00:00:00Z", "2026-01-02T25:00:00Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05Zx"),
        *("2026-01-02T03:04:05+0200", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "٢026-01-02T03:04:05Z"),
        *(None, 7, True, [], {}),
    ],
)
def test_anything_else_is_not_a_timestamp(text: Any) -> None:
    assert parse_time(text) is None


def test_a_naive_datetime_counts_as_utc() -> None:
    assert parse_time(datetime(1970, 1, 1)) == EPOCH  # noqa: DTZ001 - tests a time without a zone
    assert parse_time(datetime(1970, 1, 1, tzinfo=UTC)) == EPOCH


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_formatted_time_parses_to_the_same_time(time: datetime) -> None:
    assert parse_time(format_time(time)) == time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("90s", 90),
        ("10m", 600),
        ("24h", 86400),
        ("1h30m", 5400),
        ("1h30m10s", 5410),
        ("1.5h", 5400),
        ("500ms", 0.5),
        ("1m500ms", 60.5),
    ],
)
def test_a_go_duration_is_parsed(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@each_row(
    "text", ["", "10", "m", "10 m", " 10m", "10m ", "1d", "10M", "1h-5m", "-5m", "1h:30m", "9" * 30 + "h", None, 10, True, ["10m"]]
)
def test_anything_else_is_not_a_duration(text: Any) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize("text", ["1" * 3_000_000, "1" * 3_000_000 + "h", "1." * 1_000_000, "1h" * 1_000_000])
def test_a_long_text_is_rejected_as_a_duration_quickly(text: str) -> None:
    """Each would take hours if it were looked at from every digit."""
    assert parse_duration(text) is None
