"""CEL timestamps and durations; time zones are offsets such as +02:00."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

from gitsched.apis.ocm.cel.overloads import cel_function
from gitsched.apis.ocm.cel.types import MAX_INT, MIN_INT, EvaluationError
from gitsched.model.time import EPOCH, parse_time

_DURATION_PART = re.compile(r"([0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(ns|us|µs|μs|ms|s|m|h)")
_MAX_DURATION_LENGTH = 1_000
"""The most characters of a duration; a longer string is invalid."""
_NANOSECONDS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 6 * 10**10, "h": 36 * 10**11}
_ZONE_OFFSET = re.compile(r"([+-]?)([0-9]{2}):([0-9]{2})")


def parse_timestamp(value: Any) -> datetime:
    """Convert a string, or seconds since 1970, to a timestamp."""
    if isinstance(value, datetime):
        return value
    time = parse_time(value)
    if time is None and isinstance(value, int):
        try:
            time = EPOCH + timedelta(seconds=value)
        except OverflowError:
            time = None
    if time is None:
        raise EvaluationError("not a timestamp")
    return time


def parse_go_duration(value: Any) -> timedelta:
    """Parse a duration in Go's format: -1h30m, 0.5s."""
    if isinstance(value, timedelta):
        return value
    if len(value) > _MAX_DURATION_LENGTH:
        raise EvaluationError("not a duration")
    sign, text = (-1, value[1:]) if value.startswith("-") else (1, value.removeprefix("+"))
    parts = list(_DURATION_PART.finditer(text))
    if text != "0" and (not parts or "".join(part[0] for part in parts) != text):
        raise EvaluationError("not a duration")
    nanoseconds = sign * sum(Fraction(part[1]) * _NANOSECONDS[part[2]] for part in parts)
    if not MIN_INT <= nanoseconds <= MAX_INT:
        raise EvaluationError("not a duration")
    return timedelta(microseconds=float(nanoseconds / 1000))


def limit_duration(value: Any) -> Any:
    """Return the value; EvaluationError if it is a duration of more than 64 bits of nanoseconds (292 years)."""
    if isinstance(value, timedelta) and not MIN_INT // 1000 <= value // timedelta(microseconds=1) <= MAX_INT // 1000:
        raise EvaluationError("integer overflow")
    return value


def format_duration(duration: timedelta) -> str:
    """Format a duration in seconds, as CEL does."""
    seconds = duration / timedelta(seconds=1)
    return f"{seconds:.6f}".rstrip("0").rstrip(".") + "s"


def _in_time_zone(time: datetime, zone: str) -> datetime:
    if zone in ("", "UTC"):
        return time.astimezone(UTC)
    match = _ZONE_OFFSET.fullmatch(zone)
    if match is None:
        raise EvaluationError(f"time zone {zone!r} is not supported: use an offset such as +02:00")
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    if offset >= timedelta(hours=24):
        raise EvaluationError("not a time zone")
    return time.astimezone(timezone(-offset if match[1] == "-" else offset))


@cel_function("timestamp.getFullYear(): int", "timestamp.getFullYear(string): int")
def get_full_year(time: datetime, zone: str = "") -> int:
    return _in_time_zone(time, zone).year


@cel_function("timestamp.getMonth(): int", "timestamp.getMonth(string): int")
def get_month(time: datetime, zone: str = "") -> int:
    return _in_time_zone(time, zone).month - 1


@cel_function("timestamp.getDate(): int", "timestamp.getDate(string): int")
def get_date(time: datetime, zone: str = "") -> int:
    return _in_time_zone(time, zone).day


@cel_function("timestamp.getDayOfMonth(): int", "timestamp.getDayOfMonth(string): int")
def get_day_of_month(time: datetime, zone: str = "") -> int:
    return _in_time_zone(time, zone).day - 1


@cel_function("timestamp.getDayOfWeek(): int", "timestamp.getDayOfWeek(string): int")
def get_day_of_week(time: datetime, zone: str = "") -> int:
    return _in_time_zone(time, zone).isoweekday() % 7


@cel_function("timestamp.getDayOfYear(): int", "timestamp.getDayOfYear(string): int")
def get_day_of_year(time: datetime, zone: str = "") -> int:
    return _in_time_zone(time, zone).timetuple().tm_yday - 1


@cel_function("timestamp.getHours(): int", "timestamp.getHours(string): int")
def get_hours(time: datetime, zone: str = "") -> int:
    return _in_time_zone(time, zone).hour


@cel_function("timestamp.getMinutes(): int", "timestamp.getMinutes(string): int")
def get_minutes(time: datetime, zone: str = "") -> int:
    return _in_time_zone(time, zone).minute


@cel_function("timestamp.getSeconds(): int", "timestamp.getSeconds(string): int")
def get_seconds(time: datetime, zone: str = "") -> int:
    return _in_time_zone(time, zone).second


@cel_function("timestamp.getMilliseconds(): int", "timestamp.getMilliseconds(string): int")
def get_milliseconds(time: datetime, zone: str = "") -> int:
    return _in_time_zone(time, zone).microsecond // 1000


@cel_function("duration.getHours(): int")
def duration_hours(duration: timedelta) -> int:
    return _count_units(duration, timedelta(hours=1))


@cel_function("duration.getMinutes(): int")
def duration_minutes(duration: timedelta) -> int:
    return _count_units(duration, timedelta(minutes=1))


@cel_function("duration.getSeconds(): int")
def duration_seconds(duration: timedelta) -> int:
    return _count_units(duration, timedelta(seconds=1))


@cel_function("duration.getMilliseconds(): int")
def duration_milliseconds(duration: timedelta) -> int:
    return _count_units(duration, timedelta(milliseconds=1)) % 1000


def _count_units(duration: timedelta, unit: timedelta) -> int:
    return int(duration / unit)
